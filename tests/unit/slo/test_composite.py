"""Several objectives as one: the budgets they spend, by their weights."""

from __future__ import annotations

from dataclasses import replace

import pytest

from aftershock.slo.composite import measure_composite, rests_on_points, spent_budget
from aftershock.slo.objective import (
    CompositeIndicator,
    Objective,
    Op,
    Part,
    RatioIndicator,
    ScalarIndicator,
    SliceIndicator,
    templates,
)
from aftershock.slo.verdict import PhaseValue, Reason, Status, Verdict, VerdictRow
from aftershock.windows import Phase

from .conftest import Run

FAILED = Objective("a", "Failed", "%", Op.LTE, 1.0, RatioIndicator(total="all", bad="bad"), severity="info")
RIGHT = Objective("b", "Right", "%", Op.GTE, 95.0, RatioIndicator(total="answers", good="right"), severity="info")
WHOLE = Objective("c", "Journey", "%", Op.LTE, 100.0, CompositeIndicator((Part(FAILED, 3.0), Part(RIGHT, 1.0))))


def judged(bad: float, right: float, n: int = 100_000, **given: object) -> VerdictRow:
    """The composite's row, from shares in percent."""
    run = Run()
    for phase in ("baseline", "chaos"):
        disturbed = phase == "chaos"
        run.share("a", phase, bad * n / 100 if disturbed else 0, n)
        run.share("b", phase, right * n / 100 if disturbed else n, n, "good")
    return run.judge(FAILED, RIGHT, WHOLE, **given).rows[2]


@pytest.mark.parametrize(
    ("objective", "value", "spent"),
    [
        (FAILED, 0.0, 0.0),
        (FAILED, 0.5, 50.0),
        (FAILED, 3.0, 300.0),
        (RIGHT, 100.0, 0.0),
        (RIGHT, 97.5, 50.0),
        (RIGHT, 90.0, 200.0),
        (replace(FAILED, indicator=RatioIndicator(total="a", bad="b", scale=1.0), value=0.01), 0.005, 50.0),
        (replace(RIGHT, indicator=RatioIndicator(total="a", good="b", scale=1.0), value=0.95), 0.9, 200.0),
        (replace(RIGHT, indicator=SliceIndicator(ScalarIndicator("x"), 1.0)), 90.0, 200.0),
    ],
)
def test_what_is_off_the_best_is_spent(objective: Objective, value: float, spent: float) -> None:
    assert spent_budget(objective, PhaseValue(value)).value == pytest.approx(spent)


def test_the_ends_of_a_budget_are_in_order() -> None:
    spent = spent_budget(RIGHT, PhaseValue(97.5, 95.0, 99.0, 7))
    assert (spent.low, spent.value, spent.high, spent.n) == (20.0, 50.0, 100.0, 7)
    assert spent_budget(RIGHT, PhaseValue(97.5, None, 99.0, 7)).high is None


def test_weights_decide() -> None:
    values = {"a": PhaseValue(0.4, 0.2, 0.6, 500), "b": PhaseValue(90.0, 88.0, 92.0, 300)}
    whole = measure_composite(CompositeIndicator((Part(FAILED, 3.0), Part(RIGHT, 1.0))), lambda one: values[one.name])
    assert (whole.value, whole.low, whole.high, whole.n) == (80.0, 55.0, 105.0, 300)
    assert whole.detail == "Failed: 40 %, Right: 200 %"
    even = measure_composite(CompositeIndicator((Part(FAILED), Part(RIGHT))), lambda one: values[one.name])
    assert even.value == 120.0


def test_a_composite_passes_on_what_another_part_has_saved() -> None:
    row = judged(bad=0.1, right=92.0)
    assert (row.verdict, row.phases[Phase.CHAOS].value) == (Verdict.PASS, pytest.approx(0.75 * 10 + 0.25 * 160))
    row = judged(bad=2.0, right=100.0)
    assert (row.verdict, row.reason) == (Verdict.FAIL, Reason.BREACHES)
    assert row.explanation.startswith("Journey was 150 % in the chaos phase (95 % interval ")
    assert judged(bad=1.0, right=95.0).verdict is Verdict.INCONCLUSIVE
    assert judged(bad=0.9, right=95.5, n=100).verdict is Verdict.INCONCLUSIVE


def test_its_parts_decide_nothing_by_themselves() -> None:
    run = Run().share("a", "chaos", 10, 100_000).share("b", "chaos", 92_000, 100_000, "good")
    judgement = run.judge(FAILED, RIGHT, WHOLE)
    assert [row.verdict for row in judgement.rows] == [Verdict.PASS, Verdict.FAIL, Verdict.PASS]
    assert judgement.verdict is Verdict.PASS


def test_a_baseline_that_had_spent_it_all_is_not_steady() -> None:
    run = Run()
    for phase in ("baseline", "chaos"):
        run.share("a", phase, 3_000, 100_000).share("b", phase, 100_000, 100_000, "good")
    row = run.judge(FAILED, RIGHT, WHOLE).rows[2]
    assert row.reason is Reason.BASELINE_NOT_STEADY


def test_without_one_part_there_is_no_whole() -> None:
    run = Run().share("a", "chaos", 10, 100_000)
    row = run.judge(FAILED, RIGHT, WHOLE).rows[2]
    assert (row.verdict, row.reason) == (Verdict.NO_DATA, Reason.MISSING)
    assert "Right" in row.explanation
    values = {"a": PhaseValue(0.0, 0, 1, 9), "b": PhaseValue(status=Status.QUERY_ERROR, detail="bad query")}
    whole = measure_composite(WHOLE.indicator, lambda one: values[one.name])  # type: ignore[arg-type]
    assert (whole.value, whole.status, whole.detail) == (None, Status.QUERY_ERROR, "Right: bad query")


def test_a_part_without_an_interval_makes_it_rest_on_the_point() -> None:
    raw = replace(FAILED, indicator=ScalarIndicator("100 * (ratio)"))
    assert rests_on_points(CompositeIndicator((Part(raw), Part(RIGHT))))
    assert not rests_on_points(WHOLE.indicator)
    run = Run().add("a", "value", "chaos", 0.5).share("b", "chaos", 100, 100, "good")
    whole = replace(WHOLE, indicator=CompositeIndicator((Part(raw), Part(RIGHT))))
    row = run.judge(raw, RIGHT, whole).rows[2]
    assert (row.verdict, row.reason) == (Verdict.PASS, Reason.POINT_COMPLIES)


def test_it_asks_nothing_itself() -> None:
    assert templates(WHOLE.indicator) == {}
