"""Hold what was measured against the objectives. Pure: a frame and a few facts in, a Judgement out.

A row goes through three questions. Is there a value (`values`, `drop`, `recovery`)? Does it comply (`decision`)? May
that be put down to the fault (`circumstances`)? Only a yes to all three is a PASS.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aftershock.errors import InputError, SpecError
from aftershock.slo.circumstances import Circumstances, LoadHealth, attribute, notes
from aftershock.slo.counts import disagreements
from aftershock.slo.decision import POLICIES, decide, is_explained_by_delay
from aftershock.slo.drop import Drop, measure_drop
from aftershock.slo.explain import explain
from aftershock.slo.objective import Compare, Objective, RatioIndicator, RecoveryIndicator
from aftershock.slo.recovery import measure_recovery
from aftershock.slo.samples import Answers, Samples, UnmeasuredError
from aftershock.slo.values import compare_shares, compare_values, measure, share
from aftershock.slo.verdict import Delta, Judgement, PhaseValue, Reason, Verdict, VerdictRow, number
from aftershock.windows import Phase, Window

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Measured:
    """What is known of one objective before anything is decided."""

    phases: Mapping[Phase, PhaseValue]
    deltas: Mapping[Phase, Delta] = field(default_factory=dict)
    evidence: Mapping[Phase, Mapping[str, float]] = field(default_factory=dict)
    steady: bool | None = None
    """Whether the objective held before the fault, where the baseline's value cannot tell."""


@dataclass(frozen=True)
class _Run:
    """What all rows of a run share."""

    samples: Samples
    windows: Sequence[Window]
    records: pd.DataFrame | None
    policy: str
    circumstances: Circumstances


def judge(
    objectives: Sequence[Objective],
    metrics: pd.DataFrame,
    windows: Sequence[Window],
    *,
    policy: str,
    fault: str,
    fault_effects: int | None = None,
    fault_verdict: str | None = None,
    load_health: Mapping[Phase, LoadHealth] | None = None,
    records: pd.DataFrame | None = None,
) -> Judgement:
    """The compliance table of a run, and its verdict.

    `fault` is `none` in a control run; `fault_effects` counts how often it was seen to act (None: nobody counted);
    `fault_verdict` is the ChaosResult's (None: there is none, an error unless in a control run). `records` allow the
    answers of two phases to be compared one by one.
    Raises SpecError if no objective decides anything, InputError for an unknown policy or a frame of another kind.
    """
    if policy not in POLICIES:
        raise InputError(f"policy={policy!r}: allowed: {', '.join(POLICIES)}")
    if all(objective.severity == "info" for objective in objectives):
        raise SpecError("no objective decides anything: give at least one that is not of severity info")
    samples, load = Samples(metrics), load_health or {}
    disagreeing = disagreements(objectives, samples, load, records)
    circumstances = Circumstances(fault, fault_effects, fault_verdict, load, disagreeing)
    run = _Run(samples, windows, records, policy, circumstances)
    rows: list[VerdictRow] = []
    unsteady: list[str] = []
    for objective in objectives:
        measured = _measure(objective, run)
        breach = _breach_before(objective, measured, policy)
        rows.append(_row(objective, measured, breach, run))
        if breach:
            unsteady.append(f"Baseline not steady: {breach}.")
    verdict = max((row.verdict for row in rows if row.severity != "info"), key=lambda verdict: verdict.rank)
    return Judgement(tuple(rows), verdict, policy, fault, (*notes(circumstances, rows, windows), *unsteady))


def _measure(objective: Objective, run: _Run) -> Measured:
    """Values of every phase that has a window, and of those judged whether they have one or not."""
    answers = run.samples.of(objective)
    if isinstance(objective.indicator, RecoveryIndicator):
        value, steady = measure_recovery(objective, answers, run.windows, control=run.circumstances.control)
        return Measured({Phase.RECOVERY: value}, steady=steady)
    ran = {window.phase for window in run.windows}
    wanted = [phase for phase in Phase if phase in ran or phase in objective.phases]
    if objective.compare is Compare.DROP:
        return _measure_drop(objective, wanted, answers, run.records)
    values = {phase: measure(objective, phase, answers) for phase in wanted}
    return Measured(values, _deltas(objective, values, answers))


def _measure_drop(
    objective: Objective, wanted: Sequence[Phase], answers: Answers, records: pd.DataFrame | None
) -> Measured:
    drops: dict[Phase, Drop] = {
        phase: measure_drop(objective, phase, answers, records) for phase in wanted if phase is not Phase.BASELINE
    }
    values = {Phase.BASELINE: drops[objective.phases[0]].baseline}
    values |= {phase: drop.phase for phase, drop in drops.items()}
    deltas: dict[Phase, Delta] = {
        phase: Delta(drop.phase.value, drop.phase.low, drop.phase.high)
        for phase, drop in drops.items()
        if drop.phase.value is not None
    }
    return Measured(values, deltas, {phase: drop.evidence for phase, drop in drops.items()}, steady=True)


