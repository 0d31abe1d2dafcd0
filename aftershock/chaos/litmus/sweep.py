"""Finding and removing what dead runs left in a cluster: by label, so that it works without anything they remembered.

Engines first, because a leftover engine may start its fault again; stopped before they are deleted, so that Litmus
reverts. Its own finalizer is never stripped: without an operator, a fault that is in force would be forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aftershock.chaos.engine import RUN_ID_LABEL
from aftershock.chaos.litmus.abort import delete, stop_engine
from aftershock.chaos.litmus.clock import Clock, SystemClock
from aftershock.chaos.litmus.cluster import Cluster, NotFoundError
from aftershock.chaos.litmus.kinds import ENGINES, JOBS, PODS, RESULTS, Kind
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sightings import Object

GONE_S = 240.0
"""How long an engine may take to revert and go: the operator itself waits 180 s for the pods."""
POLL_S = 1.0


@dataclass(frozen=True)
class Leftover:
    """Something that a run left behind, and what became of it."""

    kind: str
    namespace: str
    name: str
    run_id: str
    removed: bool
    note: str = ""

    def __str__(self) -> str:
        what = "removed" if self.removed else "NOT removed"
        note = f" ({self.note})" if self.note else ""
        return f"{what}: {self.kind} {self.namespace}/{self.name} of run {self.run_id}{note}"


def sweep(
    cluster: Cluster, namespace: str | None, run_id: str | None = None, *, clock: Clock | None = None
) -> tuple[Leftover, ...]:
    """Remove what the run left, or what all runs left; in one namespace, or (None) in all of them.

    Raises ChaosError where the cluster cannot be asked at all; what could be found but not removed is in the answer.
    """
    clock = clock or SystemClock()
    selector = f"{RUN_ID_LABEL}={run_id}" if run_id else RUN_ID_LABEL
    found = [_remove_engine(cluster, engine, clock) for engine in _all(cluster, ENGINES, namespace, selector)]
    for kind in (JOBS, PODS, RESULTS):
        for item in _all(cluster, kind, namespace, selector):
            if kind is RESULTS or section(item, "metadata", "labels").get("chaosUID"):
                found.append(_remove(cluster, kind, item))
    return tuple(found)


def _all(cluster: Cluster, kind: Kind, namespace: str | None, selector: str) -> Iterator[Object]:
    try:
        yield from cluster.list(kind, namespace, labelSelector=selector).get("items") or []
    except NotFoundError:  # Litmus is not installed
        return


def _remove_engine(cluster: Cluster, engine: Object, clock: Clock) -> Leftover:
    namespace, name, uid = _identity(engine)
    until = clock.monotonic() + GONE_S
    stop_engine(cluster, namespace, name, uid)
    stopped = _await(cluster, engine, clock, until, lambda now: section(now, "status").get("engineStatus") in _OVER)
    delete(cluster, ENGINES, namespace, name, uid)
    gone = _await(cluster, engine, clock, until, lambda _: False)
    if gone:
        return _leftover("ChaosEngine", engine, removed=True)
    note = "its deletion waits for the chaos-operator" if stopped else "it did not stop; is the chaos-operator running?"
    return _leftover("ChaosEngine", engine, removed=False, note=note)


_OVER = ("completed", "stopped")


def _await(cluster: Cluster, engine: Object, clock: Clock, until: float, enough: Callable[[Object], bool]) -> bool:
    """Wait until the engine is gone, or as wished; False: time is over."""
    namespace, name, uid = _identity(engine)
    while True:
        try:
            now = cluster.get(ENGINES.path(namespace, name))
        except NotFoundError:
            return True
        never_started = not section(now, "status") and not section(now, "metadata").get("finalizers")
        if section(now, "metadata").get("uid") != uid or enough(now):
            return True
        if clock.monotonic() >= until or never_started:
            return False
        clock.sleep(POLL_S)


def _remove(cluster: Cluster, kind: Kind, item: Object) -> Leftover:
    namespace, name, uid = _identity(item)
    removed = delete(cluster, kind, namespace, name, uid)
    return _leftover(kind.plural, item, removed=removed, note="" if removed else "the API server refused")


def _identity(item: Object) -> tuple[str, str, str]:
    metadata = section(item, "metadata")
    return str(metadata.get("namespace")), str(metadata.get("name")), str(metadata.get("uid"))


def _leftover(kind: str, item: Object, *, removed: bool, note: str = "") -> Leftover:
    namespace, name, _ = _identity(item)
    run_id = str(section(item, "metadata", "labels").get(RUN_ID_LABEL) or "?")
    return Leftover(kind, namespace, name, run_id, removed, note)
