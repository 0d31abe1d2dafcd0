"""Whether a fault has to be stopped: what the objectives were, moment after moment, in; an alarm out. Pure; no I/O.

A breach is sustained once two readings at least `for_s` apart breach the bound and none between them complies. A moment
without a value (no data, NaN, an infinity, no answer) neither breaches nor complies, so it ends no breach. But a fault
without a working brake is not wanted either: a condition that had no value for `blind_s` is an alarm of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from aftershock.slo.objective import Objective
from aftershock.slo.verdict import number

BLIND_S = 30.0


class StopReason(StrEnum):
    """Why a fault is stopped."""

    SLO_BREACHED = "SLO_BREACHED"
    WATCH_BLIND = "WATCH_BLIND"
    """A stop condition could not be evaluated for too long."""
    WATCH_FAILED = "WATCH_FAILED"
    """A defect of ours: nobody would look at the stop conditions any more."""

    @property
    def beginning(self) -> str:
        """What the time to the stop counts from: `the breach began`."""
        return {
            StopReason.SLO_BREACHED: "the breach began",
            StopReason.WATCH_BLIND: "the watch went blind",
            StopReason.WATCH_FAILED: "the watch failed",
        }[self]


@dataclass(frozen=True)
class Reading:
    """What an objective was at one moment, in its unit."""

    value: float | None
    why: str = ""
    """Why there is no value."""

    @classmethod
    def of(cls, value: float) -> Reading:
        """Of a sample; NaN and infinities are no values."""
        return cls(value) if math.isfinite(value) else cls(None, f"the answer is {value}")


NOTHING = Reading(None, "there was no answer")


@dataclass(frozen=True)
class Alarm:
    """The fault is to be stopped."""

    reason: StopReason
    began_at: datetime
    """The first reading that breached; of a blind watch: the last moment that had a value, or its start."""
    message: str
    """`error-rate 63 % is beyond 50 % since 5 s`"""
    objective: Objective | None = None
    value: float | None = None
    """The last reading, where it breached."""


@dataclass
class Watch:
    """Holds readings against the stop conditions of `objectives`; those without one are left out."""

    objectives: Sequence[Objective]
    began_at: datetime
    blind_s: float = BLIND_S
    _breached: dict[str, datetime] = field(default_factory=dict)
    """Since when each objective is in breach."""
    _seen: dict[str, datetime] = field(default_factory=dict)
    """When each last had a value."""

    def observe(self, at: datetime, readings: Mapping[str, Reading]) -> Alarm | None:
        """Take in what the objectives were `at` that instant, by their names. Values come in order of time."""
        for objective in self.objectives:
            reading = readings.get(objective.name, NOTHING)
            if reading.value is not None and (alarm := self._hold(objective, at, reading.value)):
                return alarm
        for objective in self.objectives:
            if alarm := self._blindness(objective, at, readings.get(objective.name, NOTHING)):
                return alarm
        return None

    def _hold(self, objective: Objective, at: datetime, value: float) -> Alarm | None:
        """A value that is known."""
        if objective.stop is None:
            return None
        self._seen[objective.name] = at
        if objective.op.holds(value, objective.stop.bound):
            self._breached.pop(objective.name, None)
            return None
        since = self._breached.setdefault(objective.name, at)
        lasted_s = (at - since).total_seconds()
        if lasted_s < objective.stop.for_s:
            return None
        side = "beyond" if objective.upper else "below"
        message = (
            f"{objective.name} {_shown(objective, value)} is {side} {_shown(objective, objective.stop.bound)} "
            f"since {lasted_s:.0f} s"
        )
        return Alarm(StopReason.SLO_BREACHED, since, message, objective, value)

    def _blindness(self, objective: Objective, at: datetime, reading: Reading) -> Alarm | None:
        if objective.stop is None or reading.value is not None:
            return None
        since = self._seen.get(objective.name, self.began_at)
        lasted_s = (at - since).total_seconds()
        if lasted_s < self.blind_s:
            return None
        message = f"{objective.name} could not be evaluated for {lasted_s:.0f} s ({reading.why})"
        return Alarm(StopReason.WATCH_BLIND, since, message, objective)


def _shown(objective: Objective, value: float) -> str:
    return f"{number(value)} {objective.unit}".rstrip()
