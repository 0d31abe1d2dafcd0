"""The tidy frame between collector, judge and report: one row a sample. What `metrics.parquet` holds. No I/O."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

TIMELINE = "_timeline"
"""Objective of the report's own series, whatever is judged."""


class Role(StrEnum):
    """What a number is to its objective."""

    VALUE = "value"
    SAMPLES = "samples"
    GOOD = "good"
    BAD = "bad"
    TOTAL = "total"
    BUCKET = "bucket"
    RECOVERY = "recovery"
    TIMELINE = "timeline"


class Answer(StrEnum):
    """What became of a question. Only `ok` has a number that counts; nothing here is ever turned into 0."""

    OK = "ok"
    EMPTY = "empty"
    """No series."""
    NAN = "nan"
    INF = "inf"
    ERROR = "error"
    """Prometheus refused the query."""
    UNREACHABLE = "unreachable"
    """Prometheus did not answer."""

    @classmethod
    def of(cls, value: float) -> Answer:
        """What a value that came is."""
        return cls.NAN if math.isnan(value) else cls.INF if math.isinf(value) else cls.OK


@dataclass(frozen=True)
class Row:
    """One sample of one role of one objective, or the reason why there is none."""

    objective: str
    role: str
    """One of Role."""
    phase: str
    """Empty for series over the whole run."""
    at: datetime
    labels: str
    """JSON, sorted."""
    value: float
    """NaN where there is none."""
    status: str
    """One of Answer."""
    detail: str
    """Why, where the status is not `ok`."""
    template: str
    """The PromQL as the objective has it: whoever asks the same gets the same answer, under whatever name."""
    query: str
    """The PromQL that was evaluated. Of a count it is the range whose samples were counted here; what was sent for it
    (see `metrics.increase`) are the last samples of that range and of the time before it."""
    range_s: float
    """How much time before `at` the value speaks of: the phase, or the longest range in the query of a line."""


def labels_text(labels: Mapping[str, str]) -> str:
    """Labels as a row holds them."""
    return json.dumps(dict(labels), sort_keys=True)


def to_frame(rows: Sequence[Row]) -> pd.DataFrame:
    """The rows as a frame whose columns have the same types whatever is in it, nothing included."""
    import pandas as pd  # half a second that only the step which collects has to wait for

    columns = {field.name: [getattr(row, field.name) for row in rows] for field in fields(Row)}
    frame = pd.DataFrame(columns)
    text = dict.fromkeys((name for name in columns if name not in ("at", "value", "range_s")), "str")
    return frame.astype({**text, "at": "datetime64[us, UTC]", "value": "float64", "range_s": "float64"})
