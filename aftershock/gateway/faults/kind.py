"""What a kind of fault is: parameters that are checked once, and an effect on each exchange it meets.

An *exchange* is one request to one replica and its answer; a health probe is one too. To add a kind, subclass
`FaultSpec` (its parameters) and `Effect` (its behaviour), and name the former in `catalog.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from random import Random
from typing import Any

from multidict import CIMultiDict
from pydantic import ConfigDict, Field

from aftershock.gateway.settings import Strict

MAX_DURATION_S = 86400.0


@dataclass
class Head:
    """Status and headers of an answer, before they reach the client. A fault may change any of it.

    `body`, once set, takes the place of the replica's body, which is then not read.
    """

    status: int
    reason: str | None
    headers: CIMultiDict[str]
    body: bytes | None = None


@dataclass
class Chunk:
    """What arrived from a replica in one go. A fault may change it. `last` marks the end of the answer."""

    data: bytes
    last: bool


class Effect:
    """One fault's behaviour in one exchange. It may keep state between its hooks; it lives as long as the exchange.

    A hook is called when the thing it is named after is about to happen, and answers how many seconds later it shall
    happen: a number (0 if something was changed but not delayed; infinity for as long as the fault is active), or
    None if the fault leaves it alone. Anything but None is counted as an injection. An exchange that was under way
    when the fault began has some of its hooks skipped: they lie in the past.
    """

    def on_connect(self) -> float | None:
        """A new connection to the replica is about to be opened."""
        return None

    def on_request(self) -> float | None:
        """A connection is there, nothing of the request has been sent on it."""
        return None

    def on_response_start(self, head: Head) -> float | None:
        """Status line and headers have arrived."""
        return None

    def on_chunk(self, chunk: Chunk) -> float | None:
        """A part of the body, or the end of it, has arrived. Order is kept whatever the hooks answer."""
        return None


class FaultSpec(Strict, ABC):
    """What is asked of the fault API. This part is common to all kinds; each adds its parameters."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    kind: str
    id: str | None = Field(
        None, pattern=r"^[A-Za-z0-9._-]{1,128}$", description="Name of the fault in later calls; made if not given"
    )
    replicas: list[str] | None = Field(
        None, min_length=1, description="Replicas it acts on, by name; all of them if not given"
    )
    duration_s: float = Field(
        gt=0, le=MAX_DURATION_S, description="Seconds after which it ends by itself, whatever becomes of its author"
    )
    seed: int = Field(0, description="The same seed makes the n-th request of a replica meet the same fate")

    @abstractmethod
    def begin(self, rng: Random) -> Effect:
        """The effect on one exchange. `rng` is the exchange's own, so that others do not disturb its draws."""

    def parameters(self) -> dict[str, Any]:
        """What the kind itself adds, JSON-ready."""
        return self.model_dump(mode="json", exclude=set(FaultSpec.model_fields))
