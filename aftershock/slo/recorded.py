"""What the load generator wrote down of each request, beside what Prometheus counted of them. No I/O.

A histogram knows a latency to its bucket; the records know it, and in which order. So the value of a row is the one
that Prometheus measured, and its interval is that of the records, widened where it must be to hold the value.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from aftershock.slo.decision import FROM_DUE_TIME
from aftershock.slo.objective import Compare, Indicator, Objective, QuantileIndicator
from aftershock.slo.resampling import SeriesEstimate, quantile_of_series
from aftershock.slo.statistics import quantile_ranks, samples_needed
from aftershock.slo.values import rounded
from aftershock.slo.verdict import PhaseValue, Status, VerdictRow
from aftershock.windows import Phase

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = dict(zip(FROM_DUE_TIME, ("latency_s", "ttft_s"), strict=True))
"""Histogram of the load generator -> column of its records with the same times."""
GIVEN_UP = "cancelled"
"""The outcome of requests that say nothing about the service."""

Seconds = NDArray[np.float64]


def column_of(indicator: Indicator) -> str | None:
    """The column that has what `indicator` is a quantile of: all answers of a phase, no more and no less."""
    if not isinstance(indicator, QuantileIndicator):
        return None
    asked = "".join(indicator.histogram.split())
    return next((column for name, column in COLUMNS.items() if asked == f'{name}{{phase="{{{{phase}}}}"}}'), None)


@dataclass(frozen=True)
class Requests:
    """Which rows of the records are the requests of a phase, in the order in which they were due."""

    rows: NDArray[np.int64]
    failed: NDArray[np.bool_]


@dataclass(frozen=True)
class Recorded:
    """The records of a run. What is asked for more than once is looked up once."""

    records: pd.DataFrame | None
    _requests: dict[Phase, Requests] = field(default_factory=dict)
    _seconds: dict[tuple[str, Phase], Seconds | None] = field(default_factory=dict)

    def seconds(self, indicator: Indicator, phase: Phase) -> Seconds | None:
        """Times of the requests of `phase` in the order in which they were due; infinite: without an answer.

        None where there are no records of them.
        """
        column = column_of(indicator)
        if column is None or self.records is None or column not in self.records:
            return None
        if (column, phase) not in self._seconds:
            requests = self._of(self.records, phase)
            times = self.records[column].to_numpy(dtype=np.float64)[requests.rows]
            times[requests.failed] = np.inf
            known = times[~np.isnan(times)]
            self._seconds[column, phase] = known if len(known) else None
        return self._seconds[column, phase]

    def output_tokens(self, phase: Phase) -> NDArray[np.int64]:
        """Tokens of the answers of `phase` in the order in which they were due; none where there are no records."""
        if self.records is None or "output_tokens" not in self.records:
            return np.empty(0, dtype=np.int64)
        requests = self._of(self.records, phase)
        return self.records["output_tokens"].to_numpy(dtype=np.int64)[requests.rows[~requests.failed]]

    def _of(self, records: pd.DataFrame, phase: Phase) -> Requests:
        if phase not in self._requests:
            of_phase, outcomes = records["phase"] == phase.value, records["outcome"]
            rows = np.flatnonzero(np.asarray(of_phase & (outcomes != GIVEN_UP), dtype=np.bool_))
            due = records["seq"].to_numpy()[rows].argsort(kind="stable")  # nearly sorted, which this kind makes use of
            rows = rows[due]
            self._requests[phase] = Requests(rows, np.asarray(outcomes != "ok", dtype=np.bool_)[rows])
        return self._requests[phase]


def answered(seconds: Seconds) -> Seconds:
    """The times of those requests that were answered."""
    return seconds[np.isfinite(seconds)]


def with_interval(value: PhaseValue, seconds: Seconds | None, indicator: QuantileIndicator) -> PhaseValue:
    """A quantile that Prometheus measured, with the interval that the records give it."""
    times = None if seconds is None else answered(seconds)
    if times is None or not len(times) or value.value is None or value.status is not Status.OK:
        return value
    found = quantile_of_series(times * indicator.scale, indicator.quantile)
    if is_short(found, indicator.quantile):
        return replace(value, effective_n=found.dependence.effective_n, detail=_as_if_independent(found, indicator))
    return replace(
        value,
        low=None if found.low is None else min(rounded(found.low), value.value),
        high=None if found.high is None else max(rounded(found.high), value.value),
        effective_n=found.dependence.effective_n,
        detail=_source(found),
    )


def failures_counted(objective: Objective) -> Objective | None:
    """The row beside a latency in which a failed request counts as slower than the objective; None: there is none.

    The latency of answers alone looks best where the slowest requests are the ones that fail.
    """
    if column_of(objective.indicator) is None or objective.compare is not Compare.VALUE or not objective.upper:
        return None
    return replace(
        objective,
        name=f"{objective.name}-failures-slow",
        display=f"{objective.display}, failures counted as slow",
        severity="info",
        stop=None,
        failures_slow=True,
    )


def measure_with_failures(
    objective: Objective, value: PhaseValue, seconds: Seconds | None, indicator: QuantileIndicator
) -> PhaseValue:
    """What `value` of the answers becomes where every failed request took longer than the objective allows.

    A quantile that is a failed request has no end: the value is then a lower bound, above the objective.
    """
    if not value.status.known:
        return value
    if seconds is None:
        return PhaseValue(status=Status.MISSING, detail="there are no records of the requests")
    found = quantile_of_series(seconds * indicator.scale, indicator.quantile)
    source = _source(found)
    if is_short(found, indicator.quantile):
        low, high = independent_ends(seconds * indicator.scale, indicator.quantile)
        found = replace(found, low=low, high=high)
        source = _as_if_independent(found, indicator)
    times = answered(seconds)
    longest = rounded(float(times.max()) * indicator.scale) if len(times) else 0.0
    endless = max(longest, math.nextafter(objective.value, math.inf))

    def bounded(number: float) -> float:
        return endless if math.isinf(number) else rounded(number)

    return PhaseValue(
        bounded(found.value),
        None if found.low is None else bounded(found.low),
        None if found.high is None or math.isinf(found.high) else rounded(found.high),
        len(seconds),
        Status.AT_LEAST if math.isinf(found.value) else Status.OK,
        f"{len(seconds) - len(times)} of {len(seconds)} requests failed; {source}",
        found.dependence.effective_n,
    )


def is_short(found: SeriesEstimate, quantile: float) -> bool:
    """Whether there are requests enough for an interval, but not once their dependence is counted."""
    return (found.low is None or found.high is None) and found.n >= samples_needed(quantile)


def independent_ends(values: Seconds, quantile: float) -> tuple[float | None, float | None]:
    """The order statistics that bound a quantile of independent values."""
    ordered = np.sort(values)
    below, above = (
        None if rank is None else float(ordered[rank - 1]) for rank in quantile_ranks(len(values), quantile)
    )
    return below, above


def _as_if_independent(found: SeriesEstimate, indicator: QuantileIndicator) -> str:
    needed, effective = samples_needed(indicator.quantile), found.dependence.effective_n
    return (
        f"the interval takes requests as independent; by their dependence they are worth {effective}, "
        f"and {needed} would be needed for one that does not"
    )


def dependence_notes(objectives: Sequence[Objective], rows: Sequence[VerdictRow]) -> Iterator[str]:
    """Rows that decide by intervals which take requests as independent, in words: too few for one that does not."""
    worth = []
    for objective, row in zip(objectives, rows, strict=True):
        value, indicator = row.decisive, objective.indicator
        if not isinstance(indicator, QuantileIndicator) or row.severity == "info" or value.effective_n is None:
            continue
        needed = samples_needed(indicator.quantile)
        if value.effective_n < needed <= (value.n or 0):
            worth.append(f"{row.display} {value.effective_n} of {value.n} (it takes {needed})")
    if worth:
        yield (
            "Neighbouring requests are alike, so they are worth fewer independent ones, too few for an interval that "
            f"counts that: {', '.join(worth)}. These intervals take requests as independent; longer phases do better."
        )


def _source(found: SeriesEstimate) -> str:
    return f"interval from {found.n} records, effective n {found.dependence.effective_n}"
