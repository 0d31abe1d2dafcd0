"""Time slices: where they lie, what makes one good, and what they prove."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta

import pytest

from aftershock.slo.objective import (
    Compare,
    Objective,
    Op,
    QuantileIndicator,
    RatioIndicator,
    ScalarIndicator,
    SliceCondition,
    SliceIndicator,
    templates,
)
from aftershock.slo.slices import slice_edges, slices_needed, too_few_slices
from aftershock.slo.statistics import wilson
from aftershock.slo.verdict import Reason, Verdict, VerdictRow
from aftershock.windows import Phase

from .conftest import Run, at, window

SHARE = Objective(
    "o",
    "Availability: slices >= 99 %",
    "%",
    Op.GTE,
    90.0,
    SliceIndicator(RatioIndicator(total="total", good="good"), 1.0, SliceCondition(Op.GTE, 99.0)),
)
MEAN = replace(SHARE, indicator=SliceIndicator(RatioIndicator(total="total", bad="bad"), 1.0), op=Op.LTE, value=10.0)
QUEUE = replace(SHARE, indicator=SliceIndicator(ScalarIndicator("q", samples="n"), 1.0, SliceCondition(Op.LTE, 5.0)))


def share(run: Run, counts: list[tuple[float, float]], part: str = "good") -> Run:
    """Good (or bad) and all of each slice of the chaos phase."""
    for second, (count, total) in enumerate(counts, start=26):
        run.add("o", part, "chaos", count, seconds=second).add("o", "total", "chaos", total, seconds=second)
    return run


def queue(run: Run, values: list[float]) -> VerdictRow:
    for second, value in enumerate(values, start=26):
        status = "nan" if math.isnan(value) else "inf" if math.isinf(value) else "ok"
        run.add("o", "value", "chaos", value, seconds=second, status=status)
    return run.row(QUEUE)


def test_slices_tile_the_phase_and_the_last_one_takes_what_settles_late() -> None:
    chaos = window(Phase.CHAOS, 25, 60)  # settled at 61
    assert slice_edges(chaos, 10) == (at(25), at(35), at(45), at(61))
    assert slice_edges(chaos, 35) == (at(25), at(61))
    assert slice_edges(chaos, 36) == (at(25), at(61)), "shorter than one slice"
    odd = replace(chaos, start=at(25) + timedelta(microseconds=1_999))
    assert slice_edges(odd, 20)[0] == at(25) + timedelta(milliseconds=1)


def test_good_slices_are_counted_with_an_interval() -> None:
    row = share(Run(), [(100, 100)] * 38 + [(98, 100)] * 2).row(SHARE)
    value = row.phases[Phase.CHAOS]
    low, high = (100 * end for end in wilson(38, 40))
    assert (value.value, value.n, value.detail) == (95.0, 40, "38 of 40 slices good")
    assert (value.low, value.high) == (pytest.approx(low), pytest.approx(high))
    assert (row.verdict, row.reason) == (Verdict.INCONCLUSIVE, Reason.STRADDLES)
    assert "n = 40 slices" in row.explanation


@pytest.mark.parametrize(
    ("good", "n", "verdict", "reason"),
    [
        (40, 40, Verdict.PASS, Reason.COMPLIES),
        (35, 35, Verdict.PASS, Reason.COMPLIES),
        (34, 34, Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES),
        (1, 1, Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES),
        (0, 5, Verdict.FAIL, Reason.BREACHES),
        (60, 100, Verdict.FAIL, Reason.BREACHES),
    ],
)
def test_few_slices_prove_little(good: int, n: int, verdict: Verdict, reason: Reason) -> None:
    row = share(Run(), [(100, 100)] * good + [(0, 100)] * (n - good)).row(SHARE)
    assert (row.verdict, row.reason) == (verdict, reason), row.explanation
    if reason is Reason.TOO_FEW_SAMPLES:
        assert row.explanation.endswith("that is too few samples to judge >= 90 %; it takes 35.")


def test_a_slice_without_traffic_is_neither() -> None:
    row = share(Run(), [(100, 100)] * 39 + [(0, 0)] * 7 + [(0, 100)]).row(SHARE)
    value = row.phases[Phase.CHAOS]
    assert (value.value, value.n, value.detail) == (97.5, 40, "39 of 40 slices good; 7 without traffic")
    idle = share(Run(), [(0, 0)] * 3).row(SHARE)
    assert (idle.verdict, idle.reason) == (Verdict.NO_DATA, Reason.NO_OBSERVATIONS)


def test_the_mean_of_slices_weighs_a_slice_and_not_its_requests() -> None:
    row = share(Run(), [(0, 1000)] * 49 + [(1, 1)], "bad").row(MEAN)
    value = row.phases[Phase.CHAOS]
    assert (value.value, value.n, value.detail) == (2.0, 50, "mean of 50 slices")
    assert (value.low, value.high) == tuple(pytest.approx(100 * end) for end in wilson(1, 50))
    half = share(Run(), [(50, 100)] * 10, "bad").row(MEAN)
    assert (half.phases[Phase.CHAOS].value, half.verdict) == (50.0, Verdict.FAIL)


def test_a_quantile_of_each_slice_and_one_that_is_off_its_scale() -> None:
    quantile = SliceIndicator(QuantileIndicator("d", 0.5, 1000), 1.0, SliceCondition(Op.LTE, 800.0))
    run = Run()
    for second, bound in enumerate(["0.1", "0.5", "+Inf"], start=26):
        for le in ("0.1", "0.5", "+Inf"):
            count = 10.0 * (le == "+Inf" or float(le) >= float(bound.replace("+Inf", "inf")))
            run.add("o", "bucket", "chaos", count, seconds=second, le=le)
    value = run.row(replace(SHARE, indicator=quantile)).phases[Phase.CHAOS]
    assert (value.n, value.detail) == (3, "2 of 3 slices good"), "above the last bucket is not known to be within"


def test_a_plain_query_of_each_slice() -> None:
    row = queue(Run(), [3.0, 5.0, 6.0, math.inf, math.nan])
    value = row.phases[Phase.CHAOS]
    assert (value.n, value.detail) == (4, "2 of 4 slices good; 1 without traffic")
    assert value.low is not None, "the slices have an interval, whatever their values have"
    assert "samples" not in templates(QUEUE.indicator)


@pytest.mark.parametrize(
    ("status", "verdict", "reason"),
    [
        ("unreachable", Verdict.NO_DATA, Reason.UNREACHABLE),
        ("error", Verdict.ERROR, Reason.QUERY_ERROR),
        ("empty", Verdict.NO_DATA, Reason.NO_OBSERVATIONS),
    ],
)
def test_slices_that_were_not_answered(status: str, verdict: Verdict, reason: Reason) -> None:
    run = Run().add("o", "value", "chaos", None, seconds=40, status=status, detail="why")
    if status != "empty":
        run.add("o", "value", "chaos", 1.0, seconds=30)
    row = run.row(QUEUE)
    assert (row.verdict, row.reason) == (verdict, reason)


def test_slices_do_not_take_the_answers_of_the_whole_phase() -> None:
    whole = replace(SHARE, name="whole", indicator=RatioIndicator(total="total", good="good"))
    run = Run().share("whole", "chaos", 99, 100, "good")
    sliced, plain = run.judge(SHARE, whole).rows
    assert (sliced.verdict, sliced.reason) == (Verdict.NO_DATA, Reason.MISSING)
    assert plain.phases[Phase.CHAOS].value == 99.0


def test_slices_compared_with_those_of_the_baseline() -> None:
    run = share(Run(), [(100, 100)] * 20 + [(0, 100)] * 20)
    for second in range(1, 21):
        run.add("o", "good", "baseline", 100, seconds=second).add("o", "total", "baseline", 100, seconds=second)
    row = run.row(replace(SHARE, compare=Compare.INCREASE, value=-10.0))
    assert (row.phases[Phase.CHAOS].value, row.verdict) == (-50.0, Verdict.FAIL)


def test_how_many_slices_it_takes() -> None:
    assert slices_needed(SHARE) == 35
    assert slices_needed(replace(SHARE, value=99.0)) == 381
    assert slices_needed(MEAN) == 35, "at most 10 % bad is at least 90 % good"
    for value, needed in ((90.0, 35), (99.0, 381)):
        assert 100 * wilson(needed, needed)[0] >= value > 100 * wilson(needed - 1, needed - 1)[0]


def test_phases_with_too_few_slices_are_told_before_the_run() -> None:
    seconds = {Phase.BASELINE: 20.0, Phase.CHAOS: 30.0, Phase.RECOVERY: 20.0}
    assert too_few_slices([SHARE], seconds) == [
        "o: >= 90 % takes 35 time slices of 1 s to prove, and chaos_s=30 has 30: give --chaos-s 35, or shorter slices"
    ]
    assert too_few_slices([SHARE], seconds | {Phase.CHAOS: 35.0}) == []
    (more,) = too_few_slices([replace(SHARE, min_samples=100)], seconds | {Phase.CHAOS: 35.0})
    assert "takes 100 time slices" in more
    assert too_few_slices([replace(SHARE, indicator=RatioIndicator(total="a", good="b"))], seconds) == []
