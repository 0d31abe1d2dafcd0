"""A YAML text and where its characters lie in the file, also where one file holds another as a string.

Workflows carry ChaosEngines as strings, and those may carry further ones. A finding needs the line of the outermost
file, and a fix has to change that file and nothing else in it, so every character keeps its place.
"""

from __future__ import annotations

import json
import re
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

import yaml

MASK = "\ue000"
"""Stands for each character of a `{{ expression }}`. Bare ones are no YAML until a workflow engine has filled them in;
masked by as many characters, they are a scalar like any other, at the same place. From Unicode's private area."""

_EXPRESSION = re.compile(r"""\{\{(?!["'])(?:"[^"\n]*"|'[^'\n]*'|[^{}\n"'])*\}\}""")
"""With strings in it, but not at its very start: `{left: "{{", right: "}}"}` is no expression."""
_CONTROL = re.compile(
    r"^[ \t]*\{\{-?[ \t]*(?:/\*|\$\w+[ \t]*:?=|(?:if|end|range|with|define|block)\b)(?:(?!\}\}).)*\}\}(?=[ \t]*\r?$)",
    re.MULTILINE,
)
"""A line of a Helm template that prints nothing. `else` is left out: what is between would be there twice."""
_BREAK = re.compile(r"[ \t]*(?:\r?\n[ \t]*)+")
_ESCAPES = {"0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r"}
_ESCAPES |= {"e": "\x1b", " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028"}
_ESCAPES |= {"P": "\u2029"}
_HEX = {"x": 2, "u": 4, "U": 8}


@dataclass(frozen=True)
class Edit:
    """Characters of the file from `start` up to `end` become `new`."""

    start: int
    end: int
    new: str
    change: Change | None = None


Action = Literal["write", "rename", "remove", "insert"]


@dataclass(frozen=True)
class Change:
    """What an edit is to do to the values of a document: the only thing that it may do."""

    action: Action
    place: int
    """Where in the file the value begins that is written, renamed or removed, or that is given a new first entry."""
    path: str
    """Where in its document."""
    new: str = ""
    """The new scalar, key or first entry, as YAML."""


class Text:
    """The text of a file."""

    def __init__(self, characters: str) -> None:
        blanked = _CONTROL.sub(lambda match: " " * len(match[0]), characters)
        self.characters = _EXPRESSION.sub(lambda match: MASK * len(match[0]), blanked)
        """With expressions masked."""
        self.shared: frozenset[int] = frozenset()
        """Ids of the nodes that several places of the document use. They are not edited: what is right for one place
        may be wrong for another."""

    def place(self, at: int) -> int:
        """Where the character `at` lies in the file."""
        return at

    @property
    def newline(self) -> str:
        """How lines of the file end."""
        return "\r\n" if "\r\n" in self.characters else "\n"

    def edit(self, start: int, end: int, new: str) -> Edit | None:
        """The change of the file that changes this text so; None if there is no such change."""
        return Edit(start, end, new)


class Embedded(Text):
    """A text that another holds as a scalar."""

    def __init__(self, node: yaml.ScalarNode, outer: Text) -> None:
        super().__init__(node.value)
        self._outer = outer
        self._start: int = node.start_mark.index
        self._style: str = node.style or ""
        raw = outer.characters[self._start : node.end_mark.index]
        self._spans = spans(node.value, raw, self._style)
        self._indent = ""
        if self._spans and self._style == "|":
            line = raw.rfind("\n", 0, self._spans.starts[0]) + 1
            self._indent = raw[line : self._spans.starts[0]]

    def place(self, at: int) -> int:
        """Where the character lies in the file; the start of the scalar where that cannot be told."""
        if not self._spans or not self._spans.starts:
            return self._outer.place(self._start)
        return self._outer.place(self._start + self._spans.starts[min(at, len(self._spans.starts) - 1)])

    @property
    def newline(self) -> str:
        """In a block, lines end as those of the file do; in quotes, the break is a character like any other."""
        return self._outer.newline if self._style == "|" else super().newline

    def edit(self, start: int, end: int, new: str) -> Edit | None:
        """None where the scalar's lines are folded: its text is not laid out as it will be read."""
        if not self._spans or self._spans.folded or start >= len(self._spans.starts):
            return None
        first = self._spans.starts[start]
        last = self._spans.ends[end - 1] if end > start else first
        return self._outer.edit(self._start + first, self._start + last, self._quoted(new))

    def _quoted(self, new: str) -> str:
        match self._style:
            case "|":
                return new.replace("\n", f"\n{self._indent}")
            case '"':
                return json.dumps(new, ensure_ascii=False)[1:-1]
            case _:
                return new.replace("'", "''")


