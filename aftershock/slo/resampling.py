"""Intervals of quantiles and means of a series whose neighbours depend on each other. Pure functions of arrays.

A quantile has the interval of order statistics for as many observations as the series is worth (see `dependence`). As
it is never worth more than it has, this is the wider one of the interval for independent observations and of that over
blocks of time. Where no bound exists for so few, that side is open. `benchmarks/coverage.py` shows what is covered.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from aftershock.slo.dependence import Dependence, dependence
from aftershock.slo.statistics import TAIL, Estimate

DRAWS = 2000


@dataclass(frozen=True)
class SeriesEstimate(Estimate):
    """An estimate, and what the series behind it is worth."""

    dependence: Dependence


def quantile_of_series(values: NDArray[np.float64], quantile: float) -> SeriesEstimate:
    """A quantile of `values`, which are in the order of time and may be infinite; nearest rank.

    Raises ValueError for no values.
    """
    n = len(values)
    if n < 1:
        raise ValueError("no quantile of nothing")
    ordered = values.copy()
    rank = min(n, max(1, math.ceil(quantile * n - 1e-9)))
    ordered.partition(rank - 1)
    point = float(ordered[rank - 1])
    worth = dependence(_beyond(values, point))
    below, above = limits(worth.effective_n, quantile)
    wanted = {min(index, n - 1) for p in (below, above) if p is not None for index in _neighbours(p, n)}
    if wanted:
        ordered.partition(sorted(wanted))
    low = None if below is None else min(point, _between(ordered, below, upper=False))
    high = None if above is None else max(point, _between(ordered, above, upper=True))
    return SeriesEstimate(point, low, high, n, worth)


def mean_of_series(values: NDArray[np.float64]) -> SeriesEstimate:
    """A mean, by the circular block bootstrap: percentiles, stretched for what few blocks leave unknown.

    The draws are seeded by the values: the same evidence gives the same interval. Raises ValueError for no values.
    """
    n = len(values)
    if n < 1:
        raise ValueError("no mean of nothing")
    worth = dependence(values)
    block = worth.block
    point = float(values.mean())
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([values, values[:block]]) - point)])
    rng = np.random.default_rng(zlib.crc32(np.ascontiguousarray(values).tobytes()))
    starts = rng.integers(0, n, size=(DRAWS, max(1, round(n / block))))
    drawn = (sums[starts + block] - sums[starts]).sum(axis=1) / (starts.shape[1] * block)
    spread = float(drawn.std())
    low, high = (float(end) for end in np.quantile(drawn, [TAIL, 1 - TAIL]))
    needed = math.sqrt(worth.design_effect * float(values.var()) / max(1, n - 1))
    stretch = max(1.0, needed / spread) if spread > 0 else 1.0
    return SeriesEstimate(point, point + low * stretch, point + high * stretch, n, worth)


@lru_cache(maxsize=4096)
def limits(n: int, quantile: float) -> tuple[float | None, float | None]:
    """Between which shares of `n` independent observations, in order, a quantile lies; None where none is far enough.

    These are fractional order statistics (Hutson 1999): the tails are met exactly for uniform values, where whole ranks
    give away up to two points. The r-th of n uniform values is beta distributed.
    """
    low = _share(n, quantile, TAIL) if (1 - quantile) ** n <= TAIL else None
    high = _share(n, quantile, 1 - TAIL) if quantile**n <= TAIL else None
    return low, high


def _share(n: int, quantile: float, probability: float) -> float:
    """The share p at which the order statistic of rank p * (n + 1) exceeds the quantile with `probability`."""
    from scipy import special

    low, high = 0.0, 1.0
    for _ in range(48):
        middle = (low + high) / 2
        if special.betaincc((n + 1) * middle, (n + 1) * (1 - middle), quantile) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _beyond(values: NDArray[np.float64], point: float) -> NDArray[np.bool_]:
    """Which values lie beyond the point; at it or beyond, where none does."""
    beyond: NDArray[np.bool_] = values > point
    return beyond if beyond.any() else values >= point


def _neighbours(share: float, n: int) -> tuple[int, int]:
    """Indices of the order statistics around a share."""
    index = min(n - 1, max(0, math.floor(share * (n + 1)) - 1))
    return index, min(n - 1, index + 1)


def _between(ordered: NDArray[np.float64], share: float, *, upper: bool) -> float:
    """Interpolated between two order statistics; at the outer one where that is infinite."""
    below, above = (float(ordered[index]) for index in _neighbours(share, len(ordered)))
    if math.isinf(above):
        return above if upper else below
    rank = share * (len(ordered) + 1)
    return below + (above - below) * min(1.0, max(0.0, rank - math.floor(rank)))
