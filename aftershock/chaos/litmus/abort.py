"""The two requests that end an engine. Whether they had their effect is for the watchers to see."""

from __future__ import annotations

import logging
from typing import Any

from aftershock.chaos.litmus.cluster import Cluster, NotFoundError
from aftershock.chaos.litmus.kinds import ENGINES, Kind
from aftershock.errors import ChaosError

log = logging.getLogger(__name__)


def stop_engine(cluster: Cluster, namespace: str, name: str, uid: str) -> bool:
    """Set `engineState: stop` of this very engine, and nothing else. True: accepted, or there is none any more."""
    patch: dict[str, Any] = {"metadata": {"uid": uid}, "spec": {"engineState": "stop"}}
    try:
        cluster.merge_patch(ENGINES.path(namespace, name), patch)
    except NotFoundError:
        return True
    except ChaosError as error:
        log.warning("engine %s is not asked to stop yet: %s", name, error)
        return False
    return True


def delete(cluster: Cluster, kind: Kind, namespace: str, name: str, uid: str) -> bool:
    """Delete this very object. True: accepted, or it is gone already."""
    try:
        cluster.delete(kind.path(namespace, name), uid)
    except ChaosError as error:
        log.warning("%s %s is not deleted yet: %s", kind.plural, name, error)
        return False
    return True
