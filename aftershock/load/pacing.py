"""Sending on schedule, and how late the event loop runs: the two places where a generator can fool itself."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

from aftershock.load.histogram import Histogram

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
    pacer = _Pacer(arrivals, send, begin, begin + seconds)
    try:
        await asyncio.wait_for(stop.wait(), begin + seconds - pacer.now())
    except TimeoutError:
        end = begin + seconds
    else:
        end = min(max(pacer.now(), begin), begin + seconds)
    finally:
        pacer.cancel()
    pacer.send_until(end)
    return pacer.sent, end


class _Pacer:
    """A chain of timers, one for each next arrival; no task and no future a request."""

    def __init__(
        self, arrivals: Iterator[float], send: Callable[[int, float], object], begin: float, end: float
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self.now = self._loop.time
        self.sent = 0
        self._send = send
        self._dues = (begin + offset for offset in arrivals)
        self._due = next(self._dues)
        self._end = end
        self._timer = self._loop.call_at(self._due, self._fire)

    def _fire(self) -> None:
        self.send_until(min(self.now(), self._end))
        if self._due < self._end:
            self._timer = self._loop.call_at(self._due, self._fire)

    def send_until(self, instant: float) -> None:
        """Send all that is due by `instant`, which is excluded so that a phase of N seconds at rate R has N*R."""
        while self._due < instant:
            self._send(self.sent, self._due)
            self.sent += 1
            self._due = next(self._dues)

    def cancel(self) -> None:
        self._timer.cancel()


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
