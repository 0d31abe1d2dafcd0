"""The HTTP page that Prometheus scrapes, and the knowledge of when it did.

A counter that first appears above zero loses its first increments, and one that vanishes before its last scrape loses
its last: so a load waits here for one scrape before its first request, and for one after its last answer.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from aiohttp import web

from aftershock.errors import InfrastructureError
from aftershock.load.metrics import CONTENT_TYPE, PhaseMetrics


class Exporter:
    """Serves the page of one phase. Any GET /metrics counts as a scrape once its answer was written."""

    def __init__(self, metrics: PhaseMetrics) -> None:
        self._metrics = metrics
        self._waiting: set[asyncio.Future[None]] = set()

    async def scraped(self, timeout_s: float) -> bool:
        """Wait for the end of a scrape that begins after this call. False where none came in time."""
        scrape = asyncio.get_running_loop().create_future()
        self._waiting.add(scrape)
        with suppress(TimeoutError):
            await asyncio.wait_for(scrape, timeout_s)
            return True
        return False

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One scrape."""
        page = self._metrics.page()
        served, self._waiting = self._waiting, set()
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
