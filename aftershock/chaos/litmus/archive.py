"""What Litmus leaves behind and then deletes: logs of its pods, Events, the engine and its results, kept as files.

Each pod's log is followed from the moment its container runs. Fetching it at the end would be too late: an abort
deletes the pods at once, whatever `jobCleanUpPolicy` says.
"""

from __future__ import annotations

import logging
import threading
from pathlib import Path

from aftershock.chaos.litmus.clock import Clock
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sightings import Object
from aftershock.errors import ChaosError, RunDirectoryError
from aftershock.files import write_json, write_text

RETRY_S = 1.0
LAST_WORDS_S = 3.0
"""How long the last bytes of a log are waited for."""

log = logging.getLogger(__name__)


class Archive:
    """Of one engine. Nothing here raises: a full disk must not keep a fault from being stopped."""

    def __init__(self, cluster: Cluster, namespace: str, folder: Path | None, clock: Clock) -> None:
        """Without a folder, nothing is kept but what the outcome holds."""
        self._cluster = cluster
        self._namespace = namespace
        self._folder = folder
        self._clock = clock
        self._tails: dict[str, _Tail] = {}

    def notice(self, ledger: Ledger) -> None:
        """Follow the logs of pods that have begun; let go of those that are no longer there."""
        if self._folder is None:
            return
        for name, pod in ledger.pods.items():
            if name not in self._tails and _has_begun(pod):
                self._tails[name] = _Tail(self._cluster, self._namespace, pod, self._clock)
        for name, tail in self._tails.items():
            if name not in ledger.pods:
                tail.pod_gone.set()

    def close(self, ledger: Ledger) -> None:
        """Write it all."""
        if self._folder is None:
            return
        for tail in self._tails.values():
            tail.pod_gone.set()
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

    def __init__(self, cluster: Cluster, namespace: str, pod: Object, clock: Clock) -> None:
        self.pod_gone = threading.Event()
        self._cluster = cluster
        self._namespace = namespace
        self._pod = str(section(pod, "metadata").get("name"))
        # The first: others are sidecars that a mesh or a policy has put in.
        self._container = str(section(pod, "spec")["containers"][0]["name"])
        self._clock = clock
        self._read = b""
        self.thread = threading.Thread(target=self._follow, name=f"log {self._pod}", daemon=True)
        self.thread.start()

    def text(self) -> str:
        """What has been read until now."""
        return self._read.decode("utf-8", errors="replace")

    def _follow(self) -> None:
        while True:
            try:
                self._read_once()
                return
            except ChaosError as error:
                if self.pod_gone.is_set():
                    return
                log.info("log of %s: reading again: %s", self._pod, error)
            self._clock.sleep(RETRY_S)

    def _read_once(self) -> None:
        """From its beginning; what was read before stays until there is more than that."""
        fresh = b""
        for chunk in self._cluster.follow_log(self._namespace, self._pod, self._container):
            fresh += chunk
            if len(fresh) > len(self._read):
                self._read = fresh


def _has_begun(pod: Object) -> bool:
    statuses = section(pod, "status").get("containerStatuses") or []
    return any(section(status, "state").keys() & {"running", "terminated"} for status in statuses)
