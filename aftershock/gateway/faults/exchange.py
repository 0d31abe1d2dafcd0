"""One request to one replica and its answer, as the faults on the way see it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from aftershock.gateway.faults.board import Changes, Fault, FaultBoard
from aftershock.gateway.faults.kind import Chunk, Effect, Head

Traffic = Literal["request", "probe"]


@dataclass(frozen=True)
class Hold:
    """Something that waits since `since` (loop time) for the delays of several faults, which add up.

    A delay counts as long as its fault is active: when the fault ends, what it held is released.
    """

    since: float
    delays: tuple[tuple[Fault, float], ...]
    changes: Changes

    def due(self) -> float:
        """The loop time at which it is over, as things stand."""
        return self.since + sum(delay_s for fault, delay_s in self.delays if fault.active)

    async def wait(self) -> None:
        """Return when it is over."""
        if not self.delays:
            return
        loop = asyncio.get_running_loop()
        while (left_s := self.due() - loop.time()) > 0:
            await self.changes.wait(left_s)


class Exchange:
    """The hooks of all faults on a link, called as one. `disturbed()` tells whether calling them is worth the while."""

    __slots__ = ("_board", "_effects", "_link", "_traffic")

    def __init__(self, board: FaultBoard, replica: str, traffic: Traffic) -> None:
        self._board = board
        self._link = board.links[replica]
        self._traffic = traffic
        self._effects: dict[Fault, Effect] = {}

    def disturbed(self) -> bool:
        """Whether any fault acts on the link now."""
        return bool(self._link.faults)

    async def connect(self) -> None:
        """Wait as long as a new connection takes longer."""
        await self._meet(lambda effect: effect.on_connect()).wait()

    async def request(self) -> None:
        """Wait as long as a request is held before it is sent."""
        await self._meet(lambda effect: effect.on_request()).wait()

    def response_start(self, head: Head) -> Hold:
        """What the faults make of a head that has just arrived. They may change it."""
        return self._meet(lambda effect: effect.on_response_start(head))

    def chunk(self, chunk: Chunk) -> Hold:
        """What the faults make of a chunk that has just arrived. They may change it."""
        return self._meet(lambda effect: effect.on_chunk(chunk))

    def no_hold(self) -> Hold:
        """For what travels with something else that is held already."""
        return Hold(0.0, (), self._link.changes)

    def _meet(self, hook: Callable[[Effect], float | None]) -> Hold:
        delays = []
        for fault in self._link.faults:
            effect = self._effects.get(fault)
            if effect is None:
                effect = self._effects[fault] = fault.begin(self._link.replica, self._traffic)
            delay_s = hook(effect)
            if delay_s is not None:
                self._board.count(fault)
                if delay_s:
                    delays.append((fault, delay_s))
        return Hold(asyncio.get_running_loop().time(), tuple(delays), self._link.changes)
