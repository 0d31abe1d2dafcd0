"""The live engine: a file that is to the local backend what the ChaosEngine object in the API server is to Litmus.

Whoever writes `engineState: stop` into it stops the fault, and so does whoever deletes it. The backend keeps `status`
up to date in it, on top of what others have written there.
"""

from __future__ import annotations

import copy
import logging
import os
import re
import time
import uuid
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from aftershock.chaos.engine import LOADER, ChaosEngine
from aftershock.errors import RunDirectoryError
from aftershock.files import write_text
from aftershock.windows import utc_now

WAITING, RUNNING, COMPLETED = "Waiting for Job Creation", "Running", "Completed"
ABORTED = "Forcefully Aborted"
"""Litmus' words for how far an experiment of an engine is."""

POLL_S = 0.2
GONE_POLLS = 3
"""An editor may take the file away for a moment; gone for so many looks in a row, it was deleted."""

_STOP_LINE = re.compile(r"^\s*engineState:\s*['\"]?stop\b", re.MULTILINE)

log = logging.getLogger(__name__)


class LiveEngine:
    """The file, from the engine's acceptance to its end."""

    def __init__(self, folder: Path, engine: ChaosEngine) -> None:
        self.path = folder / f"{engine.name}.yaml"
        self.uid = str(uuid.uuid4())
        self._document = copy.deepcopy(dict(engine.document))
        self._document["metadata"] = {**self._document["metadata"], "uid": self.uid}
        self._experiments: dict[str, dict[str, str]] = {}
        self._next_look = 0.0
        self._missing = 0
        self._seen: tuple[int, int, int] | None = None
        self._stop = False

    def accept(self, experiments: Iterable[str]) -> None:
        """Write it for the first time. Raises RunDirectoryError: without it nobody could stop the fault."""
        for name in experiments:
            self._set(name, WAITING, "N/A")
        self._document["status"] = self._status("initialized")
        write_text(self.path, _dump(self._document))

    def update(self, experiment: str, status: str, verdict: str) -> None:
        """Say how far one experiment is."""
        self._set(experiment, status, verdict)
        self._write("initialized", state=None)

    def close(self, stopped: bool) -> None:
        """Say how it ended; as with Litmus, `engineState` is `stop` from then on."""
        if stopped:
            for name, entry in self._experiments.items():
                if entry["status"] in (WAITING, RUNNING):
                    self._set(name, ABORTED, "Stopped")
        self._write("stopped" if stopped else "completed", state="stop")

    def stop_asked(self) -> bool:
        """Whether the file asks for a stop. Looks at it at most every POLL_S; once true, it stays true."""
        now = time.monotonic()
        if not self._stop and now >= self._next_look:
            self._next_look = now + POLL_S
            self._look()
        return self._stop

    def _look(self) -> None:
        try:
            stat = self.path.stat()
            signature = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
            if signature == self._seen:
                return
            text = self.path.read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            self._missing += 1
            self._stop = self._stop or self._missing >= GONE_POLLS
            return
        except OSError as error:
            log.warning("%s cannot be read: %s", self.path, error)
            return
        self._missing, self._seen = 0, signature
        self._stop = self._stop or _asks_for_stop(text, self.path)

    def _write(self, engine_status: str, state: str | None) -> None:
        """Put our status on top of what is there now. A full disk must not end the fault's supervision."""
        self._look()  # who wrote a stop a moment ago must not see it overwritten
        document = _read(self.path) or self._document
        document["status"] = self._status(engine_status)
        if state or self._stop:
            document["spec"]["engineState"] = state or "stop"
        try:
            write_text(self.path, _dump(document))
        except RunDirectoryError as error:
            log.warning("the live engine is not up to date: %s", error)

    def _set(self, experiment: str, status: str, verdict: str) -> None:
        self._experiments[experiment] = {
            "name": experiment,
            "runner": "aftershock",
            "experimentPod": f"pid-{os.getpid()}",
            "status": status,
            "verdict": verdict,
            "lastUpdateTime": utc_now().isoformat(timespec="seconds"),
        }

    def _status(self, engine_status: str) -> dict[str, Any]:
        return {"engineStatus": engine_status, "experiments": list(self._experiments.values())}


def stop_engines(stack_dir: Path) -> list[Path]:
    """Write `engineState: stop` into every engine of a stack whose fault is still going on; their files.

    Raises RunDirectoryError where one cannot be written.
    """
    stopped = []
    for path in sorted((stack_dir / "chaos").glob("*.yaml")):
        document = _read(path)
        status = document.get("status") if document else None
        if document and isinstance(status, dict) and status.get("engineStatus") == "initialized":
            document["spec"]["engineState"] = "stop"
            write_text(path, _dump(document))
            stopped.append(path)
    return stopped


def _asks_for_stop(text: str, path: Path) -> bool:
    """By the YAML; where a hand has broken it, by the line as it stands: a stop is the safe reading."""
    try:
        return _state(yaml.load(text, LOADER)) == "stop"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        log.warning("%s is not YAML any more (%s); looking for the line engineState: stop", path, type(error).__name__)
        return _STOP_LINE.search(text) is not None


def _read(path: Path) -> dict[str, Any] | None:
    """The document there, if it can still be one."""
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), LOADER)
    except (OSError, ValueError, RecursionError, yaml.YAMLError):
        return None
    return document if _state(document) is not None else None


def _state(document: Any) -> str | None:
    """`spec.engineState`; "" where it is not set, None where there is no `spec`."""
    spec = document.get("spec") if isinstance(document, dict) else None
    return str(spec.get("engineState") or "") if isinstance(spec, dict) else None


def _dump(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
