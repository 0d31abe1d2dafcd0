"""Reading Kubernetes objects, in which any part may be absent or null."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

WORDS = ("targeted", "injected", "reverted")
"""What Litmus says of a target."""


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


def first_stamp(event: Mapping[str, Any]) -> datetime | None:
    """When an Event first happened; None where it does not say."""
    return datetime.fromisoformat(str(event["firstTimestamp"])) if event.get("firstTimestamp") else None


def last_words(result: Mapping[str, Any]) -> dict[str, str]:
    """Target -> the last that a ChaosResult says of it: targeted, injected or reverted.

    Each time the experiment writes its result, it moves the annotations of its helpers into the history. An annotation
    that is there is therefore younger than the history.
    """
    history = section(result, "status", "history").get("targets") or []
    words = {f"{target.get('kind')}/{target.get('name')}": str(target.get("chaosStatus")) for target in history}
    annotations = section(result, "metadata", "annotations")
    return words | {target: status for target, status in annotations.items() if status in WORDS and "/" in target}


def told_to_go(pod: Mapping[str, Any]) -> datetime | None:
    """When a pod's deletion was asked for, by the cluster's clock, to the second: its timestamp is when it must end."""
    metadata = section(pod, "metadata")
    if not metadata.get("deletionTimestamp"):
        return None
    grace_s = float(metadata.get("deletionGracePeriodSeconds") or 0)
    return datetime.fromisoformat(str(metadata["deletionTimestamp"])) - timedelta(seconds=grace_s)


def seconds(text: str) -> float:
    """Of a tunable; of a range such as `5-10` the larger end. What is no number is 0, as Litmus reads it."""
    try:
        value = float(text.rpartition("-")[2])
    except ValueError:
        return 0.0
    return value if math.isfinite(value) else 0.0


def experiment_of(job: str) -> str:
    """Experiment of a Job named `<experiment>-<6 random>`. Its label `name` may be that of another one."""
    return job.rpartition("-")[0]
