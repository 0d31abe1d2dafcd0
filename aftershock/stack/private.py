"""Files with tokens and keys in them: for the eyes of one user."""

from __future__ import annotations

from pathlib import Path

from aftershock.errors import RunDirectoryError
from aftershock.files import write_text


def private_folder(path: Path) -> Path:
    """Make `path`, and close it to other users. Raises RunDirectoryError if it cannot be made."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(0o700)
    except OSError as error:
        raise RunDirectoryError(f"cannot make {path}: {error.strerror}; choose another folder with --runs") from error
    return path


def write_private(path: Path, text: str) -> None:
    """Write atomically; nobody but this user can read the file, at no time. Raises RunDirectoryError."""
    write_text(path, text, mode=0o600)
