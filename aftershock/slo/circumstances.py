"""What a verdict depends on beside the numbers: the fault, the load, and whether all of it was scraped. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from aftershock.experiment import NO_FAULT
from aftershock.slo.decision import Decision
from aftershock.slo.verdict import Reason, Verdict, VerdictRow, number
from aftershock.windows import Phase, Window

KILLS = ("pod-delete", "container-kill")
"""Faults that are over in an instant, so that how long they acted says nothing."""
LEAST_SHARE = 0.8
"""Of the chaos phase, that a fault must act in for the phase to be the fault's."""


@dataclass(frozen=True)
class LoadHealth:
    """How well the load generator kept up in a phase, and whether what it counted was scraped to the end."""

    keeping_up: bool
    send_lag_p99_s: float | None = None
    offered_rate: float | None = None
    achieved_rate: float | None = None
    loop_lag_p99_s: float | None = None
    sent: int | None = None
    settled: bool = True
    """False: no scrape saw the last values. Runs that do not say so are taken to be settled."""

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> LoadHealth:
        """From what the load generator says of itself; what else it says is left out."""
        known = {field.name: data[field.name] for field in fields(cls) if data.get(field.name) is not None}
        return cls(**known)

    @property
    def delay_s(self) -> float:
        """How much of a slow request's latency may be the load generator's own."""
        return (self.send_lag_p99_s or 0.0) + (self.loop_lag_p99_s or 0.0)

    @property
    def text(self) -> str:
        """`send lag P99 240 ms, loop lag P99 12 ms, 41 of 60 requests/s`"""
        parts = [
            f"{name} lag P99 {number(lag_s * 1000)} ms"
            for name, lag_s in (("send", self.send_lag_p99_s), ("loop", self.loop_lag_p99_s))
            if lag_s is not None
        ]
        if self.achieved_rate is not None and self.offered_rate is not None:
            parts.append(f"{number(self.achieved_rate)} of {number(self.offered_rate)} requests/s")
        return ", ".join(parts)


@dataclass(frozen=True)
class Circumstances:
    """What a verdict depends on beside the numbers."""

    fault: str = NO_FAULT
    fault_effects: int | None = None
    """How often the fault was seen to act; None if nobody counted."""
    fault_verdict: str | None = None
    """The ChaosResult's: Pass, Fail, Stopped or Error; None if there is none, which is an error unless in a control
    run."""
    load: Mapping[Phase, LoadHealth] = field(default_factory=dict)
    disagreements: Mapping[Phase, str] = field(default_factory=dict)
    """Phases of which Prometheus counted something else than was sent, and both numbers."""

    @property
    def control(self) -> bool:
        """Whether this is a run without a fault."""
        return self.fault == NO_FAULT

    @property
    def fault_failed(self) -> bool:
        """Whether there was to be a fault, and it is not known to have been injected and reverted."""
        return not self.control and self.fault_verdict in (None, "Error")

    def late(self, phases: Sequence[Phase]) -> list[Phase]:
        """Those of `phases` in which the load generator fell behind."""
        return [phase for phase in phases if phase in self.load and not self.load[phase].keeping_up]

    def lateness(self, phases: Sequence[Phase]) -> str:
        """How far behind it was: `chaos: send lag P99 240 ms, 41 of 60 requests/s`"""
        return _by_phase({phase: self.load[phase].text for phase in self.late(phases)})

    def unsettled(self, phases: Sequence[Phase]) -> list[Phase]:
        """Those of `phases` whose last values no scrape saw."""
        return [phase for phase in phases if phase in self.load and not self.load[phase].settled]

    def disagreement(self, phases: Sequence[Phase]) -> str:
        """Which counts disagree in `phases`; empty if none do."""
        return _by_phase({phase: self.disagreements[phase] for phase in phases if phase in self.disagreements})


def _by_phase(texts: Mapping[Phase, str]) -> str:
    return "; ".join(f"{phase.value}: {text}" if text else phase.value for phase, text in texts.items())


_OUTCOMES = {
    None: "left no outcome behind, so there is no verdict",
    "Stopped": "was stopped before its time, so no row of the phases it disturbed passes",
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
    if disturbed and circumstances.fault_failed:
        return Verdict.ERROR, Reason.FAULT_ERROR
    if circumstances.late(phases):
        return Verdict.INCONCLUSIVE, Reason.LOAD_FELL_BEHIND
    if circumstances.unsettled(phases):
        return Verdict.INCONCLUSIVE, Reason.LAST_SCRAPE_MISSED
    if circumstances.disagreement(phases):
        return Verdict.INCONCLUSIVE, Reason.COUNTS_DISAGREE
    if disturbed and verdict is not Verdict.PASS and unsteady:
        return Verdict.INCONCLUSIVE, Reason.BASELINE_NOT_STEADY
    if disturbed and verdict is Verdict.PASS and not circumstances.control:
        if circumstances.fault_effects == 0:
            return Verdict.INCONCLUSIVE, Reason.NO_EFFECT
        if circumstances.fault_verdict == "Stopped":
            return Verdict.INCONCLUSIVE, Reason.STOPPED
    return decision


def notes(circumstances: Circumstances, rows: Sequence[VerdictRow], windows: Sequence[Window]) -> list[str]:
    """What holds for the whole run."""
    fault = circumstances.fault
    found = []
    if circumstances.control:
        found.append("Control run: no fault was injected.")
    elif circumstances.fault_effects == 0:
        found.append(f"No effect: {fault} was not seen to act on anything, so its phases prove nothing.")
    if not circumstances.control and circumstances.fault_verdict in _OUTCOMES:
        found.append(f"{fault} {_OUTCOMES[circumstances.fault_verdict]}.")
    found += _brief_fault(circumstances, windows)
    late = circumstances.late(list(Phase))
    if late:
        found.append(f"The load generator fell behind ({circumstances.lateness(late)}).")
    unsettled = circumstances.unsettled(list(Phase))
    if unsettled:
        found.append(f"Prometheus missed the last values of: {', '.join(unsettled)}.")
    if circumstances.disagreements:
        found.append(f"The counts disagree ({circumstances.disagreement(list(Phase))}).")
    if rows and all(row.reason is Reason.UNREACHABLE for row in rows):
        found.append("Prometheus did not answer, so nothing was measured.")
    return found


def _brief_fault(circumstances: Circumstances, windows: Sequence[Window]) -> Iterator[str]:
    """That much of the chaos phase was not disturbed: what is worse there is diluted by what is not."""
    chaos = next((window for window in windows if window.phase is Phase.CHAOS), None)
    if circumstances.control or set(circumstances.fault.split(",")) <= set(KILLS) or chaos is None:
        return
    if chaos.injected_at is None or chaos.reverted_at is None:
        return
    acted_s = (min(chaos.reverted_at, chaos.end) - max(chaos.injected_at, chaos.start)).total_seconds()
    if acted_s < LEAST_SHARE * chaos.seconds:
        yield f"The fault acted for {max(0.0, acted_s):.0f} of {chaos.seconds:.0f} s of the chaos phase."
