"""JSON over loopback HTTP, for the supervisor and the gateway's fault API. Always with a time-out, never by a proxy."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

from aftershock.errors import ChaosError

TIMEOUT_S = 3.0
"""Both servers answer in milliseconds; on a machine that a fault keeps busy, in tenths of a second."""


class NoAnswerError(ChaosError):
    """Nobody answers in time."""


class NobodyThereError(NoAnswerError):
    """Nobody listens: the process is gone, and whatever it was doing."""


class RefusedError(ChaosError):
    """An answer, but not the one that was asked for."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class JsonApi:
    """One server of the stack. `what` names it in errors."""

    def __init__(self, what: str, url: str, token: str) -> None:
        self.what = what
        self._url = url.rstrip("/")
        self._token = token
        self._opener = build_opener(ProxyHandler({}))

    def call(self, method: str, path: str, body: Any = None, timeout_s: float = TIMEOUT_S) -> Any:
        """The decoded answer; None for an empty one. Raises NoAnswerError or RefusedError."""
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}{path}", data, headers, method=method)
        try:
            with self._opener.open(request, timeout=timeout_s) as response:
                content = response.read()
        except HTTPError as error:
            with error:
                raise RefusedError(f"{self.what} refused {method} {path}: {_reason(error)}", error.code) from error
        except (URLError, OSError, http.client.HTTPException) as error:
            raise self._no_answer(error) from error
        return self._decode(content, method, path)

    def _no_answer(self, error: Exception) -> NoAnswerError:
        cause = error.reason if isinstance(error, URLError) else error
        kind = NobodyThereError if isinstance(cause, ConnectionRefusedError) else NoAnswerError
        return kind(f"{self.what} at {self._url} does not answer ({str(cause) or type(cause).__name__})")

    def _decode(self, content: bytes, method: str, path: str) -> Any:
        try:
            return json.loads(content) if content else None
        except ValueError as error:
            raise RefusedError(f"{self.what}: answer to {method} {path} is not JSON", 200) from error


def _reason(error: HTTPError) -> str:
    """What the server wrote about it, else its status line."""
    try:
        return f"{error.code} {json.loads(error.read())['error']}"
    except (OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
        return f"{error.code} {error.reason}"
