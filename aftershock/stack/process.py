"""Processes of the stack: started so that they cannot outlive it, ended with all they have started."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Self

import psutil

from aftershock.errors import StackError
from aftershock.lifeline import die_with_parent
from aftershock.processes import Identity


@dataclass(frozen=True)
class Command:
    """How a part is started and stopped."""

    name: str
    argv: tuple[str, ...]
    folder: Path
    """Working directory."""
    log: Path
    """Takes standard output and error, appended."""
    environment: Mapping[str, str] | None = None
    """Whole environment; None: the supervisor's."""
    descriptors: tuple[int, ...] = ()
    """Open files it inherits."""
    grace_s: float = 1.0
    """Time between SIGTERM and SIGKILL when it is stopped."""


class Process:
    """A child of this process, leader of its own process group, killed by the kernel (Linux) if this process dies."""

    def __init__(self, command: Command, child: asyncio.subprocess.Process) -> None:
        self.command = command
        self._child = child
        try:
            self.identity = Identity.of(child.pid)
        except ProcessLookupError:  # it ended at once
            self.identity = Identity(child.pid, time.time())

    @classmethod
    async def start(cls, command: Command) -> Self:
        """Start it. To be called in the main thread: the kernel ties the child's life to the thread that made it.

        Raises StackError if it cannot be executed.
        """
        try:
            command.log.parent.mkdir(parents=True, exist_ok=True)
            with command.log.open("ab") as log:
                child = await asyncio.create_subprocess_exec(
                    *command.argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    cwd=command.folder,
                    env=command.environment,
                    pass_fds=command.descriptors,
                    process_group=0,
                    preexec_fn=partial(die_with_parent, os.getpid()),
                )
        except OSError as error:
            raise StackError(f"{command.name}: cannot start {command.argv[0]} ({error.strerror or error})") from error
        return cls(command, child)

    async def wait(self) -> int:
        """Its exit code once it has ended; minus the signal if one ended it."""
        return await self._child.wait()

    def signal(self, number: int) -> None:
        """Send a signal to its process group; nothing if it has ended."""
        if self._child.returncode is None:
            try:
                os.killpg(self._child.pid, number)
            except ProcessLookupError:
                return

    async def stop(self, grace_s: float | None = None) -> None:
        """End it: SIGTERM, SIGKILL after the grace (0: SIGKILL at once); returns when it has ended."""
        grace_s = self.command.grace_s if grace_s is None else grace_s
        if grace_s > 0:
            self.signal(signal.SIGTERM)
            with suppress(TimeoutError):
                await asyncio.wait_for(self.wait(), grace_s)
        self.signal(signal.SIGKILL)
        await self.wait()


def ending(code: int) -> str:
    """`killed by SIGKILL`, `exited with code 1`."""
    if code >= 0:
        return f"exited with code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def last_line(log: Path) -> str:
    """The last line in a log that says something; empty if there is none."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - 8192))
            lines = file.read().decode("utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return next((line.strip()[:300] for line in reversed(lines) if line.strip()), "")


def last_words(what: str, log: Path) -> str:
    """What happened to a part, with the last line of its log and the log's place: one line for people."""
    line = last_line(log)
    return f"{what}; {f'its last words: {line}; ' if line else ''}see {log}"


def end(identities: Iterable[Identity], grace_s: float) -> list[Identity]:
    """End processes and all their descendants: SIGTERM, SIGKILL after the grace. Returns those that were alive."""
    alive = [identity for identity in identities if identity.alive()]
    doomed = {*alive, *(descendant for identity in alive for descendant in _descendants(identity))}
    for number in (signal.SIGTERM, signal.SIGKILL):
        for identity in doomed:
            _send(identity, number)
        deadline = time.monotonic() + grace_s
        while any(identity.alive() for identity in doomed) and time.monotonic() < deadline:
            time.sleep(0.02)
    return alive


def _send(identity: Identity, number: signal.Signals) -> None:
    with suppress(psutil.Error):  # it has just ended, or is not ours to end
        if process := identity.find():
            process.send_signal(number)  # psutil, too, checks that the pid has not changed hands


def _descendants(identity: Identity) -> list[Identity]:
    with suppress(psutil.Error):
        if process := identity.find():
            return [Identity(child.pid, child.create_time()) for child in process.children(recursive=True)]
    return []
