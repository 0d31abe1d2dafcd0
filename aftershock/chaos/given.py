"""Documents that a parameter gives: as the name of a file, or as the YAML itself, which also travels to a pod."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from aftershock.errors import InputError

LARGEST = 4 * 1024 * 1024
"""Bytes. What is longer is not what was meant."""


@dataclass(frozen=True)
class Given:
    """A text, and what errors call it."""

    text: str
    source: str


def read_given(reference: str, parameter: str, error: type[InputError]) -> Given:
    """The text that `reference` means. Raises `error`, naming the file, if there is none to read."""
    if "\n" in reference or reference.lstrip()[:1] in ("{", "["):
        return Given(reference, parameter)
    path = Path(reference)
    try:
        if not path.is_file():
            raise error(f"{parameter}={reference}: there is no such file; give a YAML file, or the YAML itself")
        if path.stat().st_size > LARGEST:
            raise error(f"{parameter}={reference}: is larger than {LARGEST} bytes; give the one document alone")
        return Given(path.read_bytes().decode("utf-8"), reference)
    except UnicodeDecodeError as cause:
        raise error(f"{parameter}={reference}: is no text in UTF-8 (byte {cause.start}); give a YAML file") from cause
    except (OSError, ValueError) as cause:
        reason = getattr(cause, "strerror", None) or "no name of a file"
        raise error(f"{parameter}={reference[:80]!r}: cannot be read ({reason}); give a YAML file") from cause
