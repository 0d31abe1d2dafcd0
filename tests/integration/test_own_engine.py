"""A ChaosEngine that somebody else wrote, end to end on the embedded stack, and what Litmus' probes would see there."""

from __future__ import annotations

import json
import math
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from command import SHORT, Start, assert_nothing_left, wait_for

from aftershock.chaos.slo_probes import slo_probes
from aftershock.experiment import load_experiment, validate
from aftershock.files import data_folder
from aftershock.metrics.prometheus import PrometheusClient
from aftershock.windows import utc_now

pytestmark = pytest.mark.integration

OWN = """\
# As the public chart has it, but for the label.
apiVersion: litmuschaos.io/v1alpha1
kind: ChaosEngine
metadata:
  name: nginx-chaos
  namespace: litmus
spec:
  engineState: 'active'
  appinfo:
    appns: 'inference'
    applabel: 'app=model-server'
    appkind: 'deployment'
  chaosServiceAccount: litmus-admin
  experiments:
    - name: pod-delete
      spec:
        components:
          env:
            - name: TOTAL_CHAOS_DURATION
              value: '6'
            - name: CHAOS_INTERVAL
              value: '3'
            - name: FORCE
              value: 'true'
            - name: PODS_AFFECTED_PERC
              value: ''
"""


def test_an_engine_of_ones_own_is_run_and_judged(start: Start, tmp_path: Path) -> None:
    (tmp_path / "nginx.yaml").write_text(OWN)
    (tmp_path / "slo.yaml").write_text(stoppable())
    command = start("run", "--no-slo-watch", engine="nginx.yaml", slo="slo.yaml", **{**SHORT, "rate": "20"})
    command.wait_for_event(event="phase", phase="baseline")
    prometheus = command.state()["prometheus"]["url"]
    probes = slo_probes(
        validate({"slo": stoppable(), "backend": "litmus", "slo_probes": "http://prometheus:9090"}, "test")
    )
    assert [answers(prometheus, probe) for probe in probes] == [[5000.0], [0.5]], "no chaos phase yet"
    command.wait_for_event(event="phase", phase="chaos")
    live = wait_for(lambda: changed(prometheus, probes), 30, "a value of the chaos phase")
    code = command.finish()

    assert 0 < live < 5000 and math.isfinite(live)
    assert code in (1, 3), (
        command.output + command.errors
    )  # 3: too busy a machine for a verdict, which is another test's
    engine = yaml.safe_load((command.run / "engine.yaml").read_text())
    run_id = command.run.name
    assert engine["metadata"]["name"] == f"nginx-chaos-{run_id}"
    assert engine["metadata"]["namespace"] == "litmus"
    assert engine["metadata"]["labels"]["aftershock.io/run-id"] == run_id
    assert engine["spec"]["experiments"] == yaml.safe_load(OWN)["spec"]["experiments"]
    outcome = json.loads((command.run / "chaos_result.json").read_text())
    assert outcome["verdict"] == "Pass" and outcome["effects"] == 2, "twice within six seconds, as the engine says"
    experiment = load_experiment((command.run / "experiment.yaml").read_text())
    assert (experiment.fault, experiment.engine_namespace, experiment.engine) == ("pod-delete", "litmus", OWN)
    (errors,) = [row for row in command.verdict()["rows"] if row["objective"] == "error-rate"]
    assert errors["phases"]["chaos"]["value"] > 0.5, "the table shows what the engine did"
    assert "pod-delete" in (command.run / "report.md").read_text()
    assert_nothing_left(command)


def stoppable() -> str:
    """The canary's SLO with room in all that is time, and stop conditions that nothing reaches."""
    text = (data_folder("slo_specs") / "canary.yaml").read_text()
    text = re.sub(r"value: (60|50)\b", "value: 5000", text).replace("/ 0.06", "/ 5")
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        name, annotations = document["metadata"]["name"], document["metadata"].setdefault("annotations", {})
        if name == "latency-p99":
            annotations["aftershock.io/stop"] = "9000"
        elif name == "error-rate":
            annotations["aftershock.io/stop"] = "99"
    return yaml.safe_dump_all(documents, sort_keys=False)


def changed(prometheus: str, probes: list[dict[str, Any]]) -> float | None:
    """The latency of the chaos phase; None before there is one."""
    latency, errors = (answers(prometheus, probe) for probe in probes)
    assert len(latency) == len(errors) == 1, "always one sample"
    return latency[0] if latency != [5000.0] else None


def answers(prometheus: str, probe: dict[str, Any]) -> list[float]:
    """What the probe's query gives, once it has gone through the shell that Litmus asks with."""
    command = f'printf %s "{probe["promProbe/inputs"]["query"]}"'
    query = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout
    with PrometheusClient(prometheus) as client:
        return [value for series in client.query(query, utc_now()) for value in series.values]
