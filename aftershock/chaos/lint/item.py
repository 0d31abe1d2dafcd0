"""One value of a YAML document with its place: read as Kubernetes reads it, changed as a careful person would.

Documents are kept as PyYAML's nodes, never built into objects: nodes know where they are, aliases stay one node however
often they are used, and no tag of a hostile file can make anything of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import yaml

from aftershock.chaos.engine import LOADER
from aftershock.chaos.lint.text import MASK, Edit, Text

MOST_NODES = 200_000
"""More are refused: no ChaosEngine is a hundredth of it, and a file is to be answered in seconds."""

_TAG = "tag:yaml.org,2002:"
_MERGE = f"{_TAG}merge"
_PLAIN = re.compile(r"[A-Za-z0-9/][A-Za-z0-9_./-]*")


@dataclass(frozen=True)
class Item:
    """A value, where it is, and what holds it."""

    node: yaml.Node
    text: Text
    path: str = ""
    key: yaml.Node | None = None
    """The key of the mapping entry whose value this is."""
    holder: yaml.Node | None = None
    """The mapping or sequence that this is directly in."""

    @property
    def type(self) -> str:
        """YAML's type: str, int, float, bool, null, timestamp, map, seq."""
        return self.node.tag.removeprefix(_TAG)

    @property
    def is_null(self) -> bool:
        """Null is not set: the API server drops it."""
        return self.type == "null"

    @property
    def value(self) -> str:
        """The characters of a scalar; empty for null and for what is no scalar."""
        return str(self.node.value) if isinstance(self.node, yaml.ScalarNode) and not self.is_null else ""

    @property
    def is_open(self) -> bool:
        """The value holds an expression (`{{ }}` or `${ }`) that something else will fill in."""
        return MASK in self.value or "{{" in self.value or "${" in self.value

    @property
    def offset(self) -> int:
        """Where a reader would point: the value, or the key of one that begins on a line of its own."""
        multiline = not isinstance(self.node, yaml.ScalarNode) or self.node.style in ("|", ">")
        node = self.key if self.key is not None and multiline else self.node
        return self.text.place(node.start_mark.index)

    def own_entries(self) -> Iterator[tuple[str, Item]]:
        """The entries that a mapping has itself; nothing for anything else."""
        for key, value in self.node.value if isinstance(self.node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
                yield key.value, Item(value, self.text, self._below(key.value), key, self.node)

    def entries(self) -> Iterator[tuple[str, Item]]:
        """The entries of a mapping, then those that `<<` merges into it; what those merge again is left out."""
        yield from self.own_entries()
        for key, value in self.node.value if isinstance(self.node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag == _MERGE:
                for merged in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    if isinstance(merged, yaml.MappingNode):
                        yield from Item(merged, self.text, self.path).own_entries()

    def get(self, *names: str) -> Item | None:
        """What is under these keys, one below the other; None if it is not there or null."""
        found: Item = self
        for name in names:
            below = next((item for key, item in found.entries() if key == name), None)
            if below is None or below.is_null:
                return None
            found = below
        return found

    def values(self) -> list[Item]:
        """The items of a sequence; nothing for anything else."""
        if not isinstance(self.node, yaml.SequenceNode):
            return []
        return [
            Item(each, self.text, f"{self.path}[{index}]", None, self.node)
            for index, each in enumerate(self.node.value)
        ]

    def string(self, *names: str) -> str:
        """The characters of the scalar under these keys; empty if there is none."""
        found = self.get(*names)
        return found.value if found else ""

    # --- changes; each is empty where it cannot be made safely ------------------------------------------------------

    def write(self, value: str, raw: bool = False) -> tuple[Edit, ...]:
        """Another scalar in the place of this one; as a string in quotes, or just as it is given."""
        mark, node = self.node.start_mark.index, self.node
        if not isinstance(node, yaml.ScalarNode) or node.style in ("|", ">") or self._raw[:1] in ("&", "!"):
            return ()
        if self._is_alias:
            return ()
        new = value if raw else _scalar(value, node.style or "")
        return _one(self.text.edit(mark, node.end_mark.index, new))

    def rename(self, name: str) -> tuple[Edit, ...]:
        """Another key for this value."""
        if self.key is None:
            return ()
        return _one(self.text.edit(self.key.start_mark.index, self.key.end_mark.index, name))

    def replace_quotes(self) -> tuple[Edit, ...]:
        """Each double quote within this scalar becomes a single one, however the scalar itself is quoted."""
        style = self.node.style if isinstance(self.node, yaml.ScalarNode) else None
        start = self.node.start_mark.index
        if style == '"':
            places = [(match.start(), 2) for match in re.finditer(r"\\.", self._raw, re.DOTALL) if match[0] == '\\"']
        else:
            places = [(match.start(), 1) for match in re.finditer('"', self._raw)]
        if len(places) != self.value.count('"'):
            return ()
        new = "''" if style == "'" else "'"
        edits = [self.text.edit(start + at, start + at + length, new) for at, length in places]
        return tuple(edit for edit in edits if edit) if all(edits) else ()

    def remove(self) -> tuple[Edit, ...]:
        """The entry is gone, with its line or lines and the comments on them."""
        if self.key is None or not isinstance(self.holder, yaml.MappingNode) or len(self.holder.value) < 2:
            return ()
        characters, start = self.text.characters, self.key.start_mark.index
        end = _end(self.node, characters)
        if self._is_alias or end is None:
            return ()
        line = characters.rfind("\n", 0, start) + 1
        if self.holder.flow_style or characters[line:start].strip(" "):
            following = [key.start_mark.index for key, _ in self.holder.value if key.start_mark.index > start]
            return _one(self.text.edit(start, following[0], "")) if following else ()
        rest = re.compile(r"[ \t]*(#[^\n]*)?(\r?\n|\Z)").match(characters, end)
        return _one(self.text.edit(line, rest.end(), "")) if rest else ()

    def insert(self, name: str, raw: str) -> tuple[Edit, ...]:
        """A new first entry of this mapping."""
        if not isinstance(self.node, yaml.MappingNode) or not self.node.value:
            return ()
        start = self.node.value[0][0].start_mark.index
        characters = self.text.characters
        margin = " " * (start - characters.rfind("\n", 0, start) - 1)
        between = ", " if self.node.flow_style else f"{_newline(characters)}{margin}"
        return _one(self.text.edit(start, start, f"{name}: {raw}{between}"))

    def insert_item(self, entries: dict[str, str]) -> tuple[Edit, ...]:
        """A new first mapping of this sequence of mappings."""
        if not isinstance(self.node, yaml.SequenceNode) or not self.node.value or self.node.flow_style:
            return ()
        first = self.node.value[0]
        characters, start = self.text.characters, first.start_mark.index
        lead = characters[characters.rfind("\n", 0, start) + 1 : start]
        if not isinstance(first, yaml.MappingNode) or first.flow_style or lead.strip(" ") != "-":
            return ()
        newline = _newline(characters)
        lines = f"{newline}{' ' * len(lead)}".join(f"{name}: {raw}" for name, raw in entries.items())
        return _one(self.text.edit(start, start, f"{lines}{newline}{lead}"))

    @property
    def _is_alias(self) -> bool:
        """The value is written somewhere above, and meant for other places too."""
        return self.key is not None and self.node.start_mark.index < self.key.start_mark.index

    @property
    def _raw(self) -> str:
        return self.text.characters[self.node.start_mark.index : self.node.end_mark.index]

    def _below(self, key: str) -> str:
        return f"{self.path}.{key}" if self.path else key


class UnreadableError(Exception):
    """A text that is no YAML, or too much of it. Never leaves this package."""

    def __init__(self, reason: str, at: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.at = at
        """Index of the character."""


def documents(text: Text) -> list[Item]:
    """The documents of a text. Raises UnreadableError."""
    try:
        nodes = [node for node in yaml.compose_all(text.characters, Loader=LOADER) if node is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        at: int = mark.index if mark else getattr(error, "position", 0)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error).partition("\n")[0]
        raise UnreadableError(f"not YAML ({problem})", at) from error
    items = [Item(node, text) for node in nodes]
    if sum(1 for item in items for _ in walk(item)) > MOST_NODES:
        raise UnreadableError(f"holds more than {MOST_NODES} YAML values")
    return items


def walk(top: Item) -> Iterator[Item]:
    """`top` and everything below it in the order of the file, each node once."""
    seen: set[int] = set()
    rest = [top]
    while rest:
        item = rest.pop()
        if id(item.node) in seen:
            continue
        seen.add(id(item.node))
        yield item
        rest += reversed([below for _, below in item.own_entries()] or item.values())


def _scalar(value: str, style: str) -> str:
    if style == "'" and "\n" not in value:
        return "'" + value.replace("'", "''") + "'"
    if not style and _PLAIN.fullmatch(value) and isinstance(yaml.load(value, Loader=LOADER), str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _end(node: yaml.Node, characters: str) -> int | None:
    """Where the last character of a value is: block collections end for PyYAML where the next thing begins.

    None where the value ends in an alias, whose node is elsewhere.
    """
    top = node.start_mark.index
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
        if node.start_mark.index <= top:
            return None
    start, end = node.start_mark.index, node.end_mark.index
    return start + len(characters[start:end].rstrip())


def _newline(characters: str) -> str:
    return "\r\n" if "\r\n" in characters else "\n"


def _one(edit: Edit | None) -> tuple[Edit, ...]:
    return (edit,) if edit else ()
