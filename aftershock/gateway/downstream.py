"""The client's side of an answer. Errors of a client that has gone end here."""

from __future__ import annotations

import asyncio

from aiohttp import web

from aftershock.gateway.faults.kind import Head

BODILESS_STATUSES = (204, 205, 304)


class ClientGoneError(Exception):
    """The client closed the connection before its answer ended."""


class Downstream:
    """One answer: started once, written to, then finished or cut."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._loop = asyncio.get_running_loop()
        self._response: web.StreamResponse | None = None
        self._bodiless = request.method == "HEAD"
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

    async def start(self, head: Head, *, send_now: bool) -> None:
        """Begin the answer. With `send_now` False the head goes out together with the first chunk, in one packet."""
        self.status = head.status
        self._bodiless = self._bodiless or head.status in BODILESS_STATUSES
        self._response = web.StreamResponse(status=head.status, reason=head.reason, headers=head.headers)
        try:
            writer = await self._response.prepare(self._request)
            if send_now and writer is not None:
                writer.send_headers()
        except ConnectionError as error:
            raise ClientGoneError from error

    async def write(self, data: bytes) -> None:
        """Pass some of the body; returns when the client's side has room again."""
        if self._bodiless or not data:
            return
        self._note_first_byte()
        try:
            await self.response.write(data)
        except ConnectionError as error:
            raise ClientGoneError from error

    async def finish(self, data: bytes) -> None:
        """Pass the last of the body and end the answer."""
        if self._bodiless:
            data = b""
        if data:
            self._note_first_byte()
        try:
            await self.response.write_eof(data)
        except ConnectionError as error:
            raise ClientGoneError from error

    def cut(self) -> None:
        """End the connection without ending the answer, so that the client knows it is not whole."""
        if self._request.transport is not None:
            self._request.transport.abort()

    def _note_first_byte(self) -> None:
        if self.first_byte_at is None:
            self.first_byte_at = self._loop.time()
