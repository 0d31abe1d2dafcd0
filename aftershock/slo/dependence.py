"""How much a series of neighbours knows: requests that were due one after the other share their fate. No I/O.

The variance of a mean is taken over blocks of neighbours. It is that of the circular block bootstrap (Politis and
Romano 1992) in closed form, so nothing is drawn and the same evidence gives the same interval. Divided by the variance
that independent observations would have, it is the design effect; the number of observations divided by that is the
effective sample size: as many independent ones would know as much (Kish 1965; for intervals Korn and Graubard 1998).

Blocks have equally many requests in the order in which they were due. Under the open loop these are equal times, and
what happened at the same time stays together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from aftershock.slo.statistics import TAIL, Z

FIRST_BLOCK = 2.5
"""Times the cube root of n: the rate at which the best length grows (Hall, Horowitz and Jing 1995)."""
FEWEST_AT_FIRST = 30
"""Blocks. With fewer, the noise of their variance alone makes intervals of independent data too wide."""
FEWEST = 20
"""Blocks, where the series depends on itself for long."""
MOST = 500
"""Blocks. More would not make the variance much surer, and only longer ones see slow changes."""
LONG_ENOUGH = 10
"""Design effects in a block. Blocks that are shorter are doubled: they would cut what belongs together. The idea is
Sokal's (1997), who lets a window be several times as long as the autocorrelation time that it shows."""


@dataclass(frozen=True)
class Dependence:
    """What `n` observations in a row are worth."""

    n: int
    design_effect: float
    """At least 1. What the few blocks leave unknown of it is in it: it is raised as Student's t exceeds the normal."""
    block: int
    """Observations in a block."""

    @property
    def effective_n(self) -> int:
        """Independent observations that would know as much."""
        return max(1, math.floor(self.n / self.design_effect))


def dependence(series: NDArray[np.bool_] | NDArray[np.float64]) -> Dependence:
    """Of the mean of a series, or of a share: then it says of each observation whether it counts.

    A series that never changes shows no dependence: its observations are taken as independent. What lasts longer than
    a twentieth of the series cannot be seen in it.
    """
    n = len(series)
    block = max(1, int(min(max(FIRST_BLOCK * n ** (1 / 3), n / MOST), n / FEWEST_AT_FIRST)))
    variance = _variance(series) if n else 0.0
    if n < 2 * FEWEST or variance == 0:
        return Dependence(n, 1.0, 1)
    ratio = _variance_of_blocks(series, block) / variance
    while block < LONG_ENOUGH * ratio and 2 * block <= n / FEWEST:
        block *= 2
        ratio = _variance_of_blocks(series, block) / variance
    if ratio > 1:
        # What a block cuts off at its ends, if correlations fall off geometrically.
        ratio /= 1 - min(0.5, (ratio * ratio - 1) / (2 * ratio * block))
    ratio *= (student(_degrees_of_freedom(n, block)) / Z) ** 2
    return Dependence(n, max(1.0, ratio), block)


def _variance(series: NDArray[np.bool_] | NDArray[np.float64]) -> float:
    """As if the observations were independent."""
    if series.dtype == np.bool_:
        share = float(np.count_nonzero(series)) / len(series)
        return share * (1 - share)
    return float(np.var(series))


def _variance_of_blocks(series: NDArray[np.bool_] | NDArray[np.float64], block: int) -> float:
    """Variance of the sum of `block` neighbours, per observation, over blocks all around the series closed to a ring.

    Blocks start at each sixteenth of their length: from there on, more of them would say the same.
    """
    step = max(1, block // 16)
    parts = series[: len(series) // step * step].reshape(-1, step).sum(axis=1, dtype=np.float64)
    length = block // step
    sums = np.concatenate([[0.0], np.cumsum(np.concatenate([parts, parts[:length]]))])
    blocks = sums[length : length + len(parts)] - sums[: len(parts)]
    return float(np.var(blocks)) / (length * step) * len(parts) / (len(parts) - length)


def _degrees_of_freedom(n: int, block: int) -> float:
    """Of the variance over overlapping blocks: half as many again as there are blocks beside each other."""
    return 1.5 * n / block


@lru_cache(maxsize=1024)
def student(degrees: float) -> float:
    """The quantile of Student's t that corresponds to Z."""
    from scipy import special

    return float(special.stdtrit(degrees, 1 - TAIL))
