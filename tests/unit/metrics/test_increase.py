"""Counting without Prometheus' extrapolation: restarts, births, and queries that can be counted."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftershock.metrics.increase import Growth, counted_selector, growth
from aftershock.metrics.prometheus import Series
from aftershock.slo.promql import bucket_selector


def series(values: list[float], **labels: str) -> Series:
    return Series(labels, tuple((float(at), value) for at, value in enumerate(values)))


@pytest.mark.parametrize(
    ("before", "values", "grown"),
    [
        (10, [10, 12, 15], 5),
        (10, [12], 2),  # one sample: increase() has no answer
        (None, [0, 3], 3),
        (None, [7, 9], 9),  # born in the window, and counted 7 before the first scrape
        (10, [12, 1, 3], 5),  # restarted
        (10, [0, 20], 20),  # restarted between the last sample ahead and the first inside
        (10, [12, 12], 2),
        (10, [10], 0),
    ],
)
def test_growth(before: float | None, values: list[float], grown: float) -> None:
    assert growth(values, before) == grown


def test_growth_of_what_is_no_number_is_no_number() -> None:
    assert math.isnan(growth([1, math.nan, 3], 0))


@given(st.lists(st.lists(st.integers(0, 1_000), min_size=1), min_size=1))
def test_every_event_of_every_life_is_counted_once(lives: list[list[int]]) -> None:
    """Each life of a process starts at 0, is seen there, and counts what happens to it."""
    values: list[float] = []
    for increments in lives:
        values.append(0)
        for increment in increments:
            values.append(values[-1] + increment)
    assert growth(values, None) == sum(map(sum, lives))


def test_series_are_matched_by_their_labels_without_the_name() -> None:
    inside = (series([5], __name__="a_total", pod="1"), series([5], __name__="a_total", pod="2"))
    before = (series([4], pod="1"), series([100], pod="3"))
    assert Growth(inside, before).total() == 1 + 5


def test_buckets_are_summed_over_series_and_ordered_by_bound() -> None:
    inside = tuple(
        series([value], le=le, pod=pod)
        for pod, le, value in [("1", "+Inf", 9), ("1", "10", 8), ("1", "9.5", 4), ("2", "10.0", 1), ("2", "+Inf", 1)]
    )
    buckets = Growth(inside, ()).by_bucket()
    assert list(buckets.items()) == [("9.5", 4), ("10.0", 9), ("+Inf", 10)]


def test_series_that_are_no_buckets_are_refused() -> None:
    with pytest.raises(KeyError):
        Growth((series([1], pod="1"),), ()).by_bucket()


@pytest.mark.parametrize(
    ("query", "selector"),
    [
        ("sum(increase(a_total[20000ms]))", "a_total"),
        ('sum(increase(a_total{phase="chaos",outcome!="ok"}[20000ms]))', 'a_total{phase="chaos",outcome!="ok"}'),
        (" sum ( increase ( a:b {x='}[1m]'} [20000ms] ) ) ", "a:b {x='}[1m]'}"),
        (r'sum(increase(a{x="\"})"}[20000ms]))', r'a{x="\"})"}'),
        ("sum(increase(a_total[5m]))", None),  # another range than the window's
        ("sum(increase(a_total[20000ms] offset 5m))", None),
        ("sum by (pod) (increase(a_total[20000ms]))", None),
        ("sum(rate(a_total[20000ms]))", None),
        ("sum(increase(a_total[20000ms])) or vector(0)", None),
        ('sum(increase(a{x="1"}[20000ms])) + sum(increase(b{x="1"}[20000ms]))', None),
        ("sum(increase(a_total[20000ms])) / sum(increase(b_total[20000ms]))", None),
    ],
)
def test_only_a_plain_count_is_counted_here(query: str, selector: str | None) -> None:
    assert counted_selector(query, "20000ms") == selector


def test_bucket_selector() -> None:
    assert bucket_selector("name") == "name_bucket"
    assert bucket_selector('name {x="{"}') == 'name_bucket{x="{"}'
