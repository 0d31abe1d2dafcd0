"""Which faults are active, on which replica, since when and until when. One board a gateway."""

from __future__ import annotations

import asyncio
import itertools
import math
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Any, NewType
from uuid import uuid4

from aftershock.errors import InputError
from aftershock.gateway.faults.kind import Effect, FaultSpec
from aftershock.windows import utc_now

FaultId = NewType("FaultId", str)

REMEMBERED = 1000
"""How many ended faults the board can still tell about."""


class UnknownFaultError(InputError):
    """No fault has this id."""


class DuplicateFaultError(InputError):
    """A fault with this id exists, or existed."""


class State(StrEnum):
    """Where a fault is in its life."""

    ACTIVE = "active"
    EXPIRED = "expired"
    REVERTED = "reverted"


@dataclass(eq=False)
class Fault:
    """One fault that was asked for. The wall clock is for people; its life is measured by the monotonic one."""

    id: FaultId
    spec: FaultSpec
    replicas: tuple[str, ...]
    started_at: datetime
    state: State = State.ACTIVE
    ended_at: datetime | None = None
    injections: int = 0
    _met: Counter[tuple[str, str]] = field(default_factory=Counter)

    @property
    def active(self) -> bool:
        """Whether it still acts."""
        return self.state is State.ACTIVE

    def begin(self, replica: str, traffic: str) -> Effect:
        """The effect on the next exchange with `replica`.

        Its random numbers follow from the seed, the replica and how many exchanges of the same traffic (requests or
        probes) came before, and from nothing else: neither probes nor other streams change the fate of a request.
        """
        self._met[replica, traffic] += 1
        return self.spec.begin(Random(f"{self.spec.seed}/{replica}/{traffic}/{self._met[replica, traffic]}"))

    def to_dict(self) -> dict[str, Any]:
        """What the fault API shows."""
        return {
            "id": self.id,
            "kind": self.spec.kind,
            "replicas": list(self.replicas),
            "duration_s": self.spec.duration_s,
            "seed": self.spec.seed,
            **self.spec.parameters(),
            "state": self.state.value,
            "started_at": self.started_at.isoformat(),
            "expires_at": (self.started_at + timedelta(seconds=self.spec.duration_s)).isoformat(),
            "ended_at": self.ended_at.isoformat() if self.ended_at else None,
            "injections": self.injections,
        }


class Changes:
    """Wakes everyone who waits for a while when the set of active faults changes meanwhile."""

    def __init__(self) -> None:
        self._waiters: set[asyncio.Future[None]] = set()

    def notify(self) -> None:
        """Wake them."""
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Return after `seconds` (infinity: never) or at the next change, whichever comes first."""
        loop = asyncio.get_running_loop()
        waiter = loop.create_future()
        timer = loop.call_later(seconds, _wake, waiter) if math.isfinite(seconds) else None
        self._waiters.add(waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
            if timer:
                timer.cancel()


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


@dataclass(eq=False)
class Link:
    """The way to one replica: the faults that act on it now. Empty nearly always; that case must cost nothing."""

    replica: str
    changes: Changes
    faults: tuple[Fault, ...] = ()


class FaultBoard:
    """Adds, ends and lists faults, and gives each replica's link the ones that act on it. Needs a running loop."""

    def __init__(self, replicas: Iterable[str]) -> None:
        changes = Changes()
        self._changes = changes
        self.links = {name: Link(name, changes) for name in replicas}
        self._active: dict[FaultId, tuple[Fault, asyncio.TimerHandle]] = {}
        self._ended: deque[Fault] = deque(maxlen=REMEMBERED)
        self._numbers = itertools.count(1)
        self.injections: Counter[str] = Counter()

    def add(self, spec: FaultSpec) -> Fault:
        """Start a fault. Raises DuplicateFaultError, or InputError for a replica that does not exist."""
        fault_id = FaultId(spec.id or f"{spec.kind}-{next(self._numbers)}-{uuid4().hex[:6]}")
        if any(fault.id == fault_id for fault in self.faults()):
            raise DuplicateFaultError(f"id: {fault_id} is taken by a fault that is active or has ended; choose another")
        if unknown := [name for name in spec.replicas or () if name not in self.links]:
            raise InputError(f"replicas: {', '.join(unknown)} unknown; known replicas: {', '.join(self.links)}")
        fault = Fault(fault_id, spec, tuple(dict.fromkeys(spec.replicas or self.links)), utc_now())
        loop = asyncio.get_running_loop()
        self._active[fault_id] = fault, loop.call_later(spec.duration_s, self._end, fault_id, State.EXPIRED)
        self._refresh()
        return fault

    def revert(self, fault_id: str) -> Fault:
        """End a fault now; one that has ended stays as it is. Raises UnknownFaultError."""
        fault = self.get(fault_id)
        if fault.active:
            self._end(fault.id, State.REVERTED)
        return fault

    def revert_all(self) -> None:
        """End every fault now."""
        for fault_id in list(self._active):
            self._end(fault_id, State.REVERTED)

    def get(self, fault_id: str) -> Fault:
        """The fault of this id, active or ended. Raises UnknownFaultError."""
        for fault in self.faults():
            if fault.id == fault_id:
                return fault
        raise UnknownFaultError(f"no fault has the id {fault_id}; GET /faults lists them")

    def faults(self) -> list[Fault]:
        """Ended faults, then active ones, oldest first."""
        return [*self._ended, *(fault for fault, _ in self._active.values())]

    @property
    def active_count(self) -> int:
        """How many faults act now."""
        return len(self._active)

    def count(self, fault: Fault) -> None:
        """One more injection of an active fault."""
        fault.injections += 1
        self.injections[fault.spec.kind] += 1

    def _end(self, fault_id: FaultId, state: State) -> None:
        fault, timer = self._active.pop(fault_id)
        timer.cancel()
        fault.state, fault.ended_at = state, utc_now()
        self._ended.append(fault)
        self._refresh()

    def _refresh(self) -> None:
        for link in self.links.values():
            link.faults = tuple(fault for fault, _ in self._active.values() if link.replica in fault.replicas)
        self._changes.notify()
