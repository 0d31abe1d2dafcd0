"""What happened to the pods that the fault may hit: deletions and container restarts, each with its instant."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from aftershock.chaos.litmus.read import digest, section, told_to_go
from aftershock.chaos.litmus.sightings import Object


@dataclass(frozen=True)
class Kill:
    """A pod that was told to go, or a container of it that was restarted."""

    at: datetime
    pod: str
    what: str


@dataclass
class Targets:
    """The pods under the target's label, as they come and go."""

    present: dict[str, str] = field(default_factory=dict)
    """uid -> name."""
    deletions: dict[str, Kill] = field(default_factory=dict)
    """uid -> the first sign of its deletion."""
    restarts: list[Kill] = field(default_factory=list)
    most: int = 0
    """How many were there at a time, at most."""
    _counts: dict[str, int] = field(default_factory=dict)
    """uid -> restarts of its containers."""

    def see(self, pod: Object, at: datetime, *, live: bool) -> None:
        """A target pod as it is now; what was not seen live is dated by the cluster's clock."""
        uid, name = digest(pod), str(section(pod, "metadata").get("name"))
        self.present[uid] = name
        self.most = max(self.most, len(self.present))
        if section(pod, "metadata").get("deletionTimestamp"):
            told = at if live else told_to_go(pod) or at
            self.deletions.setdefault(uid, Kill(told, name, "deleted"))
        statuses = section(pod, "status").get("containerStatuses") or []
        count = sum(int(status.get("restartCount") or 0) for status in statuses)
        if count > self._counts.get(uid, count):
            self.restarts.append(Kill(at, name, "restarted"))
        self._counts[uid] = count

    def lose(self, uid: str, at: datetime) -> None:
        """A target pod went away in a gap, and nobody saw how."""
        name = self.present.pop(uid, None)
        if name is not None:
            self.deletions.setdefault(uid, Kill(at, name, "deleted"))

    def leave(self, uid: str) -> None:
        """A target pod has left the view before our eyes: deleted, which `see` has learnt, or under another label now.

        The API server gives a pod that is deleted a deletionTimestamp first, with FORCE too.
        """
        self.present.pop(uid, None)
