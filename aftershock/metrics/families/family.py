"""A family of servers: how it is told from others, which signals each of its variants has, and which it has not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from aftershock.metrics.families.measure import Measure
from aftershock.metrics.families.page import Page
from aftershock.metrics.families.signal import INSTEAD, Signal

Measures = Mapping[Signal, tuple[Measure, ...]]
"""How each signal is asked for. The first way is that of current versions; the others are names of earlier ones."""


@dataclass(frozen=True)
class Variant:
    """Servers of a family that use the same names."""

    name: str
    """As in `chat-vllm-v0`; unique over all families."""
    title: str
    found: Callable[[Page], bool]
    measures: Measures

    @property
    def current(self) -> Mapping[Signal, Measure]:
        """What its newest versions tell, where all is switched on."""
        return _without_makeshifts({signal: ways[0] for signal, ways in self.measures.items()})


@dataclass(frozen=True)
class Family:
    """Servers of one make."""

    title: str
    verified: str
    """Against what its names were held."""
    variants: tuple[Variant, ...]
    """The first that is found is the one."""
    missing: Mapping[Signal, str] = field(default_factory=dict)
    """Why it does not tell a signal, or what has to be switched on for it."""
    late: bool = False
    """Whether it shows a metric only once something was counted in it."""

    def detect(self, page: Page) -> Detected | None:
        """What of this family the page shows; None where it is no page of this family."""
        variant = next((each for each in self.variants if each.found(page)), None)
        if variant is None:
            return None
        found = {signal: _first(ways, page) for signal, ways in variant.measures.items()}
        there = {signal: measure for signal, measure in found.items() if measure is not None}
        return Detected(self, variant, _without_makeshifts(there))


@dataclass(frozen=True)
class Detected:
    """A family as one page shows it."""

    family: Family
    variant: Variant
    measures: Mapping[Signal, Measure]

    @property
    def missing(self) -> tuple[Signal, ...]:
        """What it does not tell. A mean is not missed: it is a makeshift itself."""
        return tuple(each for each in Signal if each not in self.measures and each not in INSTEAD)


def _without_makeshifts(measures: Mapping[Signal, Measure]) -> Mapping[Signal, Measure]:
    """In the order of the signals, and no mean where there is a P99."""
    return {each: measures[each] for each in Signal if each in measures and INSTEAD.get(each) not in measures}


def _first(ways: tuple[Measure, ...], page: Page) -> Measure | None:
    return next((way for way in ways if all(metric.on(page) for metric in way.metrics())), None)


def exposes(*names: str) -> Callable[[Page], bool]:
    """Whether a page has any of these metrics."""
    return lambda page: any(map(page.exposes, names))


def begins(*prefixes: str) -> Callable[[Page], bool]:
    """Whether a page has any metric whose name begins so."""
    return lambda page: any(map(page.exposes_any, prefixes))
