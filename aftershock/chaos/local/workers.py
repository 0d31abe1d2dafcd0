"""The stress workers of one fault, from the backend's side: start, follow, end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from aftershock.errors import ChaosError

START_S = 15.0
"""By when a worker must be at work: half a second's job, on a machine that other workers already keep busy."""

END_S = 5.0
"""By when a killed worker must be gone; one that frees gigabytes, or waits for a disk, takes a while."""

_LOG = "workers.log"


@dataclass
class Worker:
    """One worker process, and what it last said."""

    pod: str
    process: subprocess.Popen[bytes]
    amount: float = 0.0
    """Of what it does: busy seconds, bytes held or bytes written."""
    up: bool = False
    error: str = ""
    _buffer: bytes = field(default=b"", repr=False)

    def follow(self) -> None:
        """Take in what it has said since the last time."""
        stdout = self.process.stdout
        if stdout is None or stdout.closed:
            return
        *lines, self._buffer = (self._buffer + _read_all(stdout)).split(b"\n")
        for line in lines:
            said = json.loads(line)
            self.error = said.get("error", self.error)
            if "amount" in said:
                self.up, self.amount = True, float(said["amount"])

    def check(self) -> None:
        """Raise ChaosError if it has ended; nobody told it to."""
        self.follow()
        code = self.process.poll()
        if code is not None:
            why = self.error or (f"killed by signal {-code}" if code < 0 else f"exit code {code}; see {_LOG}")
            raise ChaosError(f"the worker beside {self.pod} ended early: {why}", code="CHAOS_INJECT_ERROR")


class Workers:
    """All workers of a fault. `stop` is always safe to call, and leaves none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._workers: list[Worker] = []

    @property
    def all(self) -> Sequence[Worker]:
        """Those that were started."""
        return self._workers

    @property
    def up(self) -> bool:
        """Whether every one is at work."""
        return all(worker.up for worker in self._workers)

    def start(self, pod: str, kind: str, options: Mapping[str, Any], seconds: float) -> None:
        """Start one, that ends by itself after `seconds`. Raises ChaosError where the machine has no process left."""
        document = {**options, "seconds": seconds, "parent": os.getpid()}
        command = [sys.executable, "-m", "aftershock.chaos.local.worker", kind, json.dumps(document)]
        try:
            with (self._folder / _LOG).open("ab") as log:
                process = subprocess.Popen(
                    command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, process_group=0
                )
        except OSError as error:
            raise ChaosError(f"no worker could be started: {error}", code="CHAOS_INJECT_ERROR") from error
        assert process.stdout is not None
        os.set_blocking(process.stdout.fileno(), False)
        self._workers.append(Worker(pod, process))

    def check(self) -> None:
        """Take in what they say; raise ChaosError if one has ended."""
        for worker in self._workers:
            worker.check()

    def stop(self) -> None:
        """Kill all of them, and wait until they are gone. Raises ChaosError (CHAOS_REVERT_ERROR) if one is not."""
        for worker in self._workers:
            worker.process.kill()
        for worker in self._workers:
            _reap(worker)


def _reap(worker: Worker) -> None:
    try:
        worker.process.wait(END_S)
    except subprocess.TimeoutExpired as error:
        raise ChaosError(
            f"the worker beside {worker.pod} (pid {worker.process.pid}) was killed and does not end",
            code="CHAOS_REVERT_ERROR",
        ) from error
    worker.follow()
    for stream in (worker.process.stdin, worker.process.stdout):
        if stream is not None:
            stream.close()


def _read_all(stream: IO[bytes]) -> bytes:
    parts = []
    try:
        while part := os.read(stream.fileno(), 65_536):
            parts.append(part)
    except BlockingIOError:
        pass
    return b"".join(parts)
