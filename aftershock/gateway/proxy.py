"""The public port: each request goes to a ready replica and its answer comes back as it is."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import aiohttp
from aiohttp import web

from aftershock.exposition import CONTENT_TYPE
from aftershock.gateway.answers import json_answer, openai_error
from aftershock.gateway.downstream import ClientGoneError, Downstream
from aftershock.gateway.faults.board import FaultBoard
from aftershock.gateway.faults.exchange import Exchange
from aftershock.gateway.faults.kind import Head
from aftershock.gateway.headers import passable
from aftershock.gateway.metrics import CLIENT_GONE, NO_REPLICA, GatewayMetrics
from aftershock.gateway.relay import relay
from aftershock.gateway.replicas import Balancer, Replica
from aftershock.gateway.settings import GatewaySettings
from aftershock.gateway.upstream import ReplicaError, Upstream


@dataclass
class Outcome:
    """How a request ended, for the metrics."""

    replica: str = NO_REPLICA
    code: int = CLIENT_GONE


class NoReplicaReadyError(Exception):
    """There is nobody to send a request to."""


class BadRequestError(Exception):
    """A request that is not passed on."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.answer = status, code, message


class Proxy:
    """Handles public requests. `draining` asks clients to leave after their answer; `idle` is set when none is left."""

    def __init__(
        self,
        settings: GatewaySettings,
        balancer: Balancer,
        upstream: Upstream,
        board: FaultBoard,
        metrics: GatewayMetrics,
    ) -> None:
        self._settings = settings
        self._balancer = balancer
        self._upstream = upstream
        self._board = board
        self._metrics = metrics
        self._in_flight = 0
        self.draining = False
        self.idle = asyncio.Event()
        self.idle.set()

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request: the gateway's own paths here, everything else from a replica."""
        if request.method == "GET" and request.path == "/metrics":
            return web.Response(body=self._metrics.page(), headers={"Content-Type": CONTENT_TYPE})
        if request.method == "GET" and request.path == "/healthz":
            ready = self._balancer.any_ready and not self.draining
            return json_answer({"status": "ok" if ready else "no replica is ready"}, 200 if ready else 503)
        self._in_flight += 1
        self.idle.clear()
        try:
            return await self._measured(request)
        finally:
            self._in_flight -= 1
            if not self._in_flight:
                self.idle.set()

    async def _measured(self, request: web.BaseRequest) -> web.StreamResponse:
        loop = asyncio.get_running_loop()
        started = loop.time()
        outcome, sink = Outcome(), Downstream(request)
        try:
            return await self._bounded(request, sink, outcome)
        except Exception:
            outcome.code = 500
            raise
        finally:
            sink.close()
            first_at = sink.first_byte_at if sink.status < 400 else None
            ttft_s = None if first_at is None else first_at - started
            self._metrics.finished(outcome.replica, outcome.code, loop.time() - started, ttft_s)

    async def _bounded(self, request: web.BaseRequest, sink: Downstream, outcome: Outcome) -> web.StreamResponse:
        """The request within its time, and the answer that says what went wrong."""
        limit_s = self._settings.request_timeout_s
        body: bytes | None = None
        try:
            async with asyncio.timeout(limit_s):
                body = await _read_body(request, self._settings.max_body_bytes)
                return await self._attempts(request, body, sink, outcome)
        except TimeoutError:
            if body is None:
                error = 408, "request_timeout", f"the request body did not arrive within {limit_s:g} s"
            else:
                error = 504, "timeout", f"no complete answer within {limit_s:g} s"
        except BadRequestError as refused:
            error = refused.answer
        except NoReplicaReadyError:
            error = 503, "no_replica_ready", "no replica is ready; try again later"
        except ReplicaError as failed:
            error = failed.status, failed.code, f"replica {outcome.replica}: {failed}"
        except ClientGoneError:
            return sink.response
        outcome.code = error[0]
        if sink.started:
            sink.cut()
            return sink.response
        answer = openai_error(*error)
        if self.draining:
            answer.force_close()
        return answer

    async def _attempts(
        self, request: web.BaseRequest, body: bytes, sink: Downstream, outcome: Outcome
    ) -> web.StreamResponse:
        """Try replicas until one answers, as far as `retries` allows."""
        tried: list[Replica] = []
        failure: ReplicaError | None = None
        while len(tried) <= self._settings.retries and (replica := self._balancer.pick(tried)):
            tried.append(replica)
            outcome.replica = replica.name
            try:
                return await self._attempt(replica, request, body, sink, outcome)
            except ReplicaError as error:
                if sink.started or not error.retriable:
                    raise
                failure = error
        raise failure or NoReplicaReadyError

    async def _attempt(
        self, replica: Replica, request: web.BaseRequest, body: bytes, sink: Downstream, outcome: Outcome
    ) -> web.StreamResponse:
        """One request to one replica, and its answer to the client."""
        exchange = Exchange(self._board, replica.name, "request")
        headers = passable(request.headers)
        for name in ("Content-Length", "Expect"):
            headers.popall(name, None)
        replica.in_flight += 1
        try:
            source = await self._upstream.send(exchange, request.method, replica.url + request.raw_path, headers, body)
            try:
                head = Head(source.status, source.reason, passable(source.headers))
                if self.draining:
                    head.headers["Connection"] = "close"
                await relay(source, head, exchange, sink)
            finally:
                source.close()
        finally:
            replica.in_flight -= 1
        outcome.code = sink.status
        return sink.response


async def _read_body(request: web.BaseRequest, limit: int) -> bytes:
    """The whole body, in memory: it may have to be sent twice. Raises BadRequestError."""
    if not request.raw_path.startswith("/") or not request.raw_path.isascii():
        raise BadRequestError(400, "bad_target", "the request target must be a path, in ASCII")
    too_large = BadRequestError(413, "body_too_large", f"the request body is larger than {limit} bytes")
    if (request.content_length or 0) > limit:
        raise too_large
    if not request.body_exists:
        return b""
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0  # it is not part of the answer
    parts: list[bytes] = []
    size = 0
    try:
        while data := await request.content.readany():
            size += len(data)
            if size > limit:
                raise too_large
            parts.append(data)
    except (aiohttp.ClientPayloadError, aiohttp.http.HttpProcessingError) as error:
        raise BadRequestError(400, "bad_body", "the request body cannot be read: its framing is wrong") from error
    return b"".join(parts)
