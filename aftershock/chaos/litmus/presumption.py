"""A ChaosInject for faults that send none, presumed from what they do send, and called a presumption.

What they change (a NetworkPolicy, a number of replicas) is in no view, and their result says nothing before the end.
But a passed PreChaosCheck is the last thing they say before they wait for RAMP_TIME and act; if that fails, the result
is an Error. Without an instant nobody could watch the SLO while such a fault goes on.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from aftershock.chaos.backend import ChaosEvent
from aftershock.chaos.engine import EngineExperiment
from aftershock.chaos.litmus.faults import UNANNOUNCED
from aftershock.chaos.litmus.read import seconds


@dataclass
class Presumption:
    """Of the experiments of one engine."""

    made: list[ChaosEvent] = field(default_factory=list)
    """Those whose instant has come."""
    _due: list[ChaosEvent] = field(default_factory=list)

    def checked(self, experiment: EngineExperiment, at: datetime) -> None:
        """The experiment has passed its PreChaosCheck."""
        if not experiment.name.startswith(UNANNOUNCED):
            return
        ramp_s = seconds(experiment.value("RAMP_TIME", "0"))
        after = f"its PreChaosCheck and {ramp_s:.0f} s of RAMP_TIME" if ramp_s else "its PreChaosCheck"
        message = f"presumed to begin after {after}: {experiment.name} sends no ChaosInject"
        self._due.append(ChaosEvent(at + timedelta(seconds=ramp_s), "ChaosInject", message))

    def come_due(self, now: datetime, halted_at: datetime | None) -> list[ChaosEvent]:
        """Those whose instant has come by `now`, unless the engine was told to stop (at `halted_at`) before it."""
        come = [event for event in self._due if event.at <= now]
        self._due = [event for event in self._due if event.at > now]
        true = [event for event in come if halted_at is None or event.at <= halted_at]
        self.made += true
        return true
