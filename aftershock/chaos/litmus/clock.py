"""Time, as the backend knows it. A parameter, so that a run of minutes can be lived again in a moment by a test."""

from __future__ import annotations

import time
from datetime import datetime
from queue import Empty, Queue
from typing import Protocol

from aftershock.chaos.litmus.sightings import Message
from aftershock.windows import utc_now


class Clock(Protocol):
    """Tells the time, and is what waiting is done by."""

    def now(self) -> datetime:
        """The wall clock: what the windows and the load's records are written in."""

    def monotonic(self) -> float:
        """Seconds, for durations and deadlines."""

    def receive(self, inbox: Queue[Message], timeout_s: float) -> Message | None:
        """The next message, or None after `timeout_s` without one."""

    def sleep(self, seconds: float) -> None:
        """Let time pass."""


class SystemClock:
    """The real one."""

    def now(self) -> datetime:
        """The present, in UTC."""
        return utc_now()

    def monotonic(self) -> float:
        """Of this process."""
        return time.monotonic()

    def receive(self, inbox: Queue[Message], timeout_s: float) -> Message | None:
        """Blocks."""
        try:
            return inbox.get(timeout=timeout_s)
        except Empty:
            return None

    def sleep(self, seconds: float) -> None:
        """Blocks."""
        time.sleep(seconds)
