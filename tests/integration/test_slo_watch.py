"""The brake on real servers: a fault that breaks the service, or blinds the watch, is stopped before its time."""

from __future__ import annotations

import json
import re
import threading
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path

import pandas as pd
import psutil
import pytest
from command import SHORT, Command, Start, assert_nothing_left, wait_for

from aftershock import steps
from aftershock.chaos import backend as seam
from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.local.gateway import Gateway
from aftershock.chaos.local.state import read_state as read_targets
from aftershock.errors import PrometheusError
from aftershock.experiment import Experiment
from aftershock.files import data_folder
from aftershock.progress import JOURNAL_VARIABLE
from aftershock.slo.watch import StopReason
from aftershock.stack.settings import StackSettings
from aftershock.stack.stack import running_stack
from aftershock.stack.state import state_path
from aftershock.testing.model_server import FakeModelServer

pytestmark = pytest.mark.integration

BREAK_ALL = {"STATUS_CODE": "500", "TOXICITY": "100", "PODS_AFFECTED_PERC": "100", "TOTAL_CHAOS_DURATION": "60"}
SLOW_ONLY = {"NETWORK_LATENCY": "10", "JITTER": "0", "TOTAL_CHAOS_DURATION": "60"}


@pytest.fixture
def slo(tmp_path: Path) -> str:
    """The canary's SLO with room for a busy machine, whose error rate stops the fault at 50 % for two seconds."""
    text = re.sub(r"value: (60|50)\b", "value: 5000", (data_folder("slo_specs") / "canary.yaml").read_text())
    name = "  displayName: Error rate\n"
    marks = "  annotations: {aftershock.io/stop: 50, aftershock.io/stop-for: 2s}\n"
    assert text.count(name) == 1
    path = tmp_path / "braked.yaml"
    path.write_text(text.replace(name, name + marks))
    return str(path)


def test_a_fault_that_breaks_everything_is_stopped_and_the_run_says_so(start: Start, slo: str) -> None:
    short = {**SHORT, "baseline_s": "3", "chaos_s": "20", "recovery_s": "3", "rate": "30"}
    command = start("run", fault="pod-http-status-code", fault_parameters=json.dumps(BREAK_ALL), slo=slo, **short)
    code = command.finish()

    rows = {row["objective"]: row for row in command.verdict()["rows"]}
    late = "LOAD_FELL_BEHIND"  # on a busy machine; that is not what is tested here
    assert code == (3 if rows["error-rate"]["reason"] == late else 1), command.output + command.errors
    outcome = json.loads((command.run / "chaos_result.json").read_text())
    stop = outcome["stop"]
    assert (outcome["verdict"], stop["by"], stop["reason"]) == ("Stopped", "slo-watch", "SLO_BREACHED")
    assert (stop["objective"], stop["bound"], stop["unit"]) == ("error-rate", 50.0, "%")
    assert 50 < stop["value"] <= 100
    began, asked, verified = (datetime.fromisoformat(stop[f"{name}_at"]) for name in ("breached", "asked", "verified"))
    assert began < asked < verified
    assert stop["seconds_to_stop"] == pytest.approx((verified - began).total_seconds())
    assert 2 <= stop["seconds_to_stop"] < 15
    injected, reverted = (datetime.fromisoformat(outcome[name]) for name in ("injected_at", "reverted_at"))
    assert injected < began and (reverted - injected).total_seconds() < 30, "of the 60 s it was to last"
    assert {target["chaosStatus"] for target in outcome["result"]["status"]["history"]["targets"]} == {"reverted"}
    assert_answered_after(command, verified + timedelta(seconds=5))

    assert f"stop       {stop['message']}: stopping the fault" in command.output
    assert f"stopped    {stop['seconds_to_stop']:.1f} s after the breach began, verified" in command.output
    assert rows["error-rate"]["verdict"] == "FAIL" or rows["error-rate"]["reason"] == late, command.output
    assert not [row for row in rows.values() if row["verdict"] == "PASS"], command.output
    assert rows["accuracy-drop"]["reason"] in ("STOPPED", late), command.output
    told = f"stopped by the SLO watch ({stop['message']}), verified {stop['seconds_to_stop']:.1f} s after that began"
    assert any(told in note for note in command.verdict()["notes"])
    assert "stopped by the SLO watch" in (command.run / "report.md").read_text()
    assert "stopped by the SLO watch" in (command.run / "report.html").read_text()
    assert_nothing_left(command)


