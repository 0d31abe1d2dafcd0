"""OpenSLO v1 documents -> objectives.

Reads all kinds of objects, several to a text. Those that alert are checked and left out with a note: aftershock judges
runs and pages nobody. What is ours on top is documented in `slo_specs/README.md`.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pydantic import ValidationError

from aftershock.errors import SpecError
from aftershock.slo import alerting, schema
from aftershock.slo.catalog import locate
from aftershock.slo.fields import Object, Reading, shown
from aftershock.slo.objective import Objective
from aftershock.slo.references import References, Sli
from aftershock.slo.thresholds import read_objectives
from aftershock.slo.yamltext import Document, Place, read_documents

API_VERSIONS = ("openslo/v1", "openslo.com/v1")
"""The second is what a Kubernetes cluster needs to take OpenSLO objects as custom resources."""

ALERT_KINDS: Mapping[str, type[Object]] = {
    "AlertPolicy": alerting.AlertPolicy,
    "AlertCondition": alerting.AlertCondition,
    "AlertNotificationTarget": alerting.AlertNotificationTarget,
}
KINDS: Mapping[str, type[Object]] = {
    "SLO": schema.Slo,
    "SLI": schema.Sli,
    "DataSource": schema.DataSource,
    "Service": schema.Service,
    **ALERT_KINDS,
}

NO_PARTS = (*schema.FORMS, "[key]")
"""Of the location of an error, what pydantic adds to the path in the document."""

log = logging.getLogger(__name__)
M = TypeVar("M", bound=Object)


@dataclass(frozen=True)
class Specification:
    """The objectives of a text, in its order, and what its author should know about how it was read."""

    objectives: tuple[Objective, ...]
    notes: tuple[str, ...] = ()


@dataclass
class _Text:
    """What was found in one text."""

    matchers: str
    references: References = field(default_factory=References)
    slos: list[tuple[Document, schema.Slo]] = field(default_factory=list)
    seen: dict[tuple[str, str], str] = field(default_factory=dict)
    policies: list[tuple[Place, alerting.AlertPolicySpec]] = field(default_factory=list)
    selects: bool = False
    """Whether any query has a `{{ selector }}`."""


def load_slos(ref: str, matchers: str = "") -> list[Objective]:
    """The objectives that `ref` means: a name from `slo_specs`, a file, or the YAML text itself. Notes are logged.

    `matchers` is what `{{ selector }}` stands for. Raises SpecError: `file:line: path: what is wrong`.
    """
    text, source = locate(ref)
    specification = parse(text, source, matchers)
    for note in specification.notes:
        log.warning("%s", note)
    return list(specification.objectives)


def read_slo_text(ref: str) -> str:
    """The YAML text that `ref` means, so that it can travel to where the file is not. Raises SpecError."""
    return locate(ref)[0]


def parse(text: str, source: str, matchers: str = "") -> Specification:
    """The objectives of an OpenSLO text, with `matchers` for each `{{ selector }}`.

    Raises SpecError at the first thing wrong in it.
    """
    found = _Text(matchers)
    for document in read_documents(text, source):
        _add(found, document)
    if not found.slos:
        raise SpecError(f"{source}: holds no object of kind SLO, so there is nothing to judge; add one")
    references = found.references
    for place, policy in found.policies:
        references.note_policy(place, policy)
    objectives = tuple(one for document, slo in found.slos for one in read_objectives(document, slo, references))
    if matchers and not found.selects:
        references.notes.append(
            f"{source}: no query has {{{{ selector }}}}, so the selector {matchers} selects nothing here; put it there"
        )
    if all(objective.severity == "info" for objective in objectives):
        raise SpecError(f"{source}: every SLO is of severity info, so nothing decides; make one critical")
    _refuse_equal_names(objectives)
    return Specification(objectives, tuple(references.notes))


def _add(found: _Text, document: Document) -> None:
    kind, references = _kind(document), found.references
    thing = _validate(KINDS[kind], document, found)
    name = thing.metadata.name
    if (kind, name) in found.seen:
        first = found.seen[kind, name]
        raise document.error(("metadata", "name"), f"there is another {kind} {name!r}, at {first}; rename one")
    found.seen[kind, name] = document.at(("metadata", "name"))
    match thing:
        case schema.Slo():
            found.slos.append((document, thing))
        case schema.Sli():
            references.slis[name] = Sli(Place(document), thing.metadata, thing.spec)
        case schema.DataSource():
            references.sources.add(name)
            if thing.spec.connection_details is not None:
                place = document.at(("spec", "connectionDetails"))
                references.notes.append(f"{place}: left out: the run's prometheus_url says where Prometheus is")
        case alerting.AlertPolicy():
            found.policies.append((Place(document, ("spec",)), thing.spec))
    if kind in ALERT_KINDS:
        references.alerts.add((kind, name))
        references.notes.append(
            f"{document.at(('kind',))}: {kind} is left out: aftershock judges runs, it does not alert"
        )


def _kind(document: Document) -> str:
    """The document's kind, whatever its casing. Raises SpecError for another version or an unknown kind."""
    for key in ("apiVersion", "kind"):
        if key not in document.data:
            raise document.error((key,), "is missing; every OpenSLO object has apiVersion: openslo/v1 and a kind")
    version, kind = document.data["apiVersion"], document.data["kind"]
    if version not in API_VERSIONS:
        raise document.error(("apiVersion",), f"{version!r} is not supported; allowed: openslo/v1")
    for known in KINDS:
        if str(kind).lower() == known.lower():
            return known
    raise document.error(("kind",), f"{kind!r} is no OpenSLO kind; allowed: {', '.join(KINDS)}")


def _validate(model: type[M], document: Document, found: _Text) -> M:
    """`document` as `model`. Raises SpecError for the first thing wrong, with its line."""
    reading = Reading(found.matchers)
    try:
        thing = model.model_validate(document.data, context=reading)
    except ValidationError as error:
        raise _spec_error(document, error) from error
    found.selects = found.selects or reading.selects
    found.references.notes.extend(f"{document.source}: {thing.metadata.name}: {one}" for one in reading.spellings)
    return thing


def _spec_error(document: Document, error: ValidationError) -> SpecError:
    first = error.errors(include_url=False)[0]
    path = tuple(part for part in first["loc"] if part not in NO_PARTS)
    context = first.get("ctx", {})
    if first["type"] == "spec":
        path += (context["key"],) if context.get("key") else ()
        return document.error(path, first["msg"])
    return document.error(path, f"{shown(first['input'])} {_complaint(first['type'], first['msg'], context)}")


def _complaint(kind: str, message: str, context: Mapping[str, Any]) -> str:
    """Pydantic's message as the rest of a sentence that begins with the value."""
    plain = {
        "float_type": "must be a number",
        "int_type": "must be a whole number",
        "string_type": "must be text",
        "bool_type": "must be true or false",
        "list_type": "must be a list",
        "dict_type": "must be a mapping",
    }
    if kind == "literal_error":
        return f"must be {context['expected']}".replace("'", "")
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    return plain.get(kind) or re.sub("^(Input|List|String) should", "must", message)


def _refuse_equal_names(objectives: tuple[Objective, ...]) -> None:
    """Several objectives get a number behind the SLO's name, which may be another SLO's name."""
    seen: dict[str, str] = {}
    for objective in objectives:
        if objective.name in seen:
            raise SpecError(
                f"{objective.source}: metadata.name: objective {objective.name!r} is also at {seen[objective.name]}; "
                "rename one SLO"
            )
        seen[objective.name] = objective.source