@dataclass
class Spans:
    """From where to where in the raw scalar each character of its value comes."""

    starts: array[int]
    ends: array[int]
    folded: bool = False

    def add(self, start: int, end: int) -> None:
        """The next character of the value."""
        self.starts.append(start)
        self.ends.append(end)


def spans(value: str, raw: str, style: str) -> Spans | None:
    """Where the characters of a scalar come from; None where that cannot be told (folded and tagged scalars)."""
    found = Spans(array("q"), array("q"))
    try:
        match style:
            case "|":
                decoded = _literal(value, raw, found)
            case '"' if raw.startswith('"'):
                decoded = _quoted(raw, found, _escape)
            case "'" if raw.startswith("'"):
                decoded = _quoted(raw, found, _doubled)
            case _:
                return None
    except (IndexError, ValueError):
        return None
    return found if decoded == value and len(found.starts) == len(value) else None


def _literal(value: str, raw: str, found: Spans) -> str:
    at = raw.index("\n") + 1
    indent: int | None = None
    lines = value.split("\n")
    for number, line in enumerate(lines):
        end = raw.find("\n", at)
        end = len(raw) if end < 0 else end
        content = raw[at:end].removesuffix("\r")
        if indent is None and line:
            indent = len(content) - len(line)
        begin = at + (indent or 0) if line else at + len(content)
        if raw[begin : begin + len(line)] != line:
            return ""
        for offset in range(len(line)):
            found.add(begin + offset, begin + offset + 1)
        if number < len(lines) - 1:
            found.add(at + len(content), min(end + 1, len(raw)))
        at = end + 1
    return value


def _quoted(raw: str, found: Spans, special: Callable[[str, int, Spans], tuple[str, int]]) -> str:
    out: list[str] = []
    at = 1
    while at < len(raw) - 1:
        line_break = _BREAK.match(raw, at)
        if line_break:
            count = line_break[0].count("\n")
            out.append(" " if count == 1 else "\n" * (count - 1))
            found.add(at, line_break.end())
            for _ in range(count - 2):
                found.add(line_break.end(), line_break.end())
            found.folded = True
            at = line_break.end()
            continue
        character, end = special(raw, at, found)
        if character:
            out.append(character)
            found.add(at, end)
        at = end
    return "".join(out)


def _doubled(raw: str, at: int, found: Spans) -> tuple[str, int]:
    """The character at `at` of a scalar in single quotes, and where the next one begins."""
    return ("'", at + 2) if raw.startswith("''", at) else (raw[at], at + 1)


def _escape(raw: str, at: int, found: Spans) -> tuple[str, int]:
    """The same in double quotes; a line that is continued gives no character."""
    if raw[at] != "\\":
        return raw[at], at + 1
    kind = raw[at + 1]
    if kind in _HEX:
        end = at + 2 + _HEX[kind]
        return chr(int(raw[at + 2 : end], 16)), end
    continued = re.compile(r"\r?\n[ \t]*").match(raw, at + 1)
    if continued:
        found.folded = True
        return "", continued.end()
    if kind not in _ESCAPES:
        raise ValueError(kind)
    return _ESCAPES[kind], at + 2


def apply(characters: str, edits: Iterable[Edit]) -> str:
    """`characters` with the edits made. They must not overlap."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda each: (each.start, each.end)):
        parts += [characters[at : edit.start], edit.new]
        at = edit.end
    return "".join([*parts, characters[at:]])
