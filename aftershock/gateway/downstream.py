"""The client's side of an answer. Errors of a client that has gone end here."""

from __future__ import annotations

import asyncio
import contextlib

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from aftershock.gateway.faults.kind import Head

BODILESS_STATUSES = (204, 205, 304)
HEAD_WAIT_S = 0.005
"""How long a head waits for the first chunk, to leave in one packet with it. Servers send them within microseconds of
each other, and each packet costs more than anything else here. The chunk itself never waits."""


class ClientGoneError(Exception):
    """The client closed the connection before its answer ended."""


class Downstream:
    """One answer: started once, written to, then finished or cut."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._response: web.StreamResponse | None = None
        self._bodiless = request.method == "HEAD"
        self._head_timer: asyncio.TimerHandle | None = None
        self.status = 0
        self.first_byte_at: float | None = None

    @property
    def started(self) -> bool:
        """Whether the client may have got a byte: from then on nothing can be tried again or said otherwise."""
        return self._response is not None

    @property
    def response(self) -> web.StreamResponse:
        """What was started."""
        if self._response is None:
            raise RuntimeError("the answer has not been started")
        return self._response

    async def start(self, head: Head) -> None:
        """Begin the answer. The head leaves with the first chunk, or by itself if that does not come at once."""
        self.status = head.status
        self._bodiless = self._bodiless or head.status in BODILESS_STATUSES
        self._response = web.StreamResponse(status=head.status, reason=head.reason, headers=head.headers)
        writer = await self._response.prepare(self._request)
        if writer is not None:
            self._head_timer = self._loop.call_later(HEAD_WAIT_S, _send_head, writer)

    async def write(self, data: bytes) -> None:
        """Pass some of the body; returns when the client's side has room again."""
        if self._bodiless or not data:
            return
        self._first_chunk()
        try:
            await self.response.write(data)
        except ConnectionError as error:
            raise ClientGoneError from error

    async def finish(self, data: bytes) -> None:
        """Pass the last of the body and end the answer."""
        if self._bodiless:
            data = b""
        if data:
            self._first_chunk()
        try:
            await self.response.write_eof(data)
        except ConnectionError as error:
            raise ClientGoneError from error

    def cut(self) -> None:
        """End the connection without ending the answer, so that the client knows it is not whole."""
        self.close()
        if self._request.transport is not None:
            self._request.transport.abort()

    def close(self) -> None:
        """Leave nothing behind, however the answer ended."""
        if self._head_timer is not None:
            self._head_timer.cancel()

    def _first_chunk(self) -> None:
        if self.first_byte_at is None:
            self.first_byte_at = self._loop.time()
            self.close()


def _send_head(writer: AbstractStreamWriter) -> None:
    with contextlib.suppress(ConnectionError):  # the client has gone; its handler is being told
        writer.send_headers()
