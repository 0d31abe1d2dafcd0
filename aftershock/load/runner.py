"""One phase of load, from the first scrape to the last: where the parts of this package meet."""

from __future__ import annotations

import asyncio
import gc
import logging
import resource
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace

from aftershock.errors import AftershockError, RunDirectoryError
from aftershock.load.arrivals import schedule
from aftershock.load.client import Client, open_client
from aftershock.load.clock import Clock
from aftershock.load.exporter import Exporter, serve
from aftershock.load.metrics import PhaseMetrics
from aftershock.load.pacing import LoopLag, pace
from aftershock.load.plan import LoadPlan, LoadProgress, LoadResult
from aftershock.load.protocol import get_protocol
from aftershock.load.records import RecordWriter, compact
from aftershock.load.sender import Sender
from aftershock.windows import Window

log = logging.getLogger(__name__)

OnProgress = Callable[[LoadProgress], None]
OnWarning = Callable[[str], None]

_PROGRESS_S = 1.0
_LIVE_TICKS = 3
"""Live percentiles are of so many progress intervals."""

_SETTLING_S = 0.05
"""From the scrape of the last values to the instant at which queries are asked for them. A sample is stored under the
time at which Prometheus began to scrape, by its own clock, moved back by up to 2 ms to its schedule. So this is for
scrapes that come a little late, and for a clock that is ahead of ours by what NTP leaves."""

_RESENT_SHARE = 0.01
"""Of the requests: beyond it, P99 may be of requests that were sent twice."""

_HEAD_START_S = 0.02
"""From the start of the machinery to the start of the schedule, so that the first request is not late."""


async def run_load(
    plan: LoadPlan,
    *,
    stop: asyncio.Event | None = None,
    on_start: Callable[[], None] | None = None,
    on_progress: OnProgress | None = None,
    on_warning: OnWarning | None = None,
) -> LoadResult:
    """Run one phase: wait until the zeros are scraped, send on schedule, drain, wait until the last values are.

    `on_start` is called a moment before the first request is due: a fault that begins then meets the whole schedule.
    Ends at `plan.seconds`, or when `stop` is set. Requests in flight then are drained, for at most the request
    time-out, and belong to the phase. If this is cancelled, what is in flight is recorded as cancelled.
    Raises RunDirectoryError (the records so far stay readable) and InfrastructureError (port taken, out of files).
    """
    stop = stop or asyncio.Event()
    warnings = _Warnings(plan, on_warning)
    metrics = PhaseMetrics(plan.phase)
    writer = RecordWriter(plan.records_path)
    if writer.earlier is not None:
        warnings.add(f"an earlier attempt at this phase left records; they are in {writer.earlier} now")
    _allow_many_connections()
    async with AsyncExitStack() as stack:
        exporter = await stack.enter_async_context(_exporter(plan, metrics))
        client = await stack.enter_async_context(open_client(plan.target_url, get_protocol(plan.protocol)))
        await _zeros_scraped(exporter, plan, stop, warnings)
        if on_start:
            on_start()
        with _quiet_collector():
            course = await _drive(plan, client, metrics, writer, stop, on_progress)
        compaction = asyncio.to_thread(compact, writer.folder, plan.records_path)
        settling, _ = await asyncio.gather(_settle(exporter, plan, warnings), compaction)
    return _result(plan, metrics, course, settling, warnings)


@dataclass(frozen=True)
class _Course:
    """How a schedule went; instants by the loop's clock."""

    clock: Clock
    begin: float
    end: float
    last_sent: float
    sent: int
    resent: int
    loop_lag_p99_s: float


async def _drive(
    plan: LoadPlan,
    client: Client,
    metrics: PhaseMetrics,
    writer: RecordWriter,
    stop: asyncio.Event,
    on_progress: OnProgress | None,
) -> _Course:
    """Send the schedule and see every answer; what fails beside it ends it, with all that was recorded written."""
    clock = Clock.read()
    begin = clock.monotonic_s + _HEAD_START_S
    sender = Sender(plan, client, metrics, writer, clock)
    lag = LoopLag()
    done = asyncio.Event()
    arrivals = schedule(plan.arrivals, plan.rate, plan.seed)
    try:
        async with asyncio.TaskGroup() as background:
            background.create_task(writer.keep_flushing(done))
            background.create_task(_report(plan, metrics, begin, done, on_progress))
            async with asyncio.TaskGroup() as requests:  # leaving it waits for every answer
                sent, end = await pace(
                    arrivals,
                    lambda seq, due: requests.create_task(sender.send(seq, due)),
                    begin=begin,
                    seconds=plan.seconds,
                    stop=stop,
                )
            done.set()
    except BaseExceptionGroup as group:
        raise _cause(group) from group
    finally:
        lag.cancel()
        if not done.is_set():  # ended early: keep what is known, unless the disk is what failed
            with suppress(RunDirectoryError):
                writer.flush()
    return _Course(clock, begin, end, sender.last_sent, sent, client.resent, lag.histogram.quantile(0.99) or 0.0)


