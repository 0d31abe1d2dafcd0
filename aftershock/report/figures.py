"""What the pictures of a run show, and what they say to those who cannot see them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from markupsafe import Markup

from aftershock.report.distribution import Distribution, distribution_picture
from aftershock.report.fault import FaultStory
from aftershock.report.plots import Band, Bound, FaultSpan, Frame, Line, Panel, timeline_picture
from aftershock.report.series import Timeline
from aftershock.report.wording import duration, typeset
from aftershock.slo.verdict import Judgement, VerdictRow, number
from aftershock.windows import Window

WIDTHS = (1000.0, 680.0, 380.0)
"""Each picture is drawn for these widths in pixels, and the page shows the one that can be read."""


@dataclass(frozen=True)
class Figure:
    """One picture in its widths, and its description."""

    description: str
    pictures: tuple[Markup, ...]


def timeline_figure(
    judgement: Judgement, timeline: Timeline, windows: Sequence[Window], story: FaultStory
) -> Figure | None:
    """None where nothing was measured over time."""
    if timeline.problem:
        return None
    origin = timeline.origin
    bands = tuple(Band(one.phase, _since(origin, one.start), _since(origin, one.end)) for one in windows)
    last = max(at for points in timeline.lines.values() for at, _ in points)
    span = max([last, *(band.end_s for band in bands)])
    panels = tuple(_panels(judgement, timeline))
    frame = Frame(origin, span, bands, _fault_span(story, origin), timeline.bin_s, panels)
    description = _describe(timeline, windows)
    return Figure(description, tuple(timeline_picture(frame, width, description) for width in WIDTHS))


def distribution_figure(judgement: Judgement, distributions: Sequence[Distribution]) -> Figure | None:
    """None where no request of any phase was answered."""
    drawn = [one for one in distributions if one.latencies_ms]
    if not drawn:
        return None
    parts = []
    for one in drawn:
        median, tail = (_within(one, share) for share in (0.5, 0.99))
        parts.append(f"{one.phase}: half of the requests within {median}, 99 % within {tail}")
    description = f"Latency distribution. {'; '.join(parts)}."
    limit = _latency_bound(judgement)
    return Figure(description, tuple(distribution_picture(drawn, limit, width, description) for width in WIDTHS))


def _fault_span(story: FaultStory, origin: datetime) -> FaultSpan | None:
    if story.injected_at is None:
        return None
    end = _since(origin, story.reverted_at) if story.reverted_at else None
    marks = tuple((_since(origin, event.at), event.message) for event in story.strikes)
    return FaultSpan(story.name, _since(origin, story.injected_at), end, marks)


def _panels(judgement: Judgement, timeline: Timeline) -> Iterator[Panel]:
    def lines(*named: tuple[str, str, str], filled: bool = False) -> tuple[Line, ...]:
        return tuple(
            Line(text, timeline.lines[name], class_, filled) for name, text, class_ in named if name in timeline.lines
        )

    latency = lines(("p50_ms", "p50", "p50"), ("p90_ms", "p90", "p90"), ("p99_ms", "p99", "p99"))
    yield Panel("Latency of answered requests", "ms", latency, 210, may_be_log=True, bound=_latency_bound(judgement))
    if timeline.values("ttft_p99_ms"):
        first = lines(("ttft_p99_ms", "p99", "p99"))
        yield Panel("Time to first token, p99", "ms", first, may_be_log=True, bound=_bound(judgement, "ms", "ttft"))
    errors = lines(("error_percent", "errors", "errors"), filled=True)
    yield Panel("Requests that failed", "%", errors, least_high=1, bound=_bound(judgement, "%", "error"))
    rate = lines(("requests_per_s", "requests", "rate"), filled=True)
    yield Panel("Requests finished", "per second", rate, least_high=1)


def _latency_bound(judgement: Judgement) -> Bound | None:
    return _bound(judgement, "ms", "p99", "ttft")


def _bound(judgement: Judgement, unit: str, word: str, but_not: str = "\0") -> Bound | None:
    """The first objective whose name says that it bounds this panel. Its own name stands at the line."""
    for row in judgement.rows:
        words = f"{row.objective} {row.display}".lower()
        if row.unit == unit and word in words and but_not not in words:
            return Bound(row.bound, _shorten(row))
    return None


def _shorten(row: VerdictRow) -> str:
    name = row.display if len(row.display) <= 24 else f"{row.display[:23]}…"
    return f"SLO: {name} {typeset(row.target)}"


def _describe(timeline: Timeline, windows: Sequence[Window]) -> str:
    """The time lines in words: the worst of each phase."""
    texts = []
    for name, what, unit in (
        ("p99_ms", "Highest P99 latency", "ms"),
        ("error_percent", "highest share of failed requests", "%"),
    ):
        worst = []
        for window in windows:
            start, end = _since(timeline.origin, window.start), _since(timeline.origin, window.settled_at)
            values = [v for at, v in timeline.lines.get(name, ()) if v is not None and start <= at <= end]
            worst.append(f"{window.phase} {f'{number(max(values))} {unit}' if values else 'no data'}")
        texts.append(f"{what}: {', '.join(worst)}")
    length = duration(max((timeline.lines[name][-1][0] for name in timeline.lines), default=0.0))
    return f"Time lines over {length}. {'; '.join(texts)}."


def _within(one: Distribution, share: float) -> str:
    value = one.quantile(share)
    return "no bound (more failed)" if value is None else f"{number(value)} ms"


def _since(origin: datetime, at: datetime) -> float:
    return (at - origin).total_seconds()
