"""YAML that remembers its lines, so that an error can say `file:line: path: what is wrong`. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from aftershock.errors import SpecError

Path = tuple[str | int, ...]


class _Loader(yaml.SafeLoader):
    """The safe loader, which also reads `1e3` as the number it is (YAML 1.1 wants `1.0e+3`)."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$"), list("-+0123456789")
)


@dataclass(frozen=True)
class Document:
    """One document of a YAML text: its data, and where each part of it stands."""

    data: dict[Any, Any]
    node: yaml.MappingNode
    source: str

    def line(self, path: Sequence[str | int]) -> int:
        """The line, from 1, of the key or item at `path`; of its nearest parent where there is no such thing."""
        node: yaml.Node = self.node
        line = node.start_mark.line
        for part in path:
            step = _child(node, part)
            if step is None:
                break
            line, node = step
        return line + 1

    def at(self, path: Sequence[str | int]) -> str:
        """`file:line` of `path`."""
        return f"{self.source}:{self.line(path)}"

    def error(self, path: Sequence[str | int], message: str) -> SpecError:
        """The error that `message` is about `path`."""
        return SpecError(f"{self.at(path)}: {dotted(path)}: {message}")


@dataclass(frozen=True)
class Place:
    """A part of a document: what is read from it can say where it stands."""

    document: Document
    path: Path = ()

    def below(self, *parts: str | int) -> Place:
        """The part at `parts` in this one."""
        return Place(self.document, (*self.path, *parts))

    def error(self, message: str) -> SpecError:
        """The error that `message` is about this place."""
        return self.document.error(self.path, message)

    def __str__(self) -> str:
        return self.document.at(self.path)


def _child(node: yaml.Node, part: str | int) -> tuple[int, yaml.Node] | None:
    """Line and node of one key or item."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                return key.start_mark.line, value
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        item = node.value[part]
        return item.start_mark.line, item
    return None


def dotted(path: Sequence[str | int]) -> str:
    """`spec.objectives[0].target`"""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "document"


def read_documents(text: str, source: str) -> list[Document]:
    """Every document of `text` that is not empty. Raises SpecError for no YAML, no mapping, or a key given twice."""
    try:
        return list(_documents(_Loader(text), source))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise SpecError(f"{source}:{line}: not YAML: {error.reason} ({error.character:#x})") from error
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{source}:{mark.line + 1}" if mark else source
        reason = " ".join(str(getattr(error, "problem", None) or error).split())
        raise SpecError(f"{where}: not YAML: {reason}") from error
    except RecursionError as error:
        raise SpecError(f"{source}: nested too deeply to be an SLO document") from error


def _documents(loader: _Loader, source: str) -> Iterator[Document]:
    while (node := loader.get_node() if loader.check_node() else None) is not None:
        _refuse_duplicates(node, source)
        data = loader.construct_document(node)
        if data is None:
            continue
        if not isinstance(node, yaml.MappingNode):
            line = node.start_mark.line + 1
            raise SpecError(f"{source}:{line}: document: must be a mapping with apiVersion, kind, metadata and spec")
        yield Document(data, node, source)


def _refuse_duplicates(root: yaml.Node, source: str) -> None:
    """YAML lets the last of two equal keys win in silence; here that is an error. Aliases are walked once."""
    seen: set[int] = set()
    waiting: list[tuple[yaml.Node, Path]] = [(root, ())]
    while waiting:
        node, path = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [(item, (*path, index)) for index, item in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            lines: dict[str, int] = {}
            for key, value in node.value:
                name, line = str(key.value), key.start_mark.line + 1
                if name in lines:
                    first = lines[name]
                    raise SpecError(f"{source}:{line}: {dotted((*path, name))}: given twice, first in line {first}")
                lines[name] = line
                waiting.append((value, (*path, name)))
