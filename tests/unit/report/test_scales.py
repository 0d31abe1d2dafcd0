"""Axes: that every value has its place, and ticks and labels have room."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftershock.report.scales import log_scale, nice_step, spread, tail_scale, time_scale, value_scale

POSITIVE = st.floats(1e-6, 1e9)


@given(st.lists(POSITIVE, min_size=1, max_size=20), st.booleans())
def test_values_are_on_their_axis_and_in_order(values: list[float], may_be_log: bool) -> None:
    scale = value_scale(values, 200.0, 0.0, may_be_log=may_be_log)
    pixels = [scale(value) for value in sorted(values)]
    assert all(-1e-6 <= pixel <= 200 + 1e-6 for pixel in pixels)
    assert pixels == sorted(pixels, reverse=True)
    assert all(scale.low <= tick <= scale.high for tick in scale.ticks)


@given(POSITIVE, st.floats(1, 1e6))
def test_a_log_axis_has_few_ticks_and_some(low: float, ratio: float) -> None:
    assert len(log_scale(low, low * ratio, 0.0, 100.0).ticks) <= 9


@pytest.mark.parametrize(
    ("values", "logarithmic"),
    [([10.0, 15.0, 150.0], False), ([10.0, 400.0], True), ([0.0, 400.0], False), ([5.0], False)],
)
def test_an_axis_is_logarithmic_only_where_small_values_would_vanish(values: list[float], logarithmic: bool) -> None:
    assert value_scale(values, 100.0, 0.0, may_be_log=True).logarithmic is logarithmic
    assert not value_scale(values, 100.0, 0.0).logarithmic


def test_a_linear_axis_starts_at_zero_and_shows_the_least_it_must() -> None:
    scale = value_scale([0.0, 0.001], 100.0, 0.0, least_high=1)
    assert (scale.low, scale.high) == (0, 1)


def test_each_nine_of_a_percentile_takes_the_same_room() -> None:
    scale = tail_scale(100_000, 300.0, 0.0)
    nines = [scale(share) for share in (0.9, 0.99, 0.999, 0.9999)]
    assert [after - before for before, after in pairwise(nines)] == pytest.approx([nines[1] - nines[0]] * 3)
    assert math.isfinite(scale(1.0))


def test_an_axis_of_shares_ends_where_the_observations_do() -> None:
    assert tail_scale(50, 300.0, 0.0).ticks == (0.0, 0.5, 0.9, 0.99)
    assert tail_scale(2000, 300.0, 0.0).ticks[-1] == 0.999


@pytest.mark.parametrize("span_s", [0.5, 3, 15, 70, 700, 7200, 86_400, 3e6])
@pytest.mark.parametrize("width", [300.0, 900.0])
def test_ticks_of_time_have_room(span_s: float, width: float) -> None:
    ticks = time_scale(span_s, 0.0, width).ticks
    assert 1 <= len(ticks) <= width / 64 + 1


@given(st.floats(1e-9, 1e9))
def test_a_nice_step_is_not_below_what_is_asked(least: float) -> None:
    assert least * (1 - 1e-6) <= nice_step(least) <= 2.6 * least


@given(st.lists(st.floats(0, 200), max_size=5))
def test_labels_are_pushed_apart(wanted: list[float]) -> None:
    placed = spread(wanted, 13.0, 0.0, 200.0)
    assert all(after - before >= 13 - 1e-6 for before, after in pairwise(sorted(placed)))
    assert all(-1e-6 <= place <= 200 + 1e-6 for place in placed)
    assert [placed[index] for index in sorted(range(len(wanted)), key=lambda i: wanted[i])] == sorted(placed)
