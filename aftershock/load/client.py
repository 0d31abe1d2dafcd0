"""One streamed request over HTTP: when its tokens came, how it ended. aiohttp's errors become outcomes here."""

from __future__ import annotations

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import aiohttp

from aftershock.errors import InfrastructureError
from aftershock.load.outcome import Outcome, of_status
from aftershock.load.protocol import DONE, MalformedEventError, Protocol, StreamedError
from aftershock.load.sse import EventStream, EventTooLongError

KEEP_ALIVE_S = 4.0
"""Below the 5 s after which uvicorn (vLLM, SGLang) and llama.cpp close idle connections: a request that met such a
close half-way would look like a fault of the service. llama.cpp also closes after each streamed answer, and does not
say so (no `Connection: close`): there only sending again helps."""

CROSSING_S = 0.25
"""How soon after its send a request can learn that the server had closed the connection before: a round trip, and what
a busy loop adds. A server that closes later than that was at work on the request, and its close is a fault."""

MAX_STREAM_BYTES = 64 << 20
"""32,768 tokens in events of 2 KiB: beyond it a stream is endless."""

_WORDS_BYTES = 4096
"""How much of an error's body is read for its words."""

_OURS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
"""Why a connection failed on our side: it says nothing about the service, so it must not be counted against it."""


@dataclass(slots=True)
class Exchange:
    """What one request met, in seconds of the event loop's clock. Complete once `outcome` is set."""

    sent: float
    first_token: float | None = None
    last_token: float = 0.0
    finished: float = 0.0
    gaps: list[float] = field(default_factory=list)
    """Between the arrivals of non-empty tokens; 0 where several came in one read."""
    pieces: list[str] = field(default_factory=list)
    told_tokens: int | None = None
    finish_reason: bool = False
    status: int | None = None
    outcome: Outcome | None = None
    error: str | None = None
    no_such_host: bool = False
    """Of the ways to be refused, the one that waiting does not mend."""
    reused_connection: bool = False

    @property
    def output_tokens(self) -> int:
        """By the service's own count where it told, else the non-empty tokens seen."""
        return len(self.pieces) if self.told_tokens is None else self.told_tokens

    @property
    def answer(self) -> str | None:
        """What was answered, also by half; None where no answer began."""
        if not self.pieces and self.outcome is not Outcome.OK:
            return None
        text = "".join(self.pieces)
        if text.isascii():
            return text
        # JSON may escape the two halves of a character in two tokens; a half that stays alone is no text.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")

    def end(self, outcome: Outcome, at: float, error: str | None = None) -> None:
        """Set how it ended; the first end counts."""
        if self.outcome is None:
            self.outcome, self.finished, self.error = outcome, at, error


class Client:
    """Sends requests to one endpoint of one service, over as many kept-alive connections as it takes."""

    def __init__(self, kept: aiohttp.ClientSession, fresh: aiohttp.ClientSession, url: str, protocol: Protocol) -> None:
        """`kept` keeps connections alive and marks exchanges that reuse one; `fresh` opens one for each request."""
        self.url = url + protocol.path
        self.resent = 0
        """Requests that were sent twice."""
        self._kept = kept
        self._fresh = fresh
        self._protocol = protocol
        self._now = asyncio.get_running_loop().time

    async def exchange(self, exchange: Exchange, body: bytes, deadline: float) -> None:
        """Send `body` and follow the answer until it ends or the loop's clock reads `deadline`; fill in `exchange`.

        Raises InfrastructureError where this machine, not the service, could not connect.
        """
        try:
            async with asyncio.timeout_at(deadline):
                await self._send(exchange, body)
        except asyncio.CancelledError:
            exchange.end(Outcome.CANCELLED, self._now(), "the run was ended")
            raise
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            if isinstance(error, OSError) and error.errno in _OURS:
                raise InfrastructureError(
                    f"the load generator cannot open more connections ({error.strerror}); "
                    "raise `ulimit -n` or lower --rate"
                ) from error
            exchange.no_such_host = isinstance(error, aiohttp.ClientConnectorDNSError)
            outcome, words = _diagnose(error)
            exchange.end(outcome, self._now(), one_line(words))

    async def _send(self, exchange: Exchange, body: bytes) -> None:
        """Send `body`, and once again if it and the close of an idle connection crossed on their way.

        A server may close an idle connection at any time, and a request that is on its way then is lost without having
        been looked at: a property of HTTP, not a failure of the service. RFC 9112 (9.3.1) lets a client repeat it on a
        new connection, a POST only where it knows that nothing was done or that doing it twice does no harm: here it
        knows both. A repetition is not repeated; and a close of a new connection, or a late one, is a failure.
        """
        sent = self._now()
        try:
            return await self._post(self._kept, exchange, body)
        except (aiohttp.ClientConnectionError, ConnectionError) as error:
            if not (
                exchange.reused_connection
                and exchange.status is None
                and _no_byte_came(error)
                and self._now() - sent < CROSSING_S
            ):
                raise
        self.resent += 1
        await self._post(self._fresh, exchange, body)

    async def _post(self, http: aiohttp.ClientSession, exchange: Exchange, body: bytes) -> None:
        async with http.post(self.url, data=body, allow_redirects=False, trace_request_ctx=exchange) as response:
            exchange.status = response.status
            await self._read(response, exchange)

    async def _read(self, response: aiohttp.ClientResponse, exchange: Exchange) -> None:
        outcome = of_status(response.status)
        if outcome is not Outcome.OK:
            exchange.end(outcome, self._now(), f"HTTP {response.status}")
            exchange.error = f"HTTP {response.status}: {await _refusal(response)}"
        elif response.content_type != "text/event-stream":
            exchange.end(Outcome.MALFORMED, self._now(), f"not a stream: the answer is {response.content_type}")
        else:
            try:
                await self._follow(response.content, exchange)
            except (MalformedEventError, EventTooLongError) as error:
                exchange.end(Outcome.MALFORMED, self._now(), one_line(str(error)))
            except StreamedError as error:
                outcome = of_status(error.status)
                exchange.end(
                    Outcome.HTTP_5XX if outcome is Outcome.OK else outcome,
                    self._now(),
                    one_line(f"error in the stream: {error}"),
                )

    async def _follow(self, content: aiohttp.StreamReader, exchange: Exchange) -> None:
        """Read events until the stream ends. A time belongs to a read: no event is older than the bytes it came in."""
        events = EventStream()
        size = 0
        while chunk := await content.readany():
            at = self._now()
            if exchange.outcome is Outcome.OK:
                return  # bytes after [DONE]; leaving closes the connection
            size += len(chunk)
            if size > MAX_STREAM_BYTES:
                raise MalformedEventError(f"the answer has more than {MAX_STREAM_BYTES} bytes")
            for data in events.feed(chunk):
                if data == DONE:
                    exchange.end(Outcome.OK, at)
                    break
                self._take(data, at, exchange)
        if exchange.finish_reason:
            exchange.end(Outcome.OK, self._now())
        else:
            exchange.end(Outcome.TRUNCATED, self._now(), "the stream ended without [DONE] or a finish reason")

    def _take(self, data: bytes, at: float, exchange: Exchange) -> None:
        text, finished, tokens = self._protocol.read(data)
        if text:
            if exchange.first_token is None:
                exchange.first_token = at
            else:
                exchange.gaps.append(at - exchange.last_token)
            exchange.last_token = at
            exchange.pieces.append(text)
        if finished:
            exchange.finish_reason = True
        if tokens is not None:
            exchange.told_tokens = tokens


