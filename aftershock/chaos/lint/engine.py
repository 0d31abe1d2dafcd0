"""A ChaosEngine as the rules see it: loosely read, since a broken one is what they are for."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import yaml

from aftershock.chaos.lint.catalogue import Fault, catalogue
from aftershock.chaos.lint.crd import Issue, issues
from aftershock.chaos.lint.item import Item, UnreadableError, documents, walk
from aftershock.chaos.lint.text import Embedded, Text

DEEPEST = 3
"""Strings in strings that are looked into: ChaosCenter stores a workflow as JSON, which holds engines as YAML."""

HOLDS_ENGINE = re.compile(r"""\\*["']?kind\\*["']?\s*:\s*\\*["']?ChaosEngine\b""")
"""A string that may hold one; with backslashes before the quotes where it is JSON in JSON."""

_PATCH = re.compile(r"(^|[. ])(patch|patches|patchesStrategicMerge)(\[\d+\])?: $")
"""Kustomize's keys for texts that are no whole objects."""


@dataclass(frozen=True)
class Variable:
    """One entry of an experiment's environment."""

    name: str
    entry: Item

    @property
    def item(self) -> Item:
        """Its value, or the whole entry where it has none."""
        return self.entry.get("value") or self.entry

    @property
    def value(self) -> str:
        """As Litmus reads it: empty is not set."""
        return self.entry.string("value")

    @property
    def is_open(self) -> bool:
        """What it will be is not in this file."""
        return self.item.is_open or self.entry.get("valueFrom") is not None


@dataclass(frozen=True)
class Experiment:
    """One fault of an engine."""

    item: Item

    @property
    def name(self) -> str:
        """Which fault."""
        return self.item.string("name")

    @property
    def fault(self) -> Fault | None:
        """What is known of it; None for somebody's own experiment."""
        return catalogue().faults.get(self.name)

    @cached_property
    def variables(self) -> list[Variable]:
        """Its environment, in order."""
        env = self.item.get("spec", "components", "env")
        return [Variable(entry.string("name"), entry) for entry in env.values() if entry.string("name")] if env else []

    @cached_property
    def env(self) -> dict[str, Variable]:
        """Its environment by name; of two, the last one counts."""
        return {variable.name: variable for variable in self.variables}

    def is_set(self, *names: str) -> bool:
        """One of these tunables has a value, or will be given one."""
        return any(name in self.env and (self.env[name].value or self.env[name].is_open) for name in names)

    def string(self, name: str) -> str:
        """The value of a tunable as Litmus reads it: empty is not set, and the chart's counts."""
        given = self.env[name].value if name in self.env else ""
        return given or (self.fault.tunables.get(name, "") if self.fault else "")

    def number(self, name: str) -> float | None:
        """The value of a tunable where it is a number, or else what the chart says."""
        value = self.env[name].value if name in self.env else ""
        value = value or (self.fault.tunables.get(name, "") if self.fault else "")
        return float(value) if re.fullmatch(r"\+?[0-9]{1,18}(\.[0-9]+)?", value) else None

    def most(self, name: str) -> float | None:
        """The same, and of a range its upper end."""
        value = self.env[name].value if name in self.env else ""
        upper = re.fullmatch(r"[0-9]{1,9}-([0-9]{1,9})", value)
        return float(upper[1]) if upper else self.number(name)

    @property
    def probes(self) -> list[Item]:
        """Its probes."""
        found = self.item.get("spec", "probe")
        return found.values() if found else []

    def place_of_env(self) -> Item:
        """Where a missing tunable would stand."""
        for names in (("spec", "components", "env"), ("spec", "components"), ("spec",), ("name",)):
            found = self.item.get(*names)
            if found:
                return found
        return self.item


@dataclass(frozen=True)
class Engine:
    """One ChaosEngine of a file."""

    root: Item
    inside: str = ""
    """Where in the file the text that holds it is; empty for the file itself."""
    patched: bool = False
    """The file gives it as a patch."""

    @property
    def is_patch(self) -> bool:
        """It changes another engine, in which the rest is: nothing can be missing from it."""
        given = {name for name, below in self.spec.entries() if not below.is_null} if self.spec is not self.root else ()
        return self.patched or (bool(given) and not {"experiments", "chaosServiceAccount"} & set(given))

    @cached_property
    def issues(self) -> list[Issue]:
        """What the published schemas say of it."""
        return list(issues(self.root))

    @property
    def name(self) -> str:
        """Its name, or the beginning of the one that the API server will make up."""
        return self.root.string("metadata", "name") or self.root.string("metadata", "generateName")

    @property
    def spec(self) -> Item:
        """Its spec; the whole where it has none."""
        return self.root.get("spec") or self.root

    @cached_property
    def experiments(self) -> list[Experiment]:
        """Its faults."""
        found = self.root.get("spec", "experiments")
        return [Experiment(item) for item in found.values()] if found else []

    @property
    def appinfo(self) -> dict[str, str]:
        """What is given of appns, applabel and appkind."""
        names = ("appns", "applabel", "appkind")
        return {name: value for name in names if (value := self.root.string("spec", "appinfo", name))}

    @property
    def selectors(self) -> Item | None:
        """They win over appinfo; None if there are none."""
        return self.root.get("spec", "selectors")


@dataclass(frozen=True)
class Broken:
    """A string that should hold a ChaosEngine, and does not."""

    item: Item
    reason: str
    place: int
    """Where in the file."""


def find_engines(text: Text) -> Iterator[Engine | Broken]:
    """The ChaosEngines of a file, also those that strings in it hold. Raises UnreadableError if the file is no YAML."""
    for document in documents(text):
        yield from _engines(document, "", DEEPEST)


def _engines(document: Item, inside: str, depth: int) -> Iterator[Engine | Broken]:
    engines: set[int] = set()
    for item in walk(document):
        if item.holder is not None and id(item.holder) in engines:
            engines.add(id(item.node))  # what an engine holds is its own
        elif _is_engine(item):
            engines.add(id(item.node))
            yield Engine(item, inside, bool(_PATCH.search(inside)))
        elif depth and HOLDS_ENGINE.search(item.value):
            yield from _embedded(item, inside, depth)


def _is_engine(item: Item) -> bool:
    """Events, owner references and patch targets name an engine without being one."""
    if item.string("kind") != "ChaosEngine":
        return False
    parts = [name for name in ("spec", "metadata") if (found := item.get(name)) and found.type == "map"]
    return "spec" in parts or (bool(parts) and item.get("apiVersion") is not None)


def _embedded(item: Item, inside: str, depth: int) -> Iterator[Engine | Broken]:
    if not isinstance(item.node, yaml.ScalarNode):
        return
    text = Embedded(item.node, item.text)
    try:
        found = documents(text)
    except UnreadableError as error:
        yield Broken(item, error.reason, text.place(error.at))
        return
    for document in found:
        yield from _engines(document, f"{inside}{item.path}: ", depth - 1)
