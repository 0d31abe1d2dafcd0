"""Creating the engine, and starting it: strictly, once, and knowing whether it was us who did.

It is created with `engineState: stop`, with which no operator does anything, and started by a patch of that field. So
a creation whose answer is lost leaves nothing that could begin by itself, and other chaos can be looked for in between.
"""

from __future__ import annotations

import logging
import threading
import uuid
from typing import Any

from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.litmus.clock import Clock
from aftershock.chaos.litmus.cluster import Cluster, ClusterError, ConflictError, NotFoundError, UnreachableError
from aftershock.chaos.litmus.kinds import ENGINES
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sightings import Object
from aftershock.errors import ChaosError

MANAGED_BY = "app.kubernetes.io/managed-by"
OWNER = "aftershock"
ATTEMPT = "aftershock.io/attempt"
"""Annotation by which an engine whose creation got no answer is known to be this very attempt's."""

ANSWER_S = 75.0
"""How long a clear answer is asked for. An API server gives a request up after 60 s, whatever webhooks are slow."""
AGAIN_S = 2.0

log = logging.getLogger(__name__)


def create_engine(cluster: Cluster, engine: ChaosEngine, clock: Clock, stop: threading.Event) -> dict[str, Any]:
    """Create it, inert, and return it as the API server has it. Raises ChaosError if it could not be created.

    A wish to stop ends only the wait for an answer.
    """
    attempt = uuid.uuid4().hex
    document = _inert(engine, attempt)
    until_s = clock.monotonic() + ANSWER_S
    doubt: ChaosError | None = None
    while True:
        try:
            return _known(cluster.create(ENGINES.path(engine.namespace), document), engine)
        except UnreachableError as error:
            doubt = error
        except ConflictError as error:
            if doubt is None:
                raise _taken(engine) from error
        except ClusterError:
            if doubt is None:
                raise
        found = _look(cluster, engine.namespace, engine.name)
        if found and section(found, "metadata", "annotations").get(ATTEMPT) != attempt:
            raise _taken(engine) from doubt
        if found:
            return _known(found, engine)
        if stop.is_set() or clock.monotonic() >= until_s:
            raise ChaosError(
                f"no clear answer to the creation of ChaosEngine {engine.namespace}/{engine.name} ({doubt}); should it "
                "be there, it is stopped and does nothing, and `aftershock cleanup` removes it"
            ) from doubt
        clock.sleep(AGAIN_S)


def start_engine(cluster: Cluster, created: Object, clock: Clock, stop: threading.Event) -> Object:
    """Set it to active, exactly once, and return it as it is then.

    Raises ChaosError if it is to be stopped already, or if it cannot be known whether it has started.
    """
    name, namespace = str(section(created, "metadata")["name"]), str(section(created, "metadata")["namespace"])
    uid = section(created, "metadata")["uid"]
    latest: Object | None = created
    until_s = clock.monotonic() + ANSWER_S
    while True:
        if stop.is_set():
            raise ChaosError("stopped before the fault was started")
        if latest is not None:
            # Only as it was last seen: once it has run, `active` would start it again.
            known = {"uid": uid, "resourceVersion": section(latest, "metadata").get("resourceVersion")}
            try:
                patch = {"metadata": known, "spec": {"engineState": "active"}}
                return cluster.merge_patch(ENGINES.path(namespace, name), patch)
            except (ConflictError, UnreachableError) as error:
                doubt: ChaosError = error
        try:
            latest = cluster.get(ENGINES.path(namespace, name))
        except NotFoundError as error:
            raise ChaosError(f"somebody deleted ChaosEngine {namespace}/{name} before it was started") from error
        except ClusterError as error:
            latest, doubt = None, error
        if latest and section(latest, "metadata").get("uid") != uid:
            raise ChaosError(f"somebody replaced ChaosEngine {namespace}/{name} before it was started")
        if latest and (section(latest, "spec").get("engineState") != "stop" or section(latest, "status")):
            return latest
        if clock.monotonic() >= until_s:
            raise ChaosError(f"no clear answer to the start of ChaosEngine {namespace}/{name} ({doubt})") from doubt
        clock.sleep(AGAIN_S)


def _inert(engine: ChaosEngine, attempt: str) -> dict[str, Any]:
    metadata = dict(section(engine.document, "metadata"))
    metadata["labels"] = {**section(metadata, "labels"), MANAGED_BY: OWNER}
    metadata["annotations"] = {**section(metadata, "annotations"), ATTEMPT: attempt}
    metadata["namespace"] = engine.namespace
    spec = {**section(engine.document, "spec"), "engineState": "stop"}
    return {**engine.document, "metadata": metadata, "spec": spec}


def _look(cluster: Cluster, namespace: str, name: str) -> dict[str, Any] | None:
    """It, if it is there and the API server says so: no answer to a creation does not mean that nothing was created."""
    try:
        return cluster.get(ENGINES.path(namespace, name))
    except ClusterError as error:
        log.info("engine %s: %s", name, error)
        return None


def _taken(engine: ChaosEngine) -> ChaosError:
    return ChaosError(
        f"ChaosEngine {engine.namespace}/{engine.name} exists already, so this run's was not created; give another "
        "run id, or run `aftershock cleanup` if it is a leftover"
    )


def _known(created: dict[str, Any], engine: ChaosEngine) -> dict[str, Any]:
    if not section(created, "metadata").get("uid"):
        raise ChaosError(f"the API server accepted ChaosEngine {engine.name} but gave it no uid")
    return created