@pytest.mark.parametrize("watched", [True, False])
def test_a_fault_whose_brake_is_known_not_to_work_is_refused(
    tmp_path: Path, slo: str, monkeypatch: pytest.MonkeyPatch, watched: bool
) -> None:
    monkeypatch.setitem(seam.BACKENDS, "local", lambda experiment, archive: FakeBackend())
    with FakeModelServer() as server:
        parameters = {
            "target_url": server.url, "model": "fake", "prometheus_url": "http://127.0.0.1:9", "slo": slo,
            "store_endpoint": "none", "slo_watch": watched,
        }  # fmt: skip
        with pytest.raises(PrometheusError, match="cannot be reached") if watched else nullcontext():
            steps.render(parameters, experiment_out=tmp_path / "experiment.yaml", engine_out=tmp_path / "engine.yaml")


class FakeBackend:
    """Has no objections to anything."""

    def preflight(self, engine: ChaosEngine) -> None:
        """Nothing to refuse."""


def assert_answered_after(command: Command, instant: datetime) -> None:
    """The load goes on after the stop, to a service that is whole again."""
    records = pd.read_parquet(command.run / "records" / "chaos.parquet", columns=["scheduled_at", "outcome"])
    later = records[records["scheduled_at"] > instant]
    assert len(later) > 60, "chaos_s have passed since the injection, not since the stop"
    assert set(later["outcome"]) == {"ok"}


def test_a_fault_whose_prometheus_dies_is_stopped(tmp_path: Path, slo: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aftershock.metrics.watch.BLIND_S", 2.0)
    journal = tmp_path / "events.jsonl"
    monkeypatch.setenv(JOURNAL_VARIABLE, str(journal))
    with running_stack(StackSettings(store=False), tmp_path, "blind") as stack:
        assert stack.gateway is not None and stack.prometheus is not None
        experiment = Experiment.model_validate(
            {
                "run_id": "blind", "target_url": stack.gateway.url, "prometheus_url": stack.prometheus.url,
                "metrics_port": stack.metrics_port, "stack": str(state_path(tmp_path)), "slo": slo, "chaos_s": 8,
                "request_timeout_s": 2, "fault": "pod-network-latency", "fault_parameters": SLOW_ONLY,
            }
        )  # fmt: skip
        (tmp_path / "experiment.yaml").write_text(experiment.to_yaml())
        (tmp_path / "engine.yaml").write_text(steps.render_engine(experiment))
        (prometheus,) = [part for part in stack.parts if part.name == "prometheus"]

        def kill_it_once_the_fault_acts() -> None:
            wait_for(lambda: journal.exists() and '"ChaosInject"' in journal.read_text(), 60, "the fault")
            psutil.Process(prometheus.pid or 0).kill()

        killer = threading.Thread(target=kill_it_once_the_fault_acts)
        killer.start()
        steps.chaos(
            tmp_path / "experiment.yaml",
            tmp_path / "engine.yaml",
            records_out=tmp_path / "records",
            window_out=tmp_path / "window.json",
            outcome_out=tmp_path / "outcome.json",
        )
        killer.join()
        faults = Gateway(read_targets(state_path(tmp_path)).gateway).faults()

    outcome = json.loads((tmp_path / "outcome.json").read_text())
    assert (outcome["verdict"], outcome["stop"]["reason"]) == ("Stopped", StopReason.WATCH_BLIND.value)
    assert outcome["stop"]["message"].startswith("error-rate could not be evaluated for 2 s (Prometheus at http://127")
    assert (outcome["stop"]["objective"], outcome["stop"]["value"]) == ("error-rate", None)
    assert 2 <= outcome["stop"]["seconds_to_stop"] < 8
    assert [fault.state for fault in faults] == ["reverted"]
    events = [json.loads(line) for line in journal.read_text().splitlines()]
    assert [event["event"] for event in events if event["event"].startswith("stop")] == ["stop", "stopped"]
