"""Hold what was measured against the objectives. Pure: a frame and a few facts in, a Judgement out.

A row goes through three questions. Is there a value (`values`, `drop`, `recovery`)? Does it comply (`decision`)? May
that be put down to the fault (`circumstances`)? Only a yes to all three is a PASS.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from aftershock.errors import InputError, SpecError
from aftershock.slo.circumstances import Circumstances, LoadHealth, attribute, notes
from aftershock.slo.comparison import compare_with_baseline
from aftershock.slo.composite import measure_composite
from aftershock.slo.counts import disagreements
from aftershock.slo.decision import POLICIES, decide, is_explained_by_delay
from aftershock.slo.drop import Drop, measure_drop
from aftershock.slo.explain import explain
from aftershock.slo.lengths import length_notes
from aftershock.slo.objective import (
    Compare,
    CompositeIndicator,
    Objective,
    QuantileIndicator,
    RatioIndicator,
    RecoveryIndicator,
    SliceIndicator,
)
from aftershock.slo.recorded import (
    Recorded,
    dependence_notes,
    failures_counted,
    measure_with_failures,
    with_interval,
)
from aftershock.slo.recovery import measure_recovery
from aftershock.slo.samples import Answers, Samples, UnmeasuredError
from aftershock.slo.slices import measure_slices
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
    recorded: Recorded
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
    `fault_verdict` is the ChaosResult's (None: there is none, an error unless in a control run). `records` give
    latencies their intervals, and allow the answers of two phases to be compared one by one.
    Raises SpecError if no objective decides anything, InputError for an unknown policy or a frame of another kind.
    """
    if policy not in POLICIES:
        raise InputError(f"policy={policy!r}: allowed: {', '.join(POLICIES)}")
    if all(objective.severity == "info" for objective in objectives):
        raise SpecError("no objective decides anything: give at least one that is not of severity info")
    samples, load = Samples(metrics), load_health or {}
    recorded = Recorded(records)
    disagreeing = disagreements(objectives, samples, load, recorded)
    circumstances = Circumstances(fault, fault_effects, fault_verdict, load, disagreeing)
    run = _Run(samples, windows, recorded, policy, circumstances)
    rows: list[VerdictRow] = []
    unsteady: list[str] = []
    asked = list(_rows_of(objectives, recorded))
    for objective in asked:
        measured = _measure(objective, run)
        breach = _breach_before(objective, measured, policy)
        rows.append(_row(objective, measured, breach, run))
        if breach and not objective.failures_slow:
            unsteady.append(f"Baseline not steady: {breach}.")
    verdict = max((row.verdict for row in rows if row.severity != "info"), key=lambda verdict: verdict.rank)
    told = (
        *notes(circumstances, rows, windows),
        *unsteady,
        *dependence_notes(asked, rows),
        *length_notes(recorded),
    )
    return Judgement(tuple(rows), verdict, policy, fault, told)


def _rows_of(objectives: Sequence[Objective], recorded: Recorded) -> Iterator[Objective]:
    """The objectives, and after a latency, where there are records, the same with failed requests counted as slow."""
    for objective in objectives:
        yield objective
        beside = failures_counted(objective)
        if beside and all(recorded.seconds(beside.indicator, phase) is not None for phase in beside.phases):
            yield beside


def _measure(objective: Objective, run: _Run) -> Measured:
    """Values of every phase that has a window, and of those judged whether they have one or not."""
    answers = run.samples.of(objective)
    if isinstance(objective.indicator, RecoveryIndicator):
        value, steady = measure_recovery(objective, answers, run.windows, control=run.circumstances.control)
        return Measured({Phase.RECOVERY: value}, steady=steady)
    ran = {window.phase for window in run.windows}
    wanted = [phase for phase in Phase if phase in ran or phase in objective.phases]
    if objective.compare is Compare.DROP:
        return _measure_drop(objective, wanted, answers, run.recorded.records)
    if objective.compare is not Compare.VALUE:
        return _measure_change(objective, wanted, run)
    values = {phase: _value_of(objective, phase, run) for phase in wanted}
    worth = {phase: value.effective_n for phase, value in values.items()}
    evidence = {phase: {"effective_n": float(n)} for phase, n in worth.items() if n is not None}
    return Measured(values, _deltas(objective, values, answers), evidence)


