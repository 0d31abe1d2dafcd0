"""Samples -> the value of one objective in one phase, with its interval. No I/O."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import dataclass

from aftershock.slo.frame import Role
from aftershock.slo.objective import (
    CompositeIndicator,
    Objective,
    QuantileIndicator,
    RatioIndicator,
    RecoveryIndicator,
    ScalarIndicator,
    SliceIndicator,
)
from aftershock.slo.samples import Answers, Sample, UnmeasuredError
from aftershock.slo.statistics import RELATIVE_SLACK, Bucket, newcombe, quantile_of_buckets, saturated, wilson
from aftershock.slo.verdict import Delta, PhaseValue, Status
from aftershock.windows import Phase


@dataclass(frozen=True)
class Share:
    """Events counted of all events."""

    count: float
    total: float

    @property
    def value(self) -> float:
        """Between 0 and 1."""
        return self.count / self.total

    @property
    def text(self) -> str:
        """`3 of 1800`"""
        return f"{self.count:.0f} of {self.total:.0f}"


def rounded(value: float) -> float:
    """Twelve significant digits. 0.07 * 1000 is not 70 and 100 - 99.5 % not 0.5 %, but an objective must meet them."""
    return float(f"{value:.12g}")


def unmeasured(reason: UnmeasuredError) -> PhaseValue:
    """A value that is not there."""
    return PhaseValue(status=reason.status, detail=reason.detail)


def measure(objective: Objective, phase: Phase, answers: Answers) -> PhaseValue:
    """The objective's indicator in `phase`, in its own unit, without any comparison."""
    try:
        match objective.indicator:
            case ScalarIndicator():
                return _scalar(objective.indicator, phase, answers)
            case QuantileIndicator():
                return _quantile(objective.indicator, phase, answers)
            case RatioIndicator():
                return _ratio(objective.indicator, phase, answers)
            case RecoveryIndicator() | SliceIndicator() | CompositeIndicator():
                raise TypeError(f"{objective.name}: is not one value of a phase; see recovery, slices and composite")
    except UnmeasuredError as reason:
        return unmeasured(reason)


def share(indicator: RatioIndicator, phase: Phase, answers: Answers) -> Share:
    """The counts of a ratio. Raises UnmeasuredError where they are missing, zero or contradict each other."""
    role = Role.GOOD if indicator.good is not None else Role.BAD
    total = answers.single(Role.TOTAL, phase)
    count = answers.single(role, phase)
    if total == 0:
        raise UnmeasuredError(Status.NO_OBSERVATIONS, "the total is 0: nothing was counted in the window")
    if not -RELATIVE_SLACK * total <= count <= total * (1 + RELATIVE_SLACK) + 0.5 or total < 0:
        raise UnmeasuredError(Status.INCONSISTENT, f"{role} {count:g} and total {total:g} cannot both be")
    return Share(min(max(count, 0.0), total), total)


def compare_shares(baseline: Share, phase: Share, scale: float) -> Delta:
    """Phase minus baseline, with Newcombe's interval of two independent shares."""
    low, high = newcombe(phase.count, phase.total, baseline.count, baseline.total)
    value = phase.value - baseline.value
    return Delta(rounded(value * scale), rounded(low * scale), rounded(high * scale), _percent(value, baseline.value))


def compare_values(baseline: PhaseValue, phase: PhaseValue) -> Delta | None:
    """Phase minus baseline as points; None unless both are known exactly."""
    if baseline.value is None or phase.value is None or Status.AT_LEAST in (baseline.status, phase.status):
        return None
    return Delta(phase.value - baseline.value, percent=_percent(phase.value - baseline.value, baseline.value))


def _percent(difference: float, base: float) -> float | None:
    percent = difference / abs(base) * 100 if base else math.inf
    return percent if math.isfinite(percent) else None


def _scalar(indicator: ScalarIndicator, phase: Phase, answers: Answers) -> PhaseValue:
    value = answers.single(Role.VALUE, phase)
    if indicator.samples is None:
        return PhaseValue(value)
    n = math.floor(answers.single(Role.SAMPLES, phase))
    if n < 1:
        raise UnmeasuredError(Status.NO_OBSERVATIONS, "nothing was counted in the window")
    return PhaseValue(value, n=n)


def _quantile(indicator: QuantileIndicator, phase: Phase, answers: Answers) -> PhaseValue:
    buckets = buckets_of(answers.series(Role.BUCKET, phase), indicator.scale)
    if max(bucket.cumulative for bucket in buckets) < 1:
        raise UnmeasuredError(Status.NO_OBSERVATIONS, "the histogram counted nothing in the window")
    try:
        estimate = quantile_of_buckets(buckets, indicator.quantile)
    except ValueError as error:
        raise UnmeasuredError(Status.INCONSISTENT, str(error)) from error
    if saturated(buckets, indicator.quantile):
        return PhaseValue(
            estimate.value, estimate.low, None, estimate.n, Status.AT_LEAST, "above the last bucket of the histogram"
        )
    return PhaseValue(estimate.value, estimate.low, estimate.high, estimate.n)


def buckets_of(found: list[Sample], scale: float) -> list[Bucket]:
    """Buckets summed over series, bounds in the unit shown. Raises UnmeasuredError for what is no histogram."""
    counts: dict[float, float] = defaultdict(float)
    series: Counter[float] = Counter()
    for sample in found:
        value = sample.number()
        try:
            bound = float(sample.label("le") or "")
        except ValueError:
            raise UnmeasuredError(
                Status.INCONSISTENT, f"no bucket bound in the labels {sample.labels or '{}'}"
            ) from None
        bound = rounded(bound * scale)
        counts[bound] += value
        series[bound] += 1
    if len(set(series.values())) > 1:
        raise UnmeasuredError(
            Status.INCONSISTENT, "the series of the histogram have different buckets; select one kind"
        )
    return [Bucket(bound, count) for bound, count in sorted(counts.items())]


def bucket_around(buckets: list[Bucket], quantile: float) -> tuple[float, float] | None:
    """Bounds of the bucket that holds a quantile: above the first, at most the second. None without such a bucket."""
    rank = quantile * max(bucket.cumulative for bucket in buckets)
    low = -math.inf
    for bucket in buckets:
        if bucket.cumulative >= rank - 1e-6:
            return low, bucket.bound
        low = bucket.bound
    return None


def _ratio(indicator: RatioIndicator, phase: Phase, answers: Answers) -> PhaseValue:
    counted = share(indicator, phase, answers)
    low, high = wilson(counted.count, counted.total)
    scale = indicator.scale
    return PhaseValue(
        rounded(counted.value * scale),
        rounded(low * scale),
        rounded(high * scale),
        round(counted.total),
        detail=counted.text,
    )
