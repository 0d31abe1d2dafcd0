"""Probes: when they run, how long they wait, and which of them Litmus cannot run at all."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aftershock.chaos.lint.engine import Engine, Experiment
from aftershock.chaos.lint.finding import shown
from aftershock.chaos.lint.item import Item
from aftershock.chaos.lint.registry import ERROR, WARNING, Hit, Probe, experiment_rule, probe_rule
from aftershock.chaos.lint.rules.document import retyped

TYPES = ("promProbe", "httpProbe", "cmdProbe", "k8sProbe", "sloProbe")
MODES = ("SOT", "EOT", "Edge", "Continuous", "OnChaos")
DURATIONS = ("probeTimeout", "interval", "probePollingInterval", "initialDelay", "evaluationTimeout")
NUMERIC = ("==", "!=", "<=", ">=", "<", ">", "oneOf", "between")
TEXTUAL = ("equal", "notEqual", "contains", "matches", "notMatches", "oneOf")

_CRD = "CRD of the ChaosEngine, probe"
_GO = "litmus-go 3.31.0, pkg/probe"
_DURATION = re.compile(r"[-+]?(0|(([0-9]+(\.[0-9]*)?|\.[0-9]+)(ns|us|µs|ms|s|m|h))+)")
_PART = re.compile(r"([0-9.]+)(ns|us|µs|ms|s|m|h)")
_INTEGER = re.compile(r"[-+]?[0-9]{1,18}")
_FLOAT = re.compile(r"[-+]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@probe_rule("probe-type", ERROR, "A probe of no known type", _CRD)
def probe_type(probe: Probe) -> Iterator[Hit]:
    """Capitals count."""
    yield from _of_list(probe, "type", TYPES)


@probe_rule("probe-mode", ERROR, "A probe of no known mode", _CRD)
def probe_mode(probe: Probe) -> Iterator[Hit]:
    """Capitals count: EoT is refused."""
    yield from _of_list(probe, "mode", MODES)


@probe_rule("probe-inputs", ERROR, "A probe without its inputs", _GO)
def probe_inputs(probe: Probe) -> Iterator[Hit]:
    """Litmus reads them without looking whether they are there."""
    if probe.type in TYPES and probe.inputs is None:
        yield Hit(
            probe.item.get("type") or probe.item,
            f"{probe.item.path}: a {probe.type} needs {probe.type}/inputs; without them the experiment panics",
            f"add {probe.type}/inputs",
        )


@probe_rule("probe-run-properties", ERROR, "runProperties missing or incomplete", _CRD)
def probe_run_properties(probe: Probe) -> Iterator[Hit]:
    """At least probeTimeout and interval."""
    properties = probe.item.get("runProperties")
    if properties is None:
        yield Hit(
            probe.item.get("name") or probe.item,
            f"{probe.item.path} has no runProperties; the API server refuses it",
            "add runProperties with probeTimeout and interval, as 5s and 2s",
        )
        return
    missing = [name for name in ("probeTimeout", "interval") if properties.get(name) is None]
    if missing and not properties.is_open:
        names = " and ".join(missing)
        yield Hit(properties, f"{properties.path} lacks {names}; the API server refuses it", f"add {names}, as 5s")


@probe_rule("probe-duration", ERROR, "A time without its unit", f"{_CRD}; seen: no ChaosResult at all")
def probe_duration(probe: Probe) -> Iterator[Hit]:
    """Litmus 2 took numbers. A number is refused now; "10" is accepted, and the experiment ends without a result."""
    for name in DURATIONS:
        item = probe.item.get("runProperties", name)
        if item is None or item.is_open or (item.type == "str" and _DURATION.fullmatch(item.value)):
            continue
        # Litmus 2 read this one in milliseconds, all others in seconds: there the author has to say.
        unclear = name == "probeTimeout" and probe.type == "httpProbe"
        whole = re.fullmatch(r"[0-9]{1,9}", item.value)
        effect = "the API server refuses it" if item.type != "str" else "the experiment ends without a ChaosResult"
        yield Hit(
            item,
            f"{item.path}={shown(item.value)}: must be text with a unit; {effect}",
            f"write {item.value}s" + (f", or {item.value}ms as Litmus 2 read it" if unclear else "")
            if whole
            else "write it as 10s or 500ms",
            item.write(f"{item.value}s") if whole and not unclear else (),
        )


@probe_rule("probe-initial-delay-seconds", ERROR, "initialDelaySeconds", f"{_GO}: read is initialDelay only")
def probe_initial_delay_seconds(probe: Probe) -> Iterator[Hit]:
    """One of the published CRDs still has it; no code reads it."""
    item = probe.item.get("runProperties", "initialDelaySeconds")
    if item is None:
        return
    whole = re.fullmatch(r"[0-9]{1,9}", item.value)
    # A promProbe OnChaos must not have any: probe-initial-delay.
    free = probe.item.get("runProperties", "initialDelay") is None and probe.mode.lower() != "onchaos"
    value = item.write(f"{item.value}s") if whole and free else ()
    yield Hit(
        item,
        "initialDelaySeconds is read by nobody; the probe starts at once",
        f"write initialDelay: {item.value}s" if whole else "use initialDelay, as 10s",
        (*item.rename("initialDelay"), *value) if value else (),
    )


@probe_rule("probe-count", ERROR, "A count or a flag of the wrong type", _CRD)
def probe_count(probe: Probe) -> Iterator[Hit]:
    """retry and attempt are numbers, stopOnFailure is true or false, without quotes."""
    for name, wanted in (("retry", "integer"), ("attempt", "integer"), ("stopOnFailure", "boolean")):
        item = probe.item.get("runProperties", name)
        if item and not item.is_open and item.type != ("int" if wanted == "integer" else "bool"):
            yield Hit(
                item,
                f"{item.path}={shown(item.value)}: must be {wanted}, is {item.type}; the API server refuses it",
                f"write it as {wanted}, without quotes",
                retyped(item, wanted),
            )


@probe_rule("probe-property-unknown", ERROR, "A run property that the CRD does not have", _CRD)
def probe_property_unknown(probe: Probe) -> Iterator[Hit]:
    """Dropped without a word."""
    known = (*DURATIONS, "retry", "attempt", "verbosity", "stopOnFailure", "initialDelaySeconds")
    properties = probe.item.get("runProperties")
    for name, item in properties.entries() if properties else ():
        if name not in known:
            yield Hit(item, f"{item.path} is unknown and dropped", f"known are {', '.join(known[:-1])}")


@probe_rule("probe-slo", ERROR, "sloProbe", f"{_GO}: no executor")
def probe_slo(probe: Probe) -> Iterator[Hit]:
    """The CRD has it, the code does not."""
    if probe.type == "sloProbe":
        yield Hit(
            probe.item.get("type") or probe.item,
            f"{probe.item.path}: Litmus has nothing that runs an sloProbe; it may do nothing, without a word",
            "make it a promProbe",
        )


@probe_rule("probe-post", ERROR, "An httpProbe that posts", f"{_GO}; seen: panic, and the Job starts the fault again")
def probe_post(probe: Probe) -> Iterator[Hit]:
    """It is always taken for a get."""
    post = probe.item.get("httpProbe/inputs", "method", "post")
    if post and not probe.item.get("httpProbe/inputs", "method", "get"):
        yield Hit(
            post,
            f"{post.path}: Litmus panics on a post, and its Job may start the fault again after it is over",
            "use get, or a cmdProbe with curl",
        )


@probe_rule("probe-response-timeout", ERROR, "responseTimeout", _CRD)
def probe_response_timeout(probe: Probe) -> Iterator[Hit]:
    """From Litmus 2; the time-out of the client is probeTimeout now."""
    item = probe.item.get("httpProbe/inputs", "responseTimeout")
    if item:
        yield Hit(item, f"{item.path} is unknown to the CRD and dropped", "remove it; probeTimeout is what counts")


@probe_rule("probe-source-text", ERROR, "A cmdProbe's source as text", _CRD)
def probe_source_text(probe: Probe) -> Iterator[Hit]:
    """Litmus 2 took the word inline, or the name of an image."""
    source = probe.item.get("cmdProbe/inputs", "source")
    if source and source.value and not source.is_open:
        inline = source.value == "inline"
        yield Hit(
            source,
            f"{source.path}={shown(source.value)}: must be a mapping since Litmus 3; the API server refuses it",
            "remove it: without a source the command runs inline" if inline else "write source: {image: ...}",
            source.remove() if inline else (),
        )


@probe_rule("probe-initial-delay", ERROR, "A promProbe that never runs", f"{_GO}/promprobe.go (read, not run)")
def probe_initial_delay(probe: Probe) -> Iterator[Hit]:
    """Litmus takes nanoseconds from seconds, is left with no time at all, and passes."""
    delay = probe.item.get("runProperties", "initialDelay")
    if probe.type == "promProbe" and probe.mode == "OnChaos" and delay and seconds(delay.value) != 0:
        yield Hit(
            delay,
            "a promProbe with mode OnChaos and an initialDelay is left with no time to run, and passes",
            "use mode Continuous, or no initialDelay",
        )


@probe_rule("probe-too-late", WARNING, "A probe that starts when the fault is over", _GO)
def probe_too_late(probe: Probe) -> Iterator[Hit]:
    """It sees nothing of the fault."""
    delay = probe.item.get("runProperties", "initialDelay")
    length = probe.experiment.number("TOTAL_CHAOS_DURATION")
    waits = seconds(delay.value) if delay else None
    if delay and waits and length and waits >= length and probe.mode in ("Continuous", "OnChaos"):
        yield Hit(delay, f"initialDelay={delay.value}: the fault ends after {length:g} s", "start the probe earlier")


@probe_rule("probe-timeout-long", WARNING, "A probeTimeout that outlasts the next look", "litmuschaos/litmus#3896")
def probe_timeout_long(probe: Probe) -> Iterator[Hit]:
    """A probe that fails slowly was reported as passed."""
    item = probe.item.get("runProperties", "probeTimeout")
    timeout = seconds(item.value) if item else None
    if item is None or timeout is None:
        return
    polling = seconds(probe.item.string("runProperties", "probePollingInterval"))
    length = probe.experiment.number("TOTAL_CHAOS_DURATION")
    repeated = probe.mode in ("Continuous", "OnChaos")
    if repeated and polling is not None and timeout > polling:
        yield Hit(item, f"probeTimeout={item.value} is longer than probePollingInterval", "make it shorter than that")
    elif repeated and length is not None and timeout >= length:
        yield Hit(item, f"probeTimeout={item.value} is as long as the fault ({length:g} s)", "make it a few seconds")


@experiment_rule("probe-twice", ERROR, "Two probes of one name", f"{_GO}: verdicts by name")
def probe_twice(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The verdict of the second is never seen."""
    names = [probe.string("name") for probe in experiment.probes]
    for index, probe in enumerate(experiment.probes):
        place = probe.get("name")
        if place and place.value and names[index] in names[:index]:
            yield Hit(
                place, f"{shown(place.value)} is the name of two probes; the second is never seen", "give it another"
            )