def _deltas(objective: Objective, values: Mapping[Phase, PhaseValue], answers: Answers) -> dict[Phase, Delta]:
    """Each phase that is not the baseline against the baseline, where both are known."""
    deltas: dict[Phase, Delta] = {}
    for phase, value in values.items():
        if phase is Phase.BASELINE or Phase.BASELINE not in values:
            continue
        delta: Delta | None
        if isinstance(objective.indicator, RatioIndicator):
            delta = _delta_of_shares(objective.indicator, phase, answers)
        else:
            delta = compare_values(values[Phase.BASELINE], value)
        if delta is not None:
            deltas[phase] = delta
    return deltas


def _delta_of_shares(indicator: RatioIndicator, phase: Phase, answers: Answers) -> Delta | None:
    try:
        before, after = share(indicator, Phase.BASELINE, answers), share(indicator, phase, answers)
    except UnmeasuredError:
        return None
    return compare_shares(before, after, indicator.scale)


def _breach_before(objective: Objective, measured: Measured, policy: str) -> str:
    """How the objective was breached before the fault; empty if it was not, or if that is not known."""
    if measured.steady is not None:
        return "" if measured.steady else f"the condition of {objective.display} did not hold before the fault"
    value = measured.phases.get(Phase.BASELINE)
    if value is None or decide(replace(objective, min_samples=0), value, policy)[0] is not Verdict.FAIL:
        return ""
    unit = f" {objective.unit}" if objective.unit else ""
    return f"{objective.display} was {value.text}{unit} before the fault, against {objective.target}"


def _row(objective: Objective, measured: Measured, breach: str, run: _Run) -> VerdictRow:
    """The row of one objective: its worst judged phase decides."""
    judged = (Phase.RECOVERY,) if isinstance(objective.indicator, RecoveryIndicator) else objective.phases
    decided = {phase: _decide(objective, phase, measured.phases[phase], breach, run) for phase in judged}
    worst = max(judged, key=lambda phase: decided[phase].verdict.rank)
    evidence = measured.evidence.get(worst, {})
    return VerdictRow(
        objective=objective.name,
        display=objective.display,
        unit=objective.unit,
        op=objective.op,
        bound=objective.value,
        phases=measured.phases,
        judged=judged,
        decided_by=worst,
        verdict=decided[worst].verdict,
        reason=decided[worst].reason,
        explanation=explain(
            objective,
            worst,
            measured.phases[worst],
            decided[worst].reason,
            because=decided[worst].because,
            counted=_counted(evidence),
        ),
        delta=measured.deltas.get(worst),
        severity=objective.severity,
        evidence=evidence,
    )


@dataclass(frozen=True)
class _Decided:
    """The verdict over one phase, and what is known of the cause where circumstances made it."""

    verdict: Verdict
    reason: Reason
    because: str = ""


def _decide(objective: Objective, phase: Phase, value: PhaseValue, breach: str, run: _Run) -> _Decided:
    """Whether the value complies, and what the circumstances leave of that."""
    circumstances, phases = run.circumstances, _rests_on(objective, phase)
    decision = decide(objective, value, run.policy)
    verdict, reason = attribute(decision, phases, bool(breach), circumstances)
    load = circumstances.load.get(phase)
    if verdict is Verdict.FAIL and load and is_explained_by_delay(objective, value, run.policy, load.delay_s):
        because = f"the breach is within its own delay, {phase.value}: {load.text}"
        return _Decided(Verdict.INCONCLUSIVE, Reason.LOAD_FELL_BEHIND, because)
    because = ""
    match reason:
        case Reason.BASELINE_NOT_STEADY:
            because = breach
        case Reason.LOAD_FELL_BEHIND:
            because = circumstances.lateness(phases)
        case Reason.LAST_SCRAPE_MISSED:
            because = f"phase {', '.join(circumstances.unsettled(phases))}"
        case Reason.COUNTS_DISAGREE:
            because = circumstances.disagreement(phases)
    return _Decided(verdict, reason, because)


def _counted(evidence: Mapping[str, float]) -> str:
    """What the sample size is a number of, where that is not plainly observations."""
    p = evidence.get("mcnemar_p")
    return "" if p is None else f" pairs, McNemar p = {number(p)}"


def _rests_on(objective: Objective, phase: Phase) -> tuple[Phase, ...]:
    """The phases whose load the value of `phase` comes from."""
    if isinstance(objective.indicator, RecoveryIndicator):
        return Phase.CHAOS, Phase.RECOVERY
    return (Phase.BASELINE, phase) if objective.compare is Compare.DROP else (phase,)
