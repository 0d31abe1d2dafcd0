"""One row a sample, and the tidy frame of all: what `metrics.parquet` holds."""

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


class Status(StrEnum):
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
    def of(cls, value: float) -> Status:
        """The status of a value that came."""
        return cls.NAN if math.isnan(value) else cls.INF if math.isinf(value) else cls.OK


@dataclass(frozen=True)
class Row:
    """One sample of one role of one objective, or the reason why there is none."""

    objective: str
    role: str
    """value, samples, good, bad, total, bucket, recovery or timeline."""
    phase: str
    """Empty for series over the whole run."""
    at: datetime
    labels: str
    """JSON, sorted."""
    value: float
    """NaN where there is none."""
    status: str
    detail: str
    """Why, where the status is not `ok`."""
    query: str
    """The PromQL that was sent."""
    range_s: float
    """How much time before `at` the value speaks of."""


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
