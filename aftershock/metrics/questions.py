"""What has to be asked of Prometheus: objectives and windows -> questions. No I/O.

Five kinds, by how the answer is made: a `Value` is Prometheus' own answer, a `Count`, `Buckets` and a `SlicedCount` are
counted here from samples (see `increase.py`), a `Line` is a range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from aftershock.metrics.increase import counted_selector
from aftershock.slo import promql
from aftershock.slo.frame import TIMELINE, Role
from aftershock.slo.live import live_query
from aftershock.slo.objective import Objective, QuantileIndicator, RecoveryIndicator, SliceIndicator, templates
from aftershock.slo.slices import slice_edges
from aftershock.windows import Phase, Window

SLIDING_SCRAPES = 3
"""The least over which a rate is steady: two samples are in it even if one scrape was missed."""


@dataclass(frozen=True)
class Subject:
    """What the answer will be about: the columns that all its rows share."""

    objective: str
    role: Role
    phase: str
    template: str
    range_s: float


@dataclass(frozen=True)
class Value:
    """`query` at one instant."""

    subject: Subject
    query: str
    at: datetime


@dataclass(frozen=True)
class Count:
    """Growth of all counters of `selector` from `start` to `at`, together."""

    subject: Subject
    selector: str
    start: datetime
    at: datetime

    @property
    def query(self) -> str:
        """The range selector of the window."""
        return f"{self.selector}[{promql.duration(self.subject.range_s)}]"


@dataclass(frozen=True)
class Buckets(Count):
    """The same for each bucket of a histogram by itself."""


@dataclass(frozen=True)
class SlicedCount:
    """Growth of all counters of `selector` from each of `edges` to the next; `bucketed`: of each bucket by itself."""

    subject: Subject
    selector: str
    edges: tuple[datetime, ...]
    bucketed: bool

    @property
    def at(self) -> datetime:
        """The end of the last slice."""
        return self.edges[-1]

    @property
    def query(self) -> str:
        """The range selector of a slice."""
        return f"{self.selector}[{promql.duration(self.subject.range_s)}]"


@dataclass(frozen=True)
class Line:
    """`query` from `start` to `at`, each `step_s`. `name` is its only label, if given."""

    subject: Subject
    query: str
    start: datetime
    at: datetime
    step_s: float
    name: str = ""


Question = Value | Count | Buckets | SlicedCount | Line


def questions(
    objectives: Sequence[Objective], windows: Sequence[Window], *, scrape_interval_s: float
) -> list[Question]:
    """Everything that is to be asked about a run."""
    asked: list[Question] = []
    for objective in objectives:
        if isinstance(objective.indicator, RecoveryIndicator):
            asked += _recovery(objective, objective.indicator, windows, scrape_interval_s)
        elif isinstance(objective.indicator, SliceIndicator):
            asked += [question for window in windows for question in _sliced(objective, objective.indicator, window)]
        else:
            asked += [question for window in windows for question in _in_window(objective, window)]
    return [*asked, *_timeline(windows, scrape_interval_s)]


def queries(objective: Objective, window_s: float) -> Iterator[str]:
    """The PromQL of an objective, filled in for a baseline of `window_s`: to be checked before there is one.

    So is what is asked of its stop condition while the fault goes on.
    """
    for role, template in templates(objective.indicator).items():
        if role is Role.RECOVERY:
            yield promql.fill_line(template, lookback_s=window_s)
        else:
            yield promql.fill(template, phase=Phase.BASELINE, window_s=window_s)
    if objective.stop:
        yield live_query(objective, lookback_s=window_s)


def _in_window(objective: Objective, window: Window) -> Iterator[Question]:
    for role, template in templates(objective.indicator).items():
        query = promql.fill(template, phase=window.phase, window_s=window.settled_seconds)
        subject = Subject(objective.name, role, window.phase.value, template, window.settled_seconds)
        if isinstance(objective.indicator, QuantileIndicator):
            yield Buckets(subject, query, window.start, window.settled_at)
        elif selector := counted_selector(query, promql.duration(window.settled_seconds)):
            yield Count(subject, selector, window.start, window.settled_at)
        else:
            yield Value(subject, query, window.settled_at)


def _sliced(objective: Objective, indicator: SliceIndicator, window: Window) -> Iterator[Question]:
    """The same of each time slice. The last one is longer, so a plain query is asked for it by itself."""
    edges, kept = slice_edges(window, indicator.slice_s), templates(indicator)
    last_s = (edges[-1] - edges[-2]).total_seconds()
    asked = templates(indicator.each)
    for role, key in kept.items():
        each, last = (
            promql.fill(asked[role], phase=window.phase, window_s=length) for length in (indicator.slice_s, last_s)
        )
        subject = Subject(objective.name, role, window.phase.value, key, indicator.slice_s)
        counted = counted_selector(each, promql.duration(indicator.slice_s))
        if isinstance(indicator.each, QuantileIndicator):
            yield SlicedCount(subject, each, edges, bucketed=True)
        elif counted:
            yield SlicedCount(subject, counted, edges, bucketed=False)
        else:
            if len(edges) > 2:
                yield Line(subject, each, edges[1], edges[-2], indicator.slice_s)
            yield Value(replace(subject, range_s=last_s), last, edges[-1])


def _recovery(
    objective: Objective, indicator: RecoveryIndicator, windows: Sequence[Window], scrape_interval_s: float
) -> Iterator[Line]:
    """Over the whole run and not just after the fault: whether it ever held is part of the answer."""
    if windows:
        ((role, template),) = templates(indicator).items()
        query = promql.fill_line(template, lookback_s=recovery_lookback_s(indicator, scrape_interval_s))
        subject = Subject(objective.name, role, "", template, promql.longest_range_s(query))
        yield Line(subject, query, *_span(windows), indicator.step_s)


def recovery_lookback_s(indicator: RecoveryIndicator, scrape_interval_s: float) -> float:
    """Over how many seconds each step of a recovery looks."""
    return max(SLIDING_SCRAPES * scrape_interval_s, indicator.step_s)


def _timeline(windows: Sequence[Window], scrape_interval_s: float) -> Iterator[Line]:
    if windows:
        sliding_s = SLIDING_SCRAPES * scrape_interval_s
        for name, query in timeline_queries(promql.duration(sliding_s)).items():
            subject = Subject(TIMELINE, Role.TIMELINE, "", query, sliding_s)
            yield Line(subject, query, *_span(windows), scrape_interval_s, name)


def timeline_queries(window: str) -> Mapping[str, str]:
    """The series that the report draws, whatever the objectives are."""
    requests = f"aftershock_requests_total[{window}]"
    failed = f'aftershock_requests_total{{outcome!="ok"}}[{window}]'

    def quantile_ms(quantile: float, histogram: str) -> str:
        return f"1000 * histogram_quantile({quantile}, sum by (le) (rate({histogram}_bucket[{window}])))"

    return {
        "p50_ms": quantile_ms(0.5, "aftershock_request_duration_seconds"),
        "p90_ms": quantile_ms(0.9, "aftershock_request_duration_seconds"),
        "p99_ms": quantile_ms(0.99, "aftershock_request_duration_seconds"),
        "ttft_p99_ms": quantile_ms(0.99, "aftershock_ttft_seconds"),
        "error_percent": f"100 * sum(rate({failed})) / sum(rate({requests}))",
        "requests_per_s": f"sum(rate({requests}))",
    }


def _span(windows: Sequence[Window]) -> tuple[datetime, datetime]:
    return min(window.start for window in windows), max(window.settled_at for window in windows)
