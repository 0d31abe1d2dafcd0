"""SIGINT and SIGTERM as one exception, once: what is cleaned up because of the first is not disturbed by the second."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from aftershock.console import Console
from aftershock.errors import ExitCode


class Interrupted(BaseException):
    """SIGINT or SIGTERM came; `exit_code` is what the process ends with."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.exit_code = ExitCode(128 + number)


@contextmanager
def interruptible(console: Console) -> Iterator[None]:
    """Turn the first SIGINT or SIGTERM into Interrupted; later ones do not disturb the clean-up."""
    told = False

    def tell(number: int, frame: FrameType | None) -> None:
        nonlocal told
        if told:
            console.line("stopping", "still reverting and stopping; please wait")
            return
        told = True
        console.line("stopping", f"{signal.Signals(number).name}: reverting the fault, keeping the records")
        raise Interrupted(number)

    before = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
