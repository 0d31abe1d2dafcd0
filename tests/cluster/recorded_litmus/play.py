"""Plays the client of a recording to a live cluster, and records what becomes visible there, as the recordings do."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.cluster.recorded_litmus.api import Api, Object, path
from tests.cluster.recorded_litmus.condense import Seen, condense, reached

RECORDINGS = Path(__file__).parents[2] / "unit" / "chaos" / "litmus" / "recordings"
RECORDED_NAMESPACE = "chaos-test"
WATCHED = {
    "chaosengines": "ChaosEngine",
    "chaosresults": "ChaosResult",
    "pods": "Pod",
    "jobs": "Job",
    "events": "Event",
}
DEADLINE_S = 150.0
"""From one action of the client to what follows it."""
QUIET_S = 4.0
"""How long nothing more may come at the end, and how long a recorded wait in which nothing came is repeated."""
POLL_S = 0.1

Line = Mapping[str, Any]


def read_recording(name: str) -> list[Line]:
    """The lines of a recording."""
    with gzip.open(RECORDINGS / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


class Recorder:
    """Watches one namespace until it is closed."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._lines: list[Line] = []
        self._lock = threading.Lock()
        self._closed = False
        for plural, kind in WATCHED.items():
            given = (path(plural, namespace), self._seen(kind), lambda: self._closed)
            threading.Thread(target=api.follow, args=given, daemon=True).start()

    def close(self) -> None:
        """Record nothing more; the threads end with their watches."""
        self._closed = True

    def seen(self) -> Seen:
        """What has been seen so far."""
        with self._lock:
            lines = list(self._lines)
        return condense(lines)

    def _seen(self, kind: str) -> Callable[[str, Object], None]:
        def seen(change: str, item: Object) -> None:
            line = {"kind": kind, "type": change, "object": {"kind": kind, **item}, "initial": change == "LISTED"}
            with self._lock:
                if not self._closed:
                    self._lines.append(line)

        return seen


def play(api: Api, recording: Iterable[Line], namespace: str, address: str) -> Seen:
    """Do what the recorded client did, each time as soon as all is there that it had seen; then wait for the end.

    `address` replaces the recorded pod address in probes. What is missing at the deadline is missing in the answer.
    """
    lines = [line for line in recording if not line.get("initial")]
    recorder = Recorder(api, namespace)
    time.sleep(1)  # the lists are read; what comes now is seen as a change
    try:
        for index, line in enumerate(lines):
            if line["kind"] == "Client":
                before = lines[:index]
                _await(recorder, condense(before))
                if any(each["kind"] == "Recorder" and each["type"] == "DEADLINE" for each in before):
                    time.sleep(QUIET_S)
                _act(api, line["object"], namespace, address, _engine_name(lines))
        _await(recorder, condense(lines))
        time.sleep(QUIET_S)
        return recorder.seen()
    finally:
        recorder.close()


def _engine_name(lines: Iterable[Line]) -> str:
    create = next(line["object"]["body"] for line in lines if line["object"].get("action") == "create chaosengine")
    return str(create["metadata"]["name"])


def _await(recorder: Recorder, wanted: Seen) -> None:
    until = time.monotonic() + DEADLINE_S
    while not reached(recorder.seen(), wanted) and time.monotonic() < until:
        time.sleep(POLL_S)


def _act(api: Api, action: Any, namespace: str, address: str, engine: str) -> None:
    at = path("chaosengines", namespace, engine)
    match action["action"]:
        case "create chaosengine":
            text = json.dumps(action["body"]).replace(RECORDED_NAMESPACE, namespace)
            api.create(path("chaosengines", namespace), json.loads(text.replace("192.0.2.2", address)))
        case "merge-patch chaosengine":
            api.patch(at, action["body"])
        case "delete chaosengine":
            api.delete(at)
        case other if other.startswith("admin deletes experiment pod"):
            (pod,) = api.items(path("pods", namespace), labelSelector="job-name")
            api.delete(path("pods", namespace, pod["metadata"]["name"]), grace_s=0)
        case other:
            raise ValueError(f"the client of a recording did what cannot be played: {other}")
