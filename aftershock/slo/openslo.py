"""OpenSLO v1 documents -> objectives.

Reads SLO, SLI, DataSource and Service objects, several to a text. Kinds that alert are left out with a note: aftershock
judges runs and pages nobody. What is ours on top is documented in `slo_specs/README.md`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from aftershock.errors import SpecError
from aftershock.files import data_folder
from aftershock.slo import schema
from aftershock.slo.annotations import annotate, read_annotations
from aftershock.slo.fields import Strict
from aftershock.slo.indicators import Held, read_ratio, read_threshold
from aftershock.slo.objective import Objective, Op, RecoveryIndicator
from aftershock.slo.yamltext import Document, Place, read_documents
from aftershock.windows import Phase

API_VERSIONS = ("openslo/v1", "openslo.com/v1")
"""The second is what a Kubernetes cluster needs to take OpenSLO objects as custom resources."""

READ_KINDS: Mapping[str, type[schema.Slo | schema.Sli | schema.DataSource | schema.Service]] = {
    "SLO": schema.Slo,
    "SLI": schema.Sli,
    "DataSource": schema.DataSource,
    "Service": schema.Service,
}
IGNORED_KINDS = ("AlertPolicy", "AlertCondition", "AlertNotificationTarget")

TEXT_SOURCE = "slo"
"""What errors call a text that came from no file."""

log = logging.getLogger(__name__)
M = TypeVar("M", bound=Strict)


@dataclass(frozen=True)
class Specification:
    """The objectives of a text, in its order, and what its author should know about how it was read."""

    objectives: tuple[Objective, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Sli:
    """An indicator and where it stands: in its SLO, or in a document of its own."""

    place: Place
    metadata: schema.Metadata
    spec: schema.SliSpec


@dataclass
class _Catalog:
    """The objects of one text, by kind and name."""

    slos: list[tuple[Document, schema.Slo]] = field(default_factory=list)
    slis: dict[str, _Sli] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    seen: dict[tuple[str, str], str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def load_slos(ref: str) -> list[Objective]:
    """The objectives that `ref` means: a name from `slo_specs`, a file, or the YAML text itself. Notes are logged.

    Raises SpecError: `file:line: path: what is wrong`.
    """
    text, source = _locate(ref)
    specification = parse(text, source)
    for note in specification.notes:
        log.warning("%s", note)
    return list(specification.objectives)


def read_slo_text(ref: str) -> str:
    """The YAML text that `ref` means, so that it can travel to where the file is not. Raises SpecError."""
    return _locate(ref)[0]


def known_specs() -> list[str]:
    """Names that `load_slos` takes."""
    return sorted(path.stem for path in data_folder("slo_specs").glob("*.yaml"))


def _locate(ref: str) -> tuple[str, str]:
    """Text and source of `ref`."""
    if "\n" in ref and "apiVersion" in ref:
        return ref, TEXT_SOURCE
    names = known_specs()
    known = ", ".join(names)
    if ref in names:
        path, source = data_folder("slo_specs") / f"{ref}.yaml", f"slo_specs/{ref}.yaml"
    else:
        path, source = Path(ref), ref
        if not ref or "\n" in ref or ("/" not in ref and path.suffix not in (".yaml", ".yml") and not path.is_file()):
            raise SpecError(f"{ref!r}: no such SLO spec; known are {known}; or give a YAML file")
    try:
        return path.read_text(encoding="utf-8"), source
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise SpecError(f"{source}: cannot be read ({reason}); give a YAML file or one of {known}") from error


def parse(text: str, source: str) -> Specification:
    """The objectives of an OpenSLO text. Raises SpecError at the first thing wrong in it."""
    catalog = _Catalog()
    for document in read_documents(text, source):
        _add(catalog, document)
    if not catalog.slos:
        raise SpecError(f"{source}: holds no object of kind SLO, so there is nothing to judge; add one")
    objectives = tuple(objective for document, slo in catalog.slos for objective in _objectives(document, slo, catalog))
    if all(objective.severity == "info" for objective in objectives):
        raise SpecError(f"{source}: every SLO is of severity info, so nothing decides; make one critical")
    _refuse_equal_names(objectives)
    return Specification(objectives, tuple(catalog.notes))


def _add(catalog: _Catalog, document: Document) -> None:
    kind = _kind(document)
    if kind in IGNORED_KINDS:
        catalog.notes.append(f"{document.at(('kind',))}: {kind} is left out: aftershock judges runs, it does not alert")
        return
    thing = _validate(READ_KINDS[kind], document, catalog.notes)
    name = document.data["metadata"]["name"]
    if (kind, name) in catalog.seen:
        first = catalog.seen[kind, name]
        raise document.error(("metadata", "name"), f"there is another {kind} {name!r}, at {first}; rename one")
    catalog.seen[kind, name] = document.at(("metadata", "name"))
    match thing:
        case schema.Slo():
            catalog.slos.append((document, thing))
        case schema.Sli():
            catalog.slis[name] = _Sli(Place(document), thing.metadata, thing.spec)
        case schema.DataSource():
            catalog.sources.add(name)


def _kind(document: Document) -> str:
    """The document's kind, whatever its casing. Raises SpecError for another version or an unknown kind."""
    for key in ("apiVersion", "kind"):
        if key not in document.data:
            raise document.error((key,), "is missing; every OpenSLO object has apiVersion: openslo/v1 and a kind")
    version, kind = document.data["apiVersion"], document.data["kind"]
    if version not in API_VERSIONS:
        raise document.error(("apiVersion",), f"{version!r} is not supported; allowed: openslo/v1")
    kinds = (*READ_KINDS, *IGNORED_KINDS)
    for known in kinds:
        if str(kind).lower() == known.lower():
            return known
    raise document.error(("kind",), f"{kind!r} is no OpenSLO kind; allowed: {', '.join(kinds)}")


