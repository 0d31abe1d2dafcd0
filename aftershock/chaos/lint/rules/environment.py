"""The environment of an experiment: Litmus reads what it cannot make sense of as 0, and then reports Pass."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from aftershock.chaos.lint.catalogue import Kind, catalogue, closest
from aftershock.chaos.lint.engine import Engine, Experiment, Variable
from aftershock.chaos.lint.finding import shown
from aftershock.chaos.lint.registry import ERROR, WARNING, Hit, experiment_rule
from aftershock.chaos.lint.rules.document import retyped
from aftershock.chaos.lint.text import Edit

LONGEST_FAULT_S = 86_400
SHORTEST_STATUS_CHECK_S = 30

_ENV = "litmus-go 3.31.0, pkg/generic/*/environment"
_CHARTS = "chaos-charts b2662c23, fault.yaml"
_UNITS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "%": 1.0}
_RUNTIMES = ("containerd", "crio", "docker")
_FILTERS = ("SOURCE_PORTS", "DESTINATION_PORTS", "DESTINATION_IPS", "DESTINATION_HOSTS")
_WHOLE_LOSS = {
    "pod-network-loss": "NETWORK_PACKET_LOSS_PERCENTAGE",
    "pod-network-corruption": "NETWORK_PACKET_CORRUPTION_PERCENTAGE",
}


@experiment_rule(
    "env-not-string", ERROR, "A value of the environment that is no string", "Kubernetes API, EnvVar.value"
)
def env_not_string(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The commonest slip: a number without quotes, for which the API server refuses the whole engine."""
    for variable in experiment.variables:
        value = variable.entry.get("value")
        if value and value.type not in ("str", "timestamp", "value") and not value.is_open:
            yield Hit(
                value,
                f"{variable.name}={shown(value.value)} is {value.type}; the API server takes strings only",
                "put it in quotes",
                retyped(value, "string"),
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
        yield Hit(variable.entry.get("name") or variable.entry, f"{variable.name} {why}", "remove it")


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
        pattern = r"-?[0-9]{1,9}" if kind.kind == "integer" else r"[0-9]{1,9}(\.[0-9]+)?(-[0-9]{1,9}(\.[0-9]+)?)?"
        if re.fullmatch(pattern, variable.value):
            continue
        plain = _without_unit(variable.value, kind.unit)
        effect = "Litmus reads it as 0, without a word" if kind.kind == "integer" else "it is no number"
        unit = f" of {kind.unit}" if kind.unit else ""
        yield Hit(
            variable.item,
            f"{variable.name}={shown(variable.value)}: must be a whole number{unit} without a unit; {effect}",
            f"write {plain}" if plain else "write the number alone",
            variable.item.write(plain) if plain else (),
        )


@experiment_rule("tunable-bounds", ERROR, "A number out of its bounds", _ENV)
def tunable_bounds(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Percentages above 100, ports that do not exist, a duration of nothing."""
    for variable, kind in _with_kind(experiment, "integer", "range"):
        for part in re.findall(r"^-?[0-9]{1,9}|(?<=-)[0-9]{1,9}$", variable.value):
            too_low = kind.minimum is not None and int(part) < kind.minimum
            too_high = kind.maximum is not None and int(part) > kind.maximum
            if (too_low or too_high) and re.fullmatch(r"-?[0-9]+(-[0-9]+)?", variable.value):
                most = f" to {kind.maximum}" if kind.maximum is not None else " or more"
                bounds = f"{kind.minimum}{most}"
                yield Hit(variable.item, f"{variable.name}={shown(variable.value)}: must be {bounds}", f"give {bounds}")
                break


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


@experiment_rule("duration-missing", WARNING, "No duration", _CHARTS)
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
    """Closed lists; true and false as Go reads them."""
    for variable, kind in _with_kind(experiment, "choice", "choices"):
        parts = variable.value.split(",") if kind.kind == "choices" else [variable.value]
        wrong = next((part for part in parts if part.strip() not in kind.choices), None)
        if wrong is None or (
            kind.choices[0] == "true" and wrong in ("True", "TRUE", "False", "FALSE", "1", "0", "t", "f")
        ):
            continue
        right = wrong.strip().lower() if wrong.strip().lower() in kind.choices and len(parts) == 1 else None
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


@experiment_rule(
    "runtime-socket", ERROR, "Container runtime and socket of two kinds", "litmuschaos/litmus#4245, #3957, #5030"
)
def runtime_socket(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The fault ends with CONTAINER_RUNTIME_ERROR."""
    socket, given = experiment.env.get("SOCKET_PATH"), experiment.env.get("CONTAINER_RUNTIME")
    runtime = (given and given.value) or "containerd"
    kind = next((name for name in _RUNTIMES if socket and name in socket.value), None)
    if socket and kind and kind != runtime and runtime in _RUNTIMES:
        yield Hit(
            socket.item,
            f"SOCKET_PATH={shown(socket.value)} is that of {kind}, CONTAINER_RUNTIME is {runtime}",
            f"set CONTAINER_RUNTIME to {kind}, or give the other socket",
        )


@experiment_rule(
    "http-port", ERROR, "An HTTP fault without the container's port", "litmus docs; litmuschaos/litmus#3954"
)
def http_port(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """It redirects port 80, where no model server listens, has no effect, and passes."""
    fault = experiment.fault
    if fault and "TARGET_SERVICE_PORT" in fault.tunables and not experiment.is_set("TARGET_SERVICE_PORT"):
        yield Hit(
            experiment.place_of_env(),
            f"{experiment.name} has no TARGET_SERVICE_PORT; it takes port 80, has no effect elsewhere, and passes",
            "give the port on which the container listens, not that of the Service",
        )


@experiment_rule("status-code-random", WARNING, "A status code by chance", "litmus-go 3.31.0, http-chaos")
def status_code_random(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Empty is any code of the list, 200 too."""
    if experiment.name == "pod-http-status-code" and not experiment.is_set("STATUS_CODE"):
        yield Hit(
            experiment.place_of_env(), "STATUS_CODE is empty; Litmus takes a random one, 200 too", "give one, as 503"
        )


@experiment_rule("sizes-both", ERROR, "Both sizes of a file system", "litmus docs, pod-io-stress and node-io-stress")
def sizes_both(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The percentage wins."""
    names = ("FILESYSTEM_UTILIZATION_PERCENTAGE", "FILESYSTEM_UTILIZATION_BYTES")
    if all(experiment.is_set(name) and experiment.env[name].value != "0" for name in names):
        yield Hit(
            experiment.env[names[1]].item,
            f"both {names[0]} and {names[1]} are given; the percentage wins",
            "make the one that is not meant empty",
        )


@experiment_rule(
    "memory-sizes", ERROR, "node-memory-hog without a 0 for the other size", "litmus-go 3.31.0, node-memory-hog"
)
def memory_sizes(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The code compares with the text "0"; empty is not 0 to it."""
    names = ("MEMORY_CONSUMPTION_PERCENTAGE", "MEMORY_CONSUMPTION_MEBIBYTES")
    if experiment.name != "node-memory-hog":
        return
    given = [name for name in names if experiment.is_set(name) and experiment.env[name].value != "0"]
    unset = [name for name in names if not experiment.is_set(name)]
    if len(given) == 2:
        yield Hit(
            experiment.env[names[1]].item, f"both {names[0]} and {names[1]} are given", 'set the other one to "0"'
        )
    elif unset:
        place = experiment.env[unset[0]].item if unset[0] in experiment.env else experiment.place_of_env()
        edits: tuple[Edit, ...] = ()
        if unset[0] not in experiment.env:
            edits = place.insert_item({"name": unset[0], "value": '"0"'})
        elif given and experiment.env[unset[0]].entry.get("value"):
            edits = place.write('"0"', raw=True)
        yield Hit(
            place,
            f'{unset[0]} is not set; the fault compares it with "0", and empty is not 0 to it',
            f'set {unset[0]} to "0"',
            edits if given else (),
        )


@experiment_rule("taint-missing", ERROR, "node-taint without a taint", "litmus-go 3.31.0, node-taint: TAINTS")
def taint_missing(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The documentation still calls it TAINT_LABEL."""
    if experiment.name == "node-taint" and not experiment.is_set("TAINTS"):
        yield Hit(experiment.place_of_env(), "node-taint has no TAINTS", "give TAINTS as key=value:NoSchedule")


@experiment_rule("health-check-overridden", WARNING, "A health check that the chart turns off again", _CHARTS)
def health_check_overridden(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The chart's env says false, and env wins over spec.defaultHealthCheck."""
    wanted = engine.root.get("spec", "defaultHealthCheck")
    if wanted and wanted.value == "true" and "DEFAULT_HEALTH_CHECK" not in experiment.env:
        if experiment.name == "pod-network-rate-limit":  # the one chart that does not say so
            return
        env = experiment.item.get("spec", "components", "env")
        yield Hit(
            wanted,
            f"spec.defaultHealthCheck is true, but {experiment.name}'s chart has DEFAULT_HEALTH_CHECK=false and wins",
            'add DEFAULT_HEALTH_CHECK="true" to env',
            env.insert_item({"name": "DEFAULT_HEALTH_CHECK", "value": '"true"'}) if env else (),
        )


@experiment_rule(
    "status-check-short", WARNING, "Less time to come back than a model takes to load", "seen: STATUS_CHECKS_ERROR"
)
def status_check_short(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Litmus waits this long for the target to run again; then the result is an Error, no verdict."""
    timeout = experiment.item.get("spec", "components", "statusCheckTimeouts", "timeout")
    if timeout and re.fullmatch(r"[0-9]{1,9}", timeout.value) and int(timeout.value) < SHORTEST_STATUS_CHECK_S:
        yield Hit(
            timeout,
            f"statusCheckTimeouts.timeout={timeout.value}: where a target takes longer, the run ends as Error",
            "give more than the model takes to load; the default is 180",
        )


@experiment_rule(
    "scrape-cut", WARNING, "A network fault that cuts the target off from Prometheus", "litmus-go 3.31.0, netem"
)
def scrape_cut(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Without a filter all that leaves the pod is hit, the answer to a scrape too."""
    name = _WHOLE_LOSS.get(experiment.name, "")
    if name and (experiment.number(name) or 0) >= 100 and not experiment.is_set(*_FILTERS):
        place = experiment.env[name].item if name in experiment.env else experiment.place_of_env()
        yield Hit(
            place,
            f"{experiment.name} of 100 % without a filter also cuts off Prometheus and the probes of the kubelet",
            "give SOURCE_PORTS with the serving port, if metrics have another one",
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


def _without_unit(value: str, unit: str) -> str | None:
    """What was meant by "500ms" or "2 s" for a tunable in `unit`; None if that is unclear."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([A-Za-z%]+)", value.strip())
    if not match or match[2] not in _UNITS or unit not in _UNITS or (match[2] == "%") != (unit == "%"):
        return None
    number = round(float(match[1]) * _UNITS[match[2]] / _UNITS[unit], 6)
    return str(int(number)) if number.is_integer() else None
