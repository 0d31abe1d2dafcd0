"""A ChaosEngine that somebody else wrote, made one of ours: checked, named for the run, and else left as it is.

What is set here: a name of its own for each run, the run's labels, `engineState: active`, and, where they are missing,
what lets Litmus clean up and revert. What is dropped: its status, and what an API server or a workflow wrote into its
metadata. The engine rules its fault and its target, so the experiment is made to say the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from typing import Any

from aftershock.chaos.choice import RAMP, Choice
from aftershock.chaos.dump import to_yaml
from aftershock.chaos.engine import RUN_ID_LABEL, ChaosEngine, EngineExperiment, parse_engine
from aftershock.chaos.given import Given, read_given
from aftershock.chaos.hazards import Scene, refuse_harm
from aftershock.chaos.lint.catalogue import catalogue
from aftershock.chaos.lint.finding import Severity
from aftershock.chaos.lint.reading import read_engine
from aftershock.chaos.lint.text import MASK
from aftershock.chaos.probes import add_probes
from aftershock.chaos.render import EMBEDDED_BACKEND, engine_name
from aftershock.chaos.template import DURATION, load_fault
from aftershock.errors import EngineError, InputError, TemplateError
from aftershock.experiment import AUTO, NO_FAULT, NOTHING, Experiment, validate

PARAMETER = "engine"
"""What errors call an engine that came from no file."""

MANAGED_BY = {"app.kubernetes.io/managed-by": "aftershock"}
CLEAN_UP = {"jobCleanUpPolicy": "delete", "terminationGracePeriodSeconds": 60}
"""As the templates have it. Without the second, an abort leaves helper pods no time to revert the fault."""

MENDED = frozenset({"status-applied", "engine-stopped"})
"""Rules of the linter that adoption itself satisfies: a dump of a finished engine is a fine thing to start from."""

KEPT_METADATA = ("labels", "annotations")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def follow_engine(experiment: Experiment) -> Experiment:
    """The experiment with what its engine says of fault and target, and the engine's text in place of its file.

    Raises InputError for an engine that cannot be adopted, and for a parameter that says something else than it.
    """
    if experiment.engine == NOTHING:
        return experiment
    given = read_given(experiment.engine, PARAMETER, EngineError)
    engine, _ = _adopted(given, experiment)
    said: dict[str, Any] = {"fault": ",".join(each.name for each in engine.experiments), "fault_parameters": {}}
    if engine.appinfo.label:
        info = engine.appinfo
        said |= {"namespace": info.namespace, "label": info.label, "kind": info.kind}
    for name, value in said.items():
        _refuse_another(experiment, name, value, given.source)
    updated = {**experiment.model_dump(), **said, "engine": given.text, "chaos_namespace": engine.namespace}
    return validate(updated, given.source)


def adopt(experiment: Experiment, *, confirmed: Collection[str] = ()) -> str:
    """The experiment's own ChaosEngine as YAML, with its probes. Raises InputError, also for unconfirmed harm."""
    given = read_given(experiment.engine, PARAMETER, EngineError)
    engine, text = _adopted(given, experiment)
    cluster = experiment.backend != EMBEDDED_BACKEND
    if not cluster and any((each.get("spec") or {}).get("probe") for each in engine.document["spec"]["experiments"]):
        raise EngineError(f"{given.source}: has probes, and the local backend runs none; take them out for it")
    scene = Scene(engine.appinfo.kind, experiment.scrape_interval_s, cluster)
    choices = [choice for each in engine.experiments if (choice := _choice(each))]
    refuse_harm(choices, sum(_seconds(each) for each in engine.experiments), scene, confirmed)
    return add_probes(text, experiment, cluster=cluster)


def _adopted(given: Given, experiment: Experiment) -> tuple[ChaosEngine, str]:
    """The engine as it will be sent, and its text."""
    if experiment.fault == NO_FAULT:
        raise InputError(f"fault={NO_FAULT}: a control run has no ChaosEngine; leave out fault, or engine")
    document = _checked(given, experiment)
    own = _metadata(document.get("metadata") or {}, given.source, experiment)
    spec = {**document["spec"], "engineState": "active"}
    spec |= {name: value for name, value in CLEAN_UP.items() if spec.get(name) in (None, "")}
    if experiment.service_account != AUTO:
        spec["chaosServiceAccount"] = experiment.service_account
    if experiment.chaos_namespace != AUTO:
        own["namespace"] = experiment.chaos_namespace
    elif not own["namespace"]:
        own["namespace"] = (spec.get("appinfo") or {}).get("appns") or experiment.namespace
    whole = {**{name: each for name, each in document.items() if name != "status"}, "metadata": own, "spec": spec}
    text = _remark(document, whole) + to_yaml(whole, given.source)
    return parse_engine(text, given.source), text


