"""A phase against the baseline: the value, its interval, and what cannot be compared."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftershock.slo.circumstances import LoadHealth
from aftershock.slo.comparison import compare_with_baseline
from aftershock.slo.objective import Compare, QuantileIndicator, ScalarIndicator
from aftershock.slo.statistics import newcombe, wilson
from aftershock.slo.verdict import PhaseValue, Reason, Status, Verdict
from aftershock.windows import Phase

from .conftest import ERRORS, LATENCY, Run, objective

RELATIVE = replace(LATENCY, compare=Compare.RELATIVE, unit="%", value=10.0)
SCALAR = replace(objective(ScalarIndicator("up")), compare=Compare.RELATIVE, value=10.0, unit="%")


def share(count: int, total: int) -> PhaseValue:
    low, high = wilson(count, total)
    return PhaseValue(count / total, low, high, total)


def relative(before: PhaseValue, after: PhaseValue) -> PhaseValue:
    return compare_with_baseline(Compare.RELATIVE, before, after)


def increase(before: PhaseValue, after: PhaseValue) -> PhaseValue:
    return compare_with_baseline(Compare.INCREASE, before, after)


def test_the_increase_of_a_share_has_newcombes_interval() -> None:
    found = increase(share(20, 1000), share(60, 1200))
    low, high = newcombe(60, 1200, 20, 1000)
    assert (found.value, found.low, found.high) == tuple(pytest.approx(one) for one in (0.03, low, high))
    assert found.n == 1200


def test_a_relative_change_is_in_percent_of_the_baseline() -> None:
    found = relative(PhaseValue(100, 95, 106, 500), PhaseValue(112, 108, 117, 700))
    low = 100 * (math.exp(math.log(1.12) - math.hypot(math.log(112 / 108), math.log(106 / 100))) - 1)
    high = 100 * (math.exp(math.log(1.12) + math.hypot(math.log(117 / 112), math.log(100 / 95))) - 1)
    assert (found.value, found.low, found.high) == tuple(pytest.approx(one) for one in (12, low, high))
    assert (found.n, found.status) == (700, Status.OK)


@pytest.mark.parametrize(
    ("before", "after", "low", "high"),
    [
        (PhaseValue(10, None, 12, 9), PhaseValue(20, 18, 23, 9), True, False),
        (PhaseValue(10, 9, None, 9), PhaseValue(20, 18, 23, 9), False, True),
        (PhaseValue(10, 9, 12, 9), PhaseValue(20, 18, None, 9), True, False),
        (PhaseValue(10, 9, 12, 9), PhaseValue(20, None, 23, 9), False, True),
        (PhaseValue(10, 0, 12, 9), PhaseValue(20, 18, 23, 9), True, False),
        (PhaseValue(10), PhaseValue(20), False, False),
    ],
)
def test_an_open_side_stays_open(before: PhaseValue, after: PhaseValue, low: bool, high: bool) -> None:
    found = relative(before, after)
    assert (found.low is not None, found.high is not None) == (low, high)
    assert found.value == 100.0


def test_nothing_left_is_minus_a_hundred_percent() -> None:
    found = relative(share(50, 100), share(0, 100))
    assert (found.value, found.low) == (-100.0, -100.0)
    assert found.high is not None and -100 < found.high < 0


@pytest.mark.parametrize(
    ("before", "after", "status"),
    [
        (PhaseValue(0.0, 0.0, 0.1, 9), PhaseValue(1.0), Status.INFINITE),
        (PhaseValue(-1.0), PhaseValue(1.0), Status.INCONSISTENT),
        (PhaseValue(1.0), PhaseValue(-1.0), Status.INCONSISTENT),
        (PhaseValue(status=Status.EMPTY), PhaseValue(1.0), Status.EMPTY),
        (PhaseValue(1.0), PhaseValue(status=Status.NAN), Status.NAN),
        (PhaseValue(9.0, 8.0, None, 9, Status.AT_LEAST), PhaseValue(1.0), Status.MISSING),
    ],
)
def test_what_cannot_be_compared_has_no_value(before: PhaseValue, after: PhaseValue, status: Status) -> None:
    found = relative(before, after)
    assert (found.value, found.status) == (None, status)


def test_a_phase_off_the_scale_is_known_from_below() -> None:
    found = relative(PhaseValue(100, 95, 106, 500), PhaseValue(200, 190, None, 700, Status.AT_LEAST))
    assert (found.value, found.high, found.status) == (100.0, None, Status.AT_LEAST)
    assert found.low is not None and 70 < found.low < 100


@given(
    st.floats(1, 1e4), st.floats(0, 0.9), st.floats(0, 5), st.floats(1, 1e4), st.floats(0, 0.9), st.floats(0, 5)
)  # fmt: skip
def test_the_interval_holds_the_value_and_no_more_than_the_corners(
    before: float, b_less: float, b_more: float, after: float, a_less: float, a_more: float
) -> None:
    base = PhaseValue(before, before * (1 - b_less), before * (1 + b_more), 9)
    phase = PhaseValue(after, after * (1 - a_less), after * (1 + a_more), 9)
    found = relative(base, phase)
    assert None not in (found.low, found.value, found.high)
    lowest, highest = (100 * (one - 1) for one in (phase.low / base.high, phase.high / base.low))  # type: ignore[operator]
    slack = 1e-6 * (1 + abs(highest))
    assert lowest - slack <= found.low <= found.value + slack  # type: ignore[operator]
    assert found.value - slack <= found.high <= highest + slack  # type: ignore[operator]


def test_the_interval_of_a_relative_change_covers_the_truth() -> None:
    """Two shares, 5 % and 8 %: the change is +60 %. Two sided 95 %, so 400 runs leave 92 to 98 %."""
    chance = random.Random(4)
    held = 0
    for _ in range(400):
        before = sum(chance.random() < 0.05 for _ in range(1000))
        after = sum(chance.random() < 0.08 for _ in range(1000))
        found = relative(share(before, 1000), share(after, 1000))
        assert found.low is not None and found.high is not None
        held += found.low <= 60 <= found.high
    assert 0.92 <= held / 400 <= 0.98


def latencies(run: Run, baseline: list[float], chaos: list[float]) -> Run:
    return run.histogram("latency", "baseline", baseline).histogram("latency", "chaos", chaos)


def test_a_change_is_judged_by_its_interval() -> None:
    same, worse = [0.2 + index / 10_000 for index in range(1200)], [0.4 + index / 5_000 for index in range(1200)]
    failed = latencies(Run(), same, worse).row(RELATIVE)
    assert (failed.verdict, failed.reason) == (Verdict.FAIL, Reason.BREACHES), failed.explanation
    assert failed.phases[Phase.BASELINE].value == 0.0
    assert failed.delta is not None and failed.delta.value == failed.phases[Phase.CHAOS].value
    assert set(failed.evidence) == {"baseline", "value"}
    unclear = latencies(Run(), same, same).row(replace(RELATIVE, value=1.0))
    assert (unclear.verdict, unclear.reason) == (Verdict.INCONCLUSIVE, Reason.STRADDLES)
    passed = latencies(Run(), same, same).row(RELATIVE)
    assert (passed.verdict, passed.reason) == (Verdict.PASS, Reason.COMPLIES), passed.explanation


def test_a_change_of_a_plain_query_rests_on_the_point() -> None:
    run = Run().add("o", "value", "baseline", 100.0).add("o", "value", "chaos", 112.0)
    row = run.row(SCALAR)
    assert (row.verdict, row.reason) == (Verdict.FAIL, Reason.POINT_BREACHES)
    assert row.explanation == (
        "Measured thing was 12 % in the chaos phase (no interval known, n unknown), which breaches <= 10 %; the "
        "verdict rests on the point alone."
    )


def test_without_a_baseline_there_is_no_change() -> None:
    row = Run().add("o", "value", "chaos", 112.0).row(SCALAR)
    assert (row.verdict, row.reason) == (Verdict.NO_DATA, Reason.MISSING)
    zero = Run().share("errors", "baseline", 0, 1000).share("errors", "chaos", 5, 1000)
    row = zero.row(replace(ERRORS, compare=Compare.RELATIVE))
    assert (row.verdict, row.reason) == (Verdict.NO_DATA, Reason.INFINITE)
    assert "the baseline is 0" in row.explanation


def test_a_change_rests_on_both_phases() -> None:
    late = {Phase.BASELINE: LoadHealth(False, send_lag_p99_s=0.2)}
    run = Run().add("o", "value", "baseline", 100.0).add("o", "value", "chaos", 200.0)
    assert run.row(SCALAR, load_health=late).reason is Reason.LOAD_FELL_BEHIND


def test_the_load_generators_own_delay_counts_in_percent_of_the_baseline() -> None:
    from_due = replace(
        RELATIVE, indicator=QuantileIndicator("aftershock_request_duration_seconds", quantile=0.99, scale=1000)
    )
    same, worse = [0.2] * 1200, [0.26] * 1200
    for delay_s, reason in ((0.001, Reason.BREACHES), (0.06, Reason.LOAD_FELL_BEHIND)):
        health = {Phase.CHAOS: LoadHealth(True, send_lag_p99_s=delay_s)}
        row = latencies(Run(), same, worse).row(from_due, load_health=health)
        assert row.reason is reason, row.explanation


def test_increase_is_in_the_unit_of_the_indicator() -> None:
    run = latencies(Run(), [0.2] * 1200, [0.5] * 1200)
    row = run.row(replace(LATENCY, compare=Compare.INCREASE, value=50.0))
    assert row.verdict is Verdict.FAIL
    assert row.phases[Phase.CHAOS].value == pytest.approx(300, rel=0.1)
