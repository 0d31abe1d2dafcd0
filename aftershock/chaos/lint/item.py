"""One value of a YAML document with its place: read as Kubernetes reads it, changed as a careful person would.

Documents are kept as PyYAML's nodes, never built into objects: nodes know where they are, aliases stay one node however
often they are used, and no tag of a hostile file can make anything of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import yaml

from aftershock.chaos.engine import LOADER
from aftershock.chaos.lint.text import MASK, Action, Change, Edit, Text

MOST_NODES = 200_000
"""More are refused: no ChaosEngine is a hundredth of it, and a file is to be answered in seconds."""

_TAG = "tag:yaml.org,2002:"
MERGE = f"{_TAG}merge"
_PLAIN = re.compile(r"[A-Za-z0-9/][A-Za-z0-9_./-]*")
_END_OF_LINE = re.compile(r"[ \t]*(#[^\n]*)?(\r?\n|\Z)")


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
            if isinstance(key, yaml.ScalarNode) and key.tag != MERGE:
                yield key.value, Item(value, self.text, self._below(key.value), key, self.node)

    def entries(self) -> Iterator[tuple[str, Item]]:
        """The entries of a mapping, then those that `<<` merges into it; what those merge again is left out."""
        yield from self.own_entries()
        for key, value in self.node.value if isinstance(self.node, yaml.MappingNode) else ():
            if isinstance(key, yaml.ScalarNode) and key.tag == MERGE:
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
        if self._is_shared:
            return ()
        new = value if raw else _scalar(value, '"' if self._is_json else node.style or "")
        return self._edit(mark, node.end_mark.index, new, "write", value if raw else _quoted(value))

    def rename(self, name: str) -> tuple[Edit, ...]:
        """Another key for this value."""
        if not isinstance(self.key, yaml.ScalarNode) or id(self.key) in self.text.shared or self._holder_is_shared:
            return ()
        new = _scalar(name, self.key.style or "")
        return self._edit(self.key.start_mark.index, self.key.end_mark.index, new, "rename", _quoted(name))

    def replace_quotes(self) -> tuple[Edit, ...]:
        """Each double quote within this scalar becomes a single one, however the scalar itself is quoted."""
        style = self.node.style if isinstance(self.node, yaml.ScalarNode) else None
        start = self.node.start_mark.index
        if style == '"':
            places = [(match.start(), 2) for match in re.finditer(r"\\.", self._raw, re.DOTALL) if match[0] == '\\"']
        else:
            places = [(match.start(), 1) for match in re.finditer('"', self._raw)]
        if len(places) != self.value.count('"') or self._is_shared:
            return ()
        new, meant = "''" if style == "'" else "'", _quoted(self.value.replace('"', "'"))
        edits = [self._edit(start + at, start + at + length, new, "write", meant) for at, length in places]
        return tuple(edit for each in edits for edit in each) if all(edits) else ()

    def remove(self) -> tuple[Edit, ...]:
        """The entry or item is gone, with its line or lines and the comments on them; other comments stay."""
        holder = self.holder
        if not isinstance(holder, yaml.CollectionNode) or len(holder.value) < 2 or self._is_shared:
            return ()
        firsts = [each[0] if isinstance(each, tuple) else each for each in holder.value]
        own = self.key or self.node
        characters, start = self.text.characters, own.start_mark.index
        end = _end(self.node, characters)
        line = characters.rfind("\n", 0, start) + 1
        rest = _END_OF_LINE.match(characters, end) if end is not None else None
        alone = characters[line:start].strip(" ") == ("" if self.key else "-")
        if not holder.flow_style and alone:
            return self._edit(line, rest.end(), "", "remove") if rest else ()
        following = next((each.start_mark.index for each in firsts if each.start_mark.index > start), None)
        if end is None or following is None:
            return ()
        if "#" not in characters[end:following]:
            return self._edit(start, following, "", "remove")
        # The entry beside the dash of an item, and comments on what comes after it.
        dash = characters[line:start].rstrip(" ")
        if holder.flow_style or not rest or dash.strip(" ") != "-":
            return ()
        return self._edit(line + len(dash), rest.end(), self.text.newline, "remove")

    def insert(self, name: str, raw: str) -> tuple[Edit, ...]:
        """A new first entry of this mapping."""
        if not isinstance(self.node, yaml.MappingNode) or not self.node.value or self._is_shared:
            return ()
        first = self.node.value[0][0]
        start = first.start_mark.index
        margin = " " * (start - self.text.characters.rfind("\n", 0, start) - 1)
        between = ", " if self.node.flow_style else f"{self.text.newline}{margin}"
        is_json = self.node.flow_style and isinstance(first, yaml.ScalarNode) and first.style == '"'
        new = f"{_quoted(name) if is_json else name}: {raw}{between}"
        return self._edit(start, start, new, "insert", f"{{{name}: {raw}}}")

    def insert_item(self, entries: dict[str, str]) -> tuple[Edit, ...]:
        """A new first mapping of this sequence of mappings."""
        if not isinstance(self.node, yaml.SequenceNode) or not self.node.value or self.node.flow_style:
            return ()
        if self._is_shared:
            return ()
        first = self.node.value[0]
        characters, start = self.text.characters, first.start_mark.index
        lead = characters[characters.rfind("\n", 0, start) + 1 : start]
        if not isinstance(first, yaml.MappingNode) or first.flow_style or lead.strip(" ") != "-":
            return ()
        newline, pairs = self.text.newline, [f"{name}: {raw}" for name, raw in entries.items()]
        lines = f"{newline}{' ' * len(lead)}".join(pairs)
        return self._edit(start, start, f"{lines}{newline}{lead}", "insert", f"{{{', '.join(pairs)}}}")

    def _edit(self, start: int, end: int, new: str, action: Action, meant: str = "") -> tuple[Edit, ...]:
        edit = self.text.edit(start, end, new)
        place = self.text.place(self.node.start_mark.index)
        return (replace(edit, change=Change(action, place, self.path, meant)),) if edit else ()

    @property
    def _is_shared(self) -> bool:
        """The value, or what holds it, is meant for other places too."""
        return id(self.node) in self.text.shared or self._holder_is_shared

    @property
    def _holder_is_shared(self) -> bool:
        return self.holder is not None and id(self.holder) in self.text.shared

    @property
    def _is_json(self) -> bool:
        """The value stands where JSON would have it, which knows no words without quotes."""
        key, holder = self.key, self.holder
        is_flow = isinstance(holder, yaml.MappingNode) and bool(holder.flow_style)
        return is_flow and isinstance(key, yaml.ScalarNode) and key.style == '"'

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
    text.shared = _shared(nodes)
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
    return _quoted(value)


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


def _shared(documents: list[yaml.Node]) -> frozenset[int]:
    """Ids of the nodes that are used more than once, by aliases or merges, and of all below them."""
    uses: dict[int, int] = {}
    twice: list[yaml.Node] = []
    rest = list(documents)
    while rest:
        node = rest.pop()
        uses[id(node)] = uses.get(id(node), 0) + 1
        if uses[id(node)] == 1:
            rest += _below(node)
        elif uses[id(node)] == 2:
            twice.append(node)
    shared: set[int] = set()
    while twice:
        node = twice.pop()
        if id(node) not in shared:
            shared.add(id(node))
            twice += _below(node)
    return frozenset(shared)


def _below(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)
