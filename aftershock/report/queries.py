"""What Prometheus was asked for each row, and over which window: so that a reader can ask again."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aftershock.report.wording import duration
from aftershock.slo.frame import TIMELINE, Answer

if TYPE_CHECKING:
    from pandas import DataFrame

COLUMNS = ["objective", "role", "phase", "query", "range_s", "status", "detail"]
GAPS = (Answer.EMPTY, Answer.NAN, Answer.INF)
MOST = 150


@dataclass(frozen=True)
class Query:
    """One question and whether it was answered."""

    role: str
    phase: str
    text: str
    range: str
    status: str
    detail: str


def read_queries(metrics: DataFrame) -> dict[str, list[Query]]:
    """By objective, in the order they were asked, the time lines last. A query with many answers is told once."""
    if metrics.empty or not set(COLUMNS) <= set(metrics.columns):
        return {}
    asked = metrics[COLUMNS]
    # A step of a time line without an answer is a gap in the plot; that is nothing to tell of the query.
    asked = asked[(asked["objective"] != TIMELINE) | ~asked["status"].isin(GAPS)]
    asked = asked.drop_duplicates(subset=["objective", "role", "phase", "query", "status"])
    out: dict[str, list[Query]] = {}
    for row in asked.head(MOST).to_dict("records"):
        out.setdefault(str(row["objective"]), []).append(_query(row))
    timelines = out.pop(TIMELINE, None)
    return out | ({"time lines": timelines} if timelines else {})


def _query(row: Mapping[Hashable, Any]) -> Query:
    seconds = row["range_s"]
    return Query(
        str(row["role"]),
        str(row["phase"] or ""),
        str(row["query"]),
        duration(float(seconds)) if seconds and seconds == seconds else "",
        str(row["status"]),
        str(row["detail"] or ""),
    )
