"""What aiohttp logs of the connections it serves, without the tracebacks for clients that do not speak HTTP.

It answers these with 400 and logs an error with a traceback, as if something here were broken. A port scan, or a
client that tries TLS, would fill the log of a run with them.
"""

from __future__ import annotations

import logging

from aiohttp.http_exceptions import HttpProcessingError

log = logging.getLogger(__name__)

connection_log = logging.getLogger("aftershock.gateway.connections")
"""For aiohttp's servers; its other errors, defects of ours, stay as they are."""


class _OneLine(logging.Filter):
    """Replaces records about malformed requests by one line each, at debug."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError):
            return True
        log.debug("%s: %s: %s", record.getMessage(), type(error).__name__, " ".join(error.message.split())[:200])
        return False


connection_log.addFilter(_OneLine())
