"""What this machine has left: a fault must make the service suffer, not bring down the machine it is measured on."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import psutil

MIB = 1024 * 1024
SAFE_SHARE = 0.5
"""Of what is free, this much may be taken. The rest is for the stack, the load, and whoever else is here."""

_CGROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current"),
    ("/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"),
)


class Unlimited:
    """Base of faults that take nothing from the machine."""

    def check(self, pods: int, folder: Path) -> None:
        """Nothing to refuse."""


def cores() -> int:
    """Cores this process may use; what `CPU_CORES=0` means."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def available_memory() -> int:
    """Bytes that could be taken without swapping, also inside a container that has a limit of its own."""
    free = int(psutil.virtual_memory().available)
    for folder, limit, usage in _CGROUPS:
        try:
            left = int((Path(folder) / limit).read_text()) - int((Path(folder) / usage).read_text())
        except (OSError, ValueError):
            continue  # not this kind of control group, or no limit ("max")
        free = min(free, max(left, 0))
    return free


def free_disk(folder: Path) -> int:
    """Bytes a plain user may still write there."""
    return shutil.disk_usage(folder).free
