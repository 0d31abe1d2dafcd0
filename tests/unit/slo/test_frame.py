"""The tidy frame keeps what it is given, through Parquet too."""

from __future__ import annotations

import math
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path

import pandas as pd
import pytest

from aftershock.slo.frame import Answer, Row, labels_text, to_frame

AT = datetime(2026, 1, 2, 3, 4, 5, 678_901, tzinfo=UTC)
TYPES = {
    "objective": "str",
    "role": "str",
    "phase": "str",
    "at": "datetime64[us, UTC]",
    "labels": "str",
    "value": "float64",
    "status": "str",
    "detail": "str",
    "template": "str",
    "query": "str",
    "range_s": "float64",
}


def row(value: float, status: Answer, detail: str = "") -> Row:
    return Row(
        "latency", "value", "chaos", AT, labels_text({"b": "2", "a": "é"}), value, status, detail, "t", "q", 21.5
    )


def test_columns_are_those_of_a_row_whatever_is_in_them() -> None:
    assert list(TYPES) == [field.name for field in fields(Row)]
    for rows in ([], [row(1.0, Answer.OK)], [row(math.nan, Answer.EMPTY, "nothing")]):
        assert to_frame(rows).dtypes.astype(str).to_dict() == TYPES


def test_parquet_gives_back_every_row_as_it_was(tmp_path: Path) -> None:
    rows = [
        row(0.1, Answer.OK),
        row(math.nan, Answer.NAN, "the answer is NaN"),
        row(math.inf, Answer.INF, "the answer is +inf"),
        row(-math.inf, Answer.INF, "the answer is -inf"),
        row(math.nan, Answer.UNREACHABLE, "line one, 'quoted'"),
    ]
    path = tmp_path / "metrics.parquet"
    to_frame(rows).to_parquet(path)
    again = pd.read_parquet(path)
    assert again.dtypes.astype(str).to_dict() == TYPES
    for wanted, got in zip(rows, again.itertuples(index=False), strict=True):
        assert got.value == wanted.value or (math.isnan(got.value) and math.isnan(wanted.value))
        assert got.at.to_pydatetime() == wanted.at
        assert [got.labels, got.status, got.detail] == [wanted.labels, wanted.status, wanted.detail]
    assert again["labels"].iloc[0] == '{"a": "\\u00e9", "b": "2"}'


@pytest.mark.parametrize(
    ("value", "status"),
    [(0.0, "ok"), (-1.5, "ok"), (math.nan, "nan"), (math.inf, "inf"), (-math.inf, "inf")],
)
def test_status_of_a_value(value: float, status: str) -> None:
    assert Answer.of(value) == status
