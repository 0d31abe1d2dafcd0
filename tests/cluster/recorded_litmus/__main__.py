"""`python -m tests.cluster.recorded_litmus PROGRAM ARGUMENT...`: starts operator, runner or experiment.

Told to end while it still loads, a program ends at once: the first process of a container ignores SIGTERM until it has
said otherwise, and loading takes a second.
"""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module


def _end(*_: object) -> None:
    os._exit(143)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _end)
    sys.exit(import_module(f"tests.cluster.recorded_litmus.{sys.argv[1]}").main(sys.argv[2:]))
