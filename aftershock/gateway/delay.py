"""What has arrived from a replica and is held by faults, in its order."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from aftershock.gateway.faults.exchange import Hold
from aftershock.gateway.faults.kind import Chunk
from aftershock.gateway.upstream import ReplicaError

HELD_BYTES = 1 << 20
"""What a delay line holds before it asks its filler to wait, as a full TCP window would."""


@dataclass(frozen=True)
class Held:
    """A chunk, or with `error` the breaking off of an answer, and what it waits for."""

    chunk: Chunk
    hold: Hold
    error: ReplicaError | None = None


class DelayLine:
    """A queue whose items come out when they are due. One task fills it, another empties it."""

    def __init__(self, limit: int = HELD_BYTES) -> None:
        self._limit = limit
        self._items: deque[Held] = deque()
        self._bytes = 0
        self._filled = asyncio.Event()
        self._has_room = asyncio.Event()
        self._has_room.set()

    async def put(self, item: Held) -> None:
        """Append an item, as soon as no more than the limit is held."""
        await self._has_room.wait()
        self._items.append(item)
        self._bytes += len(item.chunk.data)
        self._filled.set()
        if self._bytes > self._limit:
            self._has_room.clear()

    async def get(self) -> Held:
        """Take the oldest item, once it is due."""
        while not self._items:
            self._filled.clear()
            await self._filled.wait()
        item = self._items[0]
        await item.hold.wait()
        self._items.popleft()
        self._bytes -= len(item.chunk.data)
        if self._bytes <= self._limit:
            self._has_room.set()
        return item