def _checked(given: Given, experiment: Experiment) -> dict[str, Any]:
    """The engine of the file, if the linter has no error to report that adoption does not mend."""
    found = read_engine(given.text, given.source)
    mended = MENDED if experiment.service_account == AUTO else MENDED | {"account-missing"}
    errors = [each for each in found.findings if each.severity is Severity.ERROR and each.rule not in mended]
    if errors:
        first, more = errors[0], len(errors) - 1
        rest = f" ({more} more error{'s' if more > 1 else ''} after it)" if more else ""
        file = "FILE" if given.source == PARAMETER else given.source
        raise EngineError(
            f"{first.source}:{first.line}: {first.rule}: {first.what}; {first.fix}{rest}; "
            f"`aftershock lint --fix {file}` mends what takes no decision"
        )
    return found.document


def _metadata(given: Mapping[str, Any], source: str, experiment: Experiment) -> dict[str, Any]:
    """Name and namespace first; of the rest only what is no API server's and no workflow's book-keeping."""
    name = str(given.get("name") or given.get("generateName") or "")
    if _is_open(name):
        raise EngineError(f"{source}: metadata.name is for a workflow engine to fill in; give a name")
    namespace = str(given.get("namespace") or "")
    metadata: dict[str, Any] = {
        "name": engine_name(name.rstrip("-."), experiment.run_id),
        "namespace": "" if _is_open(namespace) else namespace,
    }
    for part in KEPT_METADATA:
        entries = given.get(part) or {}
        if not isinstance(entries, dict) or not all(isinstance(value, str) for value in entries.values()):
            raise EngineError(f"{source}: metadata.{part}: must map names to text; put each value in quotes")
        metadata[part] = {
            key: value for key, value in entries.items() if key != LAST_APPLIED and not _is_open(f"{key}{value}")
        }
    metadata["labels"] |= {RUN_ID_LABEL: experiment.run_id, **MANAGED_BY}
    return {key: value for key, value in metadata.items() if key != "annotations" or value}


def _is_open(text: str) -> bool:
    return MASK in text or "{{" in text


def _remark(before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """What was done to it, at the top of the artifact."""
    name = (before.get("metadata") or {}).get("name") or (before.get("metadata") or {}).get("generateName")
    changed = [key for key, value in after["spec"].items() if before["spec"].get(key) != value]
    fields = ", ".join(["metadata", *(f"spec.{key}" for key in changed)])
    return f"# The ChaosEngine {name} as it was given, but for these, which aftershock set: {fields}\n"


def _refuse_another(experiment: Experiment, name: str, said: Any, source: str) -> None:
    """A parameter that was given and is not what the engine says. Its default cannot be told from what was given."""
    value = getattr(experiment, name)
    if value in (said, Experiment.model_fields[name].default):
        return
    raise InputError(
        f"{name}={value if isinstance(value, str) else dict(value)}: the engine of {source} "
        + (f"has {said}" if said else "has its tunables in it")
        + f"; change it there, or leave {name} out"
    )


# --- what it would do, as far as its environment tells ----------------------------------------------------------------


def _choice(experiment: EngineExperiment) -> Choice | None:
    """As if our template had been filled with it; None for a fault that we have none of."""
    try:
        template = load_fault(experiment.name)
    except TemplateError:
        return None
    charts = catalogue().faults[template.name].tunables if template.name in catalogue().faults else {}
    values = {name: charts.get(name, "") for name in template.parameters}
    values |= {name: value for name, value in experiment.env.items() if value}
    numbers = {name: str(_number(values[name])) for name, each in template.parameters.items() if each.type == "integer"}
    return Choice(template, frozenset(experiment.env), {**values, **numbers})


def _seconds(experiment: EngineExperiment) -> int:
    fault = catalogue().faults.get(experiment.name)
    usual = fault.tunables.get(DURATION, "") if fault else ""
    return _number(experiment.value(DURATION, usual)) + 2 * _number(experiment.value(RAMP))


def _number(text: str) -> int:
    """Of a range the larger end, of a fraction the next integer: what is at most done. 0 for what is no number."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]+)?-)?([0-9]{1,9}(?:\.[0-9]+)?)", text.strip())
    return math.ceil(float(match[2])) if match else 0
