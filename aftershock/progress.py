"""What a run says while it works: one typed event at a time, as a JSON line.

A step calls `emit`. The line goes to standard output (the pod's log) and, if AFTERSHOCK_JOURNAL names a file, to that
file too: the command line follows it to print progress, and reads the cause of a failure from it.
"""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path
from typing import Any

from aftershock.windows import utc_now

JOURNAL_VARIABLE = "AFTERSHOCK_JOURNAL"

log = logging.getLogger(__name__)


def emit(event: str, **fields: Any) -> None:
    """Say that `event` happened, with JSON-ready fields.

    Events: `phase` (phase, seconds), `load` (phase, elapsed_s, seconds, sent, ok, failed, p99_ms, send_lag_p99_ms),
    `chaos` (reason, message: what the fault is doing), `stop` (reason, message: the SLO watch stops the fault),
    `stopped` (message: how long that took), `step` (name: a pipeline step begins), `stack` (message), `warning`
    (message), `error` (type, message, exit_code). Never raises: a full disk must not end a run because of its progress.
    """
    line = json.dumps({"at": utc_now().isoformat(), "event": event, **fields}, default=str)
    log.info("%s", line)
    journal = os.environ.get(JOURNAL_VARIABLE)
    if not journal:
        return
    try:
        with Path(journal).open("a", encoding="utf-8") as file:
            file.write(line + "\n")
    except OSError as error:
        log.warning("progress could not be written to %s: %s", journal, error)
