"""Objectives and windows become the questions that Prometheus is asked."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from aftershock.metrics.questions import Buckets, Count, Line, Question, SlicedCount, Value, queries, questions
from aftershock.slo.objective import (
    CompositeIndicator,
    Indicator,
    Objective,
    Op,
    Part,
    QuantileIndicator,
    RatioIndicator,
    RecoveryIndicator,
    ScalarIndicator,
    SliceIndicator,
    StopCondition,
)
from aftershock.windows import Phase, Window

START = datetime(2026, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


WINDOWS = [
    Window(Phase.BASELINE, START, after(20), after(21.034)),
    Window(Phase.CHAOS, after(25), after(55), after(56.5), injected_at=after(26), reverted_at=after(54)),
    Window(Phase.RECOVERY, after(60), after(80), after(81)),
]


def objective(indicator: Indicator) -> Objective:
    return Objective("it", "It", "", Op.LTE, 1.0, indicator)


def asked(indicator: Indicator) -> list[Value | Count | Buckets | Line]:
    found = questions([objective(indicator)], WINDOWS, scrape_interval_s=1.0)
    return [question for question in found if question.subject.objective == "it"]


def test_a_scalar_is_asked_for_each_phase_where_it_settled() -> None:
    found = asked(ScalarIndicator('f{phase="{{ phase }}"}[{{ window }}]', samples="n[{{ window }}]"))
    assert [(q.subject.role, q.subject.phase, q.at) for q in found] == [
        (role, window.phase.value, window.settled_at) for window in WINDOWS for role in ("value", "samples")
    ]
    assert found[0].query == 'f{phase="baseline"}[21034ms]'
    assert found[0].subject.range_s == 21.034


def test_a_ratio_is_counted_where_its_query_is_a_plain_count() -> None:
    bad, total = asked(RatioIndicator(bad="sum(increase(a[{{ window }}]))", total="sum(a)"))[:2]
    assert isinstance(bad, Count)
    assert (bad.selector, bad.start, bad.query) == ("a", START, "a[21034ms]")
    assert isinstance(total, Value)
    assert [bad.subject.role, total.subject.role] == ["bad", "total"]


def test_a_quantile_asks_for_buckets() -> None:
    found = asked(QuantileIndicator('d{phase="{{ phase }}"}', 0.99))
    assert all(isinstance(question, Buckets) for question in found)
    assert [question.query for question in found] == [
        'd_bucket{phase="baseline"}[21034ms]',
        'd_bucket{phase="chaos"}[31500ms]',
        'd_bucket{phase="recovery"}[21000ms]',
    ]


def test_a_recovery_is_one_line_over_the_whole_run() -> None:
    (line,) = asked(RecoveryIndicator("p99", Op.LTE, 0.5, step_s=0.5))
    assert isinstance(line, Line)
    assert (line.start, line.at, line.step_s, line.subject.phase) == (START, after(81), 0.5, "")
    assert line.subject.range_s == 0


@pytest.mark.parametrize(
    ("query", "step_s", "scrape_interval_s", "range_s"),
    [
        ("rate(a[{{ lookback }}])", 1.0, 1.0, 3.0),
        ("rate(a[{{ lookback }}])", 1.0, 5.0, 15.0),
        ("rate(a[{{ lookback }}])", 10.0, 1.0, 10.0),
        ("rate(a[7s])", 1.0, 1.0, 7.0),
    ],
)
def test_a_recovery_looks_back_over_three_scrapes_and_says_so(
    query: str, step_s: float, scrape_interval_s: float, range_s: float
) -> None:
    it = objective(RecoveryIndicator(query, Op.LTE, 0.5, step_s=step_s))
    line = questions([it], WINDOWS, scrape_interval_s=scrape_interval_s)[0]
    assert line.subject.range_s == range_s
    assert f"[{range_s * 1000:.0f}ms]" in line.query or f"[{range_s:.0f}s]" in line.query


def test_every_question_knows_its_template() -> None:
    found = asked(QuantileIndicator('d{phase="{{ phase }}"}', 0.99))
    assert {question.subject.template for question in found} == {'d_bucket{phase="{{ phase }}"}'}


def test_the_time_line_is_always_asked() -> None:
    names = {question.name for question in questions([], WINDOWS, scrape_interval_s=0.5) if isinstance(question, Line)}
    assert names == {"p50_ms", "p90_ms", "p99_ms", "ttft_p99_ms", "error_percent", "requests_per_s"}


def test_without_windows_there_is_nothing_to_ask() -> None:
    assert questions([objective(RecoveryIndicator("p99", Op.LTE, 0.5))], [], scrape_interval_s=1.0) == []


def test_queries_of_an_objective_are_filled_in_before_there_is_a_window() -> None:
    ratio = objective(RatioIndicator(good='g{phase="{{ phase }}"}[{{ window }}]', total="t"))
    assert list(queries(ratio, 60.0)) == ['g{phase="baseline"}[60000ms]', "t"]
    assert list(queries(objective(QuantileIndicator("d", 0.5)), 60.0)) == ["d_bucket"]
    recovery = objective(RecoveryIndicator("rate(a[{{ lookback }}])", Op.LTE, 0.5, step_s=0.5))
    assert list(queries(recovery, 60.0)) == ["rate(a[60000ms])  # each 0.5 s"]


def test_what_is_asked_of_a_stop_condition_is_checked_too() -> None:
    it = Objective("it", "It", "", Op.LTE, 1.0, QuantileIndicator("d", 0.5), stop=StopCondition(5.0))
    assert list(queries(it, 60.0)) == [
        "d_bucket",
        "histogram_quantile(0.5, sum by (le) (rate(d_bucket[60000ms])))",
    ]


def in_slices(each: ScalarIndicator | QuantileIndicator | RatioIndicator) -> list[Question]:
    """What is asked of the chaos phase, 30 s and 1.5 s until it settled, in slices of 9 s."""
    found = questions([objective(SliceIndicator(each, 9.0))], WINDOWS, scrape_interval_s=1.0)
    return [question for question in found if question.subject.objective == "it" and question.subject.phase == "chaos"]


def test_counts_are_cut_into_slices() -> None:
    counts = RatioIndicator(bad="sum(increase(a[{{ window }}]))", total='sum(increase(b{x="1"}[{{ window }}]))')
    bad, total = in_slices(counts)
    assert isinstance(bad, SlicedCount) and isinstance(total, SlicedCount)
    assert (bad.selector, total.selector, bad.bucketed) == ("a", 'b{x="1"}', False)
    assert bad.edges == (after(25), after(34), after(43), after(56.5)), "the last takes what is left, and what is late"
    assert (bad.subject.template, bad.query) == ("sum(increase(a[{{ window }}]))  # in slices of 9 s", "a[9000ms]")
    (buckets,) = in_slices(QuantileIndicator('d{phase="{{ phase }}"}', 0.99))
    assert isinstance(buckets, SlicedCount) and buckets.bucketed
    assert buckets.selector == 'd_bucket{phase="chaos"}'


def test_a_plain_query_is_asked_at_the_end_of_each_slice() -> None:
    line, last = in_slices(ScalarIndicator("max_over_time(q[{{ window }}])", samples="n"))
    assert isinstance(line, Line) and isinstance(last, Value)
    assert (line.query, line.start, line.at, line.step_s) == ("max_over_time(q[9000ms])", after(34), after(43), 9.0)
    assert (last.query, last.at, last.subject.range_s) == ("max_over_time(q[13500ms])", after(56.5), 13.5)
    assert line.subject.template == last.subject.template


def test_a_phase_shorter_than_a_slice_is_one_slice() -> None:
    found = questions(
        [objective(SliceIndicator(ScalarIndicator("q[{{ window }}]"), 60.0))], WINDOWS, scrape_interval_s=1
    )
    asked = [question for question in found if question.subject.objective == "it"]
    assert [question.query for question in asked] == ["q[21034ms]", "q[31500ms]", "q[21000ms]"]
    assert all(isinstance(question, Value) for question in asked)


def test_a_composite_asks_what_its_parts_ask() -> None:
    part = replace(objective(RatioIndicator(bad="b", total="t")), name="part")
    whole = objective(CompositeIndicator((Part(part),)))
    found = questions([part, whole], WINDOWS, scrape_interval_s=1.0)
    assert {question.subject.objective for question in found} == {"part", "_timeline"}
    assert list(queries(whole, 60)) == []
