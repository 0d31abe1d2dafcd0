"""From an experiment to the YAML text of one ChaosEngine.

What leaves here has been read back: the text parses to the very document that was meant, whatever the values hold, and
that document is a ChaosEngine with the meant target and environment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from aftershock.chaos.engine import LOADER, RUN_ID_LABEL, AppInfo, ChaosEngine, parse_engine
from aftershock.chaos.parameters import resolve
from aftershock.chaos.template import DURATION, STATUS_CHECK_TIMEOUT, FaultTemplate, environment, load_fault
from aftershock.errors import InputError, TemplateError
from aftershock.experiment import NO_FAULT, Experiment, validate

LONGEST_NAME = 40
"""Characters of an engine's name. Litmus adds to it: `<engine>-runner` is a pod, `<engine>-<experiment>` a result."""

_DIGEST = 8


def render(experiment: Experiment, *, folder: Path | None = None) -> str:
    """The ChaosEngine of `experiment`, from the templates that ship with aftershock or those in `folder`.

    Raises InputError (TemplateError) for a value that Litmus would misread.
    """
    if experiment.fault == NO_FAULT:
        raise InputError(f"fault={NO_FAULT}: a control run has no ChaosEngine to render; name a fault")
    template = load_fault(experiment.fault, folder)
    # A fault must not outlast the phase it is judged in, so a fraction of a second is dropped.
    duration = {DURATION: str(int(experiment.chaos_s))}
    tunables = resolve(template.name, template.parameters, duration | experiment.fault_parameters)
    frame: dict[str, str | int] = {
        "engine_name": engine_name(template.name, experiment.run_id),
        "run_id": experiment.run_id,
        "namespace": experiment.namespace,
        "label": experiment.label,
        "kind": experiment.kind,
        "status_check_timeout": int(tunables.pop(STATUS_CHECK_TIMEOUT)),
    }
    text = _fill(template, {**frame, **tunables})
    _check(template, parse_engine(text, f"template {template.name}"), frame, tunables)
    return text


def render_fault(name: str, parameters: Mapping[str, str], **fields: Any) -> str:
    """The ChaosEngine of one fault by itself; `fields` are fields of an Experiment (namespace, label, kind, run_id)."""
    return render(validate({"run_id": "manual", **fields, "fault": name, "fault_parameters": dict(parameters)}, name))


def engine_name(fault: str, run_id: str) -> str:
    """`<fault>-<run_id>`; where that is too long, its beginning and a digest of the whole, so that it stays unique."""
    name = f"{fault}-{run_id}"
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST_NAME - _DIGEST - 1].rstrip('-')}-{digest}"


def _fill(template: FaultTemplate, values: Mapping[str, str | int]) -> str:
    """Put `values` into the template. Raises TemplateError if the text is any other YAML than the one meant."""
    filled = environment().from_string(template.source)
    text = filled.render(values)
    # What is meant: the document that harmless words give, with each word replaced by the value it stands for.
    words = {name: f"value-of-{name}" for name in values}
    meant = _replace(_parse(template, filled.render(words)), {words[name]: value for name, value in values.items()})
    if _parse(template, text) != meant:
        raise TemplateError(f"template {template.name}: a value does not stand alone in its place; see its README")
    return text


def _parse(template: FaultTemplate, text: str) -> Any:
    try:
        return yaml.load(text, Loader=LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1} of the output" if mark else ""
        raise TemplateError(
            f"template {template.name}:{line} is not YAML ({getattr(error, 'problem', error)})"
        ) from error


def _replace(node: Any, values: Mapping[str, str | int]) -> Any:
    if isinstance(node, dict):
        return {key: _replace(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_replace(value, values) for value in node]
    return values.get(node, node) if isinstance(node, str) else node


def _check(
    template: FaultTemplate, engine: ChaosEngine, frame: Mapping[str, str | int], tunables: Mapping[str, str]
) -> None:
    """Each value in its place; a template that mixes two up is caught here. Raises TemplateError."""
    experiment = engine.experiments[0]
    target = AppInfo(str(frame["namespace"]), str(frame["label"]), str(frame["kind"]))
    meant: list[tuple[str, object, object]] = [
        ("metadata.name", engine.name, frame["engine_name"]),
        ("metadata.namespace", engine.namespace, frame["namespace"]),
        ("the run-id label", engine.labels.get(RUN_ID_LABEL), frame["run_id"]),
        ("spec.engineState", engine.state, "active"),
        ("spec.appinfo", engine.appinfo, target),
        ("spec.experiments", [each.name for each in engine.experiments], [template.name]),
        ("statusCheckTimeouts", experiment.status_check_timeout_s, frame["status_check_timeout"]),
        ("components.env", dict(experiment.env), dict(tunables)),
    ]
    for where, found, wanted in meant:
        if found != wanted:
            raise TemplateError(f"template {template.name}: {where} came out as {found!r}, not as {wanted!r}")
