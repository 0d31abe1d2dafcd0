"""The cgroup that all containers of a cluster live below: how they are found and ended when nobody knows them any more.

Two kubelets may not share one: each ends what it does not know.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from aftershock.errors import InfrastructureError

ROOT = Path("/sys/fs/cgroup")
TIMEOUT_S = 10.0


def create(name: str) -> None:
    """Make the cgroup `name` in each hierarchy. Raises InfrastructureError where that is not allowed."""
    for hierarchy in _hierarchies():
        folder = hierarchy / name
        try:
            folder.mkdir(exist_ok=True)
            if (folder / "cpuset.mems").exists() and hierarchy != ROOT:  # version 1 hands these to no child by itself
                for setting in ("cpuset.cpus", "cpuset.mems"):
                    (folder / setting).write_text((hierarchy / setting).read_text())
        except OSError as error:
            raise InfrastructureError(
                f"cannot make cgroup {folder} ({error.strerror}); a container for the test cluster has to be privileged"
            ) from error


def delete(name: str) -> None:
    """Kill whatever lives in the cgroup or below it, and take it away. Raises InfrastructureError if it stays."""
    deadline = time.monotonic() + TIMEOUT_S
    while left := [folder for hierarchy in _hierarchies() for folder in _tree(hierarchy / name)]:
        for pid in {pid for folder in left for pid in _members(folder)}:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for folder in left:
            with suppress(OSError):  # busy until its last process is gone
                folder.rmdir()
        if time.monotonic() > deadline:
            raise InfrastructureError(f"cgroup {left[-1]} cannot be removed; its processes do not end")
        time.sleep(0.02)


def _hierarchies() -> Iterator[Path]:
    """Each controller's own in version 1 (and the second version's beside them), the only one in version 2."""
    if (ROOT / "cgroup.controllers").exists():
        yield ROOT
        return
    yield from sorted(folder for folder in ROOT.iterdir() if folder.is_dir() and (folder / "cgroup.procs").exists())


def _tree(folder: Path) -> list[Path]:
    """The folder and all below it, the deepest first; a cgroup may vanish meanwhile."""
    found: list[Path] = []
    with suppress(FileNotFoundError):
        for child in folder.iterdir():
            if child.is_dir():
                found += _tree(child)
        found.append(folder)
    return found


def _members(folder: Path) -> list[int]:
    with suppress(OSError):
        return [int(pid) for pid in (folder / "cgroup.procs").read_text().split()]
    return []
