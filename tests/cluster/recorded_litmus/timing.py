"""How long the recorded Litmus waits for itself, which a test suite may shorten.

Only Litmus' own waits (look-ups, retries, heartbeats) are divided by RECORDED_LITMUS_SPEED; what an engine asks for,
such as the duration of a fault, its interval, or the timing of a probe, is never.
"""

from __future__ import annotations

import os
import time

import psutil

SPEED_VARIABLE = "RECORDED_LITMUS_SPEED"
LOOKUP_S = 2.0
"""One look-up: runner and experiment wait that long before each of them, as recorded."""


def speed() -> float:
    """By how much Litmus' own waits are divided; 1 gives the recorded times."""
    return float(os.environ.get(SPEED_VARIABLE) or "1")


def pause(seconds: float) -> None:
    """A wait of Litmus itself, given in recorded seconds."""
    time.sleep(seconds / speed())


def pause_to_age(seconds: float) -> None:
    """A wait of Litmus itself until its program is as old, so that Python's slow start is not added to it."""
    age_s = time.time() - psutil.Process().create_time()
    time.sleep(max(0.0, seconds / speed() - age_s))
