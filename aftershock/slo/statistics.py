"""Intervals and tests: pure functions of numbers. Intervals are two-sided, with 95 % confidence.

Each side of an interval is wrong with a probability of at most 2.5 %. A side on which no bound exists at that
confidence is None (open), never a made-up number: the upper bound of a P99 needs 368 observations. (The 299 that are
often quoted give a one-sided 95 % bound.)

Observations are taken as independent. Latencies of neighbouring requests are not: where there are records of them, see
`resampling`. From a histogram alone, an interval over a short, busy phase is too narrow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95
Z = NormalDist().inv_cdf(0.5 + CONFIDENCE / 2)
"""Half-width of a two-sided normal interval in standard deviations: 1.96."""
TAIL = (1 - CONFIDENCE) / 2
"""What each side of an interval may be wrong by."""
RELATIVE_SLACK = 0.001
"""Counts are exact where the collector makes them, but a query of the user's own may have Prometheus extrapolate: for
such floats, differences below this share of the whole are rounding."""


@dataclass(frozen=True)
class Estimate:
    """A point with its interval; None is an open side. `n` is the number of observations behind it."""

    value: float
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True)
class Bucket:
    """Observations at or below `bound` (cumulative, as Prometheus counts them). The last bound is infinite."""

    bound: float
    cumulative: float


def _binomial_cdf(k: int, n: int, probability: float) -> float:
    """P(Binomial(n, probability) <= k)."""
    from scipy import special  # half a second that only judging costs; a quarter of what scipy.stats takes

    return float(special.bdtr(k, n, probability))


def wilson(successes: float, n: float) -> tuple[float, float]:
    """Wilson's score interval of a share. Counts need not be whole: a query of the user's own may extrapolate them."""
    if n <= 0 or not 0 <= successes <= n:
        raise ValueError(f"no share: {successes} of {n}")
    share = successes / n
    centre = share + Z * Z / (2 * n)
    spread = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n))
    scale = 1 + Z * Z / n
    return min(share, max(0.0, (centre - spread) / scale)), max(share, min(1.0, (centre + spread) / scale))


def newcombe(successes_a: float, n_a: float, successes_b: float, n_b: float) -> tuple[float, float]:
    """Interval of share A minus share B, independent samples: Newcombe's hybrid of two Wilson intervals (method 10)."""
    a, b = successes_a / n_a, successes_b / n_b
    low_a, high_a = wilson(successes_a, n_a)
    low_b, high_b = wilson(successes_b, n_b)
    return a - b - math.hypot(a - low_a, high_b - b), a - b + math.hypot(high_a - a, b - low_b)


def mcnemar(lost: int, gained: int) -> float:
    """Exact two-sided p-value that items lost and items gained are equally likely, from the discordant pairs alone."""
    discordant = lost + gained
    if discordant == 0:
        return 1.0
    return min(1.0, 2 * _binomial_cdf(min(lost, gained), discordant, 0.5))


def paired_drop(lost: float, gained: float, n: float) -> Estimate:
    """Share of `n` pairs lost minus share gained, with Tango's score interval. The counts may be expectations.

    It keeps its coverage where the plain interval fails: with few or no discordant pairs, which is what a good service
    gives. The limits are where the score statistic, which falls as the assumed drop rises, crosses +-Z.
    """
    if n <= 0 or lost < 0 or gained < 0 or lost + gained > n * (1 + 1e-12):
        raise ValueError(f"no paired comparison: {lost} lost and {gained} gained of {n}")
    point = (lost - gained) / n
    low = _crossing(lost, gained, n, Z, -1.0, point)
    high = _crossing(lost, gained, n, -Z, point, 1.0)
    return Estimate(point, min(low, point), max(high, point), math.floor(n))


def _crossing(lost: float, gained: float, n: float, level: float, low: float, high: float) -> float:
    """The drop in [low, high] at which the score statistic equals `level`, by bisection."""
    for _ in range(60):
        middle = (low + high) / 2
        if _score(lost, gained, n, middle) > level:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _score(lost: float, gained: float, n: float, drop: float) -> float:
    """Tango's score statistic for an assumed `drop`, with the probability of a gain at its restricted maximum."""
    a = 2.0 * n
    b = -lost - gained + (2 * n - lost + gained) * drop
    c = -gained * drop * (1 - drop)
    gain = (math.sqrt(max(0.0, b * b - 4 * a * c)) - b) / (2 * a)
    variance = n * (2 * gain + drop * (1 - drop))
    distance = lost - gained - n * drop
    if variance <= 0:
        return math.copysign(math.inf, distance) if distance else 0.0
    return distance / math.sqrt(variance)


