"""Our annotations, `aftershock.io/...`: what OpenSLO has no words for. No I/O.

They belong to the SLO's metadata; the unit may also stand in the indicator's, where it is known best.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from aftershock.slo.fields import Metadata, seconds_of
from aftershock.slo.objective import (
    OPS,
    Compare,
    Objective,
    RatioIndicator,
    RecoveryIndicator,
    ScalarIndicator,
    SliceIndicator,
    StopCondition,
)
from aftershock.slo.yamltext import Place
from aftershock.windows import Phase

PREFIX = "aftershock.io/"
SEVERITIES = ("critical", "info")
LONGEST_STOP_FOR_S = 600.0
"""What lasts longer than this before anybody acts is no stop condition."""

Written = Mapping[str, tuple[str, Place]]
"""Name without prefix -> value and where it stands."""


_RELATIVE = re.compile(r"(<=|>=|<|>)\s*([-+]?[0-9]+(?:\.[0-9]+)?)\s*%")

OF_A_COMPOSITE = ("unit", "phases", "severity", "min-samples")


def read_annotations(slo: Place, slo_metadata: Metadata, sli: Place, sli_metadata: Metadata) -> Written:
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
    if objective.compare is not Compare.VALUE and Phase.BASELINE in objective.phases:
        raise written["phases"][1].error("the baseline cannot be compared with itself; give chaos or recovery")
    if objective.compare is Compare.RELATIVE:
        objective = replace(objective, unit="%")
    return replace(objective, stop=_stop_condition(objective, written))


def annotate_composite(objective: Objective, written: Written) -> Objective:
    """The same for what belongs to a composite, which takes fewer of them. Raises SpecError for the others."""
    for name in written:
        if name not in OF_A_COMPOSITE:
            allowed = ", ".join(PREFIX + known for known in OF_A_COMPOSITE)
            raise written[name][1].error(
                f"a composite SLO takes {allowed}; write what it is about as an SLO of its own too"
            )
    return annotate(objective, written)


def relative_of(objective: Objective, written: Written) -> Iterator[Objective]:
    """The row beside `objective` that its annotation `relative` asks for. Raises SpecError for one that cannot be."""
    if "relative" not in written:
        return
    text, place = written["relative"]
    match = _RELATIVE.fullmatch(text)
    if match is None:
        raise place.error(f"{text!r} must be <=, >=, < or > and a percentage of the baseline, such as '<= +10%'")
    if isinstance(objective.indicator, RecoveryIndicator):
        raise place.error("a recovery time has no baseline to be compared with; leave this out")
    if objective.compare is not Compare.VALUE:
        raise place.error(f"the objective is a comparison itself (compare: {objective.compare}); leave one of them out")
    relative = replace(
        objective,
        name=f"{objective.name}-relative",
        display=f"{objective.display}, change",
        unit="%",
        op=OPS[match[1]],
        value=float(match[2]),
        phases=tuple(phase for phase in objective.phases if phase is not Phase.BASELINE),
        compare=Compare.RELATIVE,
        source=str(place),
        stop=None,
    )
    if relative.upper != objective.upper:
        raise place.error(f"{text!r} contradicts {objective.target}: one of them takes for worse what is better")
    if not relative.phases:
        raise place.error("the baseline cannot be compared with itself; add chaos or recovery to phases")
    yield relative


def _unit(value: str, place: Place, objective: Objective) -> dict[str, Any]:
    if isinstance(objective.indicator, RecoveryIndicator) and value != "s":
        raise place.error(f"{value!r}: a recovery time is in s")
    if isinstance(objective.indicator, SliceIndicator):
        return {}  # that of a slice's value; the row is a share of slices
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
    if isinstance(objective.indicator, RecoveryIndicator):
        raise place.error("a recovery time has no baseline to be compared with; leave this out")
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


def _stop_condition(objective: Objective, written: Written) -> StopCondition | None:
    """Of `stop` and `stop-for` together, once all else is known. Raises SpecError for a bound that makes no sense."""
    if "stop" not in written:
        if "stop-for" in written:
            raise written["stop-for"][1].error("says how long a breach of stop has to last; give stop too")
        return None
    text, place = written["stop"]
    try:
        bound = float(text)
    except ValueError:
        bound = math.nan
    if not math.isfinite(bound):
        raise place.error(f"{text!r} must be a number, in the unit shown ({objective.unit or 'none'})")
    if why := _no_stop(objective, bound):
        raise place.error(why)
    return StopCondition(bound, _stop_for(*written["stop-for"])) if "stop-for" in written else StopCondition(bound)


def _no_stop(objective: Objective, bound: float) -> str:
    """Why the fault cannot be stopped by this objective at this bound; empty if it can."""
    if isinstance(objective.indicator, RecoveryIndicator):
        return "a recovery time is known after the fault only; leave this out"
    if isinstance(objective.indicator, SliceIndicator):
        return "a share of time slices is known after the fault only; write it to an SLO with Occurrences"
    if objective.compare is not Compare.VALUE:
        what = "drop" if objective.compare is Compare.DROP else "change"
        return f"a {what} is known after the fault only; leave this out"
    if Phase.CHAOS not in objective.phases:
        return "only what is judged in the phase chaos can stop the fault; add chaos to phases, or leave this out"
    if not (bound > objective.value if objective.upper else bound < objective.value):
        return f"{bound:g} must be worse than the objective, {objective.target}"
    if isinstance(objective.indicator, RatioIndicator):
        worst = objective.indicator.scale if objective.upper else 0.0
        if bound >= worst if objective.upper else bound <= worst:
            return f"{bound:g} is never passed: a share is at worst {worst:g} {objective.unit}".rstrip()
    return ""


def _stop_for(value: str, place: Place) -> float:
    seconds = seconds_of(value)
    if seconds is None or not 0 < seconds <= LONGEST_STOP_FOR_S:
        raise place.error(f"{value!r} must be a time such as 500ms, 5s or 1m, at most {LONGEST_STOP_FOR_S:g}s")
    return seconds


def _later(value: str, place: Place, objective: Objective) -> dict[str, Any]:
    """Read once all else is known: by `_stop_condition`, and by `relative_of`."""
    return {}


READERS: Mapping[str, Callable[[str, Place, Objective], dict[str, Any]]] = {
    "unit": _unit,
    "phases": _phases,
    "compare": _compare,
    "severity": _severity,
    "min-samples": _min_samples,
    "relative": _later,
    "stop": _later,
    "stop-for": _later,
}
