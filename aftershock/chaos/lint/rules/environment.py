"""The environment of an experiment: Litmus reads what it cannot make sense of as 0, and then reports Pass."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Iterator

import yaml

from aftershock.chaos.lint.catalogue import Kind, catalogue, closest
from aftershock.chaos.lint.engine import Engine, Experiment, Variable
from aftershock.chaos.lint.finding import shown
from aftershock.chaos.lint.registry import ERROR, WARNING, Hit, experiment_rule
from aftershock.chaos.lint.rules.document import retyped

LONGEST_FAULT_S = 86_400

_ENV = "litmus-go 3.31.0, pkg/generic/*/environment"
_CHARTS = "chaos-charts b2662c23, fault.yaml"
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "%": 1.0}
_NUMBER = r"[-+]?[0-9]{1,18}(?:\.[0-9]+)?"
_RANGE = r"([0-9]{1,9})-([0-9]{1,9})"
_GO_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
"""What the YAML reader of Kubernetes takes for a number; PyYAML wants a point and a sign in 6e1."""


@experiment_rule(
    "env-not-string", ERROR, "A value of the environment that is no string", "Kubernetes API, EnvVar.value"
)
def env_not_string(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The commonest slip: a number without quotes, for which the API server refuses the whole engine."""
    for variable in experiment.variables:
        value = variable.entry.get("value")
        if value is None or value.is_open:
            continue
        style = value.node.style if isinstance(value.node, yaml.ScalarNode) else ""
        is_float = value.type == "str" and not style and _GO_FLOAT.fullmatch(value.value)
        if is_float or value.type not in ("str", "timestamp", "value"):
            kind = "float" if is_float else value.type
            yield Hit(
                value,
                f"{variable.name}={shown(value.value)} is {kind}; the API server takes strings only",
                "put it in quotes",
                value.write(f'"{value.value}"', raw=True) if is_float else retyped(value, "string"),
            )


