"""How long the service took to come back: gaps, relapses, censoring. The fault of these runs ends at second 50."""

import math
from dataclasses import replace

import pytest

from aftershock.slo.objective import Objective, RecoveryIndicator
from aftershock.slo.verdict import PhaseValue, Reason, Status, Verdict
from aftershock.windows import Phase

from .conftest import RECOVERY, WINDOWS, Run, window

BAD, GOOD, SILENT = 100.0, 0.0, math.nan


def after(*values: float, run: Run | None = None) -> Run:
    """Steps at second 51, 52, ..."""
    return (run or Run()).sick([(51.0 + index, value) for index, value in enumerate(values)])


def measured(run: Run, objective: Objective = RECOVERY) -> PhaseValue:
    return run.row(objective).phases[Phase.RECOVERY]


def test_it_is_the_first_of_three_steps_that_hold() -> None:
    value = measured(after(BAD, BAD, GOOD, GOOD, GOOD, GOOD))
    assert (value.value, value.low, value.high, value.n) == (3.0, 2.0, 3.0, 6)


def test_too_few_good_steps_are_no_recovery() -> None:
    assert measured(after(GOOD, GOOD, BAD, GOOD, GOOD, GOOD)).value == 4.0
    value = measured(after(BAD, GOOD, GOOD, BAD, GOOD, BAD))
    assert (value.value, value.status) == (6.0, Status.AT_LEAST)


def test_a_later_relapse_is_told_and_not_counted() -> None:
    value = measured(after(BAD, *[GOOD] * 20, BAD))
    assert (value.value, value.status, value.detail) == (2.0, Status.OK, "broken again at 22.0 s")
    row = after(BAD, *[GOOD] * 20, BAD).row(RECOVERY)
    assert row.verdict is Verdict.PASS and "broken again at 22.0 s" in row.explanation


def test_a_step_that_looks_back_into_the_fault_may_break_but_not_hold() -> None:
    def looking_back(*values: float) -> PhaseValue:
        return measured(Run().sick([(51.0 + index, value) for index, value in enumerate(values)], lookback_s=3.0))

    back = looking_back(*[GOOD] * 6)
    assert (back.value, back.low, back.n) == (3.0, 0.0, 4)
    broken = looking_back(GOOD, BAD, BAD, BAD, BAD, GOOD, GOOD, GOOD)  # the last bad step saw seconds 52 to 55
    assert (broken.value, broken.low, broken.high) == (6.0, 2.0, 6.0)
    early = looking_back(GOOD, BAD, GOOD, GOOD, GOOD)
    assert (early.value, early.low) == (3.0, 0.0)
    assert looking_back(GOOD, GOOD).status is Status.NO_OBSERVATIONS
    never = looking_back(*[BAD] * 29)
    assert (never.value, never.low) == (29.0, 26.0)


def test_stale_samples_between_the_phases_say_nothing() -> None:
    windows = [WINDOWS[0], window(Phase.CHAOS, 25, 55, reverted=50), WINDOWS[2]]  # no load from 55 to 60
    run = Run(windows=windows).sick([(second, GOOD) for second in (54, 55, 56, 60, 61)], lookback_s=1.0)
    run.sick([(56.5, BAD), (57.0, BAD), (59.5, BAD)], lookback_s=1.0)
    value = measured(run)
    assert (value.value, value.n) == (4.0, 5)


def test_steps_without_traffic_neither_hold_nor_break() -> None:
    value = measured(after(BAD, SILENT, SILENT, GOOD, SILENT, GOOD, GOOD))
    assert (value.value, value.low) == (4.0, 1.0)  # it may have come back any time since the last bad step


def test_an_infinite_answer_breaks() -> None:
    assert measured(after(GOOD, GOOD, math.inf, GOOD, GOOD, GOOD)).value == 4.0


def test_at_once_is_within_the_first_step() -> None:
    value = measured(after(GOOD, GOOD, GOOD))
    assert (value.value, value.low) == (1.0, 0.0)


def test_steps_before_the_end_of_the_fault_do_not_count() -> None:
    run = Run().sick([(47.0, GOOD), (48.0, GOOD), (49.0, GOOD)])
    assert measured(after(BAD, GOOD, GOOD, GOOD, run=run)).value == 2.0


def test_steps_after_the_recovery_phase_do_not_count() -> None:
    run = after(BAD).sick([(81.0, GOOD), (82.0, GOOD), (83.0, GOOD)])
    assert measured(run).status is Status.AT_LEAST


