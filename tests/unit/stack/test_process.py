"""Processes: the right one or none, with all it started, and its last words."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from aftershock.errors import StackError
from aftershock.processes import Identity
from aftershock.stack.process import Command, Process, end, ending, last_line, last_words

STUBBORN = (
    "import signal,sys,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up',flush=True); time.sleep(60)"
)

Spawn = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Start a Python program; wait for its first line; it is dead after the test."""
    started = []

    def start(code: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def command(tmp_path: Path, *argv: str, grace_s: float = 1.0) -> Command:
    return Command(name="part", argv=argv, folder=tmp_path, log=tmp_path / "logs" / "part.log", grace_s=grace_s)


async def said(log: Path, line: str) -> None:
    """Wait until `line` is the last in the log."""
    async with asyncio.timeout(20):
        while last_line(log) != line:
            await asyncio.sleep(0.01)


def test_an_identity_is_found_only_while_it_lives(spawn: Spawn) -> None:
    process = spawn("import time; print(flush=True); time.sleep(60)")
    identity = Identity.of(process.pid)
    assert identity.alive()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert psutil.pid_exists(process.pid), "a zombie"
    assert not identity.alive()
    process.wait()
    assert not identity.alive()
    with pytest.raises(ProcessLookupError, match=str(process.pid)):
        Identity.of(process.pid)


def test_two_readings_of_one_start_may_differ_by_a_second(spawn: Spawn) -> None:
    process = spawn("import time; print(flush=True); time.sleep(60)")
    started = Identity.of(process.pid).started
    assert [Identity(process.pid, started + shift).alive() for shift in (-1.0, 1.0, -2.0, 2.0)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_process_that_cannot_be_looked_at_counts_as_alive(spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = Identity.of(spawn("import time; print(flush=True); time.sleep(60)").pid)

    def refused(process: psutil.Process) -> float:
        raise psutil.AccessDenied(process.pid)

    monkeypatch.setattr(psutil.Process, "create_time", refused)
    assert identity.alive()
    assert identity.find() is None


def test_a_pid_that_changed_hands_is_left_alone(spawn: Spawn) -> None:
    process = spawn("import time; print(flush=True); time.sleep(60)")
    earlier = Identity(process.pid, Identity.of(process.pid).started - 60)
    assert not earlier.alive()
    assert end([earlier], grace_s=1) == []
    assert process.poll() is None


def test_end_takes_descendants_and_those_that_ignore_sigterm(spawn: Spawn) -> None:
    code = f"import subprocess,sys; subprocess.Popen([sys.executable,'-c',{STUBBORN!r}]).wait()"
    parent = spawn(code)
    (child,) = (Identity.of(process.pid) for process in psutil.Process(parent.pid).children())
    identity = Identity.of(parent.pid)
    assert end([identity], grace_s=0.3) == [identity]
    assert not identity.alive()
    assert not child.alive()
    assert parent.wait() == -signal.SIGTERM


def test_a_process_leads_its_group_and_writes_its_log(tmp_path: Path) -> None:
    async def run() -> tuple[int, int, int]:
        process = await Process.start(command(tmp_path, "sh", "-c", "echo out; echo err >&2; exec sleep 60"))
        group = os.getpgid(process.identity.pid)
        await said(tmp_path / "logs" / "part.log", "err")
        await process.stop()
        return process.identity.pid, group, await process.wait()

    pid, group, code = asyncio.run(run())
    assert group == pid
    assert ending(code) == "killed by SIGTERM"
    assert (tmp_path / "logs" / "part.log").read_text() == "out\nerr\n"


def test_stop_is_final_after_the_grace(tmp_path: Path) -> None:
    async def run() -> int:
        process = await Process.start(command(tmp_path, sys.executable, "-c", STUBBORN, grace_s=0.2))
        await said(tmp_path / "logs" / "part.log", "up")
        await process.stop()
        assert not process.identity.alive()
        process.signal(signal.SIGKILL)  # to nobody
        return await process.wait()

    assert ending(asyncio.run(run())) == "killed by SIGKILL"


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel of Linux does it")
def test_a_child_dies_with_its_parent(tmp_path: Path) -> None:
    code = f"""
import asyncio
from pathlib import Path
from aftershock.stack.process import Command, Process
async def run():
    process = await Process.start(Command("part", ("sleep", "60"), Path("."), Path({str(tmp_path / "log")!r})))
    print(process.identity.pid, flush=True)
    await process.wait()
asyncio.run(run())
"""
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.kill()
    parent.communicate()
    child.wait(5)


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="part: cannot start /no/such/program"):
        asyncio.run(Process.start(command(tmp_path, "/no/such/program")))


def test_last_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_line(log) == ""
    log.write_bytes(b"x" * 20_000 + b"\nwhat was \xff wrong  \n\n \n")
    assert last_line(log) == "what was � wrong"


def test_last_words_are_one_line(tmp_path: Path) -> None:
    log = tmp_path / "log"
    assert last_words("web ended", log) == f"web ended; see {log}"
    log.write_text("first\nlast\n")
    assert last_words("web ended", log) == f"web ended; its last words: last; see {log}"


def test_endings() -> None:
    assert [ending(0), ending(3), ending(-9), ending(-64)] == [
        "exited with code 0",
        "exited with code 3",
        "killed by SIGKILL",
        f"killed by {signal.Signals(64).name}",
    ]


def test_starting_a_process_that_ends_at_once_still_identifies_it(tmp_path: Path) -> None:
    async def run() -> Identity:
        process = await Process.start(command(tmp_path, "true"))
        await process.wait()
        return process.identity

    assert abs(asyncio.run(run()).started - time.time()) < 60
