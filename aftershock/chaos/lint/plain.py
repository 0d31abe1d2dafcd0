"""From a value of a document to plain data, as Kubernetes takes it: what JSON can say, and nothing that JSON cannot."""

from __future__ import annotations

import math
from typing import Any

import yaml
from yaml.constructor import SafeConstructor

from aftershock.chaos.lint.item import MERGE, MOST_NODES, Item, UnreadableError
from aftershock.chaos.lint.text import MASK

DEEPEST = 60
"""Levels below each other; a CRD has a dozen, and an anchor within itself has no end."""

_TEXTS = ("str", "timestamp", "value")
"""What YAML 1.1 has more kinds of text for than JSON: a date without quotes stays the characters that it is."""


def plain(item: Item) -> Any:
    """The data of `item`, each alias a copy of its own. Raises UnreadableError with the place."""
    return _Builder().build(item, 0)


def place(item: Item) -> int:
    """Where in the file the value begins."""
    return item.text.place(item.node.start_mark.index)


def expression(item: Item) -> bool:
    """Whether the value waits for a workflow engine to fill it in."""
    return MASK in item.value or "{{" in item.value


class _Builder:
    def __init__(self) -> None:
        self._count = 0
        self._scalars = SafeConstructor()

    def build(self, item: Item, depth: int) -> Any:
        self._count += 1
        at = place(item)
        if self._count > MOST_NODES or depth > DEEPEST:
            raise UnreadableError("aliases blow it up, or it is nested too deeply", at)
        if isinstance(item.node, yaml.MappingNode) and item.type == "map":
            return self._mapping(item, depth)
        if isinstance(item.node, yaml.SequenceNode) and item.type == "seq":
            return [self.build(below, depth + 1) for below in item.values()]
        return self._scalar(item, at)

    def _mapping(self, item: Item, depth: int) -> dict[str, Any]:
        self._refuse_odd_keys(item)
        found: dict[str, Any] = {}
        for key, below in item.entries():  # its own before those that are merged in, which give way
            if below.key is not None and below.key.tag.rpartition(":")[2] not in _TEXTS:
                raise UnreadableError(f"{below.path}: the key is no text; put it in quotes", place(below))
            found.setdefault(key, self.build(below, depth + 1))
        return found

    def _refuse_odd_keys(self, item: Item) -> None:
        """What `Item.entries` passes over, and would be lost: keys that are no scalars, and merges within merges."""
        for key, value in item.node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise UnreadableError(f"{item.path}: a key is no text", place(item))
            if key.tag != MERGE:
                continue
            for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                if not isinstance(merged, yaml.MappingNode) or any(each.tag == MERGE for each, _ in merged.value):
                    raise UnreadableError(
                        f"{item.path}: << takes mappings that do not merge others; write it out", place(item)
                    )

    def _scalar(self, item: Item, at: int) -> Any:
        if item.type in _TEXTS:
            return item.node.value
        if item.type not in ("int", "float", "bool", "null"):
            raise UnreadableError(f"{item.path}: {item.type[:40]} is nothing that Kubernetes takes", at)
        try:
            value = self._scalars.construct_object(item.node)
        except (yaml.YAMLError, ValueError) as error:
            raise UnreadableError(f"{item.path}: {item.value[:40]!r} is no {item.type}", at) from error
        if isinstance(value, float) and not math.isfinite(value):
            raise UnreadableError(f"{item.path}: {item.value[:40]} is no number that JSON has", at)
        return value
