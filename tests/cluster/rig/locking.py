"""One at a time, between processes."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aftershock.errors import InfrastructureError


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Wait until nobody else holds the lock file, and hold it. Raises InfrastructureError if it cannot be made."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("a")
    except OSError as error:
        raise InfrastructureError(
            f"cannot write {path} ({error.strerror}); set AFTERSHOCK_CACHE to a folder you can write"
        ) from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
