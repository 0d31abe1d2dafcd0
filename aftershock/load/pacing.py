"""Sending on schedule, and how late the event loop runs: the two places where a generator can fool itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from aftershock.exposition import Histogram

_PROBE_S = 0.05


async def pace(
    arrivals: Iterator[float],
    send: Callable[[int, float], object],
    *,
    begin: float,
    seconds: float,
    stop: asyncio.Event,
) -> tuple[int, float]:
    """Call `send(seq, due)` for each arrival when it is due, until `seconds` after `begin` or until `stop` is set.

    It never waits for an answer, and a late loop makes no arrival later: all that is overdue is sent at once, each with
    the time at which it was due. Returns how many were sent and when the schedule ended, by the loop's clock.
    """
    now = asyncio.get_running_loop().time
    end = begin + seconds
    dues = (begin + offset for offset in arrivals)
    due, sent = next(dues), 0
    with _Alarm(stop) as alarm:
        while True:
            stopped = stop.is_set()
            instant = min(now(), end)
            while due < instant:  # what is due at the end is not: a phase of N seconds at rate R has N * R requests
                send(sent, due)
                sent += 1
                due = next(dues)
            if stopped or instant == end:
                return sent, max(begin, instant)
            await alarm.sleep_until(min(due, end))


class _Alarm:
    """Sleeps until an instant or a stop, at the cost of one timer and one future."""

    def __init__(self, stop: asyncio.Event) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = stop
        self._bell = self._loop.create_future()

    def __enter__(self) -> _Alarm:
        self._stopping = asyncio.ensure_future(self._stop.wait())
        self._stopping.add_done_callback(self._ring)
        return self

    def __exit__(self, *exc: object) -> None:
        self._stopping.cancel()

    async def sleep_until(self, instant: float) -> None:
        self._bell = self._loop.create_future()
        timer = self._loop.call_at(instant, self._ring)
        try:
            if not self._stop.is_set():
                await self._bell
        finally:
            timer.cancel()

    def _ring(self, _: object = None) -> None:
        if not self._bell.done():
            self._bell.set_result(None)


class LoopLag:
    """How late the event loop runs a timer: the delay it may add to anything that is timed in it."""

    def __init__(self) -> None:
        self.histogram = Histogram()
        self._loop = asyncio.get_running_loop()
        self._expected = self._loop.time() + _PROBE_S
        self._timer = self._loop.call_at(self._expected, self._probe)

    def _probe(self) -> None:
        now = self._loop.time()
        self.histogram.observe(max(0.0, now - self._expected))
        self._expected = now + _PROBE_S
        self._timer = self._loop.call_at(self._expected, self._probe)

    def cancel(self) -> None:
        """Stop probing."""
        self._timer.cancel()
