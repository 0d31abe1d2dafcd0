"""The brake: when it stops the fault, what it writes down of that, and when it keeps out of the way."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from aftershock import steps
from aftershock.brake import brake
from aftershock.chaos.backend import ChaosOutcome, EarlyStop
from aftershock.experiment import Experiment
from aftershock.progress import JOURNAL_VARIABLE
from aftershock.slo.objective import Objective, Op, ScalarIndicator, StopCondition
from aftershock.slo.openslo import read_slo_text
from aftershock.slo.watch import Alarm, StopReason
from aftershock.windows import utc_now

BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
ERRORS = Objective("error-rate", "Error rate", "%", Op.LTE, 1.0, ScalarIndicator("q"), stop=StopCondition(50.0))
BREACH = Alarm(StopReason.SLO_BREACHED, BEGAN, "error-rate 63 % is beyond 50 % since 5 s", ERRORS, 63.0)


@dataclass
class FakeFault:
    """A fault that lasts until it is told to stop, or until it is let go; it disturbs nothing."""

    verdict: Literal["Pass", "Stopped", "Error"] = "Stopped"
    verified_at: datetime | None = None
    stop: threading.Event = field(default_factory=threading.Event)

    def run(self) -> ChaosOutcome:
        """As a backend does, in a thread of its own."""
        assert self.stop.wait(10), "nobody stopped it"
        return ChaosOutcome(
            self.verdict, self.verdict, None, None, BEGAN, BEGAN, 1, (), {}, (), "fake", self.verified_at
        )


async def says(alarm: Alarm) -> Alarm:
    return alarm


async def is_quiet() -> Alarm:
    await asyncio.Event().wait()
    raise AssertionError


async def breaks_down() -> Alarm:
    raise ValueError("a defect")


Watching = Callable[[], Coroutine[Any, Any, Alarm]]


def braked(fault: FakeFault, watch: Watching | None, *, injected: bool = True, over: bool = False) -> EarlyStop | None:
    """The whole of it: the fault in a thread; if nobody stops it, it is let go after 0.2 s."""

    async def run() -> EarlyStop | None:
        events = asyncio.Event(), asyncio.Event()
        for event, is_set in zip(events, (injected, over), strict=True):
            if is_set:
                event.set()
        asyncio.get_running_loop().call_later(0.2, fault.stop.set)
        disturbing = asyncio.create_task(asyncio.to_thread(fault.run))
        stopped = await brake(watch, injected=events[0], over=events[1], disturbing=disturbing, stop_fault=fault.stop)
        await disturbing
        return stopped

    return asyncio.run(run())


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[dict[str, Any]]]:
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(JOURNAL_VARIABLE, str(path))
    return lambda: [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_an_alarm_stops_the_fault_and_all_its_times_are_kept(journal: Callable[[], list[dict[str, Any]]]) -> None:
    fault = FakeFault()
    before = utc_now()
    stopped = braked(fault, lambda: says(BREACH))
    assert stopped is not None
    assert stopped.breached_at == BEGAN < before <= stopped.asked_at
    assert stopped.verified_at is not None
    assert stopped.asked_at <= stopped.verified_at <= utc_now()
    document = json.loads(json.dumps(stopped.to_dict()))
    assert document == {
        "by": "slo-watch",
        "reason": "SLO_BREACHED",
        "message": "error-rate 63 % is beyond 50 % since 5 s",
        "objective": "error-rate",
        "value": 63.0,
        "bound": 50.0,
        "unit": "%",
        "breached_at": BEGAN.isoformat(),
        "asked_at": stopped.asked_at.isoformat(),
        "verified_at": stopped.verified_at.isoformat(),
        "seconds_to_stop": (stopped.verified_at - BEGAN).total_seconds(),
    }
    said = [(event["event"], event["message"]) for event in journal()]
    assert said == [
        ("stop", "error-rate 63 % is beyond 50 % since 5 s: stopping the fault"),
        ("stopped", f"{stopped.seconds_to_stop:.1f} s after the breach began, verified"),
    ]


def test_the_backend_knows_best_when_its_stop_was_verified() -> None:
    verified_at = BEGAN + timedelta(seconds=7.5)
    stopped = braked(FakeFault(verified_at=verified_at), lambda: says(BREACH))
    assert stopped is not None
    assert (stopped.verified_at, stopped.seconds_to_stop) == (verified_at, 7.5)


def test_a_watch_that_breaks_down_stops_the_fault(
    journal: Callable[[], list[dict[str, Any]]], caplog: pytest.LogCaptureFixture
) -> None:
    stopped = braked(FakeFault(), breaks_down)
    assert stopped is not None
    assert (stopped.reason, stopped.objective, stopped.bound) == ("WATCH_FAILED", None, None)
    assert journal()[0]["message"] == "the SLO watch failed (ValueError: a defect): stopping the fault"
    assert "the SLO watch failed" in caplog.text and "a defect" in caplog.text


def test_a_stop_that_is_not_verified_says_so(journal: Callable[[], list[dict[str, Any]]]) -> None:
    stopped = braked(FakeFault(verdict="Error", verified_at=BEGAN), lambda: says(BREACH))
    assert stopped is not None
    assert (stopped.verified_at, stopped.seconds_to_stop) == (None, None)
    assert [event["message"] for event in journal()][1].startswith("not verified")


@pytest.mark.parametrize(
    ("fault", "watch", "state"),
    [
        (FakeFault(), None, {}),
        (FakeFault(), is_quiet, {}),
        (FakeFault(verdict="Pass"), lambda: says(BREACH), {}),
        (FakeFault(), lambda: says(BREACH), {"injected": False}),
        (FakeFault(), lambda: says(BREACH), {"over": True}),
    ],
    ids=["no conditions", "no alarm", "ended by itself", "never injected", "over already"],
)
def test_when_nothing_was_stopped(fault: FakeFault, watch: Watching | None, state: dict[str, bool]) -> None:
    assert braked(fault, watch, **state) is None


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"slo": "llm-inference"}, ["error-rate"]),
        ({"slo": "canary"}, []),
        ({"slo": "llm-inference", "slo_watch": False}, []),
        ({"slo": "llm-inference", "fault": "none"}, []),
        ({"slo": read_slo_text("llm-inference")}, ["error-rate"]),
    ],
)
def test_which_conditions_are_watched(fields: dict[str, Any], names: list[str]) -> None:
    experiment = Experiment.model_validate(fields)
    assert [condition.name for condition in steps._stop_conditions(experiment)] == names
    assert (steps._watch(experiment) is None) == (not names)
