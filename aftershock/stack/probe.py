"""Is anybody there? One HTTP GET, by hand: importing an HTTP client takes longer than the servers take to start."""

from __future__ import annotations

import asyncio

from aftershock.stack.ports import HOST

TIMEOUT_S = 1.0
"""As a kubelet's probe."""


async def get_status(port: int, path: str) -> int | None:
    """Status of GET `path` on a loopback port; None if there is no HTTP answer within a second."""
    writer: asyncio.StreamWriter | None = None
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection(HOST, port)
            writer.write(f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\nConnection: close\r\n\r\n".encode("ascii"))
            version, _, rest = (await reader.readline()).partition(b" ")
            return int(rest[:3]) if version.startswith(b"HTTP/1.") else None
    except (OSError, TimeoutError, ValueError):
        return None
    finally:
        if writer is not None:
            writer.transport.abort()
