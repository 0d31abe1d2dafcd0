"""What a dead command left running: found by what it wrote down, and ended.

While a command works on a run, `runs/<run-id>/stack/owner.json` says who it is, and which processes to end besides the
stack's. The file goes when the command has stopped everything; one whose owner is dead tells of a run that died.
"""

from __future__ import annotations

import logging
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import psutil
from pydantic import TypeAdapter, ValidationError

from aftershock.errors import StackError
from aftershock.processes import Identity
from aftershock.progress import JOURNAL_VARIABLE
from aftershock.stack.object_store import sweep_sockets
from aftershock.stack.private import private_folder, write_private
from aftershock.stack.process import end
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


@contextmanager
def owned(run_dir: Path) -> Iterator[None]:
    """Have this process own the run while the block runs: nobody else's `cleanup` touches it. May be nested.

    Raises RunDirectoryError.
    """
    me = Owner(platform.node(), Identity.of(os.getpid()))
    owner = _read_owner(run_dir)
    if owner is not None and (owner.host, owner.process) == (me.host, me.process):
        yield
        return
    _write_owner(run_dir, me)
    try:
        yield
    finally:
        _owner_path(run_dir).unlink(missing_ok=True)


def register_process(run_dir: Path, pid: int) -> None:
    """Write down that `pid` and its descendants end with the run, should its owner die; to be called while it is owned.

    Raises RunDirectoryError; StackError if there is no such process, or nobody owns the run.
    """
    owner = _read_owner(run_dir)
    if owner is None:
        raise StackError(f"{run_dir}: nobody owns this run; a process can only be registered inside `owned`")
    try:
        process = Identity.of(pid)
    except ProcessLookupError as error:
        raise StackError(f"{run_dir.name}: {error}; see the run's logs") from error
    _write_owner(run_dir, replace(owner, started=(*owner.started, process)))


def is_live(run_dir: Path) -> bool:
    """Whether the run's command still works, or may: another machine's or user's cannot be seen from here."""
    try:
        owner = _load_owner(run_dir)
    except FileNotFoundError:
        return False
    except (OSError, ValidationError) as error:
        log.warning("%s is left alone: %s", run_dir, error)
        return True
    return owner.host != platform.node() or owner.process.alive()


def cleanup(runs: Path) -> list[str]:
    """End what dead commands left of their runs in `runs`; a sentence for each process that was ended.

    A run whose command lives is not touched, nor is one of another machine or user.
    """
    ended = []
    for file in sorted(runs.glob("*/stack/owner.json")):
        run_dir = file.parent.parent
        if not is_live(run_dir):
            ended += end_run(run_dir, writers_of(run_dir / "events.jsonl"), grace_s=GRACE_S)
            file.unlink(missing_ok=True)
    return ended


def end_run(run_dir: Path, others: tuple[Identity, ...] = (), *, grace_s: float) -> list[str]:
    """End all processes that a run wrote down, and `others`, and take the stack's state away; a sentence for each."""
    owner = _read_owner(run_dir)
    names = _processes(run_dir)
    ended = end({*names, *(owner.started if owner else ()), *others}, grace_s)
    sweep_sockets(run_dir / "stack" / "store")
    state_path(run_dir).unlink(missing_ok=True)
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


def _load_owner(run_dir: Path) -> Owner:
    """Raises OSError or ValidationError where it cannot be had."""
    return _adapter().validate_json(_owner_path(run_dir).read_bytes())


def _read_owner(run_dir: Path) -> Owner | None:
    try:
        return _load_owner(run_dir)
    except (OSError, ValidationError):
        return None


@cache
def _adapter() -> TypeAdapter[Owner]:
    return TypeAdapter(Owner)
