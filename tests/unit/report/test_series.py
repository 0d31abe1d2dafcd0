"""Time lines: what was not measured is a gap, never a zero."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

import pandas as pd
import pytest

from aftershock.report.scales import value_scale
from aftershock.report.series import MOST_POINTS, Timeline, read_timeline
from aftershock.report.svg import line

ORIGIN = datetime(2026, 12, 1, 5, 30, tzinfo=UTC)


def frame(values: dict[float, float | str], name: str = "p99_ms") -> pd.DataFrame:
    """Rows of one time line; a text for a value is a status without one."""
    rows = [
        {
            "objective": "_timeline",
            "at": ORIGIN + timedelta(seconds=at),
            "labels": f'{{"name": "{name}"}}',
            "value": math.nan if isinstance(value, str) else value,
            "status": value if isinstance(value, str) else "ok",
            "detail": "why" if isinstance(value, str) else "",
        }
        for at, value in values.items()
    ]
    return pd.DataFrame(rows)


def read(values: dict[float, float | str], name: str = "p99_ms") -> Timeline:
    return read_timeline(frame(values, name), ORIGIN)


@pytest.mark.parametrize("status", ["empty", "nan", "inf", "error", "unreachable"])
def test_a_step_without_an_answer_is_a_gap(status: str) -> None:
    assert read({0: 5.0, 1: status, 2: 7.0}).lines["p99_ms"] == ((0, 5.0), (1, None), (2, 7.0))


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_a_value_that_is_no_number_is_a_gap_whatever_its_status(value: float) -> None:
    assert read({0: 5.0, 1: value, 2: 7.0}).lines["p99_ms"][1] == (1, None)


def test_a_step_that_was_left_out_is_a_gap() -> None:
    line = read({0: 5.0, 1: 5.0, 2: 5.0, 5: 7.0, 6: 7.0}).lines["p99_ms"]
    assert line == ((0, 5.0), (1, 5.0), (2, 5.0), (3, None), (5, 7.0), (6, 7.0))


def test_a_true_zero_is_a_zero() -> None:
    assert read({0: 0.0, 1: 0.0}, "error_percent").values("error_percent") == [0.0, 0.0]


def test_the_step_is_found_whatever_it_is() -> None:
    assert read({0: 1.0, 15: 1.0, 30: 1.0, 45: 1.0}).step_s == 15


def test_a_long_line_is_drawn_by_the_worst_of_each_bin() -> None:
    values: dict[float, float | str] = {float(at): 10.0 for at in range(10_000)}
    values[5001.0] = 900.0
    timeline = read(values)
    line = timeline.lines["p99_ms"]
    assert len(line) <= MOST_POINTS
    assert max(value for _, value in line if value is not None) == 900
    assert timeline.bin_s > timeline.step_s == 1


def test_in_a_long_line_the_worst_rate_is_the_lowest() -> None:
    values: dict[float, float | str] = {float(at): 60.0 for at in range(10_000)}
    values[5001.0] = 3.0
    assert min(read(values, "requests_per_s").values("requests_per_s")) == 3


def test_a_gap_of_a_long_line_stays_a_gap() -> None:
    values: dict[float, float | str] = {float(at): 60.0 for at in range(10_000) if not 3000 < at < 5000}
    assert [at for at, value in read(values).lines["p99_ms"] if value is None]


def test_why_there_is_nothing() -> None:
    assert read({0: "unreachable", 1: "unreachable", 2: "empty"}).problem == "unreachable: why"
    assert read_timeline(pd.DataFrame(), ORIGIN).problem == "no metrics were collected"
    other = frame({0: 1.0}).assign(objective="p99")
    assert read_timeline(other, ORIGIN).problem == "no time series was collected"


@pytest.mark.parametrize("labels", ["", "not json", "{}", "[]", None])
def test_rows_without_a_name_are_passed_over(labels: str | None) -> None:
    assert read_timeline(frame({0: 1.0}).assign(labels=labels), ORIGIN).lines == {}


def test_a_line_is_lifted_at_gaps_and_never_goes_to_zero() -> None:
    scale = value_scale([0.0, 100.0], 100.0, 0.0)
    path = str(line([(0, 50.0), (1, 60.0), (2, None), (3, 70.0), (4, 80.0)], float, scale, "p99"))
    assert path == '<path d="M0,50L1,40M3,30L4,20" class="p99"/>'


def test_a_point_between_gaps_is_a_dot() -> None:
    scale = value_scale([0.0, 100.0], 100.0, 0.0)
    assert "M1,50h.01" in line([(0, None), (1, 50.0), (2, None)], float, scale, "p99")
    assert line([(0, None)], float, scale, "p99") == ""
