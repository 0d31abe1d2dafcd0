"""One stress worker: a process that keeps a core, memory or a disk busy, and that cannot outlive its purpose.

    python -m aftershock.chaos.local.worker KIND OPTIONS        (OPTIONS: a JSON object)

What it did so far goes to standard output, one JSON object a line; the first line says that it is at work. It ends, by
the kernel's hand and without a word of Python, when its time is over (SIGALRM) or its parent dies (SIGKILL); besides,
when standard input ends: the parent holds the other end of that pipe. Nothing is left behind: the file of an I/O worker
has no name. Imports little, so that a fault starts when it is meant to.
"""

from __future__ import annotations

import json
import mmap
import os
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

from aftershock.lifeline import die_with_parent

MIB = 1024 * 1024
CYCLE_S = 0.1
"""Of each cycle, a CPU worker computes its share and sleeps the rest."""
REPORT_S = 0.2
CHUNK = 64 * MIB
BLOCK = MIB
SYNC_EVERY = 8 * BLOCK


class Report:
    """Says on standard output what was done. Never waits for a reader: the work must not depend on one."""

    def __init__(self) -> None:
        os.set_blocking(1, False)
        self._next = 0.0

    def say(self, at_once: bool = False, **fields: float | str) -> None:
        """Write a line, unless the one before is too recent."""
        now = time.monotonic()
        if not at_once and now < self._next:
            return
        self._next = now + REPORT_S
        try:
            os.write(1, json.dumps(fields).encode() + b"\n")
        except BlockingIOError:
            pass
        except BrokenPipeError:
            os._exit(0)


def burn(options: dict[str, float], report: Report) -> None:
    """Compute for `load_percent` of the time, on one core."""
    share_s = CYCLE_S * options["load_percent"] / 100
    while True:
        start = time.monotonic()
        while time.monotonic() - start < share_s:
            pass
        report.say(amount=time.process_time())
        time.sleep(max(0.0, start + CYCLE_S - time.monotonic()))


def hold(options: dict[str, float], report: Report) -> None:
    """Take `bytes` of memory, and use every page of it again and again, so that none is swapped out."""
    left, before = int(options["bytes"]), resident_bytes()
    chunks: list[mmap.mmap] = []
    while left > 0:
        chunks.append(mmap.mmap(-1, min(CHUNK, left)))
        _touch(chunks[-1])
        left -= len(chunks[-1])
    for chunk in _forever(chunks):
        _touch(chunk)
        report.say(amount=resident_bytes() - before or sum(map(len, chunks)))
        time.sleep(CYCLE_S)


def write(options: dict[str, float], report: Report, folder: str) -> None:
    """Fill a file of `bytes` in `folder` over and over, and force what was written to the disk."""
    size = int(options["bytes"])
    block = os.urandom(BLOCK)
    written = position = 0
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        report.say(amount=0)
        while True:
            count = file.write(block[: min(BLOCK, size - position)])
            written, position = written + count, position + count
            if written % SYNC_EVERY < BLOCK:
                os.fsync(file.fileno())
            if position >= size:
                position = file.seek(0)
                file.truncate()
            report.say(amount=written)


def resident_bytes() -> int:
    """Memory of this process that is in RAM, as the kernel counts it; 0 where it does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 (pathlib costs start time)
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        return 0


def main(arguments: list[str]) -> None:
    """Set up every way to end, then work until one of them happens."""
    kind, options = arguments[0], json.loads(arguments[1])
    signal.setitimer(signal.ITIMER_REAL, options["seconds"])
    die_with_parent(options["parent"])
    volunteer_for_oom()
    threading.Thread(target=end_with_input, daemon=True).start()
    report = Report()
    work: dict[str, Callable[[], None]] = {
        "cpu": lambda: burn(options, report),
        "memory": lambda: hold(options, report),
        "io": lambda: write(options, report, options["folder"]),
    }
    try:
        work[kind]()
    except (OSError, MemoryError) as error:
        report.say(at_once=True, error=f"{type(error).__name__}: {error}")
        sys.exit(1)


def end_with_input() -> None:
    """Exit when standard input ends."""
    while os.read(0, 1024):
        pass
    os._exit(0)


def volunteer_for_oom() -> None:
    """If memory runs out, the kernel shall take this process rather than the service, the stack or a neighbour."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123
            file.write("1000")
    except OSError:
        pass


def _touch(chunk: mmap.mmap) -> None:
    pages = range(0, len(chunk), mmap.PAGESIZE)
    chunk[0 : len(chunk) : mmap.PAGESIZE] = b"\x01" * len(pages)


def _forever(chunks: list[mmap.mmap]) -> Iterator[mmap.mmap]:
    while True:
        yield from chunks


if __name__ == "__main__":
    main(sys.argv[1:])
