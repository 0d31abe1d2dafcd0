"""Events as Litmus writes them: one object per occasion, whose count rises when the occasion comes again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kubernetes.client import ApiException

from tests.cluster.recorded_litmus.api import Api, path


@dataclass(frozen=True)
class Happening:
    """What an Event tells of an object."""

    reason: str
    message: str
    type: str = "Normal"
    """Normal or Warning."""


def now() -> str:
    """This second, as the API writes it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def record(api: Api, name: str, involved: Mapping[str, Any], happening: Happening, component: str) -> None:
    """Write the Event of this name about `involved`; where it is there already, raise its count."""
    namespace = involved["metadata"]["namespace"]
    moment = now()
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {
            "apiVersion": "litmuschaos.io/v1alpha1",
            "kind": involved["kind"],
            "namespace": namespace,
            "name": involved["metadata"]["name"],
            "uid": involved["metadata"]["uid"],
        },
        "reason": happening.reason,
        "message": happening.message,
        "type": happening.type,
        "source": {"component": component},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
    try:
        api.create(path("events", namespace), event)
    except ApiException as error:
        if error.status != 409:
            raise
        at = path("events", namespace, name)
        count = int(api.get(at).get("count") or 1)
        again = {"count": count + 1, "lastTimestamp": moment, "message": happening.message, "type": happening.type}
        api.patch(at, {**again, "source": {"component": component}})


def engine_event_name(reason: str, experiment: str, engine_uid: str) -> str:
    """Of what runner and experiment tell of an engine: one object for all rounds and all reruns."""
    return f"{reason}{experiment}{engine_uid}"
