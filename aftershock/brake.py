"""The brake of a fault: the SLO's stop conditions are watched while it goes on, and it is stopped once one is reached.

The brake never holds up the run: whatever becomes of it, load and fault end as they would without it. Nor does it fail
without a word: a watch that breaks down stops the fault.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from aftershock.chaos.backend import ChaosOutcome, EarlyStop
from aftershock.progress import emit
from aftershock.slo.watch import Alarm, StopReason
from aftershock.windows import utc_now

BY = "slo-watch"

Watching = Callable[[], Coroutine[Any, Any, Alarm]]
"""Called once the fault acts; returns when it has to be stopped."""

log = logging.getLogger(__name__)


async def brake(
    watch: Watching | None,
    *,
    injected: asyncio.Event,
    over: asyncio.Event,
    disturbing: asyncio.Future[ChaosOutcome],
    stop_fault: threading.Event,
) -> EarlyStop | None:
    """Stop the fault once `watch`, which is begun at the injection, returns an alarm; say when it was seen to be over.

    None if the fault is `over` before that, or if it turns out to have ended by itself. `disturbing` is the backend at
    work, which returns only when the fault has been reverted.
    """
    alarm = await _first_alarm(watch, injected, over, disturbing) if watch else None
    if alarm is None:
        return None
    asked_at = utc_now()
    stop_fault.set()
    emit("stop", by=BY, reason=alarm.reason.value, message=f"{alarm.message}: stopping the fault")
    await asyncio.wait({disturbing})
    returned_at = utc_now()
    if disturbing.cancelled() or disturbing.exception() is not None:
        return None  # whoever waits for the backend learns of it
    outcome = disturbing.result()
    if outcome.verdict in ("Pass", "Fail"):
        return None
    stopped = EarlyStop(
        by=BY,
        reason=alarm.reason.value,
        message=alarm.message,
        objective=alarm.objective.name if alarm.objective else None,
        value=alarm.value,
        bound=alarm.objective.stop.bound if alarm.objective and alarm.objective.stop else None,
        unit=alarm.objective.unit if alarm.objective else "",
        breached_at=alarm.began_at,
        asked_at=asked_at,
        verified_at=(outcome.stop_verified_at or returned_at) if outcome.verdict == "Stopped" else None,
    )
    _say(stopped, alarm.reason)
    return stopped


async def _first_alarm(
    watch: Watching,
    injected: asyncio.Event,
    over: asyncio.Event,
    disturbing: asyncio.Future[ChaosOutcome],
) -> Alarm | None:
    """None if the fault ends first, or never begins."""
    ended = asyncio.create_task(over.wait())
    began = asyncio.create_task(injected.wait())
    watching: asyncio.Task[Alarm] | None = None
    try:
        await _first(began, disturbing)
        if not began.done():
            return None
        watching = asyncio.create_task(watch())
        await _first(watching, ended, disturbing)
        return None if ended.done() or disturbing.done() else _alarm_of(watching)
    finally:
        tasks: list[asyncio.Task[Any]] = [task for task in (ended, began, watching) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _first(*awaited: asyncio.Future[Any]) -> None:
    """Wait until one of them is done."""
    await asyncio.wait(awaited, return_when=asyncio.FIRST_COMPLETED)


def _alarm_of(watching: asyncio.Task[Alarm]) -> Alarm:
    """What the watch says; of a watch that broke down, that it did."""
    error = watching.exception()
    if error is None:
        return watching.result()
    log.error("the SLO watch failed", exc_info=error)
    return Alarm(StopReason.WATCH_FAILED, utc_now(), f"the SLO watch failed ({type(error).__name__}: {error})")


def _say(stopped: EarlyStop, reason: StopReason) -> None:
    if stopped.seconds_to_stop is None:
        emit("stopped", message="not verified: see the error of the fault")
    else:
        emit("stopped", message=f"{stopped.seconds_to_stop:.1f} s after {reason.beginning}, verified")
