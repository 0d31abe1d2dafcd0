"""The phases of a run and the window of time each one covers. Value types; no I/O."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any


class Phase(StrEnum):
    """The three phases, in their order."""

    BASELINE = "baseline"
    CHAOS = "chaos"
    RECOVERY = "recovery"


def utc_now() -> datetime:
    """The present, aware, in UTC."""
    return datetime.now(UTC)


def from_timestamp(seconds: float) -> datetime:
    """The instant `seconds` after the epoch, aware, in UTC."""
    return datetime.fromtimestamp(seconds, UTC)


@dataclass(frozen=True)
class Window:
    """What one phase covers, by the clock of the component that ran it.

    `start` to `end` is when requests were scheduled. `settled_at` is the first instant at which every counter of the
    phase had its last value scraped: queries over the phase are evaluated there, so that answers which came after
    `end` still belong to the phase that scheduled them.
    `injected_at` and `reverted_at` bound the fault; both are None in phases without one, `reverted_at` also if the
    end was never seen. A kill is over in an instant: for pod-delete and container-kill `reverted_at` is the last kill.
    """

    phase: Phase
    start: datetime
    end: datetime
    settled_at: datetime
    injected_at: datetime | None = None
    reverted_at: datetime | None = None

    def __post_init__(self) -> None:
        if not self.start < self.end <= self.settled_at:
            raise ValueError(f"window of {self.phase}: start < end <= settled_at does not hold: {self}")

    @property
    def seconds(self) -> float:
        """Length of the schedule, in seconds."""
        return (self.end - self.start).total_seconds()

    @property
    def settled_seconds(self) -> float:
        """From `start` to `settled_at`, in seconds: the range a PromQL query over the phase takes."""
        return (self.settled_at - self.start).total_seconds()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; instants as RFC 3339."""
        out: dict[str, Any] = {"phase": self.phase.value}
        for name in ("start", "end", "settled_at", "injected_at", "reverted_at"):
            value: datetime | None = getattr(self, name)
            out[name] = value.isoformat() if value else None
        return out

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Window:
        """Inverse of `to_dict`. Raises ValueError where an instant is naive or missing."""

        def instant(name: str) -> datetime | None:
            if data.get(name) is None:
                return None
            value = datetime.fromisoformat(data[name])
            if value.tzinfo is None:
                raise ValueError(f"{name}: {data[name]} has no time zone")
            return value.astimezone(UTC)

        start, end, settled_at = instant("start"), instant("end"), instant("settled_at")
        if start is None or end is None or settled_at is None:
            raise ValueError("a window needs start, end and settled_at")
        return cls(Phase(data["phase"]), start, end, settled_at, instant("injected_at"), instant("reverted_at"))