def test_two_good_steps_at_the_end_are_not_enough() -> None:
    value = measured(after(BAD, BAD, GOOD, GOOD))
    assert (value.value, value.high, value.status, value.text) == (2.0, None, Status.AT_LEAST, ">= 2")
    assert value.detail == "not back in 4.0 s of watching"
    assert Run(after(BAD, BAD, GOOD, GOOD).rows).row(RECOVERY).reason is Reason.CENSORED


def test_never_is_a_breach_only_if_watched_for_long_enough() -> None:
    long = Run().sick([(second, BAD) for second in range(51, 81)])
    for value, verdict, reason in (
        (15.0, Verdict.FAIL, Reason.NOT_RECOVERED),
        (45.0, Verdict.INCONCLUSIVE, Reason.CENSORED),
    ):
        for policy in ("strict", "point"):
            row = long.row(replace(RECOVERY, value=value), policy=policy)
            assert (row.verdict, row.reason) == (verdict, reason)


def test_nothing_after_the_fault_is_no_data() -> None:
    row = Run().sick([(10.0, GOOD)]).row(RECOVERY)
    assert (row.verdict, row.reason) == (Verdict.NO_DATA, Reason.NO_OBSERVATIONS)


def test_a_condition_that_never_held_is_no_recovery() -> None:
    run = Run().sick([(second, BAD) for second in (*range(20), *range(51, 81))])
    row = run.row(RECOVERY)
    assert (row.verdict, row.reason) == (Verdict.INCONCLUSIVE, Reason.BASELINE_NOT_STEADY)
    assert "the condition of Recovery time did not hold before the fault" in row.explanation
    assert len(run.judge(RECOVERY).notes) == 1


@pytest.mark.parametrize(
    ("baseline", "steady"),
    [
        ([GOOD] * 20, True),
        ([BAD] * 9 + [GOOD] * 11, True),
        ([BAD] * 10 + [GOOD] * 10, False),  # no majority
        ([GOOD] * 19 + [BAD], False),  # down when the fault came
        ([BAD] * 15 + [GOOD] * 3 + [SILENT] * 2, False),
        ([SILENT] * 15 + [GOOD] * 5, True),
    ],
)
def test_most_steps_before_the_fault_must_hold_and_the_last_of_them(baseline: list[float], steady: bool) -> None:
    run = Run().sick(list(enumerate(baseline))).sick([(second, BAD) for second in range(51, 81)])
    assert run.row(RECOVERY).reason is (Reason.NOT_RECOVERED if steady else Reason.BASELINE_NOT_STEADY)


def test_a_baseline_of_two_steps_tells_nothing() -> None:
    run = Run().sick([(1.0, BAD), (2.0, BAD), *((float(second), BAD) for second in range(51, 81))])
    assert run.row(RECOVERY).reason is Reason.NOT_RECOVERED


def test_the_number_of_steps_is_the_objectives() -> None:
    once = replace(RECOVERY, indicator=RecoveryIndicator("q", RECOVERY.indicator.op, 1.0, windows=1))
    assert measured(after(BAD, GOOD), once).value == 2.0


def test_a_control_run_counts_from_the_end_of_its_chaos_phase() -> None:
    windows = [replace(window, injected_at=None, reverted_at=None) for window in WINDOWS]
    run = Run().sick([(second, GOOD) for second in range(81)])
    row = run.row(RECOVERY, fault="none", windows=windows)
    assert (row.verdict, row.phases[Phase.RECOVERY].value) == (Verdict.PASS, 0.0)


def test_without_a_chaos_phase_there_is_nothing_to_come_back_from() -> None:
    row = after(GOOD, GOOD, GOOD).row(RECOVERY, windows=[WINDOWS[0]])
    assert (row.verdict, row.reason) == (Verdict.NO_DATA, Reason.MISSING)


@pytest.mark.parametrize(("status", "reason"), [("error", "QUERY_ERROR"), ("unreachable", "UNREACHABLE")])
def test_a_broken_answer_in_between_is_not_skipped(status: str, reason: str) -> None:
    run = after(BAD, GOOD, GOOD, GOOD).add("recovery", "recovery", "", None, seconds=60, status=status)
    assert run.row(RECOVERY).reason == reason


def test_several_series_are_an_error() -> None:
    run = after(GOOD, GOOD, GOOD).add("recovery", "recovery", "", 0.0, seconds=55, pod="a")
    assert run.row(RECOVERY).reason is Reason.INCONSISTENT
