"""`aftershock run --backend litmus` and its kin: the whole command, from the experiment to the exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from command import Command, assert_nothing_left

from aftershock.chaos.render import render_fault
from tests.cluster.backend.scene import Scene
from tests.cluster.furnish import CHAOS, TARGET
from tests.cluster.rig import workload
from tests.cluster.rig.cluster import Cluster

IN_CLUSTER = {
    "backend": "litmus",
    "target_url": workload.MODEL_URL,
    "prometheus_url": workload.PROMETHEUS_URL,
    "store_endpoint": "none",
    "namespace": TARGET,
    "chaos_namespace": CHAOS,
    "policy": "point",
    "rate": "30",
    "baseline_s": "5",
    "chaos_s": "10",
    "recovery_s": "5",
}

Start = Callable[..., Command]

BRAKED = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: error-rate
  displayName: Error rate
  annotations:
    aftershock.io/stop: "5"
    aftershock.io/stop-for: 2s
spec:
  service: canary
  budgetingMethod: Occurrences
  indicator:
    metadata: {name: failed-requests}
    spec:
      ratioMetric:
        counter: true
        bad:
          metricSource:
            type: Prometheus
            spec: {query: 'aftershock_requests_total{phase="{{ phase }}", outcome!="ok"}'}
        total:
          metricSource:
            type: Prometheus
            spec: {query: 'aftershock_requests_total{phase="{{ phase }}"}'}
  objectives:
    - targetPercent: 99.5
"""


@pytest.fixture
def served(scene: Scene) -> Iterator[Scene]:
    """The scene with the canary model servers and Prometheus."""
    workload.install(scene.rig)
    yield scene
    workload.install(scene.rig)  # whole again, for the next test


