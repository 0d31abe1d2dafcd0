"""Proof that a mended text reads as it did before, but for the changes that its edits name.

Edits are made on characters, and what characters mean depends on all around them. So both texts are read, the named
changes are made to the values of the first, and then nothing may differ: no value, key, order or alias, also not in
the texts that strings hold; and what was JSON has to be JSON still.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import yaml

from aftershock.chaos.engine import LOADER
from aftershock.chaos.lint.engine import DEEPEST, HOLDS_ENGINE
from aftershock.chaos.lint.item import Item, UnreadableError, documents, walk
from aftershock.chaos.lint.text import Change, Embedded, Text

Pairs = list[tuple[yaml.Node, yaml.Node]]


def reads_as_meant(before: str, after: str, changes: Iterable[Change]) -> bool:
    """Whether `after` reads as `before` with the changes made to its values, and with nothing else changed."""
    try:
        meant, found = _Reading(before), _Reading(after)
    except UnreadableError:
        return False
    return meant.make(dict.fromkeys(changes)) and _equal(meant, found)


@dataclass
class _Held:
    """What a string holds."""

    documents: list[yaml.Node]
    is_json: bool


class _Reading:
    """A text as the values that it stands for, also those in its strings."""

    def __init__(self, characters: str) -> None:
        self.items: dict[tuple[int, str], Item] = {}
        """By place in the file and path."""
        self.held: dict[int, _Held] = {}
        """By the id of the string's node."""
        self.top = self._read(Text(characters), DEEPEST)

    def make(self, changes: Iterable[Change]) -> bool:
        """Make the changes; False where one of them has no place."""
        found = [(change, self.items.get((change.place, change.path))) for change in changes]
        return all([item is not None and _make(item, change) for change, item in found])

    def _read(self, text: Text, depth: int) -> _Held:
        tops = documents(text)
        for top in tops:
            for item in walk(top):
                self.items.setdefault((text.place(item.node.start_mark.index), item.path), item)
                if depth and isinstance(item.node, yaml.ScalarNode) and HOLDS_ENGINE.search(item.value):
                    self._read_string(item.node, text, depth)
        return _Held([top.node for top in tops], _is_json(text.characters))

    def _read_string(self, node: yaml.ScalarNode, text: Text, depth: int) -> None:
        try:
            self.held[id(node)] = self._read(Embedded(node, text), depth - 1)
        except UnreadableError:
            return  # then it is only a string, and has to stay the same one


def _make(item: Item, change: Change) -> bool:
    node, key, holder = item.node, item.key, item.holder
    new = yaml.compose(change.new, Loader=LOADER)
    match change.action:
        case "write" if isinstance(node, yaml.ScalarNode) and isinstance(new, yaml.ScalarNode):
            node.tag, node.value = new.tag, new.value
        case "rename" if isinstance(key, yaml.ScalarNode) and isinstance(new, yaml.ScalarNode):
            key.tag, key.value = new.tag, new.value
        case "remove" if isinstance(holder, yaml.MappingNode):
            holder.value = [pair for pair in holder.value if pair[1] is not node]
        case "remove" if isinstance(holder, yaml.SequenceNode):
            holder.value = [each for each in holder.value if each is not node]
        case "insert" if isinstance(node, yaml.MappingNode) and isinstance(new, yaml.MappingNode):
            node.value = [*new.value, *node.value]
        case "insert" if isinstance(node, yaml.SequenceNode):
            node.value = [new, *node.value]
        case _:
            return False
    return True


def _equal(meant: _Reading, found: _Reading) -> bool:
    rest = _held_pairs(meant.top, found.top)
    if rest is None:
        return False
    partner: dict[int, int] = {}
    taken: set[int] = set()
    while rest:
        one, other = rest.pop()
        if id(one) in partner or id(other) in taken:  # an alias, which has to be the same one
            if partner.get(id(one)) != id(other):
                return False
            continue
        partner[id(one)] = id(other)
        taken.add(id(other))
        held = meant.held.get(id(one)), found.held.get(id(other))
        pairs = _held_pairs(held[0], held[1]) if held[0] and held[1] else _pairs(one, other)
        if pairs is None or one.tag != other.tag:
            return False
        rest += pairs
    return True


def _held_pairs(one: _Held, other: _Held) -> Pairs | None:
    """The documents to be compared; None where one is missing, or JSON no longer JSON."""
    if len(one.documents) != len(other.documents) or (one.is_json and not other.is_json):
        return None
    return list(zip(one.documents, other.documents, strict=True))


def _pairs(one: yaml.Node, other: yaml.Node) -> Pairs | None:
    """The nodes right below two, to be compared; None where the two differ themselves."""
    if type(one) is not type(other):
        return None
    if isinstance(one, yaml.ScalarNode):
        return [] if one.value == other.value else None
    if len(one.value) != len(other.value):
        return None
    pairs = list(zip(one.value, other.value, strict=True))
    if isinstance(one, yaml.MappingNode):
        return [both for pair, another in pairs for both in zip(pair, another, strict=True)]
    return pairs


def _is_json(text: str) -> bool:
    if text.lstrip()[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
