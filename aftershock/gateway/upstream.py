"""The way to a replica: connections, time-outs and, if there are any, faults. Errors of aiohttp end here."""

from __future__ import annotations

import io
import os
from types import SimpleNamespace
from typing import Any, Self

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from aftershock.gateway.faults.exchange import Exchange
from aftershock.gateway.faults.kind import Chunk
from aftershock.gateway.settings import GatewaySettings

REFUSED, TIMED_OUT = 502, 504


class ReplicaError(Exception):
    """A replica did not answer. Stays inside the gateway: the client sees `status` and, as code, `code`."""

    def __init__(self, status: int, code: str, message: str, retriable: bool) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.retriable = retriable


class Upstream:
    """Sends requests to replicas. With `keep_alive` connections are kept for the next request, as clients do; without,
    each request opens its own, as a kubelet's probe does."""

    def __init__(self, settings: GatewaySettings, *, keep_alive: bool) -> None:
        connector = (
            aiohttp.TCPConnector(limit=0, keepalive_timeout=settings.idle_timeout_s)
            if keep_alive
            else aiohttp.TCPConnector(limit=0, force_close=True)
        )
        timeout = aiohttp.ClientTimeout(total=None, connect=settings.connect_timeout_s, ceil_threshold=3600)
        self._connect_timeout_s = settings.connect_timeout_s
        self._connector = connector

        def session(*traces: aiohttp.TraceConfig) -> aiohttp.ClientSession:
            return aiohttp.ClientSession(
                connector=connector,
                connector_owner=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
                timeout=timeout,
                trace_configs=list(traces),
            )

        self._plain = session()
        self._disturbed = session(_hooks())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._plain.close()
        await self._disturbed.close()
        await self._connector.close()

    async def send(
        self, exchange: Exchange, method: str, url: str, headers: CIMultiDict[str] | None = None, body: bytes = b""
    ) -> aiohttp.ClientResponse:
        """Send a request and return once the head of the answer is here. `url` is used as it is.

        Raises ReplicaError. The caller closes the response.
        """
        session = self._disturbed if exchange.disturbed() else self._plain
        try:
            return await session.request(
                method,
                URL(url, encoded=True),
                headers=headers,
                data=_payload(body),
                allow_redirects=False,
                trace_request_ctx=exchange,
            )
        except aiohttp.ConnectionTimeoutError as error:
            message = f"no connection within {self._connect_timeout_s:g} s"
            raise ReplicaError(TIMED_OUT, "replica_connect_timeout", message, retriable=True) from error
        except aiohttp.ClientConnectorError as error:
            message = f"cannot connect: {_reason(error.os_error)}"
            raise ReplicaError(REFUSED, "replica_refused", message, retriable=True) from error
        except (aiohttp.ClientConnectionError, ConnectionError) as error:
            await exchange.chunk(Chunk(b"", last=True)).wait()  # faults delay this news, too
            message = "the connection was closed before an answer came"
            raise ReplicaError(REFUSED, "replica_reset", message, retriable=True) from error
        except aiohttp.ClientError as error:
            message = f"its answer is not valid HTTP ({type(error).__name__})"
            raise ReplicaError(REFUSED, "replica_bad_answer", message, retriable=False) from error


async def read_some(stream: aiohttp.StreamReader) -> bytes:
    """What has arrived of a body, waiting for it if need be. Raises ReplicaError if the body breaks off."""
    try:
        return await stream.readany()
    except (aiohttp.ClientError, aiohttp.http.HttpProcessingError, ConnectionError) as error:
        raise ReplicaError(REFUSED, "replica_reset", "the answer broke off", retriable=False) from error


def _reason(error: OSError) -> str:
    """In the system's words; asyncio puts the address in their place."""
    return os.strerror(error.errno) if error.errno and error.errno > 0 else str(error)


def _payload(body: bytes) -> bytes | io.BytesIO | None:
    """A body as aiohttp wants it: it refuses to write more than 1 MiB of plain bytes in one go."""
    return (body if len(body) <= 1 << 20 else io.BytesIO(body)) or None


def _hooks() -> aiohttp.TraceConfig:
    """aiohttp awaits these where a fault has to act: inside the connect time-out, and before the first byte is sent."""
    trace = aiohttp.TraceConfig()

    async def connecting(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
        exchange: Exchange = context.trace_request_ctx
        await exchange.connect()

    async def sending(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
        exchange: Exchange = context.trace_request_ctx
        await exchange.request()

    trace.on_connection_create_start.append(connecting)
    trace.on_request_headers_sent.append(sending)
    return trace
