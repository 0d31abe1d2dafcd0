"""The registry of rules: one rule is one small function that looks at one thing and yields what is wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from aftershock.chaos.lint.engine import Engine, Experiment
from aftershock.chaos.lint.finding import Severity
from aftershock.chaos.lint.item import Item
from aftershock.chaos.lint.text import Edit

ERROR, WARNING = Severity.ERROR, Severity.WARNING


@dataclass(frozen=True)
class Hit:
    """What a rule found: where, what is wrong, what to do, and the edit where that takes no decision."""

    item: Item
    what: str
    fix: str
    edits: tuple[Edit, ...] = ()


@dataclass(frozen=True)
class Probe:
    """One probe of an experiment."""

    item: Item
    experiment: Experiment

    @property
    def name(self) -> str:
        """Its name."""
        return self.item.string("name")

    @property
    def type(self) -> str:
        """promProbe, httpProbe, cmdProbe, k8sProbe or sloProbe, if it is right."""
        return self.item.string("type")

    @property
    def mode(self) -> str:
        """SOT, EOT, Edge, Continuous or OnChaos, if it is right."""
        return self.item.string("mode")

    @property
    def inputs(self) -> Item | None:
        """What it asks; None if that is missing."""
        return self.item.get(f"{self.type}/inputs")


Check = Callable[[Engine], Iterator[Hit]]


@dataclass(frozen=True)
class Rule:
    """One hazard."""

    id: str
    severity: Severity
    title: str
    reference: str
    """Where it can be read up."""
    check: Check
    of_whole: bool = False
    """It says that something is missing, so it has nothing to say of a patch."""


RULES: dict[str, Rule] = {}
"""By id, in the order in which they are listed."""


def register(id_: str, severity: Severity, title: str, reference: str, check: Check, of_whole: bool) -> None:
    """Add a rule. Raises ValueError where there is one of this id."""
    if id_ in RULES:
        raise ValueError(f"there are two rules called {id_}; ids are unique")
    RULES[id_] = Rule(id_, severity, title, reference, check, of_whole)


def engine_rule(
    id_: str, severity: Severity, title: str, reference: str, of_whole: bool = False
) -> Callable[[Check], Check]:
    """A rule about the whole of an engine."""

    def add(check: Check) -> Check:
        register(id_, severity, title, reference, check, of_whole)
        return check

    return add


def experiment_rule(
    id_: str, severity: Severity, title: str, reference: str, of_whole: bool = False
) -> Callable[[Callable[[Engine, Experiment], Iterator[Hit]]], Check]:
    """A rule about each experiment of an engine."""

    def add(check: Callable[[Engine, Experiment], Iterator[Hit]]) -> Check:
        def each(engine: Engine) -> Iterator[Hit]:
            for experiment in engine.experiments:
                yield from check(engine, experiment)

        register(id_, severity, title, reference, each, of_whole)
        return each

    return add


def probe_rule(
    id_: str, severity: Severity, title: str, reference: str, of_whole: bool = False
) -> Callable[[Callable[[Probe], Iterator[Hit]]], Check]:
    """A rule about each probe of an engine."""

    def add(check: Callable[[Probe], Iterator[Hit]]) -> Check:
        def each(engine: Engine) -> Iterator[Hit]:
            for experiment in engine.experiments:
                for item in experiment.probes:
                    yield from check(Probe(item, experiment))

        register(id_, severity, title, reference, each, of_whole)
        return each

    return add
