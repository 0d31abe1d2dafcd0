"""Prometheus' text format, and histograms with fine exponential buckets, for everything of ours that is scraped.

Not written by prometheus_client, because scrapes are answered on the event loop that carries the requests which are
measured: its histogram searches the bounds from the first on for each value, under a lock, and its exposition of our
buckets takes 8 to 20 ms, which would show as latency of the service under test. Here an observation is one bisection,
and the text of each line is made once: a scrape only joins numbers to it. Tests hold it to prometheus_client's parser.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Literal

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

FACTOR = 1.1
"""A quantile read from such buckets is at most 10 % off, whatever its size."""
FIRST_S = 0.0005
LAST_S = 60.0


def bucket_bounds() -> tuple[float, ...]:
    """Upper bounds in seconds, each 10 % above the last, from 0.5 ms to the first that reaches 60 s.

    Four digits keep the `le` labels short; the factor stays within 0.1 % of 1.1.
    """
    steps = math.ceil(math.log(LAST_S / FIRST_S, FACTOR))
    return tuple(float(f"{FIRST_S * FACTOR**step:.4g}") for step in range(steps + 1))


BOUNDS = bucket_bounds()
"""The buckets of all our histograms: with the same ones everywhere, the gateway's view of a time can be held against
the load generator's."""


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


class HistogramSeries(Histogram):
    """A histogram under a name and labels, as a scrape shows it."""

    def __init__(self, name: str, labels: Mapping[str, str], bounds: Sequence[float] = BOUNDS) -> None:
        super().__init__(bounds)
        edges = [*map(repr, bounds), "+Inf"]
        self._prefixes = [f"{name}_bucket{label_set({**labels, 'le': edge})} " for edge in edges]
        self._tails = f"{name}_sum{label_set(labels)} ", f"{name}_count{label_set(labels)} "

    def lines(self) -> list[str]:
        """Its samples; counts are cumulative, as the format wants them."""
        totals = list(accumulate(self.counts))
        lines = [prefix + str(total) for prefix, total in zip(self._prefixes, totals, strict=True)]
        return [*lines, f"{self._tails[0]}{self.sum!r}", f"{self._tails[1]}{totals[-1]}"]


def family(name: str, kind: Literal["counter", "gauge", "histogram"], text: str) -> list[str]:
    """The HELP and TYPE lines that come before the samples of a metric."""
    words = text.replace("\\", r"\\").replace("\n", r"\n")
    return [f"# HELP {name} {words}", f"# TYPE {name} {kind}"]


def sample(name: str, labels: Mapping[str, str], value: float) -> str:
    """The line of one counter or gauge."""
    return f"{name}{label_set(labels)} {value!r}"


def label_set(labels: Mapping[str, str]) -> str:
    """Labels in braces, their values escaped; nothing for none."""
    escaped = {
        key: value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") for key, value in labels.items()
    }
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}" if labels else ""


def page(lines: Iterable[str]) -> bytes:
    """What a scrape is answered with."""
    return "\n".join([*lines, ""]).encode()
