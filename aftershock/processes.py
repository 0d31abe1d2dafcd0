"""Processes known by more than a number.

A pid is only a number that the system lends out again. Here a process is its pid and the instant it began, and nothing
is ever sent to a pid whose process began at another instant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import psutil

SAME_START_S = 1.5
"""Two readings of one process' start may differ by a second: Linux counts it from the boot, whose time is corrected."""


@dataclass(frozen=True)
class Identity:
    """One process, for good."""

    pid: int
    started: float
    """Seconds since the epoch, as psutil's `create_time`."""

    @classmethod
    def of(cls, pid: int) -> Self:
        """The process that has `pid` now. Raises ProcessLookupError if there is none, or none that can be seen."""
        import psutil

        try:
            return cls(pid, psutil.Process(pid).create_time())
        except psutil.Error as error:
            raise ProcessLookupError(f"process {pid} has ended, or belongs to another user") from error

    def find(self) -> psutil.Process | None:
        """The process, if it still runs and can be seen; a zombie does not run."""
        import psutil

        try:
            return self._find()
        except psutil.Error:
            return None

    def alive(self) -> bool:
        """Whether it still runs. One that is there but cannot be looked at counts as alive: it is not ours to end."""
        import psutil

        try:
            return self._find() is not None
        except psutil.Error:
            return True

    def _find(self) -> psutil.Process | None:
        import psutil

        try:
            process = psutil.Process(self.pid)
            same = abs(process.create_time() - self.started) < SAME_START_S
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except psutil.NoSuchProcess:
            return None
