"""Reading Kubernetes objects, in which any part may be absent or null."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any


def section(found: Mapping[str, Any] | None, *path: str) -> Mapping[str, Any]:
    """The mapping at `path`; an empty one where there is none."""
    for part in path:
        found = (found or {}).get(part)
        if not isinstance(found, Mapping):
            return {}
    return found or {}


def digest(found: Mapping[str, Any]) -> str:
    """What identifies an object among all that ever were: its uid."""
    return str(section(found, "metadata").get("uid") or section(found, "metadata").get("name"))


def stamp(event: Mapping[str, Any]) -> datetime | None:
    """When an Event last happened, by the cluster's clock, to the second."""
    for name in ("lastTimestamp", "eventTime", "firstTimestamp"):
        if event.get(name):
            return datetime.fromisoformat(str(event[name]))
    return None


def told_to_go(pod: Mapping[str, Any]) -> datetime | None:
    """When a pod's deletion was asked for, by the cluster's clock, to the second: its timestamp is when it must end."""
    metadata = section(pod, "metadata")
    if not metadata.get("deletionTimestamp"):
        return None
    grace_s = float(metadata.get("deletionGracePeriodSeconds") or 0)
    return datetime.fromisoformat(str(metadata["deletionTimestamp"])) - timedelta(seconds=grace_s)


def experiment_of(job: str) -> str:
    """Experiment of a Job named `<experiment>-<6 random>`. Its label `name` may be that of another one."""
    return job.rpartition("-")[0]
