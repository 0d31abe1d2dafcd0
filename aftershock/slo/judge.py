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
from aftershock.slo.decision import POLICIES, Decision, decide
from aftershock.slo.drop import Drop, measure_drop
from aftershock.slo.explain import explain
from aftershock.slo.objective import Compare, Objective, RatioIndicator, RecoveryIndicator
from aftershock.slo.recovery import measure_recovery
from aftershock.slo.samples import Samples, UnmeasuredError
from aftershock.slo.values import compare_shares, compare_values, measure, share
from aftershock.slo.verdict import Delta, Judgement, PhaseValue, Reason, Verdict, VerdictRow, number
from aftershock.windows import Phase, Window

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Measured:
    """What is known of one objective before anything is decided."""

    phases: Mapping[Phase, PhaseValue]
    delta: Delta | None = None
    evidence: Mapping[str, float] = field(default_factory=dict)
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
    fault_verdict: str = "Pass",
    load_health: Mapping[Phase, LoadHealth] | None = None,
    records: pd.DataFrame | None = None,
) -> Judgement:
    """The compliance table of a run, and its verdict.

    `fault` is `none` in a control run; `fault_effects` counts how often it was seen to act (None: nobody counted);
    `fault_verdict` is the ChaosResult's. `records` allow the answers of two phases to be compared one by one.
    Raises SpecError if no objective decides anything, InputError for an unknown policy or a frame of another kind.
    """
    if policy not in POLICIES:
        raise InputError(f"policy={policy!r}: allowed: {', '.join(POLICIES)}")
    if all(objective.severity == "info" for objective in objectives):
        raise SpecError("no objective decides anything: give at least one that is not of severity info")
    circumstances = Circumstances(fault, fault_effects, fault_verdict, load_health or {})
    run = _Run(Samples(metrics), windows, records, policy, circumstances)
    rows: list[VerdictRow] = []
    unsteady: list[str] = []
    for objective in objectives:
        measured = _measure(objective, run)
        breach = _breach_before(objective, measured, policy)
        rows.append(_row(objective, measured, breach, run))
        if breach:
            unsteady.append(f"Baseline not steady: {breach}.")
    verdict = max((row.verdict for row in rows if row.severity != "info"), key=lambda verdict: verdict.rank)
    return Judgement(tuple(rows), verdict, policy, fault, (*notes(circumstances, rows), *unsteady))


def _measure(objective: Objective, run: _Run) -> Measured:
    """Values of every phase that has a window, and of those judged whether they have one or not."""
    if isinstance(objective.indicator, RecoveryIndicator):
        control = run.circumstances.control
        value, steady = measure_recovery(objective, run.samples, run.windows, control=control)
        return Measured({Phase.RECOVERY: value}, steady=steady)
    ran = {window.phase for window in run.windows}
    wanted = [phase for phase in Phase if phase in ran or phase in objective.phases]
    if objective.compare is Compare.DROP:
        return _measure_drop(objective, wanted, run)
    values = {phase: measure(objective, phase, run.samples) for phase in wanted}
    return Measured(values, _delta(objective, values, run.samples))


def _measure_drop(objective: Objective, wanted: Sequence[Phase], run: _Run) -> Measured:
    drops: dict[Phase, Drop] = {
        phase: measure_drop(objective, phase, run.samples, run.records)
        for phase in wanted
        if phase is not Phase.BASELINE
    }
    first = drops[objective.phases[0]]
    values = {Phase.BASELINE: first.baseline} | {phase: drop.phase for phase, drop in drops.items()}
    judged = first.phase
    delta = None if judged.value is None else Delta(judged.value, judged.low, judged.high)
    return Measured(values, delta, first.evidence, steady=True)


def _delta(objective: Objective, values: Mapping[Phase, PhaseValue], samples: Samples) -> Delta | None:
    """The first judged phase that is not the baseline against the baseline."""
    later = [phase for phase in objective.phases if phase is not Phase.BASELINE]
    if not later or Phase.BASELINE not in values:
        return None
    if isinstance(objective.indicator, RatioIndicator):
        try:
            before = share(objective.name, objective.indicator, Phase.BASELINE, samples)
            after = share(objective.name, objective.indicator, later[0], samples)
        except UnmeasuredError:
            return None
        return compare_shares(before, after, objective.indicator.scale)
    return compare_values(values[Phase.BASELINE], values[later[0]])


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
    decisions: dict[Phase, Decision] = {}
    for phase in judged:
        decision = decide(objective, measured.phases[phase], run.policy)
        decisions[phase] = attribute(decision, _rests_on(objective, phase), bool(breach), run.circumstances)
    worst = max(judged, key=lambda phase: decisions[phase][0].rank)
    verdict, reason = decisions[worst]
    because = ""
    if reason is Reason.BASELINE_NOT_STEADY:
        because = breach
    elif reason is Reason.LOAD_FELL_BEHIND:
        because = run.circumstances.lateness(_rests_on(objective, worst))
    return VerdictRow(
        objective=objective.name,
        display=objective.display,
        unit=objective.unit,
        target=objective.target,
        phases=measured.phases,
        judged=judged,
        verdict=verdict,
        reason=reason,
        explanation=explain(
            objective, worst, measured.phases[worst], reason, because=because, counted=_counted(measured)
        ),
        delta=measured.delta,
        severity=objective.severity,
        evidence=measured.evidence,
    )


def _counted(measured: Measured) -> str:
    """What the sample size is a number of, where that is not plainly observations."""
    p = measured.evidence.get("mcnemar_p")
    return "" if p is None else f" pairs, McNemar p = {number(p)}"


def _rests_on(objective: Objective, phase: Phase) -> tuple[Phase, ...]:
    """The phases whose load the value of `phase` comes from."""
    if isinstance(objective.indicator, RecoveryIndicator):
        return Phase.CHAOS, Phase.RECOVERY
    return (Phase.BASELINE, phase) if objective.compare is Compare.DROP else (phase,)
