"""The time lines of a run, out of the tidy frame that `collect` wrote. What was not measured is a gap, never a zero."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from aftershock.report.svg import Point
from aftershock.slo.frame import TIMELINE, Answer

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_POINTS = 480
"""Of one line; a longer one is drawn in bins, each by its worst value."""
LOW_IS_WORSE = {"requests_per_s"}


@dataclass(frozen=True)
class Timeline:
    """Lines by name (`p99_ms`, `error_percent` ...), against seconds since `origin`."""

    origin: datetime
    lines: Mapping[str, tuple[Point, ...]] = field(default_factory=dict)
    step_s: float = 1.0
    bin_s: float = 1.0
    """How much time one drawn point stands for; `step_s` unless the run is long."""
    problem: str = ""
    """Why there is nothing, where there is nothing."""

    def values(self, name: str) -> list[float]:
        """What was measured of one line."""
        return [value for _, value in self.lines.get(name, ()) if value is not None]


def read_timeline(metrics: DataFrame, origin: datetime) -> Timeline:
    """The fixed `_timeline` series of the frame."""
    if metrics.empty or "objective" not in metrics.columns:
        return Timeline(origin, problem="no metrics were collected")
    rows = _rows(metrics[metrics["objective"] == TIMELINE])
    if not rows:
        return Timeline(origin, problem="no time series was collected")
    series: dict[str, dict[float, float | None]] = {}
    for row in rows:
        at, name = _instant(row["at"]), _name(row["labels"])
        if at is not None and name:
            series.setdefault(name, {})[(at - origin).total_seconds()] = _value(row)
    if not any(value is not None for points in series.values() for value in points.values()):
        return Timeline(origin, problem=_problem(rows))
    step_s = _step(series.values())
    whole = {name: _with_gaps(points, step_s) for name, points in series.items()}
    every = max(1, math.ceil(max(map(len, whole.values())) / MOST_POINTS))
    bin_s = step_s * every
    lines = {name: _binned(points, bin_s, min if name in LOW_IS_WORSE else max) for name, points in whole.items()}
    return Timeline(origin, lines if every > 1 else whole, step_s, bin_s)


def _rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [{str(name): value for name, value in row.items()} for row in frame.to_dict("records")]


def _instant(value: Any) -> datetime | None:
    # A missing instant is NaT, which is the only thing that does not equal itself.
    if value is None or value != value:
        return None
    instant: datetime = value.to_pydatetime() if hasattr(value, "to_pydatetime") else value
    return instant


def _name(labels: Any) -> str:
    try:
        return str(json.loads(labels)["name"])
    except (TypeError, ValueError, KeyError):
        return ""


def _value(row: Mapping[str, Any]) -> float | None:
    value = row["value"]
    if row["status"] != Answer.OK or value is None or not math.isfinite(value):
        return None
    return float(value)


def _problem(rows: Sequence[Mapping[str, Any]]) -> str:
    """The commonest reason that the rows give."""
    reasons = Counter(f"{row['status']}: {row['detail']}" if row["detail"] else str(row["status"]) for row in rows)
    return reasons.most_common(1)[0][0]


def _step(series: Iterable[Mapping[float, object]]) -> float:
    """The usual distance of two points."""
    gaps: Counter[float] = Counter()
    for points in series:
        instants = sorted(points)
        gaps.update(round(after - before, 3) for before, after in itertools.pairwise(instants))
    return gaps.most_common(1)[0][0] if gaps else 1.0


def _with_gaps(points: Mapping[float, float | None], step_s: float) -> tuple[Point, ...]:
    """In order of time, with a None where a step was left out."""
    out: list[Point] = []
    for at in sorted(points):
        if out and at - out[-1][0] > 1.5 * step_s:
            out.append((out[-1][0] + step_s, None))
        out.append((at, points[at]))
    return tuple(out)


def _binned(points: tuple[Point, ...], bin_s: float, worst: Callable[[float, float], float]) -> tuple[Point, ...]:
    """One point a bin: the worst value in it, a gap where it holds none."""
    bins: dict[int, float | None] = {}
    for at, value in points:
        key = math.floor(at / bin_s)
        known = bins.get(key)
        bins[key] = value if known is None else known if value is None else worst(known, value)
    return _with_gaps({key * bin_s: value for key, value in bins.items()}, bin_s)