@asynccontextmanager
async def open_client(url: str, protocol: Protocol) -> AsyncIterator[Client]:
    """A client without a bound on connections, without cookies, and with no time-outs but the deadlines."""
    kept = _session(aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_S), _mark_reused())
    fresh = _session(aiohttp.TCPConnector(limit=0, force_close=True))
    async with kept, fresh:
        yield Client(kept, fresh, url, protocol)


def _session(connector: aiohttp.TCPConnector, *traces: aiohttp.TraceConfig) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
            "User-Agent": "aftershock",
        },
        trace_configs=list(traces),
    )


def _mark_reused() -> aiohttp.TraceConfig:
    """The only place where aiohttp tells which connection a request got."""
    trace = aiohttp.TraceConfig()

    async def reused(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
        context.trace_request_ctx.reused_connection = True

    trace.on_connection_reuseconn.append(reused)
    return trace


def one_line(text: str) -> str:
    """`text` without line breaks, cut to what a reader takes in."""
    return " ".join(text.split())[:300]


def _no_byte_came(error: Exception) -> bool:
    """Whether a connection ended before any of the answer. A close in mid-head carries what aiohttp made of the head;
    a reset does not tell, but a head fits into one packet, so it came whole or not at all."""
    return not isinstance(error, aiohttp.ServerDisconnectedError) or isinstance(error.message, str)


def _diagnose(error: Exception) -> tuple[Outcome, str]:
    """What an error of the connection means, and its words."""
    words = str(error) or type(error).__name__
    match error:
        case TimeoutError():
            return Outcome.TIMEOUT, "no full answer within the time-out"
        case aiohttp.ClientSSLError():
            return Outcome.REFUSED, words
        case aiohttp.ClientConnectorError():
            number = error.errno or 0  # negative for DNS, which has words of its own
            return Outcome.REFUSED, os.strerror(number) if number > 0 else error.strerror or words
        # aiohttp tells how a body ended only in its words; tests with real connections hold them.
        case aiohttp.ClientPayloadError() if "ConnectionResetError" in words:
            return Outcome.RESET, "the connection was reset in mid-answer"
        case aiohttp.ClientPayloadError() if "not completed" in words:
            return Outcome.TRUNCATED, "the connection was closed in mid-answer"
        case aiohttp.ClientPayloadError() | aiohttp.ClientResponseError():
            return Outcome.MALFORMED, f"not HTTP: {words}"
        case aiohttp.ServerDisconnectedError():
            return Outcome.RESET, "the connection was closed before an answer began"
        case _:
            return Outcome.RESET, words


async def _refusal(response: aiohttp.ClientResponse) -> str:
    """The server's own words: the `message` of a JSON error, else the start of the text."""
    body = (await response.content.read(_WORDS_BYTES)).decode(errors="replace")
    try:
        error: Any = json.loads(body)
    except (ValueError, RecursionError):
        return one_line(body) or str(response.reason)
    for key in ("error", "message", "detail"):
        if isinstance(error, dict) and key in error:
            error = error[key]
    return one_line(error if isinstance(error, str) else json.dumps(error))
