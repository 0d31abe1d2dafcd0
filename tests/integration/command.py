"""The real command in a process of its own, as the tests use it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

SHORT = {"baseline_s": "5", "chaos_s": "8", "recovery_s": "8", "rate": "60", "policy": "point"}
"""Phases too short for intervals, so judged by the point: what is tested is the way, not the statistics."""


def wait_for(condition: Callable[[], Any], seconds: float, what: str) -> Any:
    """Poll until `condition` is true; its value. Fails, saying what did not come, after `seconds`."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.05)
    pytest.fail(f"{what} did not come within {seconds:g} s")


@dataclass
class Command:
    """One `aftershock` process."""

    process: subprocess.Popen[str]
    runs: Path
    output: str = ""
    errors: str = ""
    code: int | None = None
    _marker: str = field(default="", repr=False)

    @property
    def run(self) -> Path:
        """The only run directory (the store lies beside it)."""
        (path,) = [path.parent for path in self.runs.glob("*/artifacts")]
        return path

    def events(self) -> list[dict[str, Any]]:
        """Progress events so far."""
        found: list[dict[str, Any]] = []
        for journal in self.runs.glob("*/events.jsonl"):
            for line in journal.read_text().splitlines():
                found.append(json.loads(line))
        return found

    def wait_for_event(self, seconds: float = 60, **fields: Any) -> dict[str, Any]:
        """Wait until an event with these fields is in the journal."""

        def seen() -> dict[str, Any] | None:
            if self.process.poll() is not None:
                self.finish()
                pytest.fail(f"ended before {fields}: {self.output}{self.errors}")
            matching = [e for e in self.events() if all(e.get(key) == value for key, value in fields.items())]
            return matching[0] if matching else None

        event: dict[str, Any] = wait_for(seen, seconds, f"event {fields}")
        return event

    def state(self) -> dict[str, Any]:
        """State of the embedded stack."""
        document: dict[str, Any] = json.loads((self.run / "stack" / "state.json").read_text())
        return document

    def tell(self, number: signal.Signals) -> None:
        """Send a signal to the command alone, as a shell's kill does."""
        self.process.send_signal(number)

    def finish(self, seconds: float = 120) -> int:
        """Wait for its end; its exit code."""
        self.output, self.errors = self.process.communicate(timeout=seconds)
        self.code = self.process.returncode
        return self.code

    def verdict(self) -> dict[str, Any]:
        """verdict.json of the run."""
        document: dict[str, Any] = json.loads((self.run / "verdict.json").read_text())
        return document

    def processes(self) -> list[psutil.Process]:
        """All living processes that belong to this command: known by a variable in their environment."""
        living = []
        for process in psutil.process_iter():
            try:
                if process.environ().get("TEST_MARKER") == self._marker and process.status() != psutil.STATUS_ZOMBIE:
                    living.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return living


Start = Callable[..., Command]


def assert_nothing_left(command: Command) -> None:
    """No process of the command lives a moment after its end."""
    wait_for(lambda: not command.processes(), 10, f"the end of {command.processes()}")
