"""Waiting for something to become true, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

from aftershock.errors import InfrastructureError

POLL_S = 0.1


def wait_until(condition: Callable[[], bool], seconds: float, otherwise: Callable[[], str]) -> None:
    """Wait until `condition` holds. Raises InfrastructureError with the text of `otherwise` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise InfrastructureError(otherwise())
        time.sleep(POLL_S)
