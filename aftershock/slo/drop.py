"""What was lost against the baseline, item by item where the records allow it. No I/O.

The same questions are asked in each phase, so answers have twins: those to the same item in the other phase. Twins
cancel what makes some questions harder than others.

Answers to one item may share their fate: where items repeat, they are clusters, and the counts are divided by the
design effect of the clusters before the interval and the test are made of them (Rao and Scott 1992).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from aftershock.slo.counts import GRADES, counts_all
from aftershock.slo.objective import Objective, RatioIndicator
from aftershock.slo.samples import Answers, UnmeasuredError
from aftershock.slo.statistics import mcnemar, newcombe, paired_drop
from aftershock.slo.values import Share, rounded, share, unmeasured
from aftershock.slo.verdict import PhaseValue
from aftershock.windows import Phase

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Pairs:
    """Answers of the baseline beside those of a phase to the same items."""

    n: int
    lost: float
    """Right in the baseline, wrong in the phase."""
    gained: float
    items: int
    design_effect: float = 1.0
    """How many pairs know as much as one whose item did not repeat; at least 1."""


@dataclass(frozen=True)
class Drop:
    """Baseline minus phase, in the indicator's unit; what the baseline had; and the numbers behind it."""

    baseline: PhaseValue
    phase: PhaseValue
    evidence: Mapping[str, float] = field(default_factory=dict)


def measure_drop(objective: Objective, phase: Phase, answers: Answers, records: pd.DataFrame | None) -> Drop:
    """The drop over twins, point and interval, if there are any; else over the counts of Prometheus, with Newcombe's.

    With twins, the counts still must be there, and stand in the detail.
    """
    indicator = objective.indicator
    if not isinstance(indicator, RatioIndicator) or indicator.good is None:
        raise TypeError(f"{objective.name}: a drop is of a share of good events")
    try:
        before = share(indicator, Phase.BASELINE, answers)
    except UnmeasuredError as reason:
        missing = PhaseValue(status=reason.status, detail=f"baseline: {reason.detail}")
        return Drop(missing, missing)
    reference = PhaseValue(0.0, n=round(before.total), detail=f"{before.text} good")
    try:
        after = share(indicator, phase, answers)
    except UnmeasuredError as reason:
        return Drop(reference, unmeasured(reason))
    pairs = find_pairs(records, phase) if records is not None and counts_all(indicator.total, GRADES) else None
    if pairs is None:
        return Drop(reference, _independent(before, after, indicator.scale))
    evidence = {
        "pairs": pairs.n,
        "lost": rounded(pairs.lost),
        "gained": rounded(pairs.gained),
        "mcnemar_p": mcnemar(round(pairs.lost / pairs.design_effect), round(pairs.gained / pairs.design_effect)),
    }
    if pairs.items < pairs.n:
        evidence |= {"items": pairs.items, "design_effect": rounded(pairs.design_effect)}
    return Drop(reference, _paired(after, pairs, indicator.scale), evidence)


def _independent(before: Share, after: Share, scale: float) -> PhaseValue:
    low, high = newcombe(before.count, before.total, after.count, after.total)
    value = before.value - after.value
    detail = f"{after.text} good"
    return PhaseValue(
        rounded(value * scale), rounded(low * scale), rounded(high * scale), round(after.total), detail=detail
    )


def _paired(after: Share, pairs: Pairs, scale: float) -> PhaseValue:
    worth = pairs.design_effect
    found = paired_drop(pairs.lost / worth, pairs.gained / worth, pairs.n / worth)
    value, low, high = (None if one is None else rounded(one * scale) for one in (found.value, found.low, found.high))
    detail = f"{after.text} good; of {pairs.n} pairs {pairs.lost:.4g} lost, {pairs.gained:.4g} gained"
    effective_n = math.floor(pairs.n / worth) if worth > 1 else None
    return PhaseValue(value, low, high, pairs.n, detail=detail, effective_n=effective_n)


def find_pairs(records: pd.DataFrame, phase: Phase) -> Pairs | None:
    """Twins of the baseline and `phase`; None if no item was graded in both.

    An item that was asked several times has no first or second twin: what is counted is the mean over all ways to pair
    its answers, so every answer counts, however long the phase. It has as many pairs as it has answers in the phase
    that asked it less often; more would be the same answers again.
    """
    before, after = _grades(records, Phase.BASELINE), _grades(records, phase)
    both = before.index.intersection(after.index)
    if both.empty:
        return None
    before, after = before.loc[both], after.loc[both]
    pairs = before["size"].clip(upper=after["size"])
    right, right_after = before["mean"], after["mean"]
    lost = float((pairs * right * (1 - right_after)).sum())
    gained = float((pairs * right_after * (1 - right)).sum())
    n = int(pairs.sum())
    drops = (pairs * (right - right_after)).to_numpy()
    return Pairs(n, lost, gained, len(pairs), _design_effect(drops, pairs.to_numpy(), lost, gained))


def _design_effect(drops: NDArray[np.float64], pairs: NDArray[np.int64], lost: float, gained: float) -> float:
    """Variance of the drop over items, by that over pairs as if they were independent; at least 1.

    1 as well where nothing can be seen of it: no item repeats, there is but one, or no pair differs.
    """
    n, items = int(pairs.sum()), len(pairs)
    drop = (lost - gained) / n
    independent = lost + gained - n * drop * drop
    if items == n or items < 2 or independent <= 0:
        return 1.0
    clustered = float(((drops - pairs * drop) ** 2).sum()) * items / (items - 1)
    return max(1.0, clustered / independent)


def _grades(records: pd.DataFrame, phase: Phase) -> pd.DataFrame:
    """Of each item that was graded in `phase`: the share of right answers (mean) and how many there were (size)."""
    graded = records.loc[(records["phase"] == phase.value) & records["correct"].notna()]
    return graded["correct"].astype(float).groupby(graded["item_id"]).agg(["mean", "size"])
