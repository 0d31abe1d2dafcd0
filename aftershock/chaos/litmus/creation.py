"""Creating the engine: strictly, once, and knowing whether it was us who did."""

from __future__ import annotations

import uuid
from typing import Any

from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.litmus.cluster import Cluster, ConflictError, NotFoundError, UnreachableError
from aftershock.chaos.litmus.kinds import ENGINES
from aftershock.chaos.litmus.read import section
from aftershock.errors import ChaosError

MANAGED_BY = "app.kubernetes.io/managed-by"
OWNER = "aftershock"
ATTEMPT = "aftershock.io/attempt"
"""Annotation by which an engine whose creation got no answer is known to be this very attempt's."""


def create_engine(cluster: Cluster, engine: ChaosEngine) -> dict[str, Any]:
    """Create it, and return it as the API server has it. Raises ChaosError if it could not be created."""
    attempt = uuid.uuid4().hex
    try:
        created = cluster.create(ENGINES.path(engine.namespace), _owned(engine, attempt))
    except ConflictError as error:
        raise ChaosError(
            f"ChaosEngine {engine.namespace}/{engine.name} exists already, so this run's was not created; give another "
            "run id, or run `aftershock cleanup` if it is a leftover"
        ) from error
    except UnreachableError as error:
        created = _found(cluster, engine, attempt, error)
    if not section(created, "metadata").get("uid"):
        raise ChaosError(f"the API server accepted ChaosEngine {engine.name} but gave it no uid")
    return created


def _owned(engine: ChaosEngine, attempt: str) -> dict[str, Any]:
    metadata = dict(section(engine.document, "metadata"))
    metadata["labels"] = {**section(metadata, "labels"), MANAGED_BY: OWNER}
    metadata["annotations"] = {**section(metadata, "annotations"), ATTEMPT: attempt}
    metadata["namespace"] = engine.namespace
    return {**engine.document, "metadata": metadata}


def _found(cluster: Cluster, engine: ChaosEngine, attempt: str, error: ChaosError) -> dict[str, Any]:
    """No answer does not mean not created."""
    try:
        found = cluster.get(ENGINES.path(engine.namespace, engine.name))
    except NotFoundError:
        raise error from None
    if section(found, "metadata", "annotations").get(ATTEMPT) != attempt:
        raise error
    return found
