"""A stress worker ends with its time, its parent or its input, whichever comes first."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

WORKER = [sys.executable, "-m", "aftershock.chaos.local.worker"]

PARENT = """
import json, os, subprocess, sys, time
keep = []
for kind, options in json.loads(sys.argv[1]).items():
    options = {**options, "seconds": 60, "parent": os.getpid()}
    command = [sys.executable, "-m", "aftershock.chaos.local.worker", kind, json.dumps(options)]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    worker.stdout.readline()
    keep.append(worker)
print(json.dumps([worker.pid for worker in keep]), flush=True)
time.sleep(60)
"""


def start(kind: str, parent: int | None = None, seconds: float = 60, **options: Any) -> subprocess.Popen[bytes]:
    """One worker, started by this process."""
    document = {**options, "seconds": seconds, "parent": parent or os.getpid()}
    return subprocess.Popen([*WORKER, kind, json.dumps(document)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)


@pytest.fixture
def cpu() -> Iterator[subprocess.Popen[bytes]]:
    """A worker that computes."""
    with start("cpu", load_percent=20) as process:
        yield process
        process.kill()


def said(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """Its next line."""
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def test_it_says_what_it_has_used(cpu: subprocess.Popen[bytes]) -> None:
    first = said(cpu)["amount"]
    assert said(cpu)["amount"] > first


def test_it_ends_with_its_input(cpu: subprocess.Popen[bytes]) -> None:
    said(cpu)
    assert cpu.stdin is not None
    cpu.stdin.close()
    assert cpu.wait(10) == 0


def test_it_ends_with_its_time() -> None:
    with start("cpu", seconds=0.5, load_percent=100) as process:
        assert process.wait(10) == -signal.SIGALRM


def test_it_does_not_begin_for_a_parent_that_is_gone() -> None:
    with start("cpu", parent=1 if os.getpid() != 1 else 2, load_percent=10) as process:
        assert process.wait(10) == 0


def test_it_says_why_it_cannot_work(tmp_path: Path) -> None:
    with start("io", bytes=1024, folder=str(tmp_path / "missing")) as process:
        assert "FileNotFoundError" in said(process)["error"]
        assert process.wait(10) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the score is Linux' own")
def test_it_volunteers_for_the_oom_killer(cpu: subprocess.Popen[bytes]) -> None:
    said(cpu)
    assert Path(f"/proc/{cpu.pid}/oom_score_adj").read_text().strip() == "1000"


def test_no_kind_outlives_a_parent_that_is_killed(tmp_path: Path) -> None:
    kinds = {
        "cpu": {"load_percent": 10},
        "memory": {"bytes": 8_000_000},
        "io": {"bytes": 2_000_000, "folder": str(tmp_path)},
    }
    with subprocess.Popen([sys.executable, "-c", PARENT, json.dumps(kinds)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pids = json.loads(parent.stdout.readline())
        assert all(psutil.pid_exists(pid) for pid in pids)
        parent.kill()
    assert gone(pids, within_s=5)
    assert list(tmp_path.iterdir()) == []


def gone(pids: list[int], within_s: float) -> bool:
    """Whether none of them runs any more."""
    end = time.monotonic() + within_s
    while any(running(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def running(pid: int) -> bool:
    """Zombies do not run."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
