"""How a request can end. One closed set, so that a 503 is never a success and a refusal never a slow answer."""

from __future__ import annotations

from enum import StrEnum


class Outcome(StrEnum):
    """The end of one request, as records and metrics name it."""

    OK = "ok"
    """A 2xx whose stream ended as the protocol says: `[DONE]`, or a finish reason before a clean end."""
    HTTP_4XX = "http_4xx"
    RATE_LIMITED = "rate_limited"
    """429: the service defends itself; not the caller's mistake."""
    HTTP_5XX = "http_5xx"
    REFUSED = "refused"
    """No connection: refused, unreachable, no such host, or TLS that failed."""
    RESET = "reset"
    """The connection was reset, or closed before any answer began."""
    TIMEOUT = "timeout"
    """No full answer within the time-out, counted from the scheduled time."""
    TRUNCATED = "truncated"
    """The answer began and the stream ended before the answer did."""
    MALFORMED = "malformed"
    """An answer that is none: not an event stream, not JSON, not UTF-8, of another shape, or beyond all bounds."""
    CANCELLED = "cancelled"
    """Given up by us, because the run was ended; says nothing about the service."""


def of_status(status: int) -> Outcome:
    """What an HTTP status means. OK for a 2xx only says that an answer may follow."""
    if 200 <= status < 300:
        return Outcome.OK
    if status == 429:
        return Outcome.RATE_LIMITED
    if 400 <= status < 500:
        return Outcome.HTTP_4XX
    return Outcome.HTTP_5XX if status >= 500 else Outcome.MALFORMED
