"""What was lost against the baseline, item by item where the records allow it. No I/O.

The same questions are asked in the same order in each phase, so each answer has its twin: the one with the same
`seq`. Twins cancel what makes some questions harder than others. Questions that come round again count as new
observations; at temperature 0 they are not quite that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aftershock.slo.objective import Objective, RatioIndicator
from aftershock.slo.samples import Samples, UnmeasuredError
from aftershock.slo.statistics import mcnemar, newcombe, paired_drop
from aftershock.slo.values import Share, rounded, share, unmeasured
from aftershock.slo.verdict import PhaseValue
from aftershock.windows import Phase

if TYPE_CHECKING:
    import pandas as pd

GRADES = "aftershock_eval_total"
"""The metric that counts what the column `correct` of the records says: only an indicator of it has twins there."""


@dataclass(frozen=True)
class Pairs:
    """Items graded in both phases."""

    n: int
    lost: int
    """Right in the baseline, wrong in the phase."""
    gained: int


@dataclass(frozen=True)
class Drop:
    """Baseline minus phase, in the indicator's unit; what the baseline had; and the numbers behind it."""

    baseline: PhaseValue
    phase: PhaseValue
    evidence: Mapping[str, float] = field(default_factory=dict)


def measure_drop(objective: Objective, phase: Phase, samples: Samples, records: pd.DataFrame | None) -> Drop:
    """The drop from the counts of Prometheus, with an interval from the twins if there are any, else Newcombe's."""
    indicator = objective.indicator
    if not isinstance(indicator, RatioIndicator) or indicator.good is None:
        raise TypeError(f"{objective.name}: a drop is of a share of good events")
    try:
        before = share(objective.name, indicator, Phase.BASELINE, samples)
    except UnmeasuredError as reason:
        missing = PhaseValue(status=reason.status, detail=f"baseline: {reason.detail}")
        return Drop(missing, missing)
    reference = PhaseValue(0.0, n=round(before.total), detail=f"{before.text} good")
    try:
        after = share(objective.name, indicator, phase, samples)
    except UnmeasuredError as reason:
        return Drop(reference, unmeasured(reason))
    pairs = find_pairs(records, phase) if records is not None and GRADES in indicator.total else None
    if pairs is None:
        return Drop(reference, _independent(before, after, indicator.scale))
    evidence = {
        "pairs": pairs.n,
        "lost": pairs.lost,
        "gained": pairs.gained,
        "mcnemar_p": mcnemar(pairs.lost, pairs.gained),
    }
    return Drop(reference, _paired(before, after, pairs, indicator.scale), evidence)


def _independent(before: Share, after: Share, scale: float) -> PhaseValue:
    low, high = newcombe(before.count, before.total, after.count, after.total)
    value = before.value - after.value
    return _value(value, low, high, round(after.total), scale, f"{after.text} good")


def _paired(before: Share, after: Share, pairs: Pairs, scale: float) -> PhaseValue:
    """The interval is widened to the point where the two differ: Prometheus counts items without a twin too."""
    estimate = paired_drop(pairs.lost, pairs.gained, pairs.n)
    value = before.value - after.value
    low = value if estimate.low is None else min(value, estimate.low)
    high = value if estimate.high is None else max(value, estimate.high)
    detail = f"{after.text} good; of {pairs.n} pairs {pairs.lost} lost, {pairs.gained} gained"
    return _value(value, low, high, pairs.n, scale, detail)


def _value(value: float, low: float, high: float, n: int, scale: float, detail: str) -> PhaseValue:
    return PhaseValue(rounded(value * scale), rounded(low * scale), rounded(high * scale), n, detail=detail)


def find_pairs(records: pd.DataFrame, phase: Phase) -> Pairs | None:
    """Items that were graded in the baseline and in `phase`; None if there are none."""
    graded = records.loc[records["correct"].notna(), ["phase", "seq", "correct"]]
    before = graded.loc[graded["phase"] == Phase.BASELINE.value].set_index("seq")["correct"].astype(bool)
    after = graded.loc[graded["phase"] == phase.value].set_index("seq")["correct"].astype(bool)
    common = before.index.intersection(after.index)
    if common.empty:
        return None
    was, now = before.loc[common].to_numpy(), after.loc[common].to_numpy()
    return Pairs(len(common), int((was & ~now).sum()), int((~was & now).sum()))
