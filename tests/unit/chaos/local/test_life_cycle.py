"""The backend against stand-ins for supervisor and gateway: what each fault does, and that it always ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
import yaml

from aftershock.chaos.backend import ChaosOutcome
from aftershock.chaos.local.backend import LocalBackend

Start = Callable[..., Any]
FAST = {"TOTAL_CHAOS_DURATION": "1"}
LONG = {"TOTAL_CHAOS_DURATION": "60", "CHAOS_INTERVAL": "60"}
LATENCY = {"TOTAL_CHAOS_DURATION": "60", "NETWORK_LATENCY": "200", "JITTER": "50"}


def targets(outcome: ChaosOutcome) -> list[tuple[str, str]]:
    """Names and chaosStatus in the ChaosResult."""
    return [(entry["name"], entry["chaosStatus"]) for entry in outcome.result["status"]["history"]["targets"]]


def test_pod_delete_repeats_every_interval_on_targets_drawn_anew(stack: Any, run: Start) -> None:
    running = run(("pod-delete", {"TOTAL_CHAOS_DURATION": "3", "CHAOS_INTERVAL": "1"}))
    outcome = running.outcome()
    assert (outcome.verdict, outcome.phase) == ("Pass", "Completed")
    assert len(stack.kills) in (2, 3)  # a round takes an interval and the time until all pods are ready
    assert all(grace == 0 for _, grace in stack.kills)
    assert outcome.effects == len(stack.kills) == len(outcome.evidence)
    assert len({name for name, _ in stack.kills}) == len(stack.kills)  # a new pod has a new name
    assert [name for name, _ in targets(outcome)] == [name for name, _ in stack.kills]
    assert outcome.injected_at is not None and outcome.reverted_at is not None
    assert 0.9 < (outcome.reverted_at - outcome.injected_at).total_seconds() < 3
    assert "was ready in its place" in outcome.evidence[0]
    first = f"Injecting pod-delete chaos on {stack.kills[0][0]}"
    assert first in [event.message for event in running.events]


def test_events_come_in_litmus_order(run: Start) -> None:
    running = run(("pod-delete", FAST))
    running.outcome()
    assert running.reasons() == [
        "ChaosEngineInitialized",
        "PreChaosCheck",
        "ChaosInject",
        "PostChaosCheck",
        "Summary",
        "ChaosEngineCompleted",
    ]


def test_without_force_a_pod_gets_its_grace(stack: Any, run: Start) -> None:
    running = run(("pod-delete", LONG | {"FORCE": "false"}))
    running.wait_for(lambda: stack.kills, "a kill")
    assert [grace for _, grace in stack.kills] == [30]


def test_parallel_hits_all_targets_at_once_and_serial_one_after_the_other(stack: Any, run: Start) -> None:
    both = LONG | {"PODS_AFFECTED_PERC": "100", "CHAOS_INTERVAL": "1"}
    for sequence, apart_s in (("parallel", 0.0), ("serial", 1.0)):
        running = run(("pod-delete", both | {"SEQUENCE": sequence}))
        running.wait_for(lambda running=running: running.reasons().count("ChaosInject") >= 2, "two kills")
        running.stop.set()
        assert running.outcome().effects >= 1
        first, second = [event.at for event in running.events if event.reason == "ChaosInject"][:2]
        assert apart_s <= (second - first).total_seconds() < apart_s + 0.9


def test_container_kill_stays_with_its_pod(stack: Any, run: Start) -> None:
    env = {"TOTAL_CHAOS_DURATION": "2", "CHAOS_INTERVAL": "1", "SIGNAL": "SIGTERM"}
    outcome = run(("container-kill", env)).outcome()
    assert outcome.verdict == "Pass"
    assert {kill for _, kill in stack.kills} == {"SIGTERM"}
    assert len({name for name, _ in stack.kills}) == 1
    assert max(pod.restarts for pod in stack.pods) == outcome.effects == len(stack.kills)


def test_named_pods_are_hit(stack: Any, run: Start) -> None:
    name = stack.pods[1].name
    running = run(("container-kill", LONG | {"TARGET_PODS": name}))
    running.wait_for(lambda: stack.kills, "a kill")
    assert {pod for pod, _ in stack.kills} == {name}


def test_a_kill_that_does_not_kill_is_an_error_with_no_effect(stack: Any, run: Start) -> None:
    stack.ignore_kills = True
    outcome = run(("container-kill", FAST), timeout=1).outcome()
    assert (outcome.verdict, outcome.error_code, outcome.effects) == ("Error", "STATUS_CHECKS_ERROR", 0)


def test_a_pod_that_does_not_come_back_is_an_error_after_the_time_out(stack: Any, run: Start) -> None:
    stack.restart_s = 60
    outcome = run(("pod-delete", FAST), timeout=1).outcome()
    assert (outcome.verdict, outcome.error_code, outcome.effects) == ("Error", "STATUS_CHECKS_ERROR", 1)
    assert "nothing served in its place" in outcome.evidence[0]
    assert outcome.result["status"]["experimentStatus"]["errorOutput"]["errorCode"] == "STATUS_CHECKS_ERROR"
    assert outcome.result["status"]["history"]["passedRuns"] == 0


@pytest.mark.parametrize(
    ("fault", "env", "kind", "parameters"),
    [
        (
            "pod-network-latency",
            {"NETWORK_LATENCY": "200", "JITTER": "50", "CORRELATION": "25"},
            "network-latency",
            {"latency_ms": 200, "jitter_ms": 50, "correlation_percent": 25},
        ),
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "30"}, "network-loss", {"percentage": 30}),
        ("pod-network-partition", {"POLICY_TYPES": "ingress"}, "network-partition", {"direction": "ingress"}),
        (
            "pod-http-latency",
            {"LATENCY": "900", "TOXICITY": "40"},
            "http-latency",
            {"latency_ms": 900, "toxicity_percent": 40},
        ),
        (
            "pod-http-status-code",
            {"STATUS_CODE": "503", "RESPONSE_BODY": "no", "MODIFY_RESPONSE_BODY": "false", "CONTENT_TYPE": "a/b"},
            "http-status",
            {
                "status_code": 503,
                "response_body": "no",
                "modify_body": False,
                "content_type": "a/b",
                "toxicity_percent": 100,
            },
        ),
    ],
)
def test_gateway_faults_are_posted_as_litmus_means_them(
    stack: Any, run: Start, fault: str, env: dict[str, str], kind: str, parameters: dict[str, Any]
) -> None:
    running = run((fault, {"TOTAL_CHAOS_DURATION": "60"} | env))
    running.wait_for_injection()
    (posted,) = stack.posted
    assert posted["kind"] == kind
    assert {key: posted[key] for key in parameters} == parameters
    assert 60 < posted["duration_s"] < 70  # it ends by itself soon after, should the backend die
    assert posted["replicas"] == (["0", "1"] if kind == "network-partition" else posted["replicas"][:1])


def test_a_gateway_fault_is_held_then_reverted(stack: Any, run: Start) -> None:
    outcome = run(("pod-network-loss", FAST)).outcome()
    assert outcome.verdict == "Pass", outcome.reason
    assert not stack.active()
    assert outcome.effects == stack.injections
    assert {status for _, status in targets(outcome)} == {"reverted"}
    assert outcome.injected_at is not None and outcome.reverted_at is not None
    assert (outcome.reverted_at - outcome.injected_at).total_seconds() >= 1


def test_serial_gateway_faults_take_their_time_for_each_pod(stack: Any, run: Start) -> None:
    env = FAST | {"PODS_AFFECTED_PERC": "100", "SEQUENCE": "serial"}
    outcome = run(("pod-network-loss", env)).outcome()
    assert sorted(fault["replicas"] for fault in stack.posted) == [["0"], ["1"]]
    assert outcome.effects == 2 * stack.injections


def test_a_status_code_is_drawn_where_none_is_given(stack: Any, run: Start) -> None:
    running = run(("pod-http-status-code", {"TOTAL_CHAOS_DURATION": "60", "STATUS_CODE": "502,503"}))
    running.wait_for(lambda: stack.posted, "the fault")
    assert stack.posted[0]["status_code"] in (502, 503)


def test_experiments_of_an_engine_run_one_after_the_other(stack: Any, run: Start) -> None:
    outcome = run(("pod-delete", FAST), ("pod-network-loss", FAST)).outcome()
    assert outcome.verdict == "Pass"
    assert outcome.effects == 1 + stack.injections
    names = [item["metadata"]["name"] for item in outcome.result["items"]]
    assert names == ["chaos-run1-pod-delete", "chaos-run1-pod-network-loss"]


def test_an_error_does_not_keep_the_next_experiment_from_its_turn(stack: Any, run: Start) -> None:
    stack.refuse_faults = "no room"
    outcome = run(("pod-network-loss", FAST), ("pod-delete", FAST)).outcome()
    assert (outcome.verdict, outcome.error_code) == ("Error", "CHAOS_INJECT_ERROR")
    assert outcome.reason is not None and "no room" in outcome.reason
    assert len(stack.kills) == 1


def ramp(stack: Any) -> dict[str, str]:
    """Keeps the backend in its first ramp."""
    return LATENCY | {"RAMP_TIME": "60"}


def slow_check(stack: Any) -> dict[str, str]:
    """Keeps the backend in its first status check."""
    stack.pods[0].ready_from = time.monotonic() + 60
    return LATENCY


def last_ramp(stack: Any) -> dict[str, str]:
    """Keeps the backend in its last ramp; the first is as long."""
    return FAST | {"RAMP_TIME": "1"}


@pytest.mark.parametrize(
    ("fault", "prepare", "reached"),
    [
        ("pod-network-latency", slow_check, "ChaosEngineInitialized"),
        ("pod-network-latency", ramp, "PreChaosCheck"),
        ("pod-network-latency", lambda stack: LATENCY, "ChaosInject"),
        ("pod-network-latency", last_ramp, "ChaosRevert"),
        ("pod-delete", lambda stack: LONG, "ChaosInject"),
    ],
)
def test_a_stop_at_any_stage_reverts_at_once(
    stack: Any, run: Start, fault: str, prepare: Callable[[Any], dict[str, str]], reached: str
) -> None:
    running = run((fault, prepare(stack)), timeout=60)
    running.wait_for_event(reached)
    asked = time.monotonic()
    running.stop.set()
    outcome = running.outcome()
    assert time.monotonic() - asked < 2  # half a second, and slack for a busy machine
    assert (outcome.verdict, outcome.phase, outcome.error_code) == ("Stopped", "Stopped", None)
    assert outcome.reason == "stopped by the run"
    assert not stack.active()
    assert outcome.result["status"]["history"]["stoppedRuns"] == 1
    document = yaml.safe_load(running.live_file.read_text())
    assert document["status"]["engineStatus"] == "stopped"
    assert document["status"]["experiments"][0]["status"] == "Forcefully Aborted"
    assert running.reasons()[-1] == "ChaosEngineStopped"


def test_engine_state_stop_in_the_live_file_stops(stack: Any, run: Start) -> None:
    running = run(("pod-network-latency", LATENCY), ("pod-delete", FAST))
    running.wait_for(stack.active, "the fault")
    text = running.live_file.read_text()
    running.live_file.write_text(text.replace("engineState: active", "engineState: stop"))
    outcome = running.outcome()
    assert outcome.verdict == "Stopped"
    assert outcome.reason is not None and "engineState: stop" in outcome.reason
    assert not stack.active()
    assert not stack.kills
    experiments = yaml.safe_load(running.live_file.read_text())["status"]["experiments"]
    assert [entry["verdict"] for entry in experiments] == ["Stopped", "Stopped"]


def test_the_live_engine_and_the_result_can_be_followed(stack: Any, run: Start) -> None:
    running = run(("pod-network-latency", LATENCY))
    running.wait_for_injection()
    live = yaml.safe_load(running.live_file.read_text())
    result = json.loads(running.result_file.read_text())
    assert live["status"]["engineStatus"] == "initialized"
    assert live["status"]["experiments"][0]["status"] == "Running"
    assert result["metadata"]["labels"] == {"aftershock.io/run-id": "run1", "chaosUID": live["metadata"]["uid"]}
    assert result["status"]["experimentStatus"] == {
        "phase": "Running",
        "verdict": "Awaited",
        "probeSuccessPercentage": "Awaited",
    }
    running.stop.set()
    assert running.outcome().result == json.loads(running.result_file.read_text())


def test_the_result_is_the_last_word_in_the_live_engine_too(run: Start) -> None:
    running = run(("pod-delete", FAST))
    outcome = running.outcome()
    live = yaml.safe_load(running.live_file.read_text())
    assert live["spec"]["engineState"] == "stop"
    assert live["status"]["engineStatus"] == "completed"
    assert [live["status"]["experiments"][0][key] for key in ("status", "verdict")] == ["Completed", "Pass"]
    assert outcome.result["spec"] == {"engine": "chaos-run1", "experiment": "pod-delete"}
    assert outcome.result["status"]["experimentStatus"]["probeSuccessPercentage"] == "100"


def test_a_lost_gateway_is_an_error(stack: Any, run: Start) -> None:
    running = run(("pod-network-latency", LATENCY))
    running.wait_for(stack.active, "the fault")
    stack.stop_gateway()
    outcome = running.outcome()
    assert outcome.verdict == "Error"
    assert outcome.reason is not None and "gateway" in outcome.reason and "does not answer" in outcome.reason
    assert outcome.injected_at is not None and outcome.reverted_at is None


def test_a_fault_that_somebody_else_ends_is_an_error(stack: Any, run: Start) -> None:
    running = run(("pod-network-latency", LATENCY))
    running.wait_for(stack.active, "the fault")
    stack.active()[0]["state"] = "reverted"
    outcome = running.outcome()
    assert (outcome.verdict, outcome.error_code) == ("Error", "CHAOS_INJECT_ERROR")
    assert outcome.reason is not None and "before its time" in outcome.reason


def test_a_gateway_that_forgets_its_fault_is_an_error(stack: Any, run: Start) -> None:
    running = run(("pod-network-latency", LATENCY))
    running.wait_for(stack.active, "the fault")
    stack.forgetful = True
    outcome = running.outcome()
    assert outcome.verdict == "Error"
    assert outcome.effects == 0


def test_a_lost_supervisor_is_an_error_and_workers_are_ended(stack: Any, run: Start) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as supervisor:
        stack.write_state(supervisor.pid)
        running = run(("pod-cpu-hog", LONG_STRESS))
        running.wait_for(lambda: workers_of(running), "the workers")
        running.wait_for_injection()
        supervisor.send_signal(signal.SIGKILL)
        outcome = running.outcome()
    assert outcome.verdict == "Error"
    assert outcome.reason is not None and "supervisor" in outcome.reason
    assert outcome.reverted_at is not None
    assert not workers_of(running)


LONG_STRESS = {"TOTAL_CHAOS_DURATION": "60", "CPU_CORES": "1", "CPU_LOAD": "30"}


def workers_of(running: Any) -> list[psutil.Process]:
    """Stress workers that are children of this process (tests run in several)."""
    found = []
    for child in psutil.Process().children():
        try:
            if "aftershock.chaos.local.worker" in child.cmdline():
                found.append(child)
        except psutil.Error:
            continue
    return found


def test_cpu_workers_are_counted_by_the_time_they_used(stack: Any, run: Start) -> None:
    env = {"TOTAL_CHAOS_DURATION": "2", "CPU_CORES": "1", "CPU_LOAD": "50"}
    outcome = run(("pod-cpu-hog", env)).outcome()
    assert outcome.verdict == "Pass", outcome.reason
    assert 1 <= outcome.effects <= 3
    assert "CPU time" in outcome.evidence[0]
    assert {status for _, status in targets(outcome)} == {"reverted"}


def test_memory_is_held_and_given_back(stack: Any, run: Start) -> None:
    running = run(("pod-memory-hog", FAST | {"MEMORY_CONSUMPTION": "40", "NUMBER_OF_WORKERS": "2"}))
    running.wait_for_injection()
    rss = [worker.memory_info().rss for worker in workers_of(running)]
    assert len(rss) == 2
    assert all(value > 20 * 1024 * 1024 for value in rss)
    outcome = running.outcome()
    assert 35 <= outcome.effects <= 60
    assert not workers_of(running)


def test_io_writes_and_leaves_no_file(stack: Any, run: Start) -> None:
    env = FAST | {"FILESYSTEM_UTILIZATION_PERCENTAGE": "1", "NUMBER_OF_WORKERS": "1"}
    outcome = run(("pod-io-stress", env)).outcome()
    assert outcome.verdict == "Pass", outcome.reason
    assert outcome.effects >= 1
    left = {path.name for path in (stack.folder / "chaos").iterdir()}
    assert left == {"chaos-run1.yaml", "chaos-run1.result.json", "workers.log"}


def test_a_worker_that_dies_is_an_error(stack: Any, run: Start) -> None:
    running = run(("pod-cpu-hog", LONG_STRESS))
    running.wait_for_injection()
    workers_of(running)[0].kill()
    outcome = running.outcome()
    assert (outcome.verdict, outcome.error_code) == ("Error", "CHAOS_INJECT_ERROR")
    assert outcome.reason is not None and "signal 9" in outcome.reason


def test_a_listener_that_fails_changes_nothing(stack: Any, engine: Any) -> None:
    def listener(event: Any) -> None:
        raise RuntimeError("listener")

    outcome = LocalBackend(stack.state_file, 1).run(engine(("pod-delete", FAST)), threading.Event(), listener)
    assert outcome.verdict == "Pass"
