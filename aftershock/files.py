"""Files as the library writes and finds them: atomically, and through package data."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any

from aftershock.errors import RunDirectoryError


@contextmanager
def atomic_path(path: Path, mode: int = 0o644) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place if the block ends well, and vanishes if not.

    The file gets the permissions `mode`; until it is in its place, nobody but this user can read it.

    Raises RunDirectoryError where the folder cannot be written (full disk, no rights).
    """
    temporary: Path | None = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        temporary = Path(name)
        yield temporary
        temporary.chmod(mode)
        temporary.replace(path)
    except OSError as error:
        raise RunDirectoryError(
            f"cannot write {path}: {error.strerror or error}; free space or choose another folder with --runs"
        ) from error
    finally:
        if temporary is not None:
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write `text` to `path` atomically, in UTF-8, with the permissions `mode`."""
    with atomic_path(path, mode) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, data: Any) -> None:
    """Write `data` to `path` atomically. NaN and infinities are refused (ValueError): JSON has none."""
    write_text(path, json.dumps(data, indent=2, allow_nan=False) + "\n")


def read_json(path: Path) -> Any:
    """What `write_json` wrote."""
    return json.loads(path.read_text(encoding="utf-8"))


def data_folder(name: str) -> Path:
    """A folder that ships with aftershock: `litmus_templates`, `slo_specs` or `pipelines`.

    In a wheel they lie under `aftershock/data`; in a checkout at its top, where users look for them.
    """
    package = Path(str(files("aftershock")))
    packaged = package / "data" / name
    return packaged if packaged.is_dir() else package.parent / name
