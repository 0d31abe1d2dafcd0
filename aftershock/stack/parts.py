"""The parts that are started once: gateway, Prometheus, object store. Nothing restarts them, and the state says so.

Without Prometheus or the store a run still has its records, and goes on. Without a vital part it measures nothing but
that part's absence: its end is an error of the infrastructure, whatever the SLO.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Protocol

from aftershock.errors import AftershockError
from aftershock.progress import emit
from aftershock.stack.failure import emit_failure
from aftershock.stack.ports import is_taken
from aftershock.stack.process import Command, Process, ending, last_words
from aftershock.stack.state import PartState

PROBE_S = 0.05
ATTEMPTS = 3
"""How often a part may find a port taken that was free when it was chosen."""

log = logging.getLogger(__name__)


class Recipe(Protocol):
    """What a part is."""

    @property
    def name(self) -> str:
        """Its name in the state, and of its log."""

    @property
    def vital(self) -> bool:
        """Whether a run without it is no run."""

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports it is to listen on."""

    def move(self) -> None:
        """Choose other ports."""

    def command(self) -> Command:
        """Write its configuration for the present ports; how to start it."""

    async def ready(self) -> bool:
        """Whether it does its work now."""


class Part:
    """One process and what became of it."""

    def __init__(self, recipe: Recipe, changed: Callable[[], None]) -> None:
        """`changed` is called after every change of `state`."""
        self.recipe = recipe
        self._changed = changed
        self._process: Process | None = None
        self._ready = False
        self._reason: str | None = None

    @property
    def state(self) -> PartState:
        """For the state document."""
        identity = self._process.identity if self._process else None
        return PartState(
            name=self.recipe.name,
            pid=identity.pid if identity else None,
            started=identity.started if identity else None,
            status="running" if self._reason is None else "exited",
            ready=self._ready,
            reason=self._reason,
        )

    async def run(self) -> None:
        """Start it, watch it become ready, wait for its end. Returns when it has ended for good."""
        for attempt in range(1, ATTEMPTS + 1):
            was_ready, reason = await self._run_once()
            if was_ready or attempt == ATTEMPTS or not any(map(is_taken, self.recipe.ports)):
                break
            log.warning("%s %s: a port of %s is taken; choosing others", self.recipe.name, reason, self.recipe.ports)
            self.recipe.move()
        self._reason = reason
        self._tell(f"{self.recipe.name} {reason}; it is not restarted")
        self._changed()

    async def stop(self) -> None:
        """End the process, if there is one."""
        if self._process:
            await self._process.stop()

    def _tell(self, message: str) -> None:
        if self._process:
            message = last_words(message, self._process.command.log)
        if self.recipe.vital:
            emit_failure(message)
        else:
            emit("warning", message=message)

    async def _run_once(self) -> tuple[bool, str]:
        try:
            self._process = await Process.start(self.recipe.command())
        except AftershockError as error:
            return False, f"did not start: {error}"
        self._changed()
        probe = asyncio.create_task(self._watch())
        try:
            code = await self._process.wait()
        finally:
            probe.cancel()
        was_ready, self._ready = self._ready, False
        return was_ready, ending(code)

    async def _watch(self) -> None:
        while not await self.recipe.ready():
            await asyncio.sleep(PROBE_S)
        self._ready = True
        self._changed()
