"""What was lost against the baseline: from counts alone, and from the answers one by one."""

from typing import Any

import pandas as pd
import pytest

from aftershock.slo.circumstances import LoadHealth
from aftershock.slo.objective import Compare, Objective, Op, RatioIndicator
from aftershock.slo.statistics import mcnemar, newcombe, paired_drop
from aftershock.slo.verdict import Reason, Status, Verdict
from aftershock.windows import Phase

from .conftest import Run

EVAL = "sum(increase(aftershock_eval_total[{{ window }}]))"
DROP = Objective(
    "drop",
    "Accuracy drop",
    "points",
    Op.LTE,
    0.5,
    RatioIndicator(total=EVAL, good="right"),
    compare=Compare.DROP,
)


def counts(before: tuple[float, float] = (1200, 1200), after: tuple[float, float] = (1800, 1800)) -> Run:
    run = Run().share("drop", "baseline", *before, role="good")
    return run.share("drop", "chaos", *after, role="good").share("drop", "recovery", 1200, 1200, role="good")


def records(before: list[Any], after: list[Any]) -> pd.DataFrame:
    """Grades by `seq`; None was not graded."""
    rows = [("baseline", seq, grade) for seq, grade in enumerate(before)]
    rows += [("chaos", seq, grade) for seq, grade in reversed(list(enumerate(after)))]
    frame = pd.DataFrame(rows, columns=["phase", "seq", "correct"])
    return frame.astype({"correct": "boolean"})


def test_without_records_the_counts_are_independent() -> None:
    row = counts((1190, 1200), (1700, 1800)).row(DROP)
    value = row.phases[Phase.CHAOS]
    assert value.value == pytest.approx((1190 / 1200 - 1700 / 1800) * 100)
    low, high = newcombe(1190, 1200, 1700, 1800)
    assert (value.low, value.high, value.n) == (pytest.approx(low * 100), pytest.approx(high * 100), 1800)
    assert (row.verdict, row.evidence) == (Verdict.FAIL, {})
    assert row.delta is not None and row.delta.value == value.value


def test_the_baseline_lost_nothing_by_definition() -> None:
    row = counts().row(DROP)
    assert row.phases[Phase.BASELINE].value == 0
    assert row.phases[Phase.BASELINE].detail == "1200 of 1200 good"
    assert row.phases[Phase.RECOVERY].value == 0
    assert row.verdict is Verdict.PASS


def test_with_records_the_twins_decide() -> None:
    before, after = [True] * 1200, [True] * 1170 + [False] * 30 + [True] * 600
    before[:3] = [False] * 3
    row = counts((1197, 1200), (1770, 1800)).row(DROP, records=records(before, after))
    assert row.evidence == {"pairs": 1200, "lost": 30, "gained": 3, "mcnemar_p": mcnemar(30, 3)}
    value, exact = row.phases[Phase.CHAOS], paired_drop(30, 3, 1200)
    assert value.value == pytest.approx((1197 / 1200 - 1770 / 1800) * 100)  # of all answers, not of twins alone
    assert value.high == pytest.approx((exact.high or 0) * 100)
    assert value.n == 1200
    assert row.verdict is Verdict.FAIL
    assert "n = 1200 pairs, McNemar p = 0" in row.explanation


def test_the_interval_holds_the_point_though_that_has_other_answers() -> None:
    run = counts((1200, 1200), (1710, 1800))
    value = run.row(DROP, records=records([True] * 1200, [True] * 1200)).phases[Phase.CHAOS]
    assert value.value == value.high == pytest.approx(5.0)


def test_answers_without_a_grade_have_no_twin() -> None:
    frame = records([True, None, True, False], [True, True, None, True])
    row = counts().row(DROP, records=frame)
    assert (row.evidence["pairs"], row.evidence["lost"], row.evidence["gained"]) == (2, 0, 1)


def test_without_any_twin_the_counts_decide() -> None:
    row = counts().row(DROP, records=records([None], [True]))
    assert row.evidence == {}


def test_records_say_nothing_of_another_metric() -> None:
    other = Objective(
        "drop", "Success drop", "points", Op.LTE, 0.5, RatioIndicator(total="x", good="y"), compare=Compare.DROP
    )
    assert counts().row(other, records=records([True], [True])).evidence == {}


def test_a_gain_is_a_negative_drop() -> None:
    row = counts((1100, 1200), (1790, 1800)).row(DROP)
    assert row.verdict is Verdict.PASS
    assert row.phases[Phase.CHAOS].value is not None and row.phases[Phase.CHAOS].value < 0


def test_without_a_baseline_there_is_no_drop() -> None:
    run = Run().add("drop", "good", "baseline", None, status="empty").add("drop", "total", "baseline", 0)
    row = run.share("drop", "chaos", 1800, 1800, role="good").row(DROP)
    assert (row.verdict, row.reason, row.delta) == (Verdict.NO_DATA, Reason.EMPTY, None)
    assert "baseline" in row.explanation


def test_without_answers_under_chaos_there_is_no_drop() -> None:
    row = counts(after=(0, 0)).row(DROP)
    assert (row.verdict, row.reason) == (Verdict.NO_DATA, Reason.NO_OBSERVATIONS)
    assert row.phases[Phase.BASELINE].status is Status.OK


@pytest.mark.parametrize("late", [Phase.BASELINE, Phase.CHAOS])
def test_load_that_fell_behind_in_either_phase_spoils_it(late: Phase) -> None:
    row = counts().row(DROP, load_health={late: LoadHealth(False)})
    assert row.reason is Reason.LOAD_FELL_BEHIND
    assert f"({late})" in row.explanation


def test_a_drop_on_the_objective_complies() -> None:
    assert counts((1000, 1000), (995, 1000)).row(DROP, policy="point").verdict is Verdict.PASS
