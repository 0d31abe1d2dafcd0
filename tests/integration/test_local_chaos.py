"""The local backend on a real embedded stack: real model servers, supervisor and gateway, engines from templates."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from aftershock.chaos.backend import ChaosOutcome
from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.local.backend import LocalBackend
from aftershock.chaos.local.faults import FAULTS
from aftershock.chaos.render import render_fault
from aftershock.errors import ChaosError
from aftershock.stack.settings import StackSettings
from aftershock.stack.stack import running_stack
from aftershock.stack.state import GatewayState, StackState, read_state, state_path

pytestmark = pytest.mark.integration

RESTART_S = 0.3
SHORT = {"TOTAL_CHAOS_DURATION": "1"}
SHORT_KILLS = {"TOTAL_CHAOS_DURATION": "1", "CHAOS_INTERVAL": "1"}

VICTIM = """
import sys, threading
from pathlib import Path
from aftershock.chaos.engine import parse_engine
from aftershock.chaos.local.backend import LocalBackend
state, engine = map(Path, sys.argv[1:])
LocalBackend(state, 1).run(
    parse_engine(engine.read_text(), "engine"), threading.Event(), lambda event: print(event.reason, flush=True)
)
"""
"""A chaos step that is going to be killed."""


class Stack:
    """A running stack, as a test uses it."""

    def __init__(self, run_dir: Path) -> None:
        self.state_file = state_path(run_dir)

    @property
    def state(self) -> StackState:
        """As it is now."""
        return read_state(self.state_file)

    @property
    def gateway(self) -> GatewayState:
        """Its service and its faults."""
        gateway = self.state.gateway
        assert gateway is not None
        return gateway

    @property
    def backend(self) -> LocalBackend:
        """On this stack."""
        return LocalBackend(self.state_file, seed=1)

    def run(self, fault: str, env: dict[str, str], while_on: Callable[[], None] = lambda: None) -> ChaosOutcome:
        """Preflight, then run; `while_on` is called when the ChaosResult says that a target is hit."""
        engine = make_engine(fault, env)
        self.backend.preflight(engine)
        result = self.state_file.parent / "chaos" / f"{engine.name}.result.json"
        result.unlink(missing_ok=True)
        outcomes: list[ChaosOutcome] = []
        thread = threading.Thread(
            target=lambda: outcomes.append(self.backend.run(engine, threading.Event(), lambda event: None))
        )
        thread.start()
        try:
            wait_for(lambda: (result.exists() and '"injected"' in result.read_text()) or not thread.is_alive())
            while_on()
        finally:
            thread.join(60)
        return outcomes[0]

    def ask(self, timeout_s: float = 5) -> tuple[int, float]:
        """Status and seconds of one completion through the gateway; 0 for no answer in time."""
        body = json.dumps({"prompt": "The capital of France is", "max_tokens": 1, "temperature": 0}).encode()
        request = urllib.request.Request(
            f"{self.gateway.url}/v1/completions", body, {"Content-Type": "application/json"}
        )
        start = time.monotonic()
        try:
            with urllib.request.urlopen(request, timeout=timeout_s) as answer:
                answer.read()
                return answer.status, time.monotonic() - start
        except urllib.error.HTTPError as error:
            error.close()
            return error.code, time.monotonic() - start
        except OSError:
            return 0, time.monotonic() - start

    def faults(self) -> list[dict[str, Any]]:
        """What the gateway lists."""
        gateway = self.gateway
        request = urllib.request.Request(
            f"{gateway.admin_url}/faults", headers={"Authorization": f"Bearer {gateway.token}"}
        )
        with urllib.request.urlopen(request, timeout=5) as answer:
            listed: list[dict[str, Any]] = json.load(answer)["faults"]
            return listed


def make_engine(fault: str, env: dict[str, str]) -> ChaosEngine:
    """Rendered from its template."""
    return parse_engine(render_fault(fault, env), fault)


def wait_for(condition: Callable[[], Any], seconds: float = 20) -> None:
    """Poll until it is true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.02)


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    """Two replicas behind a gateway; no Prometheus, no store."""
    settings = StackSettings(prometheus=False, store=False, restart_delay_s=RESTART_S)
    with running_stack(settings, tmp_path, "chaos-test"):
        yield Stack(tmp_path)


