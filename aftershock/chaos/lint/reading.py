"""Reading what is to be sent on, not only looked at: one ChaosEngine, or probes for one, as data and with its findings.

Probes are held against the rules in the place where they will be: among the experiments of their engine. Their own
places in their own file are kept.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from aftershock.chaos.lint.engine import Broken, Engine, find_engines
from aftershock.chaos.lint.finding import Finding, shown
from aftershock.chaos.lint.item import Item, UnreadableError, documents, walk
from aftershock.chaos.lint.linter import LARGEST, findings_of
from aftershock.chaos.lint.plain import expression, place, plain
from aftershock.chaos.lint.text import Text
from aftershock.errors import EngineError

_SHELL = "cmdProbe/inputs"
"""Where `${NAME}` is the shell's, not a workflow's."""

_STRING, _MAPPING = "tag:yaml.org,2002:str", "tag:yaml.org,2002:map"


@dataclass(frozen=True)
class EngineFile:
    """The only ChaosEngine of a text."""

    document: dict[str, Any]
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class ProbeFile:
    """A list of probes."""

    probes: tuple[dict[str, Any], ...]
    lines: tuple[int, ...]
    """Where each begins, from 1."""
    findings: tuple[Finding, ...]


def read_engine(text: str, source: str) -> EngineFile:
    """The one ChaosEngine in `text`, also where a workflow holds it as a string.

    Raises EngineError, one line with `source`, if there is none or another one beside it, and for an expression in it
    that only a workflow engine fills in. In the metadata such entries are left out: they are a workflow's book-keeping.
    """
    outer = _text(text, source)
    try:
        parts = list(find_engines(outer))
        engine = _only(parts, source)
        _refuse_expressions(engine.spec)
        document = plain(engine.root)
    except UnreadableError as error:
        raise _refusal(error, outer, source) from error
    return EngineFile(document, tuple(findings_of(engine, outer, source)))


def read_probes(text: str, source: str, engine_text: str) -> ProbeFile:
    """The probes that `text` lists, with what there is to say about them in the engine of `engine_text`.

    Raises EngineError, one line with `source`, for what is no list of mappings.
    """
    outer = _text(text, source)
    try:
        listed = _only_list(documents(outer))
        items = listed.values()
        probes = []
        for item in items:
            _refuse_expressions(item)
            data = plain(item)
            if not isinstance(data, dict):
                raise UnreadableError(f"{item.path or 'the list'}: must be a mapping, is {item.type}", place(item))
            probes.append(data)
    except UnreadableError as error:
        raise _refusal(error, outer, source) from error
    engine = _engine_with(listed, engine_text, outer)
    # Each experiment has the same probes, and the same is to be said of them.
    of_probes = [finding for finding in findings_of(engine, outer, source) if _is_of_a_probe(finding)]
    findings = {(finding.line, finding.column, finding.rule): finding for finding in reversed(of_probes)}
    lines = tuple(outer.characters.count("\n", 0, place(item)) + 1 for item in items)
    return ProbeFile(tuple(probes), lines, tuple(reversed(findings.values())))


def _text(text: str, source: str) -> Text:
    if len(text) > LARGEST:
        raise EngineError(f"{source}: is {len(text)} characters long; at most {LARGEST} are read")
    return Text(text.removeprefix("\ufeff"))


def _only(parts: list[Engine | Broken], source: str) -> Engine:
    engines = [part for part in parts if isinstance(part, Engine)]
    if len(engines) == 1:
        return engines[0]
    if engines:
        names = ", ".join(shown(engine.name) for engine in engines[:5])
        more = f" and {len(engines) - 5} more" if len(engines) > 5 else ""
        raise EngineError(f"{source}: holds {len(engines)} ChaosEngines, {names}{more}; give one of them alone")
    broken = next((part for part in parts if isinstance(part, Broken)), None)
    if broken:
        raise EngineError(f"{source}: {broken.item.path} seems to hold a ChaosEngine, but is {broken.reason}")
    raise EngineError(f"{source}: holds no ChaosEngine; give a document with apiVersion and kind: ChaosEngine")


def _only_list(found: list[Item]) -> Item:
    if len(found) != 1 or found[0].type != "seq" or not found[0].values():
        what = found[0].type if len(found) == 1 else f"{len(found)} documents"
        raise UnreadableError(f"must be one list of probes, as in spec.experiments[].spec.probe, is {what}")
    return found[0]


def _engine_with(probes: Item, engine_text: str, text: Text) -> Engine:
    """The engine with these probes, and no others, in each of its experiments; places are those of the probes' text."""
    engine = Engine(Item(documents(Text(engine_text))[0].node, text))
    for experiment in engine.experiments:
        _put(_put(experiment.item.node, "spec", None, probes), "probe", probes.node, probes)
    return engine


def _put(holder: yaml.Node, name: str, value: yaml.Node | None, place_of: Item) -> yaml.Node:
    """`value` under `name`, in the place of what is there; None: what is there, or a new mapping."""
    found = next((each for key, each in holder.value if key.value == name), None)
    if value is None:
        value = found if isinstance(found, yaml.MappingNode) else yaml.MappingNode(_MAPPING, [])
    start, end = place_of.node.start_mark, place_of.node.end_mark
    pair = (yaml.ScalarNode(_STRING, name, start, end), value)
    holder.value = [*(each for each in holder.value if each[0].value != name), pair]
    return value


def _is_of_a_probe(finding: Finding) -> bool:
    return bool(re.match(r"spec\.experiments\[\d+\]\.spec\.probe\b", finding.path))


def _refuse_expressions(top: Item) -> None:
    for item in walk(top):
        if expression(item) or ("${" in item.value and _SHELL not in item.path):
            raise UnreadableError(
                f"{item.path}={shown(item.value)}: is for a workflow engine to fill in; give the value itself",
                place(item),
            )


def _refusal(error: UnreadableError, text: Text, source: str) -> EngineError:
    line = text.characters.count("\n", 0, error.at) + 1
    return EngineError(f"{source}:{line}: {error.reason}")