def quantile_ranks(n: int, quantile: float) -> tuple[int | None, int | None]:
    """Ranks (from 1) of the order statistics that bound a quantile of `n` observations; None where none is far enough.

    Observations at or below the true quantile are binomial, whatever the distribution: nothing is assumed of its shape.
    """
    below = _largest_rank(n, quantile)
    above = _largest_rank(n, 1 - quantile)
    return below or None, n + 1 - above if above else None


def _largest_rank(n: int, quantile: float) -> int:
    """Largest rank r whose order statistic exceeds the quantile with probability <= TAIL: P(Binomial <= r - 1)."""
    low, high = 0, n
    while low < high:
        middle = (low + high + 1) // 2
        if _binomial_cdf(middle - 1, n, quantile) <= TAIL:
            low = middle
        else:
            high = middle - 1
    return low


def samples_needed(quantile: float) -> int:
    """Observations from which on both bounds of a quantile exist: 368 for P99, 72 for P95, 6 for the median."""
    rarer = max(quantile, 1 - quantile)
    return math.ceil(math.log(TAIL) / math.log(rarer))


def quantile_of_buckets(buckets: Sequence[Bucket], quantile: float) -> Estimate:
    """A quantile of a classic histogram: the same interval, widened to the bounds of the buckets that hold its ends.

    The point is interpolated within its bucket, as `histogram_quantile` does. If it falls into the infinite bucket,
    `value` is just above the last finite bound and `high` is None: a lower bound is all that is known (see
    `saturated`).
    Raises ValueError for what is no histogram: no infinite bucket, no finite one, or falling counts.
    """
    bounds, counts = _cumulative(buckets)
    total = counts[-1]
    n = math.floor(total + 1e-6)
    if n < 1:
        raise ValueError("no quantile of nothing")
    below, above = quantile_ranks(n, quantile)
    rank = quantile * total
    value = _interpolated(bounds, counts, _bucket_of(counts, rank), rank)
    low = None if below is None else _lower(bounds, _bucket_of(counts, below))
    high = math.inf if above is None else bounds[_bucket_of(counts, above)]
    return Estimate(
        value,
        None if low is None else min(low, value),
        None if math.isinf(high) else max(high, value),
        n,
    )


def saturated(buckets: Sequence[Bucket], quantile: float) -> bool:
    """Whether the quantile lies in the infinite bucket, so that only a lower bound of it is known."""
    bounds, counts = _cumulative(buckets)
    return math.isinf(bounds[_bucket_of(counts, quantile * counts[-1])])


def _cumulative(buckets: Sequence[Bucket]) -> tuple[list[float], list[float]]:
    """Bounds and counts in order. Counts may fall by rounding, no more: then they are taken as level."""
    ordered = sorted(buckets, key=lambda bucket: bucket.bound)
    bounds = [bucket.bound for bucket in ordered]
    if len(bounds) < 2 or bounds[-1] != math.inf:
        raise ValueError(f'a histogram needs finite buckets and one with le="+Inf"; there are {len(bounds)} buckets')
    counts: list[float] = []
    highest, slack = 0.0, 0.5 + RELATIVE_SLACK * ordered[-1].cumulative
    for bucket in ordered:
        if not bucket.cumulative >= highest - slack:
            raise ValueError(f"bucket counts fall at le={bucket.bound:g}: {highest:g}, then {bucket.cumulative:g}")
        highest = max(highest, bucket.cumulative)
        counts.append(highest)
    return bounds, counts


def _bucket_of(counts: Sequence[float], rank: float) -> int:
    """Index of the bucket that holds the observation of `rank`."""
    for index, count in enumerate(counts):
        if count >= rank - 1e-6:
            return index
    return len(counts) - 1


def _interpolated(bounds: Sequence[float], counts: Sequence[float], index: int, rank: float) -> float:
    if math.isinf(bounds[index]):
        return math.nextafter(bounds[index - 1], math.inf)
    before = counts[index - 1] if index else 0.0
    start = bounds[index - 1] if index else min(0.0, bounds[0])
    inside = counts[index] - before
    share = min(1.0, max(0.0, (rank - before) / inside)) if inside > 0 else 1.0
    return start + (bounds[index] - start) * share


def _lower(bounds: Sequence[float], index: int) -> float | None:
    """The least value of a bucket: just above its lower bound, which matters if that bound is the objective itself."""
    if index == 0:
        return 0.0 if bounds[0] > 0 else None
    return math.nextafter(bounds[index - 1], math.inf)
