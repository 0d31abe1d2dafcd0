"""When requests are due: seconds from the start of a phase, ascending, without end, fixed by the seed alone.

A schedule knows nothing of answers, so a slow server cannot thin out the load that measures it. A longer phase sees the
arrivals of a shorter one, and then more.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from itertools import count

from aftershock.errors import InputError


def constant(rate: float, seed: int) -> Iterator[float]:
    """Equal gaps of 1/rate; the first request is due at 0. The seed has nothing to decide."""
    return (index / rate for index in count())


def poisson(rate: float, seed: int) -> Iterator[float]:
    """Exponential gaps of mean 1/rate: what many independent users make."""
    gap = random.Random(seed).expovariate
    due = gap(rate)
    while True:
        yield due
        due += gap(rate)


ARRIVALS: dict[str, Callable[[float, int], Iterator[float]]] = {"poisson": poisson, "constant": constant}


def schedule(kind: str, rate: float, seed: int) -> Iterator[float]:
    """The arrivals of `kind` at `rate` requests a second. Raises InputError for an unknown kind."""
    if kind not in ARRIVALS:
        raise InputError(f"arrivals={kind!r}: unknown; known are {', '.join(ARRIVALS)}")
    return ARRIVALS[kind](rate, seed)
