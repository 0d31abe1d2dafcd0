"""What an API server would refuse, drop or keep without knowing it, by the schemas that Litmus publishes.

They differ from one publication to the next (`aftershock/chaos/crds/README.md`), and nobody knows which one a cluster
has; so a document is held against all of them at once.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any

from aftershock.chaos.lint.item import Item

Schema = Mapping[str, Any]

_KEEPS = "x-kubernetes-preserve-unknown-fields"
_TYPES = {
    "object": {"map"},
    "array": {"seq"},
    "string": {"str", "timestamp", "value"},
    "integer": {"int"},
    "number": {"int", "float"},
    "boolean": {"bool"},
}


class Trouble(StrEnum):
    """What is wrong with a value, by the schema."""

    PRUNED = "pruned"
    KEPT = "kept"
    """Unknown, but kept, where the schema keeps everything."""
    PARTLY = "partly"
    """Known to some of the schemas."""
    TYPE = "type"
    PATTERN = "pattern"
    MISSING = "missing"
    CHOICE = "choice"
    """Not exactly one of some keys."""


@dataclass(frozen=True)
class Issue:
    """One trouble at one place."""

    trouble: Trouble
    item: Item
    detail: str
    """The type, the pattern, the missing key, the keys of which one must be there, the known keys nearest."""
    known: tuple[str, ...] = ()
    """For unknown keys: what is known there."""


@cache
def schemas() -> dict[str, Any]:
    """The schemas of the ChaosEngine by the publication they are from."""
    folder = files("aftershock") / "chaos" / "crds"
    names = sorted(path.name for path in folder.iterdir() if path.name.endswith(".json"))
    return {name.removesuffix(".json"): json.loads((folder / name).read_text(encoding="utf-8")) for name in names}


def issues(engine: Item) -> Iterator[Issue]:
    """All there is to say about the document of one ChaosEngine, each thing once."""
    yield from _issues(engine, tuple(schemas().values()))


def _issues(item: Item, known: Sequence[Schema]) -> Iterator[Issue]:
    if item.is_null or item.is_open:
        return
    types = {schema["type"] for schema in known if "type" in schema}
    if types and not any(item.type in _TYPES[name] for name in types):
        yield Issue(Trouble.TYPE, item, "/".join(sorted(types)))
        return
    yield from _value_issues(item, known)
    yield from _key_issues(item, known)
    items = tuple(schema["items"] for schema in known if "items" in schema)
    for below in item.values() if items else ():
        yield from _issues(below, items)


def _value_issues(item: Item, known: Sequence[Schema]) -> Iterator[Issue]:
    """Patterns, required keys, and keys of which exactly one is wanted."""
    patterns = [schema["pattern"] for schema in known if "pattern" in schema and "type" in schema]
    refusing = [pattern for pattern in patterns if not re.search(pattern, item.value)]
    if refusing:
        trouble = Trouble.PATTERN if len(refusing) == len(patterns) else Trouble.PARTLY
        yield Issue(trouble, item, refusing[0])
    given = {key for key, below in item.entries() if not below.is_null}
    for name in dict.fromkeys(name for schema in known for name in schema.get("required", ())):
        if name not in given:
            yield Issue(Trouble.MISSING, item, name)
    choices = [schema["oneOf"] for schema in known if "oneOf" in schema]
    if choices:
        names = [name for choice in choices[0] for name in choice["required"]]
        if len(given.intersection(names)) != 1:
            yield Issue(Trouble.CHOICE, item, " or ".join(names))


def _key_issues(item: Item, known: Sequence[Schema]) -> Iterator[Issue]:
    objects = [schema for schema in known if "properties" in schema or "additionalProperties" in schema]
    if not objects:  # metadata, and maps without a schema: anything goes
        return
    names = tuple(dict.fromkeys(name for schema in objects for name in schema.get("properties", ())))
    for key, below in item.entries():
        knowing = [
            schema["properties"][key] if key in schema.get("properties", ()) else schema["additionalProperties"]
            for schema in objects
            if key in schema.get("properties", ()) or isinstance(schema.get("additionalProperties"), dict)
        ]
        if not knowing:
            trouble = Trouble.KEPT if any(schema.get(_KEEPS) for schema in objects) else Trouble.PRUNED
            yield Issue(trouble, below, key, names)
        else:
            if len(knowing) < len(objects):
                yield Issue(Trouble.PARTLY, below, key)
            yield from _issues(below, knowing)
