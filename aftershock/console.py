"""What the command line shows while a run works. Lines for logs, one line that is rewritten for terminals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from aftershock.errors import ExitCode
from aftershock.report.table import to_text
from aftershock.slo.verdict import Judgement

LINE_EVERY_S = 5.0
"""How often a log gets a progress line; a terminal gets each."""

STEP_TITLES = {
    "render": "checking the experiment, the target and the queries",
    "collect": "asking Prometheus",
    "judge": "judging",
    "report": "writing the report",
}


class Console:
    """Prints events of the progress journal, as they come."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._live = out.isatty()
        self._open_line = False
        self._printed_at: dict[str, float] = {}
        self._show: dict[str, Callable[[dict[str, Any]], None]] = {
            "step": self._step,
            "phase": self._phase,
            "load": self._load,
            "chaos": self._chaos,
            "stop": lambda event: self.line("stop", event["message"]),
            "stopped": lambda event: self.line("stopped", event["message"]),
            "stack": lambda event: self.line("stack", event["message"]),
            "warning": lambda event: self.line("warning", event["message"]),
        }

    def show(self, event: dict[str, Any]) -> None:
        """Print one event; kinds it does not know are passed over."""
        if shown := self._show.get(event.get("event", "")):
            shown(event)

    def line(self, head: str, text: str) -> None:
        """One line, with its head in the margin."""
        self._close_line()
        self._out.write(f"{head:<10} {text}\n")
        self._out.flush()

    def text(self, text: str) -> None:
        """A block of text, as it is."""
        self._close_line()
        self._out.write(text.rstrip("\n") + "\n")
        self._out.flush()

    def _step(self, event: dict[str, Any]) -> None:
        if title := STEP_TITLES.get(event["name"]):
            self.line(event["name"], title)

    def _phase(self, event: dict[str, Any]) -> None:
        self._printed_at.pop(event["phase"], None)
        self.line(event["phase"], f"{event['seconds']:g} s of load")

    def _load(self, event: dict[str, Any]) -> None:
        phase, elapsed = event["phase"], float(event["elapsed_s"])
        if not self._live and elapsed - self._printed_at.get(phase, 0.0) < LINE_EVERY_S:
            return
        self._printed_at[phase] = elapsed
        text = load_line(event)
        if self._live:
            self._out.write(f"\r\x1b[2K{phase:<10} {text}")
            self._open_line = True
            self._out.flush()
        else:
            self.line(phase, text)

    def _chaos(self, event: dict[str, Any]) -> None:
        mark = "! " if event.get("type") == "Warning" else ""
        self.line("  fault", f"{mark}{event['reason']}: {event['message']}")

    def _close_line(self) -> None:
        if self._open_line:
            self._out.write("\n")
            self._open_line = False


def load_line(event: dict[str, Any]) -> str:
    """`12 s left   480 sent   479 ok   1 failed   p99 9.1 ms   send lag p99 0.4 ms`."""
    left = max(0.0, float(event["seconds"]) - float(event["elapsed_s"]))

    def milliseconds(name: str) -> str:
        value = event.get(name)
        return "-" if value is None else f"{value:.1f} ms"

    return (
        f"{left:3.0f} s left  {event['sent']:6d} sent  {event['ok']:6d} ok  {event['failed']:4d} failed"
        f"   p99 {milliseconds('p99_ms')}   send lag p99 {milliseconds('send_lag_p99_ms')}"
    )


def table_text(judgement: Judgement) -> str:
    """The compliance table, as wide as the terminal allows."""
    return to_text(judgement, max(80, shutil.get_terminal_size((110, 24)).columns))


class Journal:
    """Follows the progress journal of a run, and remembers the first error in it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self.error: tuple[str, ExitCode] | None = None
        self.gate_closed = False
        """Whether the only thing that failed is the gate, which was to fail on this verdict."""

    def new_events(self) -> list[dict[str, Any]]:
        """Events since the last call; a line that is not whole yet waits for the next."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        events = [event for line in whole.splitlines() if (event := _parse(line))]
        for event in events:
            if event.get("event") == "error":
                self._note(event)
        return events

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("type") == "GateError":
            self.gate_closed = True
        elif self.error is None:
            self.error = (str(event.get("message")), ExitCode(event.get("exit_code", ExitCode.INFRASTRUCTURE)))


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        event = json.loads(line)
    except ValueError:
        return None  # cut off by a crash or a full disk; the next one is whole again
    return event if isinstance(event, dict) else None
