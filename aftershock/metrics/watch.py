"""Ask Prometheus for the stop conditions while a fault goes on. However slow or dead it is, it keeps nobody waiting.

Each round is asked in a thread of its own, one at a time. A round that is not back when the next is due is left to
itself, and the moment counts as one without an answer.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import TypeVar

from aftershock.errors import PrometheusError
from aftershock.metrics.prometheus import PrometheusClient
from aftershock.slo.live import live_query, lookback
from aftershock.slo.objective import Objective
from aftershock.slo.watch import BLIND_S, Alarm, Reading, Watch
from aftershock.windows import utc_now

DEADLINE_S = 5.0
"""Of one round of questions."""
LEAST_INTERVAL_S = 1.0

R = TypeVar("R")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Pace:
    """How often to ask, and how far to look back, in seconds."""

    every_s: float
    lookback_s: float
    blind_s: float = BLIND_S
    """So long without a value of a condition is an alarm."""

    @classmethod
    def of(cls, *, scrape_interval_s: float, rate: float, request_timeout_s: float) -> Pace:
        """Fair to a load of `rate` requests per second, each of which has an outcome after `request_timeout_s`."""
        return cls(
            every_s=max(LEAST_INTERVAL_S, scrape_interval_s),
            lookback_s=lookback(scrape_interval_s=scrape_interval_s, rate=rate),
            blind_s=max(BLIND_S, request_timeout_s),
        )


async def watch(objectives: Sequence[Objective], url: str, *, load_began: datetime, pace: Pace) -> Alarm:
    """Ask `url` for the objectives that have a stop condition until one of them says that the fault has to end.

    No question looks back to before `load_began`: what was there before the load of the chaos phase is the baseline's,
    and not every query names its phase.
    """
    watched = [objective for objective in objectives if objective.stop]
    state = Watch(watched, utc_now(), pace.blind_s)
    loop = asyncio.get_running_loop()
    round_, due = None, loop.time()
    with PrometheusClient(url, timeout_s=DEADLINE_S) as client:
        while True:
            if round_ is None:
                asked_at = utc_now()
                lookback_s = min(pace.lookback_s, (asked_at - load_began).total_seconds())
                round_ = _aside(partial(ask, client, watched, asked_at, lookback_s))
            due = max(due + pace.every_s, loop.time())
            await asyncio.wait({round_}, timeout=due - loop.time())
            if round_.done():
                alarm, round_ = state.observe(asked_at, round_.result()), None
            else:
                alarm = state.observe(utc_now(), {})
            if alarm:
                return alarm
            await asyncio.sleep(due - loop.time())


def ask(
    client: PrometheusClient, objectives: Sequence[Objective], at: datetime, lookback_s: float
) -> dict[str, Reading]:
    """What each objective was over the `lookback_s` before `at`, by name; never raises for want of an answer."""
    with client.limited(DEADLINE_S):
        return {objective.name: _read(client, objective, at, lookback_s) for objective in objectives}


def _read(client: PrometheusClient, objective: Objective, at: datetime, lookback_s: float) -> Reading:
    try:
        values = [
            value
            for series in client.query(live_query(objective, lookback_s=lookback_s), at)
            for value in series.values
        ]
    except PrometheusError as error:
        log.info("stop condition %s: %s", objective.name, error)
        return Reading(None, str(error))
    if len(values) != 1:
        return Reading(
            None, f"Prometheus has {len(values)} samples for it, where one is needed" if values else "no data"
        )
    return Reading.of(values[0])


def _aside(work: Callable[[], R]) -> asyncio.Future[R]:
    """`work` in a daemon thread: unlike those of `asyncio.to_thread`, nobody waits for it at the end of the process."""
    answer: Future[R] = Future()

    def run() -> None:
        answer.set_running_or_notify_cancel()
        try:
            answer.set_result(work())
        except Exception as error:
            log.warning("the questions of the SLO watch failed", exc_info=True)
            answer.set_exception(error)

    threading.Thread(target=run, name="slo watch", daemon=True).start()
    return asyncio.wrap_future(answer)
