"""What the watchers tell the run: value types, one inbox for all of them.

`live` separates what was seen as it happened, which our own clock dates best, from what was found in a list later,
which only the cluster's clock can date.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

Object = Mapping[str, Any]
"""A Kubernetes object, as JSON has it."""

Change = Literal["ADDED", "MODIFIED", "DELETED"]


class Topic(StrEnum):
    """What a watcher looks at."""

    ENGINE = "engines"
    RESULT = "results"
    EVENT = "events"
    JOB = "jobs"
    POD = "chaos pods"
    TARGET = "target pods"


@dataclass(frozen=True)
class Sighting:
    """A change."""

    topic: Topic
    change: Change
    object: Object
    at: datetime
    live: bool = True
    """Seen as it happened; False: caught up on after a gap."""


@dataclass(frozen=True)
class Listing:
    """All there is now; what is missing from it is gone. The first of a watcher, and one after each gap."""

    topic: Topic
    objects: tuple[Object, ...]
    at: datetime


@dataclass(frozen=True)
class Contact:
    """The watcher has the API server's attention (again)."""

    topic: Topic


@dataclass(frozen=True)
class Blackout:
    """The watcher sees nothing; it tries again by itself."""

    topic: Topic
    reason: str


Message = Sighting | Listing | Contact | Blackout
