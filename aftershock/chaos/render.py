"""From an experiment to the YAML text of one ChaosEngine.

What leaves here has been read back: the text parses to the very document that was meant, whatever the values hold, and
that document is a ChaosEngine with the meant target and environment.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from aftershock.chaos.choice import Choice, choose
from aftershock.chaos.engine import LOADER, RUN_ID_LABEL, AppInfo, ChaosEngine, parse_engine
from aftershock.chaos.hazards import Scene, refuse_hazards
from aftershock.chaos.probes import add_probes
from aftershock.chaos.template import STATUS_CHECK_TIMEOUT, FaultTemplate, environment
from aftershock.errors import InputError, TemplateError
from aftershock.experiment import AUTO, NO_FAULT, Experiment, validate

LONGEST_NAME = 40
"""Characters of an engine's name. Litmus adds to it: `<engine>-runner` is a pod, `<engine>-<experiment>` a result."""

EMBEDDED_BACKEND = "local"
"""The backend that acts on the embedded stack, where there is nothing to harm."""

_DIGEST = 8
_EXPERIMENTS = "  experiments:\n"
"""The last key of every template; what follows is the item of its fault."""

Frame = Mapping[str, str | int]


def render(
    experiment: Experiment,
    *,
    confirmed: Collection[str] = (),
    cluster: bool | None = None,
    folder: Path | None = None,
) -> str:
    """The ChaosEngine of `experiment`, from the templates that ship with aftershock or those in `folder`.

    `confirmed` names the harm that is meant (hazards.Confirmation); `cluster` says whether it is a cluster that is hit,
    None: by the experiment's backend. Raises InputError (TemplateError) for a value that Litmus would misread, and for
    harm that is not confirmed.
    """
    return _render(experiment, int(experiment.chaos_s), confirmed, cluster, folder)


def render_fault(
    name: str,
    parameters: Mapping[str, str],
    *,
    confirmed: Collection[str] = (),
    cluster: bool | None = None,
    **fields: Any,
) -> str:
    """The ChaosEngine of one fault by itself; `fields` are fields of an Experiment (namespace, label, kind, run_id).

    Without `chaos_s` a fault lasts as long as its template says: there is no phase that it has to fit in.
    """
    experiment = validate({"run_id": "manual", **fields, "fault": name, "fault_parameters": dict(parameters)}, name)
    seconds = int(experiment.chaos_s) if "chaos_s" in fields else None
    return _render(experiment, seconds, confirmed, cluster, None)


def engine_name(fault: str, run_id: str) -> str:
    """`<fault>-<run_id>`; where that is too long, its beginning and a digest of the whole, so that it stays unique."""
    name = f"{fault}-{run_id}"
    if len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    return f"{name[: LONGEST_NAME - _DIGEST - 1].rstrip('-.')}-{digest}"


def _render(
    experiment: Experiment, seconds: int | None, confirmed: Collection[str], cluster: bool | None, folder: Path | None
) -> str:
    if experiment.fault == NO_FAULT:
        raise InputError(f"fault={NO_FAULT}: a control run has no ChaosEngine to render; name a fault")
    choices = choose(experiment.fault, experiment.fault_parameters, seconds, folder)
    if cluster is None:
        cluster = experiment.backend != EMBEDDED_BACKEND
    refuse_hazards(choices, Scene(experiment.kind, experiment.scrape_interval_s, cluster), confirmed)
    frame: Frame = {
        "engine_name": engine_name("-".join(choice.name for choice in choices), experiment.run_id),
        "run_id": experiment.run_id,
        "chaos_namespace": experiment.engine_namespace,
        "namespace": experiment.namespace,
        "label": experiment.label,
        "kind": experiment.kind,
    }
    filled = [_fill(choice, {**frame, "service_account": _service_account(choice, experiment)}) for choice in choices]
    text = _join(choices, filled)
    _check(choices, parse_engine(text, f"template {choices[0].name}"), frame)
    return add_probes(text, experiment, cluster=cluster)


def _service_account(choice: Choice, experiment: Experiment) -> str:
    return choice.template.service_account if experiment.service_account == AUTO else experiment.service_account


def _fill(choice: Choice, frame: Frame) -> str:
    """Put the values into the template. Raises TemplateError if the text is any other YAML than the one meant."""
    template, timeout = choice.template, int(choice.values[STATUS_CHECK_TIMEOUT])
    values = {**frame, **choice.values, "status_check_timeout": timeout}
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


def _join(choices: Sequence[Choice], texts: Sequence[str]) -> str:
    """One engine with the experiments of all, in their order, in which Litmus runs them one after the other.

    Raises TemplateError where the engines differ in anything else: one engine has one target and one service account.
    """
    joined, first = texts[0], _parse(choices[0].template, texts[0].partition(_EXPERIMENTS)[0])
    for choice, text in zip(choices[1:], texts[1:], strict=True):
        head, _, item = text.partition(_EXPERIMENTS)
        spec, other = first["spec"], _parse(choice.template, head)["spec"]
        differing = [key for key in {**spec, **other} if spec.get(key) != other.get(key)]
        if differing:
            raise TemplateError(
                f"{choices[0].name} and {choice.name} cannot share a ChaosEngine, their spec.{differing[0]} differs; "
                "give each a run of its own"
            )
        joined += item
    return joined


def _check(choices: Sequence[Choice], engine: ChaosEngine, frame: Frame) -> None:
    """Each value in its place; a template that mixes two up is caught here. Raises TemplateError."""
    target = AppInfo(str(frame["namespace"]), str(frame["label"]), str(frame["kind"]))
    meant: list[tuple[str, object, object]] = [
        ("metadata.name", engine.name, frame["engine_name"]),
        ("metadata.namespace", engine.namespace, frame["chaos_namespace"]),
        ("the run-id label", engine.labels.get(RUN_ID_LABEL), frame["run_id"]),
        ("spec.engineState", engine.state, "active"),
        ("spec.appinfo", engine.appinfo, AppInfo() if choices[0].template.hits_nodes else target),
        ("spec.experiments", [each.name for each in engine.experiments], [choice.name for choice in choices]),
    ]
    for choice, experiment in zip(choices, engine.experiments, strict=False):
        timeout = int(choice.values[STATUS_CHECK_TIMEOUT])
        meant.append(("statusCheckTimeouts", experiment.status_check_timeout_s, timeout))
        meant.append(("components.env", dict(experiment.env), choice.env))
    for where, found, wanted in meant:
        if found != wanted:
            raise TemplateError(
                f"template {', '.join(choice.name for choice in choices)}: "
                f"{where} came out as {found!r}, not as {wanted!r}"
            )
