"""Which faults an experiment names, and the parameters of each: `pod-delete,pod-network-latency` is two, one after
the other, and `pod-delete.FORCE` is a parameter of the first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aftershock.chaos.parameters import closest, resolve, shorten
from aftershock.chaos.template import DURATION, STATUS_CHECK_TIMEOUT, FaultTemplate, load_fault
from aftershock.errors import TemplateError

RAMP = "RAMP_TIME"


@dataclass(frozen=True)
class Choice:
    """One fault with a value for every parameter."""

    template: FaultTemplate
    given: frozenset[str]
    """The parameters that the user gave a value."""
    values: Mapping[str, str]

    @property
    def name(self) -> str:
        """Which fault."""
        return self.template.name

    @property
    def env(self) -> dict[str, str]:
        """The parameters that Litmus reads from the experiment's environment."""
        parameters = self.template.parameters
        return {
            name: value
            for name, value in self.values.items()
            if name != STATUS_CHECK_TIMEOUT and not parameters[name].rendered_as
        }

    @property
    def seconds(self) -> int:
        """How long it takes, without what Litmus needs for itself."""
        return self.integer(DURATION) + 2 * self.integer(RAMP)

    def integer(self, name: str) -> int:
        """The value of a parameter that is an integer; 0 if it is not set, or there is none of this name."""
        return int(self.values.get(name) or 0)

    def is_set(self, *names: str) -> bool:
        """Whether one of these parameters has a value."""
        return any(self.values.get(name) for name in names)


def choose(fault: str, parameters: Mapping[str, str], seconds: int | None, folder: Path | None) -> tuple[Choice, ...]:
    """The faults named in `fault`, which share `seconds` unless they are given their own; None: their defaults.

    Raises TemplateError for an unknown fault, one that is named twice, and a parameter that is none or not allowed.
    """
    names = [name.strip() for name in fault.split(",")]
    for name in names:
        if names.count(name) > 1:
            raise TemplateError(
                f"fault={shorten(fault)}: {name} is named twice; in one ChaosEngine both would share one ChaosResult"
            )
    templates = [load_fault(name, folder) for name in names]
    own = _own_parameters(templates, parameters)
    # A fault must not outlast the phase it is judged in, so a fraction of a second is dropped.
    duration = {} if seconds is None else {DURATION: str(seconds // len(names))}
    return tuple(
        Choice(
            template,
            frozenset(own[template.name]),
            resolve(template.name, template.parameters, duration | own[template.name]),
        )
        for template in templates
    )


def _own_parameters(templates: Sequence[FaultTemplate], given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What is given for each fault. With several of them, each parameter says which one it is for."""
    own: dict[str, dict[str, str]] = {template.name: {} for template in templates}
    for key, value in given.items():
        fault, dot, name = key.rpartition(".")
        if not dot and len(templates) > 1:
            having = [template.name for template in templates if name in template.parameters] or list(own)
            ways = " or ".join(f"{each}.{name[:40]}" for each in having)
            raise TemplateError(f"{shorten(name)}: which of the faults is it for? write {ways}")
        fault = fault if dot else templates[0].name
        if fault not in own:
            raise TemplateError(
                f"parameter {shorten(key)}: the experiment has no fault {fault[:60]}{closest(fault, own)}"
            )
        if name in own[fault]:
            raise TemplateError(f"{fault}: {shorten(name)} is given twice, with and without the name of the fault")
        own[fault][name] = value
    return own
