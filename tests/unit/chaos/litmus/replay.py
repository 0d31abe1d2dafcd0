"""Replays recordings of real Litmus runs to the backend, through the fake API server.

Real is every object of a recording, and their order. Faked are time, which jumps from one recorded line to the next as
soon as the backend has digested the last, and, named `_fake_operator_*`, what the operator would have done where the
backend acts differently from the client of the recording.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from aftershock.chaos.litmus.sightings import Message, Sighting

from .fake_api_server import FakeApiServer

RECORDINGS = Path(__file__).parent / "recordings"
PLURALS = {
    "ChaosEngine": "chaosengines",
    "ChaosResult": "chaosresults",
    "Pod": "pods",
    "Job": "jobs",
    "Event": "events",
}
VIEWS = 6
"""Watches that the backend keeps open."""
PATIENCE_S = 5.0
"""Real seconds after which a backend that does not react is left to its deadlines."""


class ReplayClock:
    """Recorded time: stands still until the replay moves it."""

    def __init__(self) -> None:
        self.start = datetime.fromisoformat("2026-12-01T00:00:00+00:00")
        self.seconds = 0.0
        self.taken = 0
        """Sightings that the backend has received."""
        self.idle = False
        """The backend waits, and there is nothing for it."""
        self.closed = False
        self._changed = threading.Condition()

    def now(self) -> datetime:
        return self.start + timedelta(seconds=self.seconds)

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, to: float) -> None:
        with self._changed:
            self.seconds = max(self.seconds, to)
            self._changed.notify_all()

    def sleep(self, seconds: float) -> None:
        until = self.seconds + seconds
        with self._changed:
            self._changed.wait_for(lambda: self.closed or self.seconds >= until)

    def receive(self, inbox: Queue[Message], timeout_s: float) -> Message | None:
        until = self.seconds + timeout_s
        while True:
            try:
                message = inbox.get(timeout=0.0005)
            except Empty:
                self.idle = True
                if self.seconds >= until:
                    self.idle = False
                    return None
                continue
            self.idle = False
            self.taken += isinstance(message, Sighting)
            return message

    def close(self) -> None:
        with self._changed:
            self.closed = True
            self._changed.notify_all()


class Replay:
    """Plays one recording to a backend, line by line."""

    def __init__(self, server: FakeApiServer, clock: ReplayClock, name: str) -> None:
        with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
            self.lines = [json.loads(line) for line in lines]
        self.server, self.clock = server, clock
        self.body: dict[str, Any] = next(
            line["object"]["body"] for line in self.lines if line["object"].get("action") == "create chaosengine"
        )
        self.stop = threading.Event()
        """Set where the client of the recording stopped the engine."""
        self.blackout: tuple[float, float] | None = None
        """Further seconds without the API server."""
        self.foreign: frozenset[str] = frozenset()
        """Actions of the recording that are somebody else's; those of ours must be done by the backend."""
        self.user_stops = False
        self._done: set[str] = set()
        self._awaited: list[str] = []
        self._abandoned = False
        self._player = threading.Thread(target=self._play, name="replay", daemon=True)
        first = next(line for line in self.lines if line["kind"] == "ChaosEngine")
        self.clock.start = datetime.fromisoformat(first["object"]["metadata"]["creationTimestamp"])
        self._created = first["object"]
        for line in self.lines:
            if line.get("initial") and line["kind"] in PLURALS:
                server.change("ADDED", PLURALS[line["kind"]], line["object"])
        server.on_create, server.on_stop, server.on_delete = self._create, self._stopped, self._deleted

    def _create(self, _: dict[str, Any]) -> dict[str, Any]:
        self._awaited = [self._ours(line) for line in self.lines if self._ours(line)]
        self.server.change("ADDED", "chaosengines", self._created)
        self._player.start()
        return self._created

    def _ours(self, line: dict[str, Any]) -> str:
        """The action that the backend has to take here, if any."""
        action = str(line["object"].get("action", "")) if line["kind"] == "Client" else ""
        name = {"merge-patch chaosengine": "patch", "delete chaosengine": "delete"}.get(action, "")
        return "" if name in self.foreign else name

    def _play(self) -> None:
        self._until(lambda: len(self.server.streams) >= VIEWS)
        skipped = False
        for line in self.lines:
            if line.get("initial") or line["t"] < 0 or self._abandoned or self.clock.closed:
                continue
            if self.blackout and self.blackout[0] <= line["t"] and not skipped:
                skipped = True
                self.server.kill()
            if skipped and self.blackout and line["t"] >= self.blackout[1] and self.server.down:
                self._recover()
            self._pass_to(line["t"])
            self._one(line)
        while not self.clock.closed:  # nothing more is recorded; only deadlines are left
            self._digested()
            time.sleep(0.001)
            self.clock.advance(self.clock.seconds + 0.5)

    def _one(self, line: dict[str, Any]) -> None:
        kind, what = line["kind"], line["object"].get("what")
        if kind == "Recorder" and what == "apiserver killed":
            self._digested()
            self.server.kill()
        elif kind == "Recorder" and what == "apiserver started":
            self._recover()
        elif action := self._ours(line):
            if self.user_stops and action == "patch":
                self.stop.set()
            self._until(lambda: action in self._done or self._abandoned, step_s=0.5)
        elif kind in PLURALS and line["object"] is not self._created:
            self.server.change(line["type"], PLURALS[kind], line["object"])
            self._digested()

    def _recover(self) -> None:
        """The server is back; what happens next happens before the eyes of all watches."""
        self.server.down = False
        self._until(lambda: len(self.server.streams) >= VIEWS, step_s=0.1)

    def _pass_to(self, seconds: float) -> None:
        while self.server.down and self.clock.seconds < seconds:
            time.sleep(0.002)  # let the watches try in vain
            self.clock.advance(min(seconds, self.clock.seconds + 0.5))
        self.clock.advance(seconds)

    def _until(self, reached: Callable[[], bool], step_s: float = 0.0) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not reached() and not self.clock.closed and time.monotonic() < deadline:
            time.sleep(0.001)
            self.clock.advance(self.clock.seconds + step_s)

    def _digested(self) -> None:
        """The backend has received what was sent, has acted on it, and waits."""
        quiet = self.server.down
        self._until(lambda: (quiet or self.clock.taken >= self.server.sent) and self.clock.idle)

    def _stopped(self) -> None:
        self._done.add("patch")
        if "patch" not in self._awaited:
            self._fake_operator_stops()

    def _deleted(self, engine: dict[str, Any]) -> None:
        self._done.add("delete")
        if "delete" not in self._awaited:
            self._fake_operator_deletes(engine)

    def _fake_operator_stops(self) -> None:
        self._abandoned = True
        engine = next(iter(self.server.objects["chaosengines"].values()))
        self._fake_operator_removes(engine["metadata"]["uid"])
        spec, status = (
            {**engine["spec"], "engineState": "stop"},
            {**engine.get("status", {}), "engineStatus": "stopped"},
        )
        self.server.change("MODIFIED", "chaosengines", {**engine, "spec": spec, "status": status})

    def _fake_operator_deletes(self, engine: dict[str, Any]) -> None:
        self._abandoned = True
        self._fake_operator_removes(engine["metadata"]["uid"])
        self.server.change("DELETED", "chaosengines", engine)

    def _fake_operator_removes(self, uid: str) -> None:
        for plural in ("jobs", "pods"):
            for item in list(self.server.objects.get(plural, {}).values()):
                if (item["metadata"].get("labels") or {}).get("chaosUID") == uid:
                    self.server.change("DELETED", plural, item)
