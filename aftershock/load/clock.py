"""Durations by the monotonic clock, instants by the wall clock read once: a clock set in mid-phase moves no latency."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime

from aftershock.windows import from_timestamp


@dataclass(frozen=True)
class Clock:
    """One pair of readings, by which monotonic seconds become instants. The event loop's `time()` is monotonic too."""

    wall_s: float
    monotonic_s: float

    @classmethod
    def read(cls) -> Clock:
        """Both clocks, now."""
        return cls(time.time(), time.monotonic())

    def at(self, monotonic_s: float) -> datetime:
        """The instant of a monotonic reading, aware, in UTC."""
        return from_timestamp(self.wall_s + monotonic_s - self.monotonic_s)

    def microseconds(self, monotonic_s: float) -> int:
        """The same as whole microseconds since the epoch: what records hold."""
        return round((self.wall_s + monotonic_s - self.monotonic_s) * 1e6)
