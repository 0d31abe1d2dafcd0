"""The Kubernetes Events about an engine and what it made: its Jobs, its pods, its results.

Views are not in order with each other: an Event may come before the object that it is about. So what is about an
unknown Job, pod or result is kept for a while.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sightings import Object

KEPT = timedelta(minutes=1)


@dataclass
class Related:
    """What is known to be the engine's, and what was said about it."""

    events: list[Object] = field(default_factory=list)
    _known: set[str] = field(default_factory=set)
    """uids and names; names of such objects are unique, and not every Event has a uid."""
    _strays: deque[tuple[datetime, Object]] = field(default_factory=deque)
    """When it came, and an Event about something that is not known."""

    def own(self, *identities: str) -> None:
        """An object of the engine, by uid and name: what was said of it before counts too."""
        if self._known.issuperset(identities):
            return
        self._known.update(identities)
        self.events += [event for _, event in self._strays if self._is_known(event)]
        self._strays = deque((at, event) for at, event in self._strays if not self._is_known(event))

    def hear(self, event: Object, at: datetime) -> None:
        """An Event of the namespace, about whatever it may be."""
        if self._is_known(event):
            self.events.append(event)
        elif section(event, "involvedObject").get("kind") in ("Job", "Pod", "ChaosResult"):
            self._strays.append((at, event))
        while self._strays and at - self._strays[0][0] > KEPT:
            self._strays.popleft()

    def warning(self) -> str:
        """The latest Warning about a Job or a pod: why nothing came of it; empty if there is none."""
        found = [_line(event) for event in self.events if _is_trouble(event)]
        return found[-1] if found else ""

    def _is_known(self, event: Object) -> bool:
        about = section(event, "involvedObject")
        return about.get("uid") in self._known or about.get("name") in self._known


def _is_trouble(event: Object) -> bool:
    """A kubelet repeats each trouble with a container as a bare `Error: ErrImagePull`, which explains nothing."""
    about_pods = section(event, "involvedObject").get("kind") in ("Job", "Pod")
    return event.get("type") == "Warning" and about_pods and not str(event.get("message")).startswith("Error: ")


def _line(event: Object) -> str:
    about = section(event, "involvedObject")
    message = " ".join(str(event.get("message")).split())
    return f"{about.get('kind')} {about.get('name')}: {event.get('reason')}: {message}"