def _cause(error: BaseException) -> BaseException:
    """The error that a task group wraps, ours before any other: callers catch by type."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = [_cause(inner) for inner in error.exceptions]
    return next((leaf for leaf in leaves if isinstance(leaf, AftershockError)), leaves[0])


async def _report(
    plan: LoadPlan, metrics: PhaseMetrics, begin: float, done: asyncio.Event, on_progress: OnProgress | None
) -> None:
    """Call `on_progress` each second. Live percentiles are differences of counts: a request pays nothing for them."""
    now = asyncio.get_running_loop().time
    durations = deque([metrics.duration.counts.copy()], _LIVE_TICKS)
    lags = deque([metrics.send_lag.counts.copy()], _LIVE_TICKS)
    for tick in range(1, 1 << 62):
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), begin + tick * _PROGRESS_S - now())
            return
        progress = LoadProgress(
            elapsed_s=now() - begin,
            sent=metrics.sent,
            ok=metrics.ok,
            failed=metrics.finished - metrics.ok,
            p99_s=metrics.duration.quantile(0.99, since=durations[0]),
            send_lag_p99_s=metrics.send_lag.quantile(0.99, since=lags[0]),
        )
        durations.append(metrics.duration.counts.copy())
        lags.append(metrics.send_lag.counts.copy())
        if on_progress:
            try:
                on_progress(progress)
            except Exception:
                log.warning("%s: progress could not be told", plan.phase, exc_info=True)


def _result(
    plan: LoadPlan, metrics: PhaseMetrics, course: _Course, settling: _Settling, warnings: _Warnings
) -> LoadResult:
    at = course.clock.at
    end = max(course.end, course.begin + 0.001)  # stopped before it began: a window still has a length
    window = Window(plan.phase, start=at(course.begin), end=at(end), settled_at=at(max(settling.at, end)))
    result = LoadResult(
        window=window,
        settled=settling.scraped,
        sent=course.sent,
        ok=metrics.ok,
        failed=metrics.finished - metrics.ok,
        offered_rate=course.sent / window.seconds,
        achieved_rate=course.sent / max(window.seconds, course.last_sent - course.begin),
        send_lag_p99_s=metrics.send_lag.quantile(0.99) or 0.0,
        loop_lag_p99_s=course.loop_lag_p99_s,
        resent=course.resent,
    )
    if course.resent > _RESENT_SHARE * course.sent:
        warnings.add(
            f"{course.resent} of {course.sent} requests met a connection that the service had closed without saying "
            "so and were sent again on a new one: their latency has that in it; a proxy in between would avoid it"
        )
    if not result.keeping_up:
        warnings.add(
            f"the load generator fell behind (send lag P99 {result.send_lag_p99_s * 1000:.0f} ms, "
            f"{result.achieved_rate:.1f} of {result.offered_rate:.1f} requests/s): latencies are partly its own; "
            "lower --rate or give it more CPU"
        )
    return replace(result, warnings=tuple(warnings.messages))


class _Warnings:
    """What makes the result worth less: logged and told at once, and kept for the result."""

    def __init__(self, plan: LoadPlan, on_warning: OnWarning | None) -> None:
        self.messages: list[str] = []
        self._phase = plan.phase
        self._on_warning = on_warning

    def add(self, message: str) -> None:
        log.warning("%s: %s", self._phase, message)
        self.messages.append(message)
        if self._on_warning:
            self._on_warning(message)


@asynccontextmanager
async def _exporter(plan: LoadPlan, metrics: PhaseMetrics) -> AsyncIterator[Exporter | None]:
    if not plan.metrics_port:
        yield None
        return
    async with serve(metrics, plan.metrics_host, plan.metrics_port) as exporter:
        yield exporter


async def _zeros_scraped(exporter: Exporter | None, plan: LoadPlan, stop: asyncio.Event, warnings: _Warnings) -> None:
    """Wait until Prometheus has seen every series at zero; a stop or a deadline ends the wait.

    One scrape is enough here, whoever made it: a series that Prometheus meets later counts from zero all the same.
    """
    if exporter is None:
        return
    patience_s = 3 * plan.scrape_interval_s + 2
    scrape = asyncio.ensure_future(exporter.seen(0.0, patience_s))
    stopped = asyncio.ensure_future(stop.wait())
    await asyncio.wait({scrape, stopped}, return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not scrape.done():
        scrape.cancel()
    elif not scrape.result():
        warnings.add(
            f"nobody scrapes port {plan.metrics_port} of host {plan.metrics_host} (waited {patience_s:.0f} s): "
            "Prometheus will know nothing of this load; check its targets and --metrics-port"
        )


@dataclass(frozen=True)
class _Settling:
    """When, by the loop's clock, waiting for the last values to be scraped ended, and whether they were."""

    at: float
    scraped: bool


async def _settle(exporter: Exporter | None, plan: LoadPlan, warnings: _Warnings) -> _Settling:
    """Wait until the last values are scraped, or for as long as makes sense. The page stays there until then."""
    scraped = exporter is not None and await exporter.seen(plan.scrape_interval_s, 2 * plan.scrape_interval_s + 1)
    if scraped:
        await asyncio.sleep(_SETTLING_S)
    elif exporter is not None:
        warnings.add("the last values were not scraped in time: queries over this phase may miss its end")
    return _Settling(asyncio.get_running_loop().time(), scraped)


@contextmanager
def _quiet_collector() -> Iterator[None]:
    """Keep what is loaded out of garbage collection meanwhile: with pandas and kfp, each full pass stops the loop for
    tens of milliseconds, and would be measured as the service's."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _allow_many_connections() -> None:
    """When a service hangs, an open loop holds one socket a request; 1,024 files, a usual soft limit, are soon gone."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(ValueError, OSError):  # some systems name a hard limit that they do not grant
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
