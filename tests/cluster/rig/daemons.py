"""Programs that run on after whoever started them, known by process, and found again by a mark they bear."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from aftershock.errors import InfrastructureError
from aftershock.processes import Identity
from tests.cluster.rig.layout import Layout

MARK = "TEST_CLUSTER_PART"
"""Variable in the environment of every daemon and its children: the directory of the cluster that they belong to.

It finds those too that were started in the instant before a start was killed, and are written down nowhere.
"""
END_S = 10.0


def environment(layout: Layout) -> dict[str, str]:
    """What a daemon of the cluster gets to see: little, and no proxy, since there is no way out."""
    return {
        "PATH": f"{layout.programs}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": str(layout.directory),
        MARK: str(layout.directory),
    }


def spawn(argv: Sequence[str], variables: Mapping[str, str], log: Path) -> Identity:
    """Start a program that does not end with this one, its output appended to `log`.

    Raises InfrastructureError if it cannot be executed, or ends at once.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    output = (os.POSIX_SPAWN_OPEN, 1, str(log), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    try:
        # Not subprocess: it warns when its object goes before the process, which is what is wanted here.
        pid = os.posix_spawnp(
            argv[0],
            list(argv),
            dict(variables),
            file_actions=[nothing, output, (os.POSIX_SPAWN_DUP2, 1, 2)],
            setsid=True,
        )
        return Identity.of(pid)
    except OSError as error:  # ProcessLookupError is one
        raise InfrastructureError(f"{argv[0]} does not start: {error}; see {log}") from error


def kill(processes: Iterable[Identity]) -> None:
    """Kill all of them at once and wait until they are gone. Raises InfrastructureError if one stays."""
    doomed = tuple(processes)
    for identity in doomed:
        with suppress(psutil.Error):
            if process := identity.find():
                process.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + END_S
    while left := [identity.pid for identity in doomed if identity.alive() or _has_threads(identity.pid)]:
        if time.monotonic() > deadline:
            raise InfrastructureError(f"process {left[0]} does not end, not even killed")
        time.sleep(0.01)
    for identity in doomed:
        with suppress(ChildProcessError):  # the child of another process
            os.waitpid(identity.pid, os.WNOHANG)


def _has_threads(pid: int) -> bool:
    """Whether threads outlive the first one, which makes a zombie of the process: they still hold its sockets."""
    with suppress(OSError):
        return len(list(Path(f"/proc/{pid}/task").iterdir())) > 1
    return False


def marked(layout: Layout) -> tuple[Identity, ...]:
    """Every process that bears the cluster's mark."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):  # it ended, or it is the kernel's
            if process.environ().get(MARK) == str(layout.directory):
                found.append(Identity(process.pid, process.create_time()))
    return tuple(found)
