"""The questions of a load and the answers expected, from JSON Lines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from aftershock.errors import DatasetError
from aftershock.load.grading import GRADERS, Grade

SHIPPED = ("canary",)
"""Data sets that come with the package, under `datasets/`."""


@dataclass(frozen=True)
class Item:
    """One question. Without an expected answer it is asked but not graded."""

    id: str
    prompt: str
    expected: str | None = None
    grader: str = "exact"

    def grade(self) -> Grade | None:
        """What tells a right answer to it. Raises ValueError where `expected` does not fit the grader."""
        return None if self.expected is None else GRADERS[self.grader](self.expected)


class _Line(BaseModel):
    """A line of the file. Strict: `"expected": 4` would compare as a number here and as text there."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str = Field(min_length=1, description="Name of the item, once in the file")
    prompt: str = Field(min_length=1, description="What is asked")
    expected: str | None = Field(None, min_length=1, description="The answer, as the grader wants it")
    grader: str = Field("exact", description="How the answer is compared")

    @field_validator("grader")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in GRADERS:
            raise ValueError(f"unknown; known are {', '.join(GRADERS)}")
        return value


def load_dataset(name_or_path: str) -> list[Item]:
    """A shipped data set by its name, or a JSON Lines file. Raises DatasetError: `file:line: field: what`."""
    if name_or_path in SHIPPED:
        path = Path(str(files("aftershock.load"))) / "datasets" / f"{name_or_path}.jsonl"
    else:
        path = Path(name_or_path)
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise DatasetError(
            f"{name_or_path}: cannot be read ({error.strerror or error}); give {' or '.join(SHIPPED)}, "
            "or a JSON Lines file"
        ) from error
    items = list(_parse(lines, str(path)))
    if not items:
        raise DatasetError(f"{path}:1: id: the file holds no item; give one JSON object a line")
    return items


def _parse(lines: list[bytes], source: str) -> Iterator[Item]:
    first_seen: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        item = _item(line, f"{source}:{number}")
        if item.id in first_seen:
            raise DatasetError(f"{source}:{number}: id: {item.id!r} was already used in line {first_seen[item.id]}")
        first_seen[item.id] = number
        yield item


def _item(line: bytes, where: str) -> Item:
    try:
        item = Item(**_Line.model_validate_json(line).model_dump())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "line"
        raise DatasetError(f"{where}: {field}: {first['msg'].removeprefix('Value error, ')}") from error
    try:
        item.grade()
    except ValueError as error:
        raise DatasetError(f"{where}: expected: {error}, which the grader {item.grader} needs") from error
    return item
