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
from typing import IO, Any

import yaml

from aftershock.chaos.engine import LOADER, ChaosEngine
from aftershock.chaos.local.rewrite import rewrite
from aftershock.chaos.local.state import read_state
from aftershock.errors import ChaosError, RunDirectoryError
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
        self._displaced: list[IO[str]] = []
        """Versions that an update has replaced: who had one open may yet write a stop into it."""
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
        while self._displaced:
            self._displaced.pop().close()

    def stop_asked(self) -> bool:
        """Whether the file asks for a stop. Looks at it at most every POLL_S; once true, it stays true."""
        now = time.monotonic()
        if not self._stop and now >= self._next_look:
            self._next_look = now + POLL_S
            self._look()
        return self._stop

    def _look(self) -> None:
        for version in self._displaced:
            version.seek(0)
            self._note_stop(version.read())
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
        self._note_stop(text)

    def _note_stop(self, text: str) -> None:
        self._stop = self._stop or _asks_for_stop(text, self.path)

    def _write(self, engine_status: str, state: str | None) -> None:
        """Put our status on top of what is there now. A full disk must not end the fault's supervision."""

        def with_status(text: str) -> str:
            self._note_stop(text)  # who writes a stop in this very moment must not see it overwritten
            document = _parse(text) or copy.deepcopy(self._document)
            document["status"] = self._status(engine_status)
            if state or self._stop:
                document["spec"]["engineState"] = state or "stop"
            return _dump(document)

        try:
            self._displaced += rewrite(self.path, with_status)
        except FileNotFoundError:
            log.warning("%s is gone: nothing is written there, so that it can be seen to stay away", self.path)
        except OSError as error:
            log.warning("%s is not up to date: %s", self.path, error)

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

    None if the stack does not run any more: nobody would read it. Raises RunDirectoryError where one cannot be written.
    """
    try:
        alive = read_state(stack_dir / "state.json").supervisor.alive()
    except ChaosError:
        alive = False
    return [path for path in sorted((stack_dir / "chaos").glob("*.yaml")) if alive and _stop_engine(path)]


def _stop_engine(path: Path) -> bool:
    """Whether the fault was still going on."""
    document: dict[str, Any] | None = None

    def with_stop(text: str) -> str:
        nonlocal document
        document = _parse(text) or document  # a version that somebody is writing just now is no reason to give up
        if document is None or not _going_on(document):
            return text
        document["spec"]["engineState"] = "stop"
        return _dump(document)

    try:
        for version in rewrite(path, with_stop):
            version.close()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise RunDirectoryError(f"cannot write {path}: {error.strerror or error}; write it as its owner") from error
    return document is not None and _going_on(document)


def _going_on(document: dict[str, Any]) -> bool:
    status = document.get("status")
    return isinstance(status, dict) and status.get("engineStatus") == "initialized"


def _asks_for_stop(text: str, path: Path) -> bool:
    """By the YAML; where a hand has broken it, by the line as it stands: a stop is the safe reading."""
    if "stop" not in text:  # nearly always
        return False
    try:
        return _state(yaml.load(text, LOADER)) == "stop"
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        log.warning("%s is not YAML any more (%s); looking for the line engineState: stop", path, type(error).__name__)
        return _STOP_LINE.search(text) is not None


def _parse(text: str) -> dict[str, Any] | None:
    """The document, if it can still be one."""
    try:
        document = yaml.load(text, LOADER)
    except (ValueError, RecursionError, yaml.YAMLError):
        return None
    return document if _state(document) is not None else None


def _state(document: Any) -> str | None:
    """`spec.engineState`; "" where it is not set, None where there is no `spec`."""
    spec = document.get("spec") if isinstance(document, dict) else None
    return str(spec.get("engineState") or "") if isinstance(spec, dict) else None


def _dump(document: dict[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