def test_kills(stack: Stack) -> None:
    for fault in FAULTS:
        stack.backend.preflight(make_engine(fault, {}))  # what the templates say by default can be done
    before = {pod.slot: pod for pod in stack.state.pods}

    outcome = stack.run("pod-delete", SHORT_KILLS)
    assert (outcome.verdict, outcome.effects) == ("Pass", 1), outcome.reason
    after = {pod.slot: pod for pod in stack.state.pods}
    (slot,) = [slot for slot, pod in after.items() if pod.name != before[slot].name]
    assert after[slot].ready
    assert not psutil.pid_exists(before[slot].pid or 0)
    assert before[slot].name in outcome.evidence[0] and after[slot].name in outcome.evidence[0]
    later_s = float(outcome.evidence[0].rpartition("in its place ")[2].partition(" s")[0])
    assert later_s >= RESTART_S
    assert outcome.result["status"]["history"]["targets"] == [
        {"name": before[slot].name, "kind": "pod", "chaosStatus": "targeted"}
    ]

    outcome = stack.run("container-kill", SHORT_KILLS | {"SIGNAL": "SIGTERM", "PODS_AFFECTED_PERC": "100"})
    assert (outcome.verdict, outcome.effects) == ("Pass", 2), outcome.reason
    assert [(pod.name, pod.restarts, pod.ready) for pod in stack.state.pods] == [
        (pod.name, 1, True) for pod in after.values()
    ]


def test_gateway_faults(stack: Stack) -> None:
    seen: list[tuple[int, float]] = []

    def ask() -> None:
        seen.append(stack.ask(timeout_s=0.5))

    everywhere = SHORT | {"PODS_AFFECTED_PERC": "100"}
    accepted = everywhere | {"STATUS_CODE": "202", "TOXICITY": "100"}  # 400 and above would make the probes fail, too
    outcome = stack.run("pod-http-status-code", accepted, ask)
    assert (outcome.verdict, seen.pop()[0]) == ("Pass", 202), outcome.reason
    assert outcome.effects >= 1

    outcome = stack.run("pod-network-latency", everywhere | {"NETWORK_LATENCY": "150", "JITTER": "0"}, ask)
    status, seconds = seen.pop()
    assert (outcome.verdict, status) == ("Pass", 200), outcome.reason
    assert seconds >= 0.15

    outcome = stack.run("pod-network-partition", SHORT, ask)
    assert (outcome.verdict, seen.pop()[0]) == ("Pass", 0), outcome.reason
    assert {entry["chaosStatus"] for entry in outcome.result["status"]["history"]["targets"]} == {"reverted"}

    assert {fault["state"] for fault in stack.faults()} == {"reverted"}
    wait_for(lambda: stack.ask()[0] == 200)


def test_engine_state_stop_reverts(stack: Stack) -> None:
    engine = make_engine("pod-network-partition", {"TOTAL_CHAOS_DURATION": "300"})
    live = stack.state_file.parent / "chaos" / f"{engine.name}.yaml"

    def stop() -> None:
        assert [fault["state"] for fault in stack.faults()] == ["active"]
        live.write_text(live.read_text().replace("engineState: active", "engineState: stop"))

    outcome = stack.run("pod-network-partition", {"TOTAL_CHAOS_DURATION": "300"}, stop)
    assert outcome.verdict == "Stopped"
    assert [fault["state"] for fault in stack.faults()] == ["reverted"]
    wait_for(lambda: stack.ask()[0] == 200)


def test_a_killed_backend_leaves_nothing_behind(stack: Stack, tmp_path: Path) -> None:
    def killed(fault: str, env: dict[str, str]) -> list[int]:
        """Start the fault in a process of its own, kill that in mid-fault; the pids of the workers it had."""
        engine = tmp_path / "engine.yaml"
        engine.write_text(render_fault(fault, env))
        result = stack.state_file.parent / "chaos" / f"{make_engine(fault, env).name}.result.json"
        command = [sys.executable, "-c", VICTIM, str(stack.state_file), str(engine)]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as victim:
            wait_for(lambda: result.exists() and '"injected"' in result.read_text())
            workers = [child.pid for child in psutil.Process(victim.pid).children()]
            victim.kill()
        status = json.loads(result.read_text())["status"]["experimentStatus"]
        assert status["phase"] == "Running"  # the record of what was going on
        return workers

    workers = killed("pod-cpu-hog", {"TOTAL_CHAOS_DURATION": "300", "CPU_CORES": "2", "CPU_LOAD": "10"})
    assert len(workers) == 2
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in workers), seconds=5)

    assert killed("pod-network-loss", {"TOTAL_CHAOS_DURATION": "1"}) == []
    with pytest.raises(ChaosError, match="already acts out"):
        stack.backend.preflight(make_engine("pod-delete", {}))
    wait_for(lambda: [fault["state"] for fault in stack.faults()] == ["expired"], seconds=15)
    stack.backend.preflight(make_engine("pod-delete", {}))


def test_a_lost_stack_is_an_error_and_no_hang(stack: Stack) -> None:
    def lose() -> None:
        psutil.Process(stack.state.supervisor.pid).kill()

    outcome = stack.run("pod-network-latency", {"TOTAL_CHAOS_DURATION": "300"}, lose)
    assert outcome.verdict == "Error"
    assert outcome.reason is not None and "gone" in outcome.reason
    assert outcome.injected_at is not None and outcome.reverted_at is None
