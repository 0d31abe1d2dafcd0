"""Other chaos on the same target: of two faults at once, neither run could say which one it measured.

Looked for before a run, and again around the start of its engine, as other runs may have done the same meanwhile. Each
creates its engine inert, looks, starts it, and looks once more. Before the start, one gives way to what is active and
to what is older; after it, only to what is older and starts all the same. So of two that overlap exactly one goes on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.litmus.clock import Clock
from aftershock.chaos.litmus.cluster import Cluster, DeniedError, UnauthorizedError, UnreachableError
from aftershock.chaos.litmus.creation import MANAGED_BY, OWNER
from aftershock.chaos.litmus.kinds import ENGINES
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sightings import Object
from aftershock.errors import ChaosError

ANSWER_S = 30.0
AGAIN_S = 2.0
GIVE_WAY_S = 5.0
"""Shorter than Litmus takes from the start of an engine to its fault, which is some 10 s."""
SOON_S = 0.25


class RivalError(ChaosError):
    """Another engine disturbs the same target, or is about to."""

    def __init__(self, message: str, *, active: bool) -> None:
        super().__init__(message)
        self.active = active


def check_others(
    cluster: Cluster, engine: ChaosEngine, created: Object | None = None, *, started: bool = False
) -> None:
    """No other engine acts on the target of this one, and none that is about to goes first. Raises RivalError.

    `created` is this engine as the API server has it, where it is there already, and `started` says whether it acts.
    """
    for other in _on_the_same_target(cluster, engine):
        if created is not None and _uid(other) == _uid(created):
            continue
        comes_first = created is None or _age(other) < _age(created)
        if (is_active(other) and (comes_first or not started)) or (_about_to_start(other) and comes_first):
            name = f"{section(other, 'metadata').get('namespace')}/{section(other, 'metadata').get('name')}"
            raise RivalError(
                f"ChaosEngine {name} is {'active' if is_active(other) else 'about to start'} on the same target; "
                "wait for it, or run `aftershock cleanup` if it is a leftover",
                active=is_active(other),
            )


def check_alone(cluster: Cluster, engine: ChaosEngine, created: Object, clock: Clock) -> None:
    """The same, right before the start of the engine; an API server that does not answer is asked again for a while."""
    until_s = clock.monotonic() + ANSWER_S
    while True:
        try:
            return check_others(cluster, engine, created)
        except UnreachableError:
            if clock.monotonic() >= until_s:
                raise
        clock.sleep(AGAIN_S)


def check_still_alone(cluster: Cluster, engine: ChaosEngine, created: Object, clock: Clock) -> None:
    """The same, right after it. An older one that is about to start has a while to see ours and give way."""
    until_s = clock.monotonic() + GIVE_WAY_S
    while True:
        try:
            return check_others(cluster, engine, created, started=True)
        except RivalError as rival:
            if rival.active or clock.monotonic() >= until_s:
                raise
        clock.sleep(SOON_S)


def is_active(engine: Object) -> bool:
    """Whether its fault is on, may come, or is still being reverted, which an operator takes up to 180 s for."""
    return not is_inert(engine) and section(engine, "status").get("engineStatus") not in ("completed", "stopped")


def is_inert(engine: Object) -> bool:
    """Stopped before any operator had touched it: nothing has begun, and nothing will."""
    touched = section(engine, "status").get("engineStatus")
    return section(engine, "spec").get("engineState") == "stop" and not touched


def _about_to_start(engine: Object) -> bool:
    return is_inert(engine) and section(engine, "metadata", "labels").get(MANAGED_BY) == OWNER


def _on_the_same_target(cluster: Cluster, engine: ChaosEngine) -> list[Mapping[str, Any]]:
    try:
        engines = cluster.list(ENGINES, None).get("items") or []
    except UnauthorizedError:
        raise
    except DeniedError:
        engines = cluster.list(ENGINES, engine.namespace).get("items") or []
    ours = section(engine.document, "spec", "appinfo")
    return [
        other
        for other in engines
        if (
            section(other, "spec", "appinfo") == ours
            if ours
            else section(other, "metadata").get("namespace") == engine.namespace
        )
    ]


def _uid(engine: Object) -> str:
    return str(section(engine, "metadata").get("uid"))


def _age(engine: Object) -> tuple[str, str]:
    """The smaller, the older; the cluster's clock counts whole seconds."""
    return str(section(engine, "metadata").get("creationTimestamp")), _uid(engine)
