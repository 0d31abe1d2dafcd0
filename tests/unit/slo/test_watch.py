"""When a fault is stopped: what was read, second by second, and the alarm that comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest

from aftershock.slo.objective import Objective, Op, ScalarIndicator, StopCondition
from aftershock.slo.watch import Alarm, Reading, StopReason, Watch

START = datetime(2026, 1, 1, tzinfo=UTC)
NAN = float("nan")


def after(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def objective(name: str = "error-rate", op: Op = Op.LTE, stop: StopCondition | None = None) -> Objective:
    return Objective(name, "Error rate", "%", op, 1.0, ScalarIndicator("q"), stop=stop or StopCondition(50.0, 5.0))


def first_alarm(values: Sequence[float | None], it: Objective | None = None) -> tuple[int, Alarm] | None:
    """The second in which the first alarm comes, and the alarm; one value a second."""
    it = it or objective()
    watch = Watch([it], START, blind_s=30)
    for second, value in enumerate(values):
        reading = Reading(None, "nobody knows") if value is None else Reading.of(value)
        if alarm := watch.observe(after(second), {it.name: reading}):
            return second, alarm
    return None


def test_a_breach_that_lasts_is_an_alarm_since_its_first_reading() -> None:
    found = first_alarm([0, 20, 60, 61, 62, 63, 64, 63.333, 70])
    assert found is not None
    second, alarm = found
    assert (second, alarm.began_at, alarm.value) == (7, after(2), 63.333)
    assert alarm.reason is StopReason.SLO_BREACHED
    assert alarm.message == "error-rate 63.33 % is beyond 50 % since 5 s"


@pytest.mark.parametrize(
    "values",
    [
        [60, 60, 60, 60, 60, 50] * 5,  # 50 is not beyond 50
        [0.0] * 100,
        [2.0] * 100,  # the objective is breached, its stop condition is not
        [60, 60, 60, 60, 60, 0, NAN, 60, 60, 60, 60, 60],
    ],
)
def test_what_is_no_sustained_breach(values: list[float]) -> None:
    assert first_alarm(values) is None


@pytest.mark.parametrize("gap", [None, NAN, float("inf")])
def test_a_moment_without_a_value_neither_breaches_nor_complies(gap: float | None) -> None:
    found = first_alarm([60, gap, gap, gap, gap, gap, gap, 60])
    assert found is not None
    assert (found[0], found[1].began_at) == (7, START), "the gap ends no breach, and only a value confirms it"
    assert first_alarm([60, 60, 60, 60, gap, gap, gap, gap, 50]) is None
    assert first_alarm([gap] * 29 + [60]) is None


def test_a_floor_is_breached_from_below() -> None:
    floor = objective("good", Op.GTE)
    found = first_alarm([50, 49, 40, 40, 40, 40, 39], floor)
    assert found is not None
    assert found[1].message == "good 39 % is below 50 % since 5 s"


def test_a_watch_that_sees_nothing_stops_the_fault_too() -> None:
    found = first_alarm([0, 0, *[None] * 40])
    assert found is not None
    second, alarm = found
    assert (second, alarm.reason, alarm.began_at, alarm.value) == (31, StopReason.WATCH_BLIND, after(1), None)
    assert alarm.message == "error-rate could not be evaluated for 30 s (nobody knows)"
    assert first_alarm([0, *[NAN] * 40]) is not None
    never_seen = first_alarm([None] * 40)
    assert never_seen is not None
    assert (never_seen[0], never_seen[1].began_at) == (30, START)


def test_each_condition_must_be_seen_and_a_breach_goes_before_blindness() -> None:
    one, other = objective("one", stop=StopCondition(50, 30)), objective("other")
    watch = Watch([other, one], START, blind_s=30)
    alarms = [watch.observe(after(second), {"one": Reading.of(60)}) for second in range(31)]
    assert alarms[:30] == [None] * 30
    assert alarms[30] is not None
    assert (alarms[30].reason, alarms[30].objective) == (StopReason.SLO_BREACHED, one)
    blind = Watch([one, other], START, blind_s=10)
    seen = [blind.observe(after(second), {"one": Reading.of(0)}) for second in range(11)]
    assert seen[10] is not None
    assert seen[10].message == "other could not be evaluated for 10 s (there was no answer)"


def test_objectives_without_a_stop_condition_stop_nothing() -> None:
    free = Objective("free", "Free", "%", Op.LTE, 1.0, ScalarIndicator("q"))
    watch = Watch([free], START, blind_s=1)
    assert [watch.observe(after(second), {"free": Reading.of(100)}) for second in range(50)] == [None] * 50
    assert watch.observe(after(100), {}) is None
