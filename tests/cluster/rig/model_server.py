"""The embedded stack's model server as the main process of a pod.

    python -m tests.cluster.rig.model_server --model FILE --host 0.0.0.0 --port 8000 --slots 4 --ctx 512

The first process of a container only gets the signals that it has handlers for.
"""

from __future__ import annotations

import os
import signal
import sys

from aftershock.errors import ExitCode, StackError
from aftershock.stack import model_server


def main() -> int:
    """Serve until a signal ends the process. Returns the exit code where it cannot serve."""
    options = model_server.parse()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: os._exit(ExitCode.TERMINATED))
    os.environ.update(model_server.OPENMP)
    try:
        server = model_server.serve(options)
    except StackError as error:
        sys.stderr.write(f"model server: {error}\n")
        return ExitCode.INFRASTRUCTURE
    sys.stdout.write(f"listening at {server.listening_address}\n")
    sys.stdout.flush()
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
