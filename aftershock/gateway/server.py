"""A whole gateway: both ports, the probes, and an orderly end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass

from aiohttp import web

from aftershock.errors import StackError
from aftershock.gateway.admin import admin_application
from aftershock.gateway.bad_requests import connection_log
from aftershock.gateway.faults.board import FaultBoard
from aftershock.gateway.health import watch
from aftershock.gateway.metrics import GatewayMetrics
from aftershock.gateway.proxy import Proxy
from aftershock.gateway.replicas import Balancer, Replica
from aftershock.gateway.settings import GatewaySettings
from aftershock.gateway.upstream import Upstream

BACKLOG = 1024
"""Connections that may wait to be accepted: a burst of clients must not see a refusal that the service did not make."""
ACCEPTED_S = 0.05
"""More than a connection that was accepted takes to be waiting for its request."""
CUT_OFF_S = 0.1
"""What aiohttp gives connections that outlived the drain."""
CLIENT_IDLE_S = 75.0
"""How long an idle client connection is kept."""
LINGER_S = 1.0
"""How long the rest of a refused request body is read and thrown away, so that its sender gets to see the answer."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Addresses:
    """Where a gateway listens."""

    url: str
    admin_url: str


@contextlib.asynccontextmanager
async def gateway(settings: GatewaySettings) -> AsyncIterator[Addresses]:
    """A gateway that listens while the block runs, and drains at its end: no new connections, requests in flight get
    `drain_timeout_s`, faults are reverted. Raises StackError if a port is taken."""
    replicas = [Replica(item.name, item.url) for item in settings.replicas]
    board = FaultBoard(replica.name for replica in replicas)
    balancer = Balancer(replicas)
    async with contextlib.AsyncExitStack() as stack:
        upstream = await stack.enter_async_context(Upstream(settings, keep_alive=settings.idle_timeout_s > 0))
        probing = await stack.enter_async_context(Upstream(settings, keep_alive=False))
        for replica in replicas:
            probes = asyncio.create_task(watch(replica, settings.health, probing, board))
            stack.push_async_callback(_cancel, probes)
        proxy = Proxy(settings, balancer, upstream, board, GatewayMetrics(replicas, board))
        admin = web.AppRunner(
            admin_application(settings.token, balancer, board),
            access_log=None,
            logger=connection_log,
            shutdown_timeout=CUT_OFF_S,
        )
        public = web.ServerRunner(
            web.Server(
                proxy.handle,
                handler_cancellation=True,
                access_log=None,
                logger=connection_log,
                auto_decompress=False,
                keepalive_timeout=CLIENT_IDLE_S,
                lingering_time=LINGER_S,
            ),
            shutdown_timeout=CUT_OFF_S,
        )
        admin_listener = await _listen(stack, admin, settings.host, settings.admin_port)
        listener = await _listen(stack, public, settings.host, settings.port)
        try:
            yield Addresses(_url(listener), _url(admin_listener))
        finally:
            await _drain(proxy, public, listener, board, settings.drain_timeout_s)


async def _drain(
    proxy: Proxy, public: web.ServerRunner, listener: socket.socket, board: FaultBoard, timeout_s: float
) -> None:
    proxy.draining = True
    board.revert_all()
    await _stop_accepting(public, listener)
    if public.server is not None:
        public.server.pre_shutdown()  # closes idle connections
    try:
        async with asyncio.timeout(timeout_s):
            await proxy.idle.wait()
    except TimeoutError:
        log.warning("requests in flight were cut off after %g s of draining", timeout_s)


async def _stop_accepting(runner: web.BaseRunner, listener: socket.socket) -> None:
    """Close the listening socket, in two steps. A connection that was accepted just before must become a handler first:
    otherwise asyncio (of Python 3.11) or aiohttp leave it open without ever answering."""
    asyncio.get_running_loop().remove_reader(listener)
    await asyncio.sleep(ACCEPTED_S)
    for site in runner.sites:
        await site.stop()


async def _listen(stack: contextlib.AsyncExitStack, runner: web.BaseRunner, host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        raise StackError(
            f"gateway: cannot listen on {host}:{port} ({error.strerror}); free the port or choose another"
        ) from error
    stack.callback(listener.close)
    await runner.setup()
    stack.push_async_callback(runner.cleanup)
    await web.SockSite(runner, listener, backlog=BACKLOG).start()
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
