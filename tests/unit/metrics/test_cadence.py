"""How often something is scraped, seen from its samples, and what that means for a run."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftershock.metrics import cadence
from aftershock.slo.objective import Objective, Op, RecoveryIndicator, ScalarIndicator, SliceIndicator


def times(interval_s: float, count: int, start: float = 1e9) -> list[float]:
    return [start + i * interval_s for i in range(count)]


@given(st.floats(0.1, 300), st.integers(7, 60), st.integers(0, 2**32))
def test_jitter_and_a_missed_scrape_do_not_change_the_interval(interval_s: float, count: int, seed: int) -> None:
    chance = random.Random(seed)
    seen = [at + chance.uniform(-0.02, 0.02) * interval_s for at in times(interval_s, count)]
    del seen[count // 2]
    found = cadence.interval_s([seen])
    assert found is not None and math.isclose(found, interval_s, rel_tol=cadence.TOLERANCE)
    assert not cadence.is_slower(found, interval_s) and not cadence.is_faster(found, interval_s)


def test_the_slowest_series_counts_and_short_ones_do_not() -> None:
    assert cadence.interval_s([times(1, 20), times(15, 5), times(60, 2)]) == 15
    assert cadence.interval_s([times(1, 3)]) is None
    assert cadence.interval_s([]) is None


def test_a_wrong_interval_is_noticed() -> None:
    assert cadence.is_slower(15, 1) and not cadence.is_faster(15, 1)
    assert cadence.is_faster(1, 15) and not cadence.is_slower(1, 15)


def test_phases_with_too_few_scrapes_are_named_with_what_to_give() -> None:
    complaints = cadence.short_phases(15, {"baseline": 20, "chaos": 30, "recovery": 75})
    assert len(complaints) == 2
    assert "baseline_s=20 has 1.3 scrapes" in complaints[0] and "--baseline-s 75" in complaints[0]
    assert cadence.short_phases(1, {"baseline": 5, "chaos": 30, "recovery": 20}) == []
    assert cadence.short_phases(1.002, {"baseline": 5}) == []


def objective(query: str = "x", *, recovery: bool = False) -> Objective:
    indicator = RecoveryIndicator(query, Op.LTE, 1.0) if recovery else ScalarIndicator(query)
    return Objective("it", "It", "", Op.LTE, 1.0, indicator)


@pytest.mark.parametrize(
    ("query", "complaints"),
    [
        ("rate(x[{{ window }}])", 0),
        ("rate(x[30s])", 0),
        ("rate(x[20s]) / rate(y[20s])", 1),
        ("rate(x[20s]) / rate(y[10s])", 2),
        ("x", 0),
    ],
)
def test_ranges_too_short_for_a_rate(query: str, complaints: int) -> None:
    found = cadence.short_ranges(15, objective(query))
    assert len(found) == complaints
    assert all("make it at least 30 s" in one for one in found)


def test_a_recovery_that_looks_back_too_little() -> None:
    (complaint,) = cadence.short_recovery(15, 3, objective(recovery=True))
    assert "--scrape-interval-s 15" in complaint
    assert cadence.short_recovery(15, 45, objective(recovery=True)) == []
    assert cadence.short_recovery(15, 3, objective()) == []


def test_a_time_slice_needs_two_scrapes() -> None:
    sliced = Objective("it", "It", "%", Op.GTE, 90.0, SliceIndicator(ScalarIndicator("up"), 6.0))
    assert cadence.short_slices(1, sliced) == cadence.short_slices(3, sliced) == []
    assert cadence.short_slices(15, sliced) == [
        "it: a time slice of 6 s has 0.4 scrapes, it needs 2: make it at least 30 s"
    ]
    assert cadence.short_slices(15, Objective("it", "It", "", Op.LTE, 1.0, ScalarIndicator("up"))) == []