@pytest.fixture
def start(scene: Scene, orchestrator: Path, tmp_path: Path) -> Iterator[Start]:
    """Start `aftershock run` in the cluster's network, as the orchestrator; at the end, nothing of it may be alive."""
    started: list[Command] = []

    def begin(*switches: str, **flags: str) -> Command:
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AFTERSHOCK_")}
        kept = {name: os.environ[name] for name in ("AFTERSHOCK_CACHE", "AFTERSHOCK_PROMETHEUS") if name in os.environ}
        given = {**IN_CLUSTER, "run_id": scene.run_id, **flags}
        command = ["run", "--runs", str(tmp_path / "runs"), *switches]
        command += [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
        marker = str(tmp_path)
        process = subprocess.Popen(
            [sys.executable, "-m", "aftershock.cli", *command],
            cwd=tmp_path,
            env={**clean, **kept, "KUBECONFIG": str(orchestrator), "TEST_MARKER": marker},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(Command(process, tmp_path / "runs", _marker=marker))
        return started[-1]

    yield begin
    for command in started:
        if command.process.poll() is None:
            command.process.kill()
            command.process.communicate()
        assert_nothing_left(command)


def pods(cluster: Cluster) -> set[str]:
    """Uids of the model servers' pods."""
    found = cluster.kubectl(
        "get", "pods", f"--namespace={TARGET}", f"--selector=app={workload.MODEL_SERVER}", "--output=json"
    )
    return {pod["metadata"]["uid"] for pod in json.loads(found)["items"]}


def document(command: Command, name: str) -> Any:
    """A JSON file of the run."""
    return json.loads((command.run / name).read_text())


def test_a_run_ends_in_a_compliance_table(served: Scene, start: Start) -> None:
    before = pods(served.rig)
    command = start(fault_parameters=json.dumps({"CHAOS_INTERVAL": "4"}))
    code = command.finish(240)
    assert code in (0, 1, 3), command.output + command.errors
    assert "P99 latency" in command.output and "Error rate" in command.output

    outcome = document(command, "chaos_result.json")
    assert (outcome["backend"], outcome["verdict"]) == ("litmus", "Pass"), outcome["reason"]
    assert outcome["effects"] >= 1
    assert before - pods(served.rig), "no model server was replaced"

    table = pd.read_csv(command.run / "slo_table.csv")
    rows = table.set_index("objective") if "objective" in table else table.set_index(table.columns[0])
    assert (rows["severity"] == "critical").sum() == 5
    measured = pd.read_parquet(command.run / "metrics.parquet")
    assert measured.loc[measured["role"] == "total", "value"].min() > 100, "Prometheus did not see the load"
    assert {path.name for path in (command.run / "cluster").iterdir()} >= {"engine.json", "results.json"}
    served.assert_clean()


def test_sigterm_in_the_middle_leaves_no_fault_and_keeps_the_records(served: Scene, start: Start) -> None:
    command = start(chaos_s="60", fault_parameters=json.dumps({"CHAOS_INTERVAL": "5"}))
    command.wait_for_event(120, event="chaos", reason="ChaosInject")
    command.tell(signal.SIGTERM)
    assert command.finish(120) == 143, command.output + command.errors
    served.assert_clean()
    records = pd.read_parquet(command.run / "records" / "chaos.parquet")
    assert len(records) > 0


def test_a_killed_run_leaves_a_bounded_fault_that_cleanup_finds(served: Scene, start: Start, tmp_path: Path) -> None:
    command = start(chaos_s="120", fault_parameters=json.dumps({"CHAOS_INTERVAL": "5"}))
    command.wait_for_event(120, event="chaos", reason="ChaosInject")
    for process in command.processes():
        process.kill()
    command.finish()
    (left,) = served.names("chaosengines")
    assert left == f"pod-delete-{served.run_id}"

    aftershock = [sys.executable, "-m", "aftershock.cli", "cleanup", "--runs", str(tmp_path / "runs")]
    admin = {**os.environ, "KUBECONFIG": str(served.cluster.kubeconfig)}
    done = subprocess.run(
        [*aftershock, "--kube-context", "auto", "--run-id", served.run_id],
        env=admin,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"removed: ChaosEngine {CHAOS}/{left} of run {served.run_id}" in done.stdout
    assert "records/chaos.parquet" in done.stdout
    served.assert_clean()


def test_the_slo_watch_stops_the_fault(served: Scene, start: Start, tmp_path: Path) -> None:
    (tmp_path / "braked.yaml").write_text(BRAKED)
    parameters = {"CHAOS_INTERVAL": "3", "PODS_AFFECTED_PERC": "100"}
    command = start(
        slo=str(tmp_path / "braked.yaml"),
        chaos_s="40",
        fault_parameters=json.dumps(parameters),
        confirm="blast-radius",
        request_timeout_s="2",
    )
    code = command.finish(240)
    outcome = document(command, "chaos_result.json")
    assert outcome["verdict"] == "Stopped", command.output + command.errors
    stop = outcome["stop"]
    assert (stop["by"], stop["objective"], stop["bound"]) == ("slo-watch", "error-rate", 5.0)
    assert stop["value"] > 5
    assert 2 <= stop["seconds_to_stop"] < 60
    assert "stopping the fault" in command.output and "verified" in command.output
    assert code in (1, 3)
    (row,) = document(command, "verdict.json")["rows"]
    assert row["verdict"] != "PASS"
    served.assert_clean()


def test_an_engine_of_ones_own_is_adopted(served: Scene, start: Start, tmp_path: Path) -> None:
    engine = yaml.safe_load(
        render_fault(
            "pod-delete",
            {"TOTAL_CHAOS_DURATION": "8", "CHAOS_INTERVAL": "4"},
            cluster=True,
            namespace=TARGET,
            chaos_namespace=CHAOS,
            label=f"app={workload.MODEL_SERVER}",
        )
    )
    engine["metadata"] = {"name": "ours", "namespace": CHAOS, "labels": {"team": "search"}}
    (tmp_path / "ours.yaml").write_text(yaml.safe_dump(engine))
    command = start(engine=str(tmp_path / "ours.yaml"))
    code = command.finish(240)
    assert code in (0, 1, 3), command.output + command.errors
    kept = document(command, "cluster/engine.json")
    assert kept["metadata"]["name"] == f"ours-{served.run_id}"
    assert kept["metadata"]["labels"]["team"] == "search"
    assert document(command, "chaos_result.json")["verdict"] == "Pass"
    served.assert_clean()


def test_litmus_itself_watches_the_stop_conditions(served: Scene, start: Start, tmp_path: Path) -> None:
    (tmp_path / "braked.yaml").write_text(BRAKED)
    parameters = {"CHAOS_INTERVAL": "3", "PODS_AFFECTED_PERC": "100"}
    command = start(
        "--no-slo-watch",
        slo=str(tmp_path / "braked.yaml"),
        slo_probes="auto",
        chaos_s="40",
        fault_parameters=json.dumps(parameters),
        confirm="blast-radius",
        request_timeout_s="2",
    )
    command.finish(240)
    outcome = document(command, "chaos_result.json")
    assert outcome["verdict"] == "Stopped", command.output + command.errors
    assert "probe" in outcome["reason"] and "error-rate" in outcome["reason"]
    assert outcome["stop"] is None, "we had no hand in it"
    served.assert_clean()


def test_doctor_finds_all_well_and_names_what_is_not(served: Scene, orchestrator: Path, tmp_path: Path) -> None:
    def doctor(**flags: str) -> subprocess.CompletedProcess[str]:
        given = {**IN_CLUSTER, **flags}
        words = [part for name, value in given.items() for part in (f"--{name.replace('_', '-')}", value)]
        return subprocess.run(
            [sys.executable, "-m", "aftershock.cli", "doctor", *words],
            env={**os.environ, "KUBECONFIG": str(orchestrator)},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    well = doctor()
    assert well.returncode == 0, well.stdout + well.stderr
    wrong = doctor(label="app=nobody", scrape_interval_s="5")
    assert wrong.returncode == 4, wrong.stdout + wrong.stderr
    assert "no pod has app=nobody" in wrong.stdout
