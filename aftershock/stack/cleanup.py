"""What a dead command left running: found by what it wrote down, and ended.

A command that starts a stack writes `runs/<run-id>/stack/owner.json`: who it is, and which processes to end besides
the stack's. The file goes when the command has stopped everything; one whose owner is dead tells of a run that died.
"""

from __future__ import annotations

import logging
import os
import platform
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import psutil
from pydantic import TypeAdapter, ValidationError

from aftershock.errors import StackError
from aftershock.progress import JOURNAL_VARIABLE
from aftershock.stack.object_store import sweep_sockets
from aftershock.stack.private import private_folder, write_private
from aftershock.stack.process import Identity, end
from aftershock.stack.state import read_state, state_path

GRACE_S = 5.0
"""From SIGTERM to SIGKILL: a step reverts its fault and keeps its records in that time."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Owner:
    """The command that a run belongs to, and what it started beside the stack."""

    host: str
    """Pids mean nothing on another one, and run directories are shared at times."""
    process: Identity
    started: tuple[Identity, ...] = ()


def record_owner(run_dir: Path) -> None:
    """Write down that this process owns the run. Raises RunDirectoryError."""
    _write_owner(run_dir, Owner(platform.node(), Identity.of(os.getpid())))


def register_process(run_dir: Path, pid: int) -> None:
    """Write down that `pid` and its descendants end with the run, should this process die.

    Raises RunDirectoryError; StackError if there is no such process.
    """
    owner = _read_owner(run_dir) or Owner(platform.node(), Identity.of(os.getpid()))
    _write_owner(run_dir, Owner(owner.host, owner.process, (*owner.started, Identity.of(pid))))


def cleanup(runs: Path) -> list[str]:
    """End what dead commands left of their runs in `runs`; a sentence for each process that was ended.

    A run whose command lives is not touched, nor is one of another machine or user.
    """
    ended = []
    for file in sorted(runs.glob("*/stack/owner.json")):
        run_dir = file.parent.parent
        owner = _read_owner(run_dir)
        if owner and owner.host == platform.node() and not owner.process.alive():
            ended += end_run(run_dir, writers_of(run_dir / "events.jsonl"), grace_s=GRACE_S)
    return ended


def end_run(run_dir: Path, others: tuple[Identity, ...] = (), *, grace_s: float) -> list[str]:
    """End all processes that a run wrote down, and `others`, and take its records of them away; a sentence for each."""
    owner = _read_owner(run_dir)
    names = _processes(run_dir)
    ended = end({*names, *(owner.started if owner else ()), *others}, grace_s)
    sweep_sockets(run_dir / "stack" / "store")
    for file in (state_path(run_dir), _owner_path(run_dir)):
        file.unlink(missing_ok=True)
    return [f"{run_dir.name}: ended {names.get(process, 'process')} (pid {process.pid})" for process in ended]


def writers_of(journal: Path) -> tuple[Identity, ...]:
    """Processes that were told to write their progress to `journal`: whoever works for that run, down to orphans."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(JOURNAL_VARIABLE) == str(journal.absolute()) and process.pid != os.getpid():
                found.append(Identity(process.pid, process.create_time()))
        except (psutil.Error, OSError):
            continue  # it ended, or is another user's
    return tuple(found)


def _processes(run_dir: Path) -> dict[Identity, str]:
    try:
        return read_state(state_path(run_dir)).processes
    except StackError:
        return {}


def _owner_path(run_dir: Path) -> Path:
    return run_dir / "stack" / "owner.json"


def _write_owner(run_dir: Path, owner: Owner) -> None:
    path = _owner_path(run_dir)
    private_folder(path.parent)
    write_private(path, _adapter().dump_json(owner, indent=2).decode() + "\n")


def _read_owner(run_dir: Path) -> Owner | None:
    try:
        return _adapter().validate_json(_owner_path(run_dir).read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        log.warning("%s is left alone: %s", run_dir, error)
        return None


@cache
def _adapter() -> TypeAdapter[Owner]:
    return TypeAdapter(Owner)
