"""What a verdict depends on beside the numbers: the fault and the load. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from aftershock.experiment import NO_FAULT
from aftershock.slo.decision import Decision
from aftershock.slo.verdict import Reason, Verdict, VerdictRow, number
from aftershock.windows import Phase


@dataclass(frozen=True)
class LoadHealth:
    """How well the load generator kept up in a phase."""

    keeping_up: bool
    send_lag_p99_s: float | None = None
    offered_rate: float | None = None
    achieved_rate: float | None = None

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LoadHealth:
        """From what the load generator says of itself; what else it says is left out."""
        return cls(
            bool(data["keeping_up"]), data.get("send_lag_p99_s"), data.get("offered_rate"), data.get("achieved_rate")
        )

    @property
    def text(self) -> str:
        """`send lag P99 240 ms, 41 of 60 requests/s`"""
        parts = []
        if self.send_lag_p99_s is not None:
            parts.append(f"send lag P99 {number(self.send_lag_p99_s * 1000)} ms")
        if self.achieved_rate is not None and self.offered_rate is not None:
            parts.append(f"{number(self.achieved_rate)} of {number(self.offered_rate)} requests/s")
        return ", ".join(parts)


@dataclass(frozen=True)
class Circumstances:
    """What a verdict depends on beside the numbers."""

    fault: str = NO_FAULT
    fault_effects: int | None = None
    """How often the fault was seen to act; None if nobody counted."""
    fault_verdict: str = "Pass"
    """The ChaosResult's: Pass, Fail, Stopped or Error."""
    load: Mapping[Phase, LoadHealth] = field(default_factory=dict)

    @property
    def control(self) -> bool:
        """Whether this is a run without a fault."""
        return self.fault == NO_FAULT

    def late(self, phases: Sequence[Phase]) -> list[Phase]:
        """Those of `phases` in which the load generator fell behind."""
        return [phase for phase in phases if phase in self.load and not self.load[phase].keeping_up]

    def lateness(self, phases: Sequence[Phase]) -> str:
        """How far behind it was: `chaos: send lag P99 240 ms, 41 of 60 requests/s`"""
        told = {phase: self.load[phase].text for phase in self.late(phases)}
        return "; ".join(f"{phase.value}: {text}" if text else phase.value for phase, text in told.items())


_OUTCOMES = {
    "Stopped": "was stopped before its time, so no row of its phases passes",
    "Fail": "ended with the verdict Fail: its own checks of the target did not hold",
    "Error": "could not be injected or reverted, so there is no verdict",
}
"""What a reader must know of a ChaosResult that is no Pass."""


def attribute(decision: Decision, phases: Sequence[Phase], unsteady: bool, circumstances: Circumstances) -> Decision:
    """What is left of a decision over `phases` once the circumstances are known. Never better than it was."""
    verdict, _ = decision
    if verdict in (Verdict.ERROR, Verdict.NO_DATA):
        return decision
    disturbed = any(phase is not Phase.BASELINE for phase in phases)
    if disturbed and not circumstances.control and circumstances.fault_verdict == "Error":
        return Verdict.ERROR, Reason.FAULT_ERROR
    if circumstances.late(phases):
        return Verdict.INCONCLUSIVE, Reason.LOAD_FELL_BEHIND
    if disturbed and verdict is not Verdict.PASS and unsteady:
        return Verdict.INCONCLUSIVE, Reason.BASELINE_NOT_STEADY
    if disturbed and verdict is Verdict.PASS and not circumstances.control:
        if circumstances.fault_effects == 0:
            return Verdict.INCONCLUSIVE, Reason.NO_EFFECT
        if circumstances.fault_verdict == "Stopped":
            return Verdict.INCONCLUSIVE, Reason.STOPPED
    return decision


def notes(circumstances: Circumstances, rows: Sequence[VerdictRow]) -> list[str]:
    """What holds for the whole run."""
    fault = circumstances.fault
    found = []
    if circumstances.control:
        found.append("Control run: no fault was injected.")
    elif circumstances.fault_effects == 0:
        found.append(f"No effect: {fault} was not seen to act on anything, so its phases prove nothing.")
    if not circumstances.control and circumstances.fault_verdict in _OUTCOMES:
        found.append(f"{fault} {_OUTCOMES[circumstances.fault_verdict]}.")
    late = circumstances.late(list(Phase))
    if late:
        found.append(f"The load generator fell behind ({circumstances.lateness(late)}).")
    if rows and all(row.reason is Reason.UNREACHABLE for row in rows):
        found.append("Prometheus did not answer, so nothing was measured.")
    return found
