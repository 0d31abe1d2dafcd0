"""How much counters grew over a window, exactly.

PromQL's `increase()` extrapolates to the edges of its range, gives fractions of requests, and nothing at all for a
series with one sample. A sample size that is off by some per cent is a wrong sample size, so counts are made here from
the samples themselves: a counter has, at each instant, the value last scraped, and the growth over a window is the
difference of two such values, plus what a restart in between hides.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from aftershock.metrics.prometheus import PrometheusClient, Series
from aftershock.slo.promql import duration

LOOKBACK = timedelta(minutes=5)
"""How old the last sample before a window may be, as in Prometheus itself. A series without one was born in the window,
and counts from zero: so do all counters that a process makes when it starts."""

HALF_A_MILLISECOND_S = 0.0005
"""Prometheus' times are whole milliseconds."""

_COUNT = re.compile(
    r"""
    sum \s* \( \s* increase \s* \( \s*
    (?P<selector>
        [a-zA-Z_:][a-zA-Z0-9_:]* \s*
        (?: \{ (?: "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*' | `[^`]*` | [^{}"'`] )* \} )?
    )
    \s* \[ \s* (?P<range>\w+) \s* \] \s* \) \s* \)
    """,
    re.VERBOSE,
)


def counted_selector(query: str, window: str) -> str | None:
    """The selector whose growth `query` means, if it is `sum(increase(selector[window]))` and nothing else."""
    match = _COUNT.fullmatch(query.strip())
    return match["selector"].strip() if match and match["range"] == window else None


@dataclass(frozen=True)
class Growth:
    """What Prometheus has on the counters of a selector, for one window."""

    inside: tuple[Series, ...]
    """Samples of the window; its last one is enough where no counter restarted."""
    before: tuple[Series, ...]
    """The last sample ahead of it."""

    def total(self) -> float:
        """The growth of all series together."""
        return sum(grown for _, grown in self._each())

    def by_bucket(self) -> dict[str, float]:
        """The growth of each bucket of a histogram, over all its series: `le` -> observations not above it, in order.

        Raises KeyError("le") for series that are no buckets.
        """
        buckets: dict[float, float] = {}
        for labels, grown in self._each():
            bound = float(labels["le"])  # as a number: servers write 1 and 1.0
            buckets[bound] = buckets.get(bound, 0.0) + grown
        return {_bound_text(bound): buckets[bound] for bound in sorted(buckets)}

    def _each(self) -> Iterator[tuple[Mapping[str, str], float]]:
        known = {series.identity: series.values[-1] for series in self.before}
        for series in self.inside:
            yield series.labels, growth(series.values, known.get(series.identity))


def fetch(client: PrometheusClient, selector: str, start: datetime, end: datetime) -> Growth | None:
    """What is known of `selector` from `start` to `end`; None if it has no sample there.

    All samples are fetched only where a counter restarted: a day of a fine histogram is a quarter of a gigabyte.
    """
    window_s, lookback_s = (end - start).total_seconds(), LOOKBACK.total_seconds()
    inside = client.query(f"last_over_time({selector}[{duration(window_s)}])", end)
    if not inside:
        return None
    before = client.query(f"last_over_time({selector}[{duration(lookback_s)}])", start)
    if client.query(f"resets({selector}[{duration(window_s + lookback_s)}]) > 0", end):
        inside = client.query(f"{selector}[{duration(window_s)}]", end)
    return Growth(tuple(inside), tuple(before))


def fetch_slices(
    client: PrometheusClient, selector: str, edges: Sequence[datetime]
) -> Iterator[tuple[datetime, Growth]]:
    """The end of each slice, from one of `edges` to the next, and the growth in it; nothing if there are no series.

    Together the slices have what `fetch` has of the whole: a slice without a sample has grown by nothing, and the next
    one that has any by what came meanwhile. All samples are fetched only where a counter restarted.
    """
    start, end = edges[0], edges[-1]
    window_s, lookback_s = (end - start).total_seconds(), LOOKBACK.total_seconds()
    inside = _at_the_ends(client, selector, edges)
    if not inside:
        return
    before = client.query(f"last_over_time({selector}[{duration(lookback_s)}])", start)
    if client.query(f"resets({selector}[{duration(window_s + lookback_s)}]) > 0", end):
        inside = client.query(f"{selector}[{duration(window_s)}]", end)
    known = {series.identity: series for series in before}
    for index, found in enumerate(_cut(inside, edges)):
        yield edges[index + 1], Growth(tuple(found), tuple(known.values()))
        known |= {series.identity: series for series in found}


def _at_the_ends(client: PrometheusClient, selector: str, edges: Sequence[datetime]) -> list[Series]:
    """The last sample of each slice, as if it had been taken at the slice's end. The last slice may be longer."""
    *ends, last = edges[1:]
    last_s = (last - edges[-2]).total_seconds()
    found = client.query(f"last_over_time({selector}[{duration(last_s)}])", last)
    if ends:
        slice_s = (ends[0] - edges[0]).total_seconds()
        found = [
            *client.query_range(f"last_over_time({selector}[{duration(slice_s)}])", ends[0], ends[-1], slice_s),
            *found,
        ]
    return found


def _cut(found: Sequence[Series], edges: Sequence[datetime]) -> list[list[Series]]:
    """The samples of each slice, as series. A sample at an edge belongs to the slice that ends there."""
    ends = [edge.timestamp() + HALF_A_MILLISECOND_S for edge in edges]
    slices: list[dict[frozenset[tuple[str, str]], tuple[Mapping[str, str], list[tuple[float, float]]]]]
    slices = [{} for _ in edges[1:]]
    for series in found:
        for at, value in series.samples:
            index = bisect_left(ends, at) - 1
            if 0 <= index < len(slices):
                slices[index].setdefault(series.identity, (series.labels, []))[1].append((at, value))
    return [[Series(labels, tuple(samples)) for labels, samples in each.values()] for each in slices]


def growth(values: Sequence[float], before: float | None) -> float:
    """How much a counter grew over these samples. One below the sample before it has begun again, at zero."""
    grown, previous = 0.0, 0.0 if before is None else before
    for value in values:
        grown += value - previous if value >= previous else value
        previous = value
    return grown


def _bound_text(bound: float) -> str:
    return "+Inf" if bound == float("inf") else repr(bound)
