"""Finding and removing what dead runs left in a cluster: by label, so that it works without anything they remembered.

Engines first, because a leftover engine may start its fault again. What cannot be found or removed is named and does
not keep the rest from being removed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from aftershock.chaos.engine import RUN_ID_LABEL
from aftershock.chaos.litmus.abort import delete
from aftershock.chaos.litmus.clock import Clock, SystemClock
from aftershock.chaos.litmus.cluster import Cluster, ClusterError, DeniedError, NotFoundError
from aftershock.chaos.litmus.kinds import ENGINES, JOBS, PODS, RESULTS, Kind
from aftershock.chaos.litmus.read import digest, section
from aftershock.chaos.litmus.removal import remove_engines
from aftershock.chaos.litmus.sightings import Object

TRIES = 3
"""How often the deletion of one object is asked for."""
AGAIN_S = 2.0


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

    Raises ChaosError where engines cannot be looked for at all; what else went wrong is in the answer.
    """
    clock = clock or SystemClock()
    try:
        engines = list(_marked(cluster, ENGINES, namespace, run_id))
    except DeniedError as error:
        if namespace is not None:
            raise
        raise DeniedError(f"{error}; with rights in one namespace only, name it with --namespace") from error
    removals = remove_engines(cluster, engines, clock)
    done = [_leftover("ChaosEngine", each.engine, each.note) for each in removals]
    held = {digest(each.engine) for each in removals if not each.gone}
    for kind in (JOBS, PODS, RESULTS):
        try:
            found = {digest(item): item for item in _marked(cluster, kind, namespace, run_id)}
            if kind is RESULTS:
                found |= {digest(item): item for item in _unmarked(cluster, namespace, run_id, engines)}
        except ClusterError as error:
            where, whose = namespace or "*", run_id or "any"
            done.append(Leftover(kind.plural, where, "*", whose, False, f"cannot be looked for: {error}"))
            continue
        done += [_remove(cluster, kind, item, held, clock) for item in found.values()]
    return tuple(done)


def marked(cluster: Cluster, namespace: str | None, run_id: str | None = None) -> Iterator[tuple[Kind, Object]]:
    """All that has the label of the run, or (None) of any run."""
    for kind in (ENGINES, JOBS, PODS, RESULTS):
        for item in _marked(cluster, kind, namespace, run_id):
            yield kind, item


def _marked(cluster: Cluster, kind: Kind, namespace: str | None, run_id: str | None) -> Iterator[Object]:
    selector = f"{RUN_ID_LABEL}={run_id}" if run_id else RUN_ID_LABEL
    for item in _all(cluster, kind, namespace, selector):
        if kind in (ENGINES, RESULTS) or section(item, "metadata", "labels").get("chaosUID"):
            yield item


def _unmarked(
    cluster: Cluster, namespace: str | None, run_id: str | None, engines: Iterable[Object]
) -> Iterator[Object]:
    """Results from which an abort has taken the run's label: all but chaosUID."""
    for engine in engines:
        yield from _all(cluster, RESULTS, namespace, f"chaosUID={digest(engine)}")
    if run_id is None:
        return
    for result in _all(cluster, RESULTS, namespace, "chaosUID"):
        spec, labels = section(result, "spec"), section(result, "metadata", "labels")
        # Of an engine that is gone: only the name says whose it was.
        if set(labels) == {"chaosUID"} and spec.get("engine") == f"{spec.get('experiment')}-{run_id}":
            yield result


def _all(cluster: Cluster, kind: Kind, namespace: str | None, selector: str) -> Iterator[Object]:
    try:
        yield from cluster.list(kind, namespace, labelSelector=selector).get("items") or []
    except NotFoundError:  # Litmus is not installed
        return


def _remove(cluster: Cluster, kind: Kind, item: Object, held: Collection[str], clock: Clock) -> Leftover:
    if kind is RESULTS and section(item, "metadata", "labels").get("chaosUID") in held:
        return _leftover(kind.plural, item, "kept: its engine is still there, and it says what the fault has hit")
    namespace, name, uid = _identity(item)
    for attempt in range(TRIES):
        if delete(cluster, kind, namespace, name, uid):
            return _leftover(kind.plural, item)
        if attempt + 1 < TRIES:
            clock.sleep(AGAIN_S)
    return _leftover(kind.plural, item, "the API server refuses its deletion")


def _identity(item: Object) -> tuple[str, str, str]:
    metadata = section(item, "metadata")
    return str(metadata.get("namespace")), str(metadata.get("name")), str(metadata.get("uid"))


def _leftover(kind: str, item: Object, note: str = "") -> Leftover:
    """Without a note it was removed."""
    namespace, name, _ = _identity(item)
    run_id = str(section(item, "metadata", "labels").get(RUN_ID_LABEL) or "?")
    return Leftover(kind, namespace, name, run_id, not note, note)
