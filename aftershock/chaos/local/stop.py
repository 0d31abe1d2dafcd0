"""The only way a fault waits: every pause ends at once when a stop is asked for."""

from __future__ import annotations

import threading
import time

from aftershock.chaos.local.live import POLL_S, LiveEngine


class StopRequestedError(Exception):
    """Unwinds a fault to its revert. Not an error to anybody else: the verdict is Stopped."""


class StopSwitch:
    """Thrown by the run's event or by the live engine."""

    def __init__(self, event: threading.Event, live: LiveEngine) -> None:
        self._event = event
        self._live = live

    def check(self) -> None:
        """Raise StopRequestedError if a stop was asked for, saying by whom."""
        if self._event.is_set():
            raise StopRequestedError("stopped by the run")
        if self._live.stop_asked():
            raise StopRequestedError(f"stopped by engineState: stop in {self._live.path}, or by its deletion")

    def wait(self, seconds: float) -> None:
        """Let `seconds` pass. Raises StopRequestedError at most POLL_S after a stop was asked for."""
        end = time.monotonic() + seconds
        while True:
            self.check()
            left = end - time.monotonic()
            if left <= 0:
                return
            self._event.wait(min(left, POLL_S))
