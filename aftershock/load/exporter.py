"""The HTTP page that Prometheus scrapes, and the knowledge of when it did.

A counter that first appears above zero loses its first increments, and one that vanishes before its last scrape loses
its last: so a load waits here for scrapes before its first request, and after its last answer.

Which GET /metrics is of the Prometheus that will be asked cannot be told: the other half of an HA pair looks the same.
But whoever scrapes once an interval has done so when a whole interval has passed. So the rule is: a whole interval, and
at least one scrape that began in it, for else nobody scrapes at all.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from aftershock.errors import InfrastructureError
from aftershock.exposition import CONTENT_TYPE
from aftershock.load.metrics import PhaseMetrics


class Exporter:
    """Serves the page of one phase. A GET /metrics is a scrape once its answer was written."""

    def __init__(self, metrics: PhaseMetrics) -> None:
        self._metrics = metrics
        self._waiting: set[asyncio.Future[None]] = set()

    async def seen(self, interval_s: float, timeout_s: float) -> bool:
        """Wait until all who scrape each `interval_s` have the values of now. False where nobody scraped in time."""
        loop = asyncio.get_running_loop()
        all_scraped_at = loop.time() + interval_s
        scrape = loop.create_future()
        self._waiting.add(scrape)
        try:
            await asyncio.wait_for(scrape, timeout_s)
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(scrape)
        await asyncio.sleep(all_scraped_at - loop.time())
        return True

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One scrape."""
        served, self._waiting = self._waiting, set()
        page = self._metrics.page()
        try:
            response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE, "Content-Length": str(len(page))})
            await response.prepare(request)
            await response.write(page)
            await response.write_eof()
        except BaseException:
            self._waiting |= served  # it did not get there
            raise
        for scrape in served:
            if not scrape.done():
                scrape.set_result(None)
        return response


@asynccontextmanager
async def serve(metrics: PhaseMetrics, host: str, port: int) -> AsyncIterator[Exporter]:
    """An exporter that listens while the block runs. Raises InfrastructureError where the port cannot be had."""
    exporter = Exporter(metrics)
    app = web.Application()
    app.router.add_get("/metrics", exporter.handle, allow_head=False)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        try:
            await web.TCPSite(runner, host, port).start()
        except OSError as error:
            why = "is taken" if error.errno == errno.EADDRINUSE else f"cannot be opened ({error.strerror or error})"
            raise InfrastructureError(
                f"port {port} of {host}, where Prometheus scrapes the load generator, {why}; "
                "choose another with --metrics-port"
            ) from error
        yield exporter
    finally:
        await runner.cleanup()