def _value_of(objective: Objective, phase: Phase, run: _Run) -> PhaseValue:
    """The objective's own value in `phase`, compared with nothing."""
    match objective.indicator:
        case SliceIndicator():
            return measure_slices(objective, objective.indicator, phase, run.samples.of(objective))
        case CompositeIndicator():
            return measure_composite(objective.indicator, lambda part: _value_of(part, phase, run))
        case QuantileIndicator():
            value = measure(objective, phase, run.samples.of(objective))
            seconds = run.recorded.seconds(objective.indicator, phase)
            if objective.failures_slow:
                return measure_with_failures(objective, value, seconds, objective.indicator)
            return with_interval(value, seconds, objective.indicator)
        case _:
            return measure(objective, phase, run.samples.of(objective))


def _measure_change(objective: Objective, wanted: Sequence[Phase], run: _Run) -> Measured:
    """What each phase is against the baseline. Of the baseline only its value is told, in the evidence."""
    before = _value_of(objective, Phase.BASELINE, run)
    after = {phase: _value_of(objective, phase, run) for phase in wanted if phase is not Phase.BASELINE}
    changes = {phase: compare_with_baseline(objective.compare, before, value) for phase, value in after.items()}
    reference = PhaseValue(0.0, n=before.n, detail=before.text) if before.status.known else before
    return Measured(
        {Phase.BASELINE: reference} | changes,
        {phase: Delta(one.value, one.low, one.high) for phase, one in changes.items() if one.value is not None},
        {
            phase: {"baseline": before.value, "value": value.value}
            for phase, value in after.items()
            if before.value is not None and value.value is not None
        },
        steady=True,
    )


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
    decided = {phase: _decide(objective, phase, measured, breach, run) for phase in judged}
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
            counted=_counted(objective, evidence),
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


def _decide(objective: Objective, phase: Phase, measured: Measured, breach: str, run: _Run) -> _Decided:
    """Whether the value complies, and what the circumstances leave of that."""
    value, evidence = measured.phases[phase], measured.evidence.get(phase, {})
    circumstances, phases = run.circumstances, _rests_on(objective, phase)
    decision = decide(objective, value, run.policy)
    verdict, reason = attribute(decision, phases, bool(breach), circumstances)
    load = circumstances.load.get(phase)
    delay_s = load.delay_s * _shown_as(objective, evidence) if load else 0.0
    if verdict is Verdict.FAIL and load and is_explained_by_delay(objective, value, run.policy, delay_s):
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


def _shown_as(objective: Objective, evidence: Mapping[str, float]) -> float:
    """What one unit of the indicator is in the value that is judged: a change is shown in percent of the baseline."""
    before = evidence.get("baseline")
    return 100 / before if objective.compare is Compare.RELATIVE and before else 1.0


def _counted(objective: Objective, evidence: Mapping[str, float]) -> str:
    """What the sample size is a number of, where that is not plainly observations."""
    if isinstance(objective.indicator, SliceIndicator):
        return " slices"
    p = evidence.get("mcnemar_p")
    return "" if p is None else f" pairs, McNemar p = {number(p)}"


def _rests_on(objective: Objective, phase: Phase) -> tuple[Phase, ...]:
    """The phases whose load the value of `phase` comes from."""
    if isinstance(objective.indicator, RecoveryIndicator):
        return Phase.CHAOS, Phase.RECOVERY
    return (phase,) if objective.compare is Compare.VALUE else (Phase.BASELINE, phase)