def _validate(model: type[M], document: Document, notes: list[str]) -> M:
    """`document` as `model`. Raises SpecError for the first thing wrong, with its line."""
    spellings: list[str] = []
    try:
        thing = model.model_validate(document.data, context=spellings)
    except ValidationError as error:
        raise _spec_error(document, error) from error
    notes.extend(f"{document.source}: {document.data['metadata']['name']}: {spelling}" for spelling in spellings)
    return thing


def _spec_error(document: Document, error: ValidationError) -> SpecError:
    first = error.errors(include_url=False)[0]
    path = tuple(part for part in first["loc"] if part not in schema.FORMS)
    context = first.get("ctx", {})
    if first["type"] == "spec":
        path += (context["key"],) if context.get("key") else ()
        return document.error(path, first["msg"])
    return document.error(path, f"{first['input']!r} {_complaint(first['type'], first['msg'], context)}")


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
    return plain.get(kind) or message.replace("Input should be", "must be").replace("List should have", "must have")


def _objectives(document: Document, slo: schema.Slo, catalog: _Catalog) -> Iterator[Objective]:
    """Every objective of one SLO."""
    whole = Place(document)
    sli = _sli(whole, slo, catalog)
    _check_sources(sli, catalog)
    if slo.spec.alert_policies:
        catalog.notes.append(
            f"{whole.below('spec', 'alertPolicies')}: left out: aftershock judges runs, it does not alert"
        )
    written = read_annotations(whole, slo.metadata, sli.place, sli.metadata)
    several = len(slo.spec.objectives) > 1
    for index, threshold in enumerate(slo.spec.objectives):
        place = whole.below("spec", "objectives", index)
        held = _hold(threshold, place, sli, several=several)
        objective = Objective(
            name=f"{slo.metadata.name}-{index + 1}" if several else slo.metadata.name,
            display=threshold.display_name or slo.metadata.display_name or slo.metadata.name,
            unit=held.unit,
            op=held.op,
            value=held.value,
            indicator=held.indicator,
            phases=(Phase.RECOVERY,) if isinstance(held.indicator, RecoveryIndicator) else (Phase.CHAOS,),
            source=str(place),
        )
        yield annotate(objective, written)


def _sli(whole: Place, slo: schema.Slo, catalog: _Catalog) -> _Sli:
    """The indicator of an SLO, written in it or beside it."""
    if slo.spec.indicator is not None:
        inline = slo.spec.indicator
        return _Sli(whole.below("spec", "indicator"), inline.metadata, inline.spec)
    name = str(slo.spec.indicator_ref)
    if name not in catalog.slis:
        known = ", ".join(sorted(catalog.slis)) or "none"
        raise whole.below("spec", "indicatorRef").error(f"there is no SLI {name!r} in this text; there are: {known}")
    return catalog.slis[name]


def _check_sources(sli: _Sli, catalog: _Catalog) -> None:
    """A `metricSourceRef` must name a DataSource of this text, unless `type` says all that is needed."""
    for place, source in _metric_sources(sli):
        ref = source.metric_source_ref
        if ref is not None and ref not in catalog.sources and source.type is None:
            known = ", ".join(sorted(catalog.sources)) or "none"
            raise place.below("metricSourceRef").error(
                f"there is no DataSource {ref!r} in this text; there are: {known}; or give type: Prometheus"
            )


def _metric_sources(sli: _Sli) -> Iterator[tuple[Place, schema.Source]]:
    """Every metricSource of an indicator, and where it stands."""
    threshold, ratio = sli.spec.threshold_metric, sli.spec.ratio_metric
    if threshold is not None:
        yield sli.place.below("spec", "thresholdMetric", "metricSource"), threshold.metric_source
    if ratio is not None:
        for name in ("good", "bad", "total", "raw"):
            part = getattr(ratio, name)
            if part is not None:
                yield sli.place.below("spec", "ratioMetric", name, "metricSource"), part.metric_source


def _hold(threshold: schema.SloObjective, place: Place, sli: _Sli, *, several: bool) -> Held:
    """What one threshold holds against the indicator. Raises SpecError where the two do not go together."""
    if sli.spec.ratio_metric is not None:
        for key in ("op", "value"):
            if getattr(threshold, key) is not None:
                raise place.below(key).error("goes with a thresholdMetric; a ratioMetric has target or targetPercent")
        if threshold.percent is None:
            raise place.below("target").error("is missing: a ratioMetric is held against target or targetPercent")
        return read_ratio(sli.spec.ratio_metric, threshold.percent, sli.place.below("spec", "ratioMetric"))
    if several:
        raise place.error("a thresholdMetric takes exactly one objective; write another SLO")
    if threshold.op is None or threshold.value is None:
        missing = "op" if threshold.op is None else "value"
        raise place.below(missing).error("is missing: a thresholdMetric is held against op and value")
    metric = sli.spec.threshold_metric
    assert metric is not None, "the schema lets no indicator through without a metric"
    return read_threshold(metric, Op(threshold.op), threshold.value)


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
