"""The replicas as the gateway sees them, and which one gets the next request."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aftershock.gateway.settings import HealthSettings
from aftershock.windows import utc_now


@dataclass(eq=False)
class Replica:
    """One model server: where it is, whether it is ready, and how much it has to do. Unready until a probe succeeds."""

    name: str
    url: str
    ready: bool = False
    in_flight: int = 0
    since: datetime = field(default_factory=utc_now)
    last_probe: str = "none yet"
    _successes: int = 0
    _failures: int = 0

    def probed(self, success: bool, detail: str, health: HealthSettings) -> bool:
        """Take in the result of a probe. True if it changed the readiness."""
        self.last_probe = detail
        self._successes = self._successes + 1 if success else 0
        self._failures = 0 if success else self._failures + 1
        before = self.ready
        if self._successes >= health.successes:
            self.ready = True
        elif self._failures >= health.failures:
            self.ready = False
        if self.ready is not before:
            self.since = utc_now()
        return self.ready is not before

    def to_dict(self) -> dict[str, Any]:
        """What the admin API shows."""
        return {
            "name": self.name,
            "url": self.url,
            "ready": self.ready,
            "since": self.since.isoformat(),
            "in_flight": self.in_flight,
            "last_probe": self.last_probe,
        }


class Balancer:
    """Picks ready replicas in turn.

    A Kubernetes Service picks one at random; in turn is the same in the mean, without the noise of the dice. The least
    busy one would be a cleverer balancer than most services have, and would send most requests to a replica that fails
    fast.
    """

    def __init__(self, replicas: Sequence[Replica]) -> None:
        self.replicas = tuple(replicas)
        self._next = 0

    def pick(self, tried: Collection[Replica] = ()) -> Replica | None:
        """A ready replica that is not in `tried`; None if there is none."""
        count = len(self.replicas)
        turn = [self.replicas[(self._next + step) % count] for step in range(count)]
        picked = next((replica for replica in turn if replica.ready and replica not in tried), None)
        if picked is not None:
            self._next = self.replicas.index(picked) + 1
        return picked

    @property
    def any_ready(self) -> bool:
        """Whether the service can answer at all."""
        return any(replica.ready for replica in self.replicas)