@experiment_rule("stop-ignored", ERROR, "stopOnFailure with a Litmus that does not stop", "litmuschaos/litmus#4991")
def stop_ignored(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Before 3.24.0 the fault goes on, and only the log says why."""
    image = experiment.item.get("spec", "components", "experimentImage")
    version = re.search(r"/go-runner:v?([0-9]{1,4})\.([0-9]{1,4})\b", image.value) if image else None
    if image is None or version is None or (int(version[1]), int(version[2])) >= (3, 24):
        return
    if any(probe.string("runProperties", "stopOnFailure") == "true" for probe in experiment.probes):
        yield Hit(
            image, f"{image.value[:80]} does not stop on a failed probe; 3.24.0 is the first", "take 3.25 or later"
        )


@probe_rule("comparator-type", ERROR, "comparator.type wrong, missing, or where it must not be", _CRD)
def comparator_type(probe: Probe) -> Iterator[Hit]:
    """A cmdProbe must have it, a promProbe must not: it always compares numbers."""
    comparator = probe.inputs.get("comparator") if probe.inputs else None
    if comparator is None:
        return
    kind = comparator.get("type")
    if probe.type == "promProbe" and kind:
        yield Hit(
            kind, f"{kind.path} is unknown to the CRD; a promProbe compares numbers anyway", "remove it", kind.remove()
        )
    if probe.type != "cmdProbe" or (kind and (kind.is_open or kind.value in ("int", "float", "string"))):
        return
    right = kind.value.lower() if kind and kind.value.lower() in ("int", "float", "string") else None
    yield Hit(
        kind or comparator,
        f"{comparator.path}.type={shown(kind.value)}: must be int, float or string"
        if kind
        else f"{comparator.path} has no type; the API server refuses it",
        f"write {right}" if right else "give int, float or string",
        kind.write(right) if kind and right else (),
    )


@probe_rule("comparator", ERROR, "A comparison that Litmus cannot make", f"{_GO}, comparator")
def comparator(probe: Probe) -> Iterator[Hit]:
    """What is no number counts as 0 for a promProbe; an unknown criterion ends the experiment as Error."""
    if probe.type in ("promProbe", "cmdProbe") and probe.inputs:
        found = probe.inputs.get("comparator")
        if found is None:
            yield Hit(
                probe.inputs, f"{probe.inputs.path} has no comparator; the API server refuses it", "add comparator"
            )
            return
        yield from _missing(found, "criteria", "value")
        kind = found.string("type").lower()
        numeric = probe.type == "promProbe" or kind in ("int", "float")
        known = NUMERIC if numeric else TEXTUAL if kind == "string" else (*TEXTUAL, *NUMERIC)
        yield from _criteria(found.get("criteria"), known)
        value = found.get("value")
        if value and not value.is_open and value.type != "str":
            yield Hit(
                value, f"{value.path} is {value.type}; must be text", "put it in quotes", retyped(value, "string")
            )
        elif value:
            yield from _operand(value, found.string("criteria"), _INTEGER if kind == "int" else _FLOAT, numeric)
    get = probe.item.get("httpProbe/inputs", "method", "get")
    yield from _criteria(get.get("criteria") if get else None, NUMERIC)
    code = get.get("responseCode") if get else None
    if get and code and code.type == "str":
        yield from _operand(code, get.string("criteria"), _INTEGER, numeric=True)


def seconds(text: str) -> float | None:
    """A time as Go writes it, in seconds; None if it is none."""
    if not text or not _DURATION.fullmatch(text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))


def _of_list(probe: Probe, name: str, known: tuple[str, ...]) -> Iterator[Hit]:
    item = probe.item.get(name)
    if item is None:
        yield Hit(
            probe.item.get("name") or probe.item,
            f"{probe.item.path} has no {name}; the API server refuses it",
            f"give one of {', '.join(known)}",
        )
    elif not item.is_open and item.value not in known:
        right = next((each for each in known if each.lower() == item.value.lower()), None)
        yield Hit(
            item,
            f"{item.path}={shown(item.value)}: the API server refuses it",
            f"write {right}" if right else f"give one of {', '.join(known)}",
            item.write(right) if right else (),
        )


def _missing(item: Item, *names: str) -> Iterator[Hit]:
    for name in names:
        if item.get(name) is None and not item.is_open:
            yield Hit(item, f"{item.path} lacks {name}; the API server refuses it", f"add {name}")


def _criteria(item: Item | None, known: tuple[str, ...]) -> Iterator[Hit]:
    """The code has both spellings of the first letter."""
    if item and not item.is_open and f"{item.value[:1].lower()}{item.value[1:]}" not in known:
        yield Hit(item, f"{item.path}={shown(item.value)}: unknown to Litmus", f"give one of {' '.join(known)}")


def _operand(value: Item, criteria: str, number: re.Pattern[str], numeric: bool) -> Iterator[Hit]:
    """What is compared with: one value, or several with commas and nothing else between them."""
    if value.is_open:
        return
    parts = value.value.strip().split(",")
    several = criteria.lower() in ("oneof", "between")
    if several and len(parts) < 2:
        yield Hit(
            value, f"{value.path}={shown(value.value)}: {criteria} of one value is never true", "give two, as 1,5"
        )
    elif numeric and len(parts) > 1 and not several:
        yield Hit(value, f"{value.path}={shown(value.value)}: several, which Litmus takes for 0", "give one number")
    elif numeric and not all(number.fullmatch(part) for part in parts):
        kind = "whole number" if number is _INTEGER else "number"
        yield Hit(
            value,
            f"{value.path}={shown(value.value)}: no {kind}, so Litmus takes it for 0",
            "give the numbers alone, as 1,5, without blanks or brackets" if several else f"give the {kind} alone",
        )