@experiment_rule("env-twice", ERROR, "One variable twice", "Kubernetes API, EnvVar")
def env_twice(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The last one counts."""
    seen: set[str] = set()
    for variable in experiment.variables:
        if variable.name in seen:
            yield Hit(variable.item, f"{variable.name} is given twice; the last one counts", "keep one")
        seen.add(variable.name)


@experiment_rule("tunable-misspelt", ERROR, "A tunable that is nearly one of the fault's", _ENV)
def tunable_misspelt(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The fault runs on with its default, and says nothing."""
    for variable in _unknown(experiment):
        meant = catalogue().renamed.get(variable.name) or _meant(experiment, variable.name)
        if meant:
            yield Hit(
                variable.entry.get("name") or variable.entry,
                f"{variable.name} is not read by {experiment.name}, which goes on with its default",
                f"did you mean {meant}?",
            )


@experiment_rule("tunable-unread", WARNING, "A tunable that the fault does not read", _ENV)
def tunable_unread(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """From another fault, from Litmus 2, or not in any release yet."""
    for variable in _unknown(experiment):
        if variable.name in catalogue().renamed or _meant(experiment, variable.name):
            continue
        fault = experiment.fault
        if fault and variable.name in fault.unreleased:
            why = "is read by no release of Litmus yet"
        elif variable.name in catalogue().removed:
            why = "is gone since Litmus 3"
        else:
            why = f"is not read by {experiment.name}"
        yield Hit(
            variable.entry.get("name") or variable.entry,
            f"{variable.name} {why}",
            "remove it, unless a probe's command reads it",
        )


@experiment_rule("tunable-reserved", ERROR, "A variable that the runner sets", "chaos-runner 3.18.0, SetENV")
def tunable_reserved(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The engine's own value wins, and the fault loses its engine, its result or its target."""
    for variable in experiment.variables:
        if variable.name in catalogue().reserved:
            yield Hit(variable.item, f"{variable.name} is set by the runner; another value breaks the run", "remove it")


@experiment_rule("tunable-forced", WARNING, "A variable that is taken from the spec", "chaos-runner 3.18.0, SetENV")
def tunable_forced(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The runner writes over it."""
    for variable in experiment.variables:
        if variable.name in catalogue().forced:
            where = "spec.jobCleanUpPolicy" if variable.name.startswith("JOB") else "components.statusCheckTimeouts"
            yield Hit(variable.item, f"{variable.name} in env is written over by the runner", f"set {where} instead")


@experiment_rule(
    "tunable-number", ERROR, "A number with a unit, or none at all", f"{_ENV}: strconv.Atoi, errors dropped"
)
def tunable_number(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """500ms is read as 0: no fault, and a Pass."""
    for variable, kind in _with_kind(experiment, "integer", "range"):
        if _is_number(experiment, variable, kind):
            continue
        plain = _without_unit(variable.value, kind.unit)
        whole = "" if kind.decimal else "whole "
        unit = f" of {kind.unit}" if kind.unit else ""
        is_range = re.fullmatch(_RANGE, variable.value) and variable.name == "CHAOS_INTERVAL"
        yield Hit(
            variable.item,
            f"{variable.name}={shown(variable.value)}: must be a {whole}number{unit} without a unit; "
            + ("Litmus reads it as 0, without a word" if not kind.decimal else "it is no number"),
            "give one number; a range counts for pod-delete with RANDOMNESS=true only"
            if is_range
            else f"write {plain}"
            if plain
            else "write the number alone",
            variable.item.write(plain) if plain else (),
        )


@experiment_rule("tunable-range", ERROR, "A range that is none", "litmus-go 3.31.0, ValidateRange and RandomInterval")
def tunable_range(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Go panics on a random number below 0, and of CHAOS_INTERVAL also on one below 1."""
    for variable, _ in _with_kind(experiment, "integer", "range"):
        ends = re.fullmatch(_RANGE, variable.value)
        least = 1 if variable.name == "CHAOS_INTERVAL" else 0
        if ends and int(ends[2]) - int(ends[1]) < least:
            yield Hit(
                variable.item,
                f"{variable.name}={shown(variable.value)}: its end is not above its start; Litmus panics",
                "give the smaller number first, or one number",
            )


@experiment_rule("tunable-bounds", ERROR, "A number out of its bounds", _ENV)
def tunable_bounds(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Percentages above 100, ports that do not exist, a duration of nothing."""
    for variable, kind in _with_kind(experiment, "integer", "range"):
        ends = re.fullmatch(_RANGE, variable.value)
        if not _is_number(experiment, variable, kind):
            continue
        for part in ends.groups() if ends else (variable.value,):
            too_low = kind.minimum is not None and float(part) < kind.minimum
            too_high = kind.maximum is not None and float(part) > kind.maximum
            if too_low or too_high:
                most = f" to {kind.maximum}" if kind.maximum is not None else " or more"
                bounds = f"{kind.minimum}{most}"
                yield Hit(variable.item, f"{variable.name}={shown(variable.value)}: must be {bounds}", f"give {bounds}")
                break


@experiment_rule("tunable-shape", ERROR, "A value that tc, Kubernetes or Litmus cannot read", _ENV)
def tunable_shape(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Ports, addresses, rates, taints and names."""
    for variable, kind in _with_kind(experiment, "shape", "addresses"):
        if kind.kind == "shape":
            is_right, example = bool(re.fullmatch(kind.pattern, variable.value)), kind.example
        else:
            is_right, example = _are_addresses(variable.value), "10.0.0.1,10.1.0.0/16"
        if not is_right:
            yield Hit(
                variable.item,
                f"{variable.name}={shown(variable.value)}: {experiment.name} cannot read it",
                f"write it as {example}",
            )


@experiment_rule("duration-ceiling", ERROR, "A fault that lasts too long", "a fault has to end by itself")
def duration_ceiling(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Whoever started it may be gone by then: a cancelled workflow does not stop chaos (litmuschaos/litmus#3704)."""
    for name in ("TOTAL_CHAOS_DURATION", "RAMP_TIME"):
        value = experiment.number(name)
        if name in experiment.env and value and value > LONGEST_FAULT_S:
            yield Hit(
                experiment.env[name].item,
                f"{name}={int(value)} is longer than {LONGEST_FAULT_S} s; chaos outlives whoever watches it",
                f"give at most {LONGEST_FAULT_S}",
            )


@experiment_rule("duration-missing", WARNING, "No duration", _CHARTS, of_whole=True)
def duration_missing(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The chart's default counts, and charts differ from one cluster to the next."""
    if experiment.fault and not experiment.is_set("TOTAL_CHAOS_DURATION"):
        default = experiment.fault.tunables.get("TOTAL_CHAOS_DURATION", "")
        yield Hit(
            experiment.place_of_env(),
            f"{experiment.name} has no TOTAL_CHAOS_DURATION; the cluster's chart decides ({default} s in Litmus' own)",
            "give TOTAL_CHAOS_DURATION in seconds",
        )


@experiment_rule("tunable-choice", ERROR, "A value that Litmus does not know", _ENV)
def tunable_choice(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Closed lists, blanks count; true and false as Go reads them."""
    for variable, kind in _with_kind(experiment, "choice", "choices"):
        if variable.name == "SIGNAL" and experiment.string("CONTAINER_RUNTIME") == "docker":
            continue  # which takes any signal
        parts = variable.value.split(",") if kind.kind == "choices" else [variable.value]
        if all(_is_choice(part, kind) for part in parts):
            continue
        meant = [part.strip() if part.strip() in kind.choices else part.strip().lower() for part in parts]
        right = ",".join(meant) if all(part in kind.choices for part in meant) else None
        yield Hit(
            variable.item,
            f"{variable.name}={shown(variable.value)}: unknown to Litmus",
            f"write {right}" if right else f"give one of {', '.join(kind.choices)}",
            variable.item.write(right) if right else (),
        )


@experiment_rule("tunable-json", ERROR, "A value that is not the JSON that Litmus wants", _ENV)
def tunable_json(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Host names are a list, headers and spoofed names an object."""
    for variable, kind in _with_kind(experiment, "list", "object"):
        try:
            value = json.loads(variable.value)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, list if kind.kind == "list" else dict):
            example = '["model-server"]' if kind.kind == "list" else '{"name": "value"}'
            yield Hit(
                variable.item,
                f"{variable.name}={shown(variable.value)}: must be a JSON {kind.kind}",
                f"write it as '{example}'",
            )


def _unknown(experiment: Experiment) -> Iterator[Variable]:
    fault, known = experiment.fault, catalogue()
    for variable in experiment.variables if fault else ():
        names = {*(fault.tunables if fault else ()), *known.common, *known.reserved, *known.forced}
        if variable.name not in names:
            yield variable


def _meant(experiment: Experiment, name: str) -> str | None:
    """The tunable of the fault that was probably meant; one that Litmus knows elsewhere is no slip of the pen."""
    fault, known = experiment.fault, catalogue()
    if not fault or name in known.removed or name in (*fault.unread, *fault.unreleased):
        return None
    if name in ("TARGET_NODE", "TARGET_NODES"):
        return next(iter(fault.node_tunables), None)
    if name in known.kinds or any(name in (*other.tunables, *other.unread) for other in known.faults.values()):
        return None
    return closest(name, {*fault.tunables, *known.common}, 0.8)


def _with_kind(experiment: Experiment, *kinds: str) -> Iterator[tuple[Variable, Kind]]:
    """The tunables of these kinds that have a value here, and are read at all."""
    unknown = {variable.name for variable in _unknown(experiment)}
    for variable in experiment.variables:
        kind = catalogue().kinds.get(variable.name)
        read = (
            variable.name not in unknown if experiment.fault else variable.name in ("TOTAL_CHAOS_DURATION", "RAMP_TIME")
        )
        if kind and kind.kind in kinds and read and variable.value and not variable.is_open:
            yield variable, kind


def _is_number(experiment: Experiment, variable: Variable, kind: Kind) -> bool:
    """Whether Litmus reads this as a number, or as a range where it takes one."""
    if kind.decimal and re.fullmatch(_NUMBER, variable.value):
        return True
    if re.fullmatch(r"[-+]?[0-9]{1,18}", variable.value):
        return True
    is_random = experiment.name == "pod-delete" and experiment.string("RANDOMNESS").lower() in ("true", "1", "t")
    takes_range = kind.kind == "range" or (variable.name == "CHAOS_INTERVAL" and is_random)
    return takes_range and bool(re.fullmatch(_RANGE, variable.value))


def _is_choice(part: str, kind: Kind) -> bool:
    if kind.choices[0] == "true" and part in ("True", "TRUE", "False", "FALSE", "1", "0", "t", "f", "T", "F"):
        return True
    return (part.lower() if kind.any_case else part) in kind.choices


def _are_addresses(text: str) -> bool:
    """Addresses or blocks with commas, each perhaps with its ports as 10.0.0.1|80|443."""
    for part in text.split(","):
        block, *ports = part.strip().split("|")
        try:
            ipaddress.ip_network(block, strict=False)
        except ValueError:
            return False
        if not all(re.fullmatch(r"[0-9]{1,5}", port) for port in ports):
            return False
    return True


def _without_unit(value: str, unit: str) -> str | None:
    """What was meant by "500ms" or "2 s" for a tunable in `unit`; None if that is unclear."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([A-Za-z%]+)", value.strip())
    if not match or match[2] not in _UNITS or unit not in _UNITS or (match[2] == "%") != (unit == "%"):
        return None
    if unit == "ms" and match[2] in ("m", "min", "h"):  # m is milli too, and nobody means a delay of minutes
        return None
    number = round(float(match[1]) * _UNITS[match[2]] / _UNITS[unit], 6)
    return str(int(number)) if number.is_integer() else None
