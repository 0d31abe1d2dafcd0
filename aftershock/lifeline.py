"""Processes that die with their parent. Imports next to nothing: it is used where start time counts."""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded here: after a fork it may be too late


def die_with_parent(parent: int | None = None) -> None:
    """Have the kernel kill this process when the thread that started it ends, however it ends. Linux only.

    `parent`: the pid of whoever started this process, where it is known. If that one has died before the kernel could
    be told, this process ends now; on every system.
    """
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if parent is not None and os.getppid() != parent:
        os._exit(0)
