"""Ending engines that no run follows: stopped, so that Litmus reverts, and then deleted; all of them at the same time.

What is refused, or gets no answer, is asked for again. Litmus' own finalizer is never stripped: without an operator, a
fault that is in force would be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from aftershock.chaos.litmus.abort import delete, stop_engine
from aftershock.chaos.litmus.clock import Clock
from aftershock.chaos.litmus.cluster import Cluster, ClusterError, NotFoundError
from aftershock.chaos.litmus.kinds import ENGINES
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.rivals import is_inert
from aftershock.chaos.litmus.sightings import Object

STOP_S = 240.0
"""How long engines may take to revert: the operator itself waits 180 s for the pods."""
GONE_S = 60.0
"""How long they may take to go, once their deletion was asked for."""
AGAIN_S = 3.0
POLL_S = 1.0


@dataclass
class Removal:
    """One engine on its way out."""

    engine: Object
    stopped: bool = False
    gone: bool = False
    refused: str = ""
    """What the API server did not do for us when it was last asked."""
    unseen: str = ""
    """Why it could not be looked at the last time."""
    _asked_s: float | None = None

    @property
    def note(self) -> str:
        """Why it is still there; empty if it is not."""
        if self.gone:
            return ""
        if self.unseen or self.refused:
            return self.unseen or self.refused
        if self.stopped:
            return "it is stopped, but its deletion waits for the chaos-operator"
        return "it did not stop; is the chaos-operator running?"

    def stop(self, cluster: Cluster, now_s: float) -> bool:
        """One step towards its stop. True: it acts no more."""
        self._look(cluster)
        if not self._harmless and self._due(now_s):
            accepted = stop_engine(cluster, *self._identity)
            self.refused = "" if accepted else "the API server does not take the wish to stop"
            self._look(cluster)
        return self._harmless

    def delete(self, cluster: Cluster, now_s: float) -> bool:
        """One step towards its end. True: it is gone."""
        self._look(cluster)
        if not self.gone and self._due(now_s):
            accepted = delete(cluster, ENGINES, *self._identity)
            self.refused = "" if accepted else "the API server does not take its deletion"
            self._look(cluster)
        return self.gone

    def next_stage(self) -> None:
        """What is asked for next has not been asked for yet."""
        self._asked_s = None

    @property
    def _harmless(self) -> bool:
        return self.stopped or self.gone

    @property
    def _identity(self) -> tuple[str, str, str]:
        metadata = section(self.engine, "metadata")
        return str(metadata.get("namespace")), str(metadata.get("name")), str(metadata.get("uid"))

    def _look(self, cluster: Cluster) -> None:
        namespace, name, uid = self._identity
        try:
            now = cluster.get(ENGINES.path(namespace, name))
        except NotFoundError:
            self.gone = True
            return
        except ClusterError as error:
            self.unseen = str(error)
            return
        self.unseen = ""
        self.gone = section(now, "metadata").get("uid") != uid
        self.stopped = section(now, "status").get("engineStatus") in ("completed", "stopped") or is_inert(now)

    def _due(self, now_s: float) -> bool:
        due = self._asked_s is None or now_s - self._asked_s >= AGAIN_S
        self._asked_s = now_s if due else self._asked_s
        return due


def remove_engines(cluster: Cluster, engines: Iterable[Object], clock: Clock) -> list[Removal]:
    """Stop them all, wait for that, delete them all, wait for that too. What became of each, in the same order."""
    removals = [Removal(engine) for engine in engines]
    _repeat(lambda: [removal.stop(cluster, clock.monotonic()) for removal in removals], STOP_S, clock)
    for removal in removals:
        removal.next_stage()
    _repeat(lambda: [removal.delete(cluster, clock.monotonic()) for removal in removals], GONE_S, clock)
    return removals


def _repeat(steps: Callable[[], list[bool]], limit_s: float, clock: Clock) -> None:
    """Until all of them have come to their end, or time is over."""
    until_s = clock.monotonic() + limit_s
    while not all(steps()) and clock.monotonic() < until_s:
        clock.sleep(POLL_S)
