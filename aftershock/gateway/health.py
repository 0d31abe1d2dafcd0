"""Readiness probes, as a kubelet makes them: a new connection each time, through the same faults as the traffic."""

from __future__ import annotations

import asyncio
import logging
import random

from aftershock.gateway.faults.board import FaultBoard
from aftershock.gateway.faults.exchange import Exchange
from aftershock.gateway.faults.kind import Head
from aftershock.gateway.headers import passable
from aftershock.gateway.replicas import Replica
from aftershock.gateway.settings import HealthSettings
from aftershock.gateway.upstream import ReplicaError, Upstream

log = logging.getLogger(__name__)

JITTER = 0.3
"""Share of the period."""


async def watch(replica: Replica, health: HealthSettings, upstream: Upstream, board: FaultBoard) -> None:
    """Probe one replica each period, until cancelled.

    The period varies by JITTER around its mean: a fault that repeats on the second would otherwise meet each probe at
    the same moment, and a run would measure one offset between the two, over and over.
    """
    loop = asyncio.get_running_loop()
    while True:
        started = loop.time()
        success, detail = await _probe(replica, health, upstream, Exchange(board, replica.name, "probe"))
        if replica.probed(success, detail, health):
            log.info("replica %s is %s: %s", replica.name, "ready" if replica.ready else "not ready", detail)
        period_s = health.period_s * random.uniform(1 - JITTER, 1 + JITTER)
        await asyncio.sleep(max(0.0, started + period_s - loop.time()))


async def _probe(replica: Replica, health: HealthSettings, upstream: Upstream, exchange: Exchange) -> tuple[bool, str]:
    """Whether the replica answered well and in time, and what happened."""
    try:
        async with asyncio.timeout(health.timeout_s):
            response = await upstream.send(exchange, "GET", replica.url + health.path)
            try:
                head = Head(response.status, response.reason, passable(response.headers))
                await exchange.response_start(head).wait()
            finally:
                response.close()
    except TimeoutError:
        return False, f"no answer within {health.timeout_s:g} s"
    except ReplicaError as error:
        return False, str(error)
    return 200 <= head.status < 400, f"status {head.status}"
