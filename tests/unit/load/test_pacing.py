"""Requests go out when they are due, and what is overdue goes out at once with its own time."""

from __future__ import annotations

import asyncio
import time
from itertools import count

import pytest

from aftershock.load.pacing import LoopLag, pace


def run(
    rate: float, seconds: float, *, block_s: float = 0.0, stop_after_s: float | None = None
) -> tuple[list[tuple[int, float, float]], float]:
    """Pace constant arrivals; returns (seq, due, sent) by seconds from the start, and the end of the schedule."""
    calls: list[tuple[int, float, float]] = []

    async def main() -> float:
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        begin = loop.time() + 0.01
        if block_s:
            loop.call_at(begin + 0.05, time.sleep, block_s)
        if stop_after_s is not None:
            loop.call_at(begin + stop_after_s, stop.set)
        arrivals = (index / rate for index in count())
        sent, end = await pace(
            arrivals,
            lambda seq, due: calls.append((seq, due - begin, loop.time() - begin)),
            begin=begin,
            seconds=seconds,
            stop=stop,
        )
        assert sent == len(calls)
        return end - begin

    return calls, asyncio.run(main())


def test_every_arrival_before_the_end_is_sent_once_and_none_early() -> None:
    calls, end = run(rate=200, seconds=0.5)
    assert end == pytest.approx(0.5)
    assert [seq for seq, _, _ in calls] == list(range(100))
    assert [due for _, due, _ in calls] == pytest.approx([seq / 200 for seq in range(100)])
    assert all(sent >= due for _, due, sent in calls)


def test_a_blocked_loop_leaves_no_arrival_out_and_moves_none() -> None:
    calls, _ = run(rate=100, seconds=0.5, block_s=0.3)
    assert [due for _, due, _ in calls] == pytest.approx([seq / 100 for seq in range(50)])
    assert max(sent - due for _, due, sent in calls) > 0.25  # the wait is there to be seen
    after = [sent for _, due, sent in calls if 0.06 < due < 0.34]
    assert max(after) - min(after) < 0.1  # sent together, not paced again


def test_a_stop_ends_the_schedule_at_once() -> None:
    calls, end = run(rate=100, seconds=60, stop_after_s=0.2)
    assert 0.2 <= end < 1
    assert len(calls) == pytest.approx(end * 100, abs=1)


def test_a_rate_beyond_the_machine_does_not_hang() -> None:
    calls, _ = run(rate=1e5, seconds=0.2)
    assert len(calls) == 20_000


def test_the_lag_of_a_blocked_loop_is_seen() -> None:
    async def main() -> float | None:
        lag = LoopLag()
        await asyncio.sleep(0.12)
        time.sleep(0.4)
        await asyncio.sleep(0.12)
        lag.cancel()
        return lag.histogram.quantile(1.0)

    worst = asyncio.run(main())
    assert worst is not None
    assert 0.3 < worst < 2
