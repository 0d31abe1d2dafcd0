"""Several objectives as one: the weighted mean of the error budgets that they have spent. No I/O.

OpenSLO gives the objectives of a composite their targets and weights, and leaves the arithmetic open. Here each is
measured by its own budget: an error rate of 0.5 % against `<= 1 %` has spent 50 %, and so has a share of 99.5 % good
against `>= 99 %`. The composite holds while the weighted mean is at most 100 %: what one objective spends too much
another may have saved, by as much as the weights say.

Its interval is as wide as if all objectives were off to the same side at once, since they mostly count the same
requests.
"""

from __future__ import annotations

from collections.abc import Callable

from aftershock.slo.objective import CompositeIndicator, Indicator, Objective, RatioIndicator, ScalarIndicator
from aftershock.slo.values import rounded
from aftershock.slo.verdict import PhaseValue

BUDGET = 100.0
"""Of which a composite may spend all, in percent."""


def measure_composite(indicator: CompositeIndicator, value_of: Callable[[Objective], PhaseValue]) -> PhaseValue:
    """The budget spent, in percent; without a value where one of the objectives has none."""
    weights = sum(part.weight for part in indicator.parts)
    values = [(part, value_of(part.objective)) for part in indicator.parts]
    for part, value in values:
        if value.value is None:
            detail = f"{part.objective.display}: {value.detail}".removesuffix(": ")
            return PhaseValue(status=value.status, detail=detail)
    spent = [(part.weight / weights, spent_budget(part.objective, value)) for part, value in values]
    lows, highs = [one.low for _, one in spent], [one.high for _, one in spent]
    sizes = [one.n for _, one in spent if one.n is not None]
    return PhaseValue(
        rounded(sum(weight * (one.value or 0.0) for weight, one in spent)),
        _mean(lows, spent),
        _mean(highs, spent),
        min(sizes) if len(sizes) == len(spent) else None,
        detail=", ".join(
            f"{part.objective.display}: {one.text} %" for (part, _), (_, one) in zip(values, spent, strict=True)
        ),
    )


def spent_budget(objective: Objective, value: PhaseValue) -> PhaseValue:
    """How much of what it may be off its best an objective has been off, in percent."""
    best = 0.0 if objective.upper else _whole(objective.indicator)

    def spent(one: float | None) -> float | None:
        return None if one is None else rounded(BUDGET * (one - best) / (objective.value - best))

    low, high = (value.low, value.high) if objective.upper else (value.high, value.low)
    return PhaseValue(spent(value.value), spent(low), spent(high), value.n)


def rests_on_points(indicator: Indicator) -> bool:
    """Whether no interval is known of it, so that the point has to decide."""
    if isinstance(indicator, CompositeIndicator):
        return any(rests_on_points(part.objective.indicator) for part in indicator.parts)
    return isinstance(indicator, ScalarIndicator)


def _whole(indicator: Indicator) -> float:
    """What all of it is, in its unit."""
    return indicator.scale if isinstance(indicator, RatioIndicator) else 100.0


def _mean(ends: list[float | None], spent: list[tuple[float, PhaseValue]]) -> float | None:
    known = [end for end in ends if end is not None]
    if len(known) < len(ends):
        return None
    return rounded(sum(weight * end for (weight, _), end in zip(spent, known, strict=True)))
