"""A histogram with fine exponential buckets: one bisection an observation, in the memory of its counts.

prometheus_client's own histogram searches its bounds from the first on for each value, under a lock; at 125 buckets and
ten tokens a request that would cost more than the request.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence

FACTOR = 1.1
FIRST_S = 0.0005
LAST_S = 60.0


def bucket_bounds() -> tuple[float, ...]:
    """Upper bounds in seconds, each 10 % above the last, from 0.5 ms to the first that reaches 60 s.

    Four digits keep the `le` labels short; the factor stays within 0.1 % of 1.1.
    """
    steps = math.ceil(math.log(LAST_S / FIRST_S, FACTOR))
    return tuple(float(f"{FIRST_S * FACTOR**step:.4g}") for step in range(steps + 1))


BOUNDS = bucket_bounds()


class Histogram:
    """Counts by bucket, the last one unbounded, and the sum of all values."""

    def __init__(self, bounds: Sequence[float] = BOUNDS) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count one value: in the first bucket whose bound is not below it."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def quantile(self, q: float, *, since: Sequence[int] | None = None) -> float | None:
        """Upper bound of the bucket that holds the quantile, so at most 10 % too high and never too low.

        `since` is an earlier copy of `counts`: then of what came after it. None without values; infinite where the
        quantile is beyond the last bound.
        """
        counts = self.counts if since is None else [now - then for now, then in zip(self.counts, since, strict=True)]
        total = sum(counts)
        if not total:
            return None
        rank = max(1, math.ceil(q * total))
        seen = 0
        for bound, count in zip(self.bounds, counts, strict=False):
            seen += count
            if seen >= rank:
                return bound
        return math.inf
