"""What was lost against the baseline: from counts alone, and from the answers one by one."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from aftershock.slo.circumstances import LoadHealth
from aftershock.slo.objective import Compare, Objective, Op, RatioIndicator
from aftershock.slo.statistics import mcnemar, newcombe, paired_drop
from aftershock.slo.verdict import Reason, Status, Verdict, VerdictRow
from aftershock.windows import Phase

from .conftest import Run

EVAL = 'sum(increase(aftershock_eval_total{phase="{{ phase }}"}[{{ window }}]))'
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


def records(before: list[Any], after: list[Any], items: int = 10_000) -> pd.DataFrame:
    """Grades by `seq`, of items that come round; None was not graded."""
    rows = [("baseline", seq, grade) for seq, grade in enumerate(before)]
    rows += [("chaos", seq, grade) for seq, grade in reversed(list(enumerate(after)))]
    frame = pd.DataFrame(rows, columns=["phase", "seq", "correct"]).astype({"correct": "boolean"})
    return frame.assign(item_id=(frame["seq"] % items).astype("str"))


def graded(before: list[Any], after: list[Any], items: int = 10_000, **given: Any) -> VerdictRow:
    """The row of a run in which Prometheus counted what the records say."""
    found = [[grade for grade in grades if grade is not None] for grades in (before, after)]
    (right, total), (right_after, total_after) = ((sum(grades), len(grades)) for grades in found)
    run = counts((right, total), (right_after, total_after))
    return run.row(DROP, records=records(before, after, items), **given)


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
    before, after = [True] * 1200, [True] * 1170 + [False] * 30
    before[:3] = [False] * 3
    row = graded(before, after)
    assert row.evidence == {"pairs": 1200, "lost": 30, "gained": 3, "mcnemar_p": mcnemar(30, 3)}
    value, exact = row.decisive, paired_drop(30, 3, 1200)
    assert (value.value, value.low, value.high) == pytest.approx(
        [100 * (x or 0) for x in (exact.value, exact.low, exact.high)]
    )
    assert value.n == 1200
    assert value.detail == "1170 of 1200 good; of 1200 pairs 30 lost, 3 gained"
    assert row.verdict is Verdict.FAIL
    assert "n = 1200 pairs, McNemar p = 0" in row.explanation


def test_all_of_a_chaos_phase_that_is_longer_than_the_baseline_counts() -> None:
    row = graded([True] * 400, [True] * 800 + [False] * 400, items=100)
    assert row.decisive.value == pytest.approx(100 / 3)
    assert row.evidence["pairs"] == 400  # no more than the baseline has answers
    assert row.verdict is Verdict.FAIL


def test_items_that_were_asked_more_often_do_not_weigh_more_on_one_side() -> None:
    before = [seq % 100 < 50 for seq in range(400)]  # half of the items are too hard
    row = graded(before, before[:350], items=100)  # more of the easy ones were asked
    assert (row.decisive.value, row.evidence["lost"], row.evidence["gained"]) == (0, 0, 0)


def test_answers_that_vary_by_themselves_keep_their_width() -> None:
    """Averages over an item must not make noise look like certainty."""
    noisy = [seq % 10 < 7 for seq in range(1000)]
    once = graded(noisy, noisy[500:] + noisy[:500], items=1000).decisive  # each item once, as luck has it
    often = graded(noisy, noisy, items=1).decisive  # one item, a thousand times
    assert once.value == often.value == 0
    assert (often.high or 0) == pytest.approx((paired_drop(210, 210, 1000).high or 0) * 100)
    assert (often.high or 0) > (once.high or 0)


def test_counts_and_records_must_agree() -> None:
    frame = records([True] * 1200, [True] * 1799 + [False])
    row = counts().row(DROP, records=frame)
    assert (row.verdict, row.reason) == (Verdict.INCONCLUSIVE, Reason.COUNTS_DISAGREE)
    assert "1800 of 1800 answers as right, the records 1799 of 1800" in row.explanation
    assert counts((1200, 1200), (1799, 1800)).row(DROP, records=frame).reason is not Reason.COUNTS_DISAGREE


def test_answers_without_a_grade_have_no_twin() -> None:
    row = graded([True, None, True, False], [True, True, None, True])
    assert (row.evidence["pairs"], row.evidence["lost"], row.evidence["gained"]) == (2, 0, 1)


@pytest.mark.parametrize(("before", "after"), [([None], [True]), ([True, None], [None, True])])
def test_without_any_twin_the_counts_decide(before: list[Any], after: list[Any]) -> None:
    row = counts().row(DROP, records=records(before, after))
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


def test_items_that_repeat_are_clusters() -> None:
    """Ten questions of a hundred are lost, each of them every time it is asked: that is ten losses, not a hundred."""
    before = [True] * 1000
    after = [seq % 100 >= 10 for seq in range(1000)]
    row = graded(before, after, items=100)
    each = paired_drop(10, 0, 100)
    value = row.decisive
    assert value.value == pytest.approx(10)
    assert (value.low, value.high) == pytest.approx([100 * (x or 0) for x in (each.low, each.high)], rel=0.02)
    assert row.evidence["items"] == 100
    assert row.evidence["design_effect"] == pytest.approx(10, rel=0.02)
    assert row.evidence["mcnemar_p"] == mcnemar(10, 0)
    assert value.effective_n == 98  # a cluster fewer than there are, as for any variance
    assert "n = 1000 pairs, McNemar p = 0.001953, effective n = 98" in row.explanation


def test_losses_that_fall_on_items_by_chance_are_not() -> None:
    after = [seq % 10 != 0 or (seq // 100) % 10 != seq % 7 for seq in range(1000)]
    row = graded([True] * 1000, after, items=100)
    assert row.evidence["design_effect"] < 1.5


@pytest.mark.parametrize("spread", ["items", "answers"])
def test_a_drop_over_repeated_items_covers_the_truth(spread: str) -> None:
    rng = np.random.default_rng(13)
    covered = []
    for _ in range(200):
        chance = np.where(rng.random(60) < 0.2, 0.5, 0.0) if spread == "items" else np.full(60, 0.1)
        after = (rng.random((20, 60)) >= chance).ravel()
        frame = pd.DataFrame({"seq": range(2400), "phase": ["baseline"] * 1200 + ["chaos"] * 1200})
        frame["correct"] = pd.array([True] * 1200 + after.tolist(), dtype="boolean")
        frame["item_id"] = (frame["seq"] % 60).astype("str")
        run = counts((1200, 1200), (int(after.sum()), 1200))
        value = run.row(DROP, records=frame).decisive
        covered.append((value.low or 0) <= 10 <= (value.high or 0))
    assert np.mean(covered) >= 0.9
