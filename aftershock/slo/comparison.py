"""How much a phase differs from the baseline: in the indicator's unit, or in percent of the baseline. No I/O.

The interval is made of those of the two values, whatever they come from (MOVER, method of variance estimates recovery;
of two Wilson intervals that is Newcombe's). For a ratio the same is done on the logarithms. The phases are taken as
independent. A side that is open in one of the two is open in the difference.
"""

from __future__ import annotations

import math
from dataclasses import replace

from aftershock.slo.objective import Compare
from aftershock.slo.values import rounded
from aftershock.slo.verdict import PhaseValue, Status


def compare_with_baseline(compare: Compare, baseline: PhaseValue, phase: PhaseValue) -> PhaseValue:
    """What `phase` is against `baseline`, by `compare`; without a value where one of them has none."""
    if not phase.status.known:
        return phase
    if not baseline.status.known:
        return PhaseValue(status=baseline.status, detail=f"baseline: {baseline.detail}".removesuffix(": "))
    if baseline.status is Status.AT_LEAST:
        return PhaseValue(status=Status.MISSING, detail=f"of the baseline only a lower bound is known: {baseline.text}")
    return _relative(baseline, phase) if compare is Compare.RELATIVE else _increase(baseline, phase)


def _increase(baseline: PhaseValue, phase: PhaseValue) -> PhaseValue:
    before, after = baseline.value or 0.0, phase.value or 0.0
    low = _less(after, phase.low, before, baseline.high)
    high = _more(after, phase.high, before, baseline.low)
    return _changed(after - before, low, high, phase)


def _relative(baseline: PhaseValue, phase: PhaseValue) -> PhaseValue:
    """In percent. A change of nothing has no percentage, nor has one of what is negative."""
    before, after = baseline.value or 0.0, phase.value or 0.0
    if before == 0:
        return PhaseValue(status=Status.INFINITE, detail="the baseline is 0, so there is no percentage of it")
    if before < 0 or after < 0:
        return PhaseValue(status=Status.INCONSISTENT, detail="a percentage of a negative value means nothing")
    return _changed(
        _percent(after / before),
        _lowest(baseline, phase, before, after),
        _highest(baseline, phase, before, after),
        phase,
    )


def _lowest(baseline: PhaseValue, phase: PhaseValue, before: float, after: float) -> float | None:
    if phase.low is None or baseline.high is None:
        return None
    if phase.low <= 0 or after == 0:
        return -100.0  # nothing left
    low = _less(math.log(after), math.log(phase.low), math.log(before), math.log(baseline.high))
    return None if low is None else _percent(math.exp(low))


def _highest(baseline: PhaseValue, phase: PhaseValue, before: float, after: float) -> float | None:
    if phase.high is None or baseline.low is None or baseline.low <= 0:
        return None
    if after == 0:
        return _percent(phase.high / baseline.low)  # no logarithm; the most it can be
    high = _more(math.log(after), math.log(phase.high), math.log(before), math.log(baseline.low))
    return None if high is None else _percent(math.exp(high))


def _less(after: float, after_low: float | None, before: float, before_high: float | None) -> float | None:
    if after_low is None or before_high is None:
        return None
    return after - before - math.hypot(after - after_low, before_high - before)


def _more(after: float, after_high: float | None, before: float, before_low: float | None) -> float | None:
    if after_high is None or before_low is None:
        return None
    return after - before + math.hypot(after_high - after, before - before_low)


def _percent(ratio: float) -> float:
    return 100 * (ratio - 1)


def _changed(value: float, low: float | None, high: float | None, phase: PhaseValue) -> PhaseValue:
    """With the sample size of the phase, and known from below only where the phase is."""
    low, high = (None if end is None else rounded(end) for end in (low, high))
    return replace(phase, value=rounded(value), low=low, high=high)
