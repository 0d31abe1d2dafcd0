"""Leftovers of dead commands are ended; what lives, or is somebody else's, is not."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aftershock.errors import StackError
from aftershock.processes import Identity
from aftershock.progress import JOURNAL_VARIABLE
from aftershock.stack.cleanup import cleanup, is_live, owned, register_process
from aftershock.stack.state import GatewayState, PartState, PodState, StackState, SupervisorState, write_state

STUBBORN = "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
OBEDIENT = "import time; print(flush=True); time.sleep(60)"

Spawn = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start a program that lives for a minute; it is dead after the test."""
    started = []

    def start(code: str = OBEDIENT, **environment: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            env={**os.environ, **environment},
            start_new_session=True,
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aftershock.stack.cleanup.GRACE_S", 0.5)


def owned_by_the_dead(run_dir: Path, *started: subprocess.Popen[bytes]) -> None:
    """Write the records of a run as a command that then died would have: in a process that ends."""
    code = f"""
import os
from pathlib import Path
from aftershock.stack.cleanup import owned, register_process
with owned(Path({str(run_dir)!r})):
    for pid in {[process.pid for process in started]}:
        register_process(Path({str(run_dir)!r}), pid)
    os._exit(0)
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def write_stack_state(run_dir: Path, supervisor: int, gateway: int, pod: int) -> None:
    """The state of a stack of these processes."""
    identities = [Identity.of(pid) for pid in (supervisor, gateway, pod)]
    url, now = "http://127.0.0.1:9", datetime.now(UTC)
    state = StackState(
        run_id=run_dir.name,
        supervisor=SupervisorState(supervisor, identities[0].started, url, "t"),
        gateway=GatewayState(url, url, "t"),
        prometheus=None,
        store=None,
        metrics_port=9,
        pods=(PodState("model-server-0-abcde", 0, pod, identities[2].started, url, "Running", True, 0, now, now),),
        parts=(PartState("gateway", gateway, identities[1].started, "running", True),),
    )
    write_state(run_dir / "stack" / "state.json", state)


def test_what_a_dead_command_left_is_ended(tmp_path: Path, spawn: Spawn) -> None:
    run_dir = tmp_path / "r1"
    supervisor, gateway, pod, pipeline = spawn(STUBBORN), spawn(), spawn(STUBBORN), spawn()
    owned_by_the_dead(run_dir, pipeline)
    write_stack_state(run_dir, supervisor.pid, gateway.pid, pod.pid)
    assert sorted(cleanup(tmp_path)) == sorted(
        [
            f"r1: ended supervisor (pid {supervisor.pid})",
            f"r1: ended gateway (pid {gateway.pid})",
            f"r1: ended model-server-0-abcde (pid {pod.pid})",
            f"r1: ended process (pid {pipeline.pid})",
        ]
    )
    for process in (supervisor, gateway, pod, pipeline):
        assert process.wait(5) < 0
    assert not list((run_dir / "stack").glob("*.json"))
    assert cleanup(tmp_path) == []


def test_the_run_of_a_living_command_is_not_touched(tmp_path: Path, spawn: Spawn) -> None:
    pipeline = spawn()
    with owned(tmp_path / "r1"):
        register_process(tmp_path / "r1", pipeline.pid)
        assert is_live(tmp_path / "r1")
        assert cleanup(tmp_path) == []
        assert pipeline.poll() is None
        assert (tmp_path / "r1" / "stack" / "owner.json").exists()


def test_a_run_of_another_machine_is_not_touched(tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = spawn()
    owned_by_the_dead(tmp_path / "r1", pipeline)
    assert not is_live(tmp_path / "r1")
    monkeypatch.setattr("platform.node", lambda: "elsewhere")
    assert is_live(tmp_path / "r1")
    assert cleanup(tmp_path) == []
    assert pipeline.poll() is None


def test_a_pid_that_changed_hands_is_not_touched(tmp_path: Path, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    innocent = spawn()
    owned_by_the_dead(tmp_path / "r1", innocent)
    owner = tmp_path / "r1" / "stack" / "owner.json"
    started = Identity.of(innocent.pid).started
    text = owner.read_text()
    assert str(started) in text
    owner.write_text(text.replace(str(started), str(started - 60)))
    assert cleanup(tmp_path) == []
    assert innocent.poll() is None
    assert not owner.exists(), "the record of a run of which nothing is left"


def test_orphans_that_nobody_wrote_down_are_found_by_their_journal(tmp_path: Path, spawn: Spawn) -> None:
    run_dir = tmp_path / "r1"
    orphan = spawn(**{JOURNAL_VARIABLE: str(run_dir / "events.jsonl")})
    other = spawn(**{JOURNAL_VARIABLE: str(tmp_path / "r2" / "events.jsonl")})
    owned_by_the_dead(run_dir)
    assert cleanup(tmp_path) == [f"r1: ended process (pid {orphan.pid})"]
    assert other.poll() is None


def test_records_that_cannot_be_read_are_left_alone(tmp_path: Path) -> None:
    owner = tmp_path / "r1" / "stack" / "owner.json"
    owner.parent.mkdir(parents=True)
    owner.write_text("{}")
    assert is_live(tmp_path / "r1")
    assert cleanup(tmp_path) == []
    assert owner.exists()


def test_a_run_that_nobody_owns_is_not_live(tmp_path: Path) -> None:
    assert not is_live(tmp_path)
    assert not is_live(tmp_path / "missing")


def test_a_record_of_another_user_is_one_of_a_live_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Path) -> bytes:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "read_bytes", refused)  # the folder is closed to us; root would be let in
    assert is_live(tmp_path / "r1")


def test_no_runs_no_leftovers(tmp_path: Path) -> None:
    assert cleanup(tmp_path / "missing") == []


def test_a_run_without_a_stack_leaves_no_record(tmp_path: Path) -> None:
    run_dir = tmp_path / "r1"
    owner = run_dir / "stack" / "owner.json"
    with pytest.raises(ValueError, match="the run"), owned(run_dir):
        with owned(run_dir):  # as the stack does inside a run
            register_process(run_dir, os.getpid())
        assert owner.read_text().count(f'"pid": {os.getpid()}') == 2
        assert is_live(run_dir)
        raise ValueError("the run fails")
    assert not owner.exists()
    assert not is_live(run_dir)


def test_only_a_living_process_of_an_owned_run_is_registered(tmp_path: Path, spawn: Spawn) -> None:
    run_dir = tmp_path / "r1"
    with pytest.raises(StackError, match="nobody owns this run"):
        register_process(run_dir, os.getpid())
    dead = spawn()
    dead.kill()
    dead.wait()
    with owned(run_dir), pytest.raises(StackError, match=str(dead.pid)):
        register_process(run_dir, dead.pid)


def test_a_dead_owner_is_succeeded(tmp_path: Path) -> None:
    owned_by_the_dead(tmp_path / "r1")
    with owned(tmp_path / "r1"):
        assert is_live(tmp_path / "r1")
    assert not is_live(tmp_path / "r1")
