"""Fixtures of the tests that start real servers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from command import Command, Start


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start `aftershock ARGUMENTS...` with its own runs folder; at the end, nothing of it may be alive."""
    started: list[Command] = []
    marker = f"{os.getpid()}-{tmp_path}"

    def begin(*arguments: str, prefix: tuple[str, ...] = (), runs: Path | None = None, **flags: str) -> Command:
        folder = runs or tmp_path / "runs"
        given = [part for name, value in flags.items() for part in (f"--{name.replace('_', '-')}", value)]
        clean = {name: value for name, value in os.environ.items() if not name.startswith("AFTERSHOCK_")}
        kept = {name: os.environ[name] for name in ("AFTERSHOCK_CACHE", "AFTERSHOCK_PROMETHEUS") if name in os.environ}
        process = subprocess.Popen(
            [*prefix, sys.executable, "-m", "aftershock.cli", *arguments, "--runs", str(folder), *given],
            cwd=tmp_path,
            env={**clean, **kept, "TEST_MARKER": marker},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        command = Command(process, folder, _marker=marker)
        started.append(command)
        return command

    yield begin
    for command in started:
        if command.process.poll() is None:
            command.process.kill()
            command.process.communicate()
        for process in command.processes():
            process.kill()
