"""What Litmus leaves behind and then deletes: logs of its pods, Events, the engine and its results, kept as files.

Each pod's log is followed from the moment its container runs. Fetching it at the end would be too late: an abort
deletes the pods at once, whatever `jobCleanUpPolicy` says.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.litmus.cluster import Cluster, DeniedError, UnauthorizedError
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sightings import Object
from aftershock.errors import ChaosError, RunDirectoryError
from aftershock.files import write_json, write_text

RETRY_S = 1.0
LAST_WORDS_S = 3.0
"""How long the last bytes of a log are waited for."""
HALF_BYTES = 2 * 1024 * 1024
"""Of a longer log, so much of its beginning is kept, and as much of its end."""
RUNNER = "chaos-runner"

log = logging.getLogger(__name__)


class Archive:
    """Of one engine. Nothing here raises: a full disk must not keep a fault from being stopped."""

    def __init__(self, cluster: Cluster, engine: ChaosEngine, folder: Path | None) -> None:
        """Without a folder, nothing is kept but what the outcome holds."""
        self._cluster = cluster
        self._engine = engine
        self._folder = folder
        self._tails: dict[str, _Tail] = {}

    @property
    def gaps(self) -> tuple[str, ...]:
        """One sentence for each log that is not there, for want of a right."""
        return tuple(
            f"the log of pod {name} is not kept: {tail.denied}" for name, tail in self._tails.items() if tail.denied
        )

    def notice(self, ledger: Ledger) -> None:
        """Follow the logs of pods that have begun; let go of those that are no longer there."""
        if self._folder is None:
            return
        for name, pod in ledger.pods.items():
            container = _container(pod, self._engine)
            state = _state(pod, container)
            if name not in self._tails and state.keys() & {"running", "terminated"}:
                self._tails[name] = _Tail(self._cluster, self._engine.namespace, name, container)
            if name in self._tails and "terminated" in state:
                self._tails[name].ended.set()
        for name, tail in self._tails.items():
            if name not in ledger.pods:
                tail.let_go()

    def close(self, ledger: Ledger) -> None:
        """Write it all."""
        if self._folder is None:
            return
        for tail in self._tails.values():
            tail.let_go()
            tail.thread.join(LAST_WORDS_S)
        try:
            for name, tail in self._tails.items():
                write_text(self._folder / f"{name}.log", tail.text())
            write_json(self._folder / "engine.json", dict(ledger.latest or {}))
            write_json(self._folder / "results.json", [dict(result) for result in ledger.results.values()])
            write_json(self._folder / "events.json", [dict(event) for event in ledger.related])
        except (RunDirectoryError, OSError) as error:
            log.warning("the archive of engine %s is not complete: %s", ledger.engine.name, error)


class _Tail:
    """The log of one pod, followed in a thread of its own."""

    def __init__(self, cluster: Cluster, namespace: str, pod: str, container: str) -> None:
        self.ended = threading.Event()
        """Its container has ended: what is read from now on is all there is."""
        self.denied = ""
        """Why it may not be read."""
        self._gone = threading.Event()
        self._cluster = cluster
        self._namespace = namespace
        self._pod = pod
        self._container = container
        self._read = _Text()
        self.thread = threading.Thread(target=self._follow, name=f"log {pod}", daemon=True)
        self.thread.start()

    def let_go(self) -> None:
        """The pod is gone, or nobody wants more of it: no further try."""
        self._gone.set()

    def text(self) -> str:
        """What has been read until now."""
        return self._read.text()

    def _follow(self) -> None:
        while True:
            ended = self.ended.is_set()
            try:
                self._read_once()
                if ended:
                    return
            except UnauthorizedError as error:
                log.info("log of %s: reading again: %s", self._pod, error)
            except DeniedError as error:
                self.denied = str(error)
                return
            except ChaosError as error:
                log.info("log of %s: reading again: %s", self._pod, error)
            # An end may also be that of the connection, through a proxy that closes it as it should.
            if self._gone.wait(RETRY_S):
                return

    def _read_once(self) -> None:
        """From its beginning; what was read before stays until there is more than that."""
        fresh = _Text()
        for chunk in self._cluster.follow_log(self._namespace, self._pod, self._container):
            fresh.add(chunk)
            if fresh.size > self._read.size:
                self._read = fresh


class _Text:
    """A text of any length, of which the beginning and the end are kept."""

    def __init__(self) -> None:
        self.size = 0
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, chunk: bytes) -> None:
        """At its end."""
        self.size += len(chunk)
        room = HALF_BYTES - len(self._head)
        self._head += chunk[:room]
        self._tail += chunk[room:]
        if len(self._tail) > 2 * HALF_BYTES:  # not with each chunk: it moves all of it
            del self._tail[:-HALF_BYTES]

    def text(self) -> str:
        """What is kept, and how much is not."""
        end = self._tail[-HALF_BYTES:]
        missing = self.size - len(self._head) - len(end)
        gap = f"\n[{missing} bytes are left out here]\n".encode() if missing else b""
        return bytes(self._head + gap + end).decode("utf-8", errors="replace")


def _container(pod: Object, engine: ChaosEngine) -> str:
    """Litmus' own among those that a mesh or a policy has put in: named so, or like its experiment."""
    names = [str(each.get("name")) for each in section(pod, "spec").get("containers") or []]
    experiments = tuple(experiment.name for experiment in engine.experiments)
    own = [name for name in names if name == RUNNER or name.startswith(experiments)]
    return (own or names or [""])[0]


def _state(pod: Object, container: str) -> Mapping[str, Any]:
    statuses = section(pod, "status").get("containerStatuses") or []
    return next((section(each, "state") for each in statuses if each.get("name") == container), {})
