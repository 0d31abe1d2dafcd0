"""Our annotations, `aftershock.io/...`: what OpenSLO has no words for. No I/O.

They belong to the SLO's metadata; the unit may also stand in the indicator's, where it is known best.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from aftershock.slo import schema
from aftershock.slo.objective import Compare, Objective, RatioIndicator, RecoveryIndicator, ScalarIndicator
from aftershock.slo.yamltext import Place
from aftershock.windows import Phase

PREFIX = "aftershock.io/"
SEVERITIES = ("critical", "info")

Written = Mapping[str, tuple[str, Place]]
"""Name without prefix -> value and where it stands."""


def read_annotations(slo: Place, slo_metadata: schema.Metadata, sli: Place, sli_metadata: schema.Metadata) -> Written:
    """The annotations of ours on an SLO and on its indicator; the SLO's win. Raises SpecError for unknown ones."""
    written: dict[str, tuple[str, Place]] = {}
    for place, metadata, allowed in ((sli, sli_metadata, ("unit",)), (slo, slo_metadata, tuple(READERS))):
        for key, value in metadata.annotations.items():
            if not key.startswith(PREFIX):
                continue  # another tool's
            here, name = place.below("metadata", "annotations", key), key.removeprefix(PREFIX)
            if name not in allowed:
                raise here.error(f"unknown annotation; allowed: {', '.join(PREFIX + known for known in allowed)}")
            written[name] = (value.strip(), here)
    return written


def annotate(objective: Objective, written: Written) -> Objective:
    """`objective` as its annotations want it. Raises SpecError for a value that is not allowed, or not with this."""
    for name, (value, place) in written.items():
        objective = replace(objective, **READERS[name](value, place, objective))
    if objective.compare is Compare.DROP and Phase.BASELINE in objective.phases:
        raise written["phases"][1].error("the baseline cannot be compared with itself; give chaos or recovery")
    return objective


def _unit(value: str, place: Place, objective: Objective) -> dict[str, Any]:
    if isinstance(objective.indicator, RecoveryIndicator) and value != "s":
        raise place.error(f"{value!r}: a recovery time is in s")
    return {"unit": value}


def _phases(value: str, place: Place, objective: Objective) -> dict[str, Any]:
    if isinstance(objective.indicator, RecoveryIndicator):
        raise place.error("a recovery time belongs to the recovery phase; leave this out")
    names = [name.strip() for name in value.split(",")]
    for name in names:
        if name not in list(Phase):
            raise place.error(f"{name!r} is no phase; allowed: {', '.join(Phase)}, separated by commas")
    return {"phases": tuple(phase for phase in Phase if phase in names)}


def _compare(value: str, place: Place, objective: Objective) -> dict[str, Any]:
    if value not in list(Compare):
        raise place.error(f"{value!r} is no comparison; allowed: {', '.join(Compare)}")
    compare = Compare(value)
    if compare is Compare.DROP and not (isinstance(objective.indicator, RatioIndicator) and objective.indicator.good):
        raise place.error("a drop is of a share of good events; give good and total")
    return {"compare": compare}


def _severity(value: str, place: Place, objective: Objective) -> dict[str, Any]:
    if value not in SEVERITIES:
        raise place.error(f"{value!r} is no severity; allowed: {', '.join(SEVERITIES)} (info rows decide nothing)")
    return {"severity": value}


def _min_samples(value: str, place: Place, objective: Objective) -> dict[str, Any]:
    if not value.isdecimal():
        raise place.error(f"{value!r} must be a whole number")
    if isinstance(objective.indicator, RecoveryIndicator):
        raise place.error("a recovery time has no samples; leave this out")
    if isinstance(objective.indicator, ScalarIndicator) and not objective.indicator.samples:
        raise place.error("the number of samples is not known; give PromQL for it under metricSource.spec.samples")
    return {"min_samples": int(value)}


READERS: Mapping[str, Callable[[str, Place, Objective], dict[str, Any]]] = {
    "unit": _unit,
    "phases": _phases,
    "compare": _compare,
    "severity": _severity,
    "min-samples": _min_samples,
}
