"""Rewriting a file that others write as well, by hand or by program, so that nothing of theirs goes unseen.

The new version takes the place of the old one in one step of the kernel, which hands the old one back. If that is not
what the new version was made from, somebody wrote in between, and the change is made once more, to theirs. Whoever had
the old version open may still write to it; so it is given to the caller, open. There is no lock to wait for: a fault
must not depend on who else is at work on its file.
"""

from __future__ import annotations

import ctypes
import errno
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

ATTEMPTS = 50
"""Who writes more often than that in the moment of a rewrite does not mean to be read."""

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_CANNOT = {errno.EINVAL, errno.ENOSYS, errno.ENOTSUP}
_LIBC = ctypes.CDLL(None, use_errno=True)


def rewrite(path: Path, change: Callable[[str], str]) -> list[IO[str]]:
    """Replace the text at `path` by what `change` makes of it; the versions that were displaced, open for reading.

    `change` is called again, with the other text, as long as others write at the same moment. Raises OSError;
    FileNotFoundError if there is no file: none is made.
    """
    displaced: list[IO[str]] = []
    base = there = path.read_text(encoding="utf-8", errors="replace")
    for _ in range(ATTEMPTS):
        text = change(base)
        if text == there:
            break
        displaced.append(_swap(path, text))
        found = displaced[-1].read()
        if found == there:
            break
        base, there = found, text
    return displaced


def _swap(path: Path, text: str) -> IO[str]:
    """Put `text` at `path`; what was there, open."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    temporary = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        temporary.chmod(0o644)
        if _exchange(temporary, path):
            return _reader(temporary)
        old = _reader(path)  # elsewhere than on Linux, a file that is renamed to `path` just here is lost
        temporary.replace(path)
        return old
    finally:
        temporary.unlink(missing_ok=True)


def _reader(path: Path) -> IO[str]:
    return path.open(encoding="utf-8", errors="replace")


def _exchange(one: Path, other: Path) -> bool:
    """Have two files change places; False where the system or its disk cannot. Raises OSError."""
    renameat2 = getattr(_LIBC, "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))
