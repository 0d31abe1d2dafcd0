"""One SLO document -> its objectives, by budgetingMethod: of the whole phase, of its time slices, or composite. No I/O.

What goes with what (`op` with a thresholdMetric, `timeSliceWindow` with slices, `compositeWeight` with a composite) is
checked here, since it takes the SLO, its indicator and its objectives together.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal

from aftershock.slo import schema
from aftershock.slo.annotations import Written, annotate, annotate_composite, read_annotations, relative_of
from aftershock.slo.composite import BUDGET
from aftershock.slo.indicators import Held, read_ratio, read_threshold
from aftershock.slo.objective import (
    CompositeIndicator,
    Objective,
    Op,
    Part,
    RatioIndicator,
    RecoveryIndicator,
    SliceCondition,
    SliceIndicator,
    target_text,
)
from aftershock.slo.references import References, Sli
from aftershock.slo.yamltext import Document, Place
from aftershock.windows import Phase


@dataclass(frozen=True)
class _Threshold:
    """One item of `objectives`, its place and its indicator."""

    spec: schema.SloObjective
    place: Place
    sli: Sli
    method: str

    @property
    def is_ratio(self) -> bool:
        """Whether the indicator is a ratioMetric."""
        return self.sli.spec.ratio_metric is not None


def read_objectives(document: Document, slo: schema.Slo, references: References) -> Iterator[Objective]:
    """Every objective of one SLO, in order; of a composite its parts first. Raises SpecError for a contradiction."""
    whole, spec = Place(document), slo.spec
    if spec.alert_policies is not None:
        place = whole.below("spec", "alertPolicies")
        references.notes.append(f"{place}: left out: aftershock judges runs, it does not alert")
        references.note_alerts(place, spec.alert_policies)
    if spec.is_composite:
        yield from _composite(whole, slo, references)
        return
    sli = references.sli(whole.below("spec"), spec.indicator, spec.indicator_ref)
    written = read_annotations(whole, slo.metadata, sli.place, sli.metadata)
    several = len(spec.objectives) > 1
    for index, threshold in enumerate(spec.objectives):
        place = whole.below("spec", "objectives", index)
        if threshold.composite_weight is not None:
            raise place.below("compositeWeight").error(
                "goes with a composite SLO, whose objectives have an indicator each; this one's is the SLO's"
            )
        if several and sli.spec.ratio_metric is None:
            raise place.error("a thresholdMetric takes exactly one objective; write another SLO")
        name = f"{slo.metadata.name}-{index + 1}" if several else slo.metadata.name
        display = threshold.display_name or slo.metadata.display_name or slo.metadata.name
        objective = _objective(name, display, _Threshold(threshold, place, sli, spec.budgeting_method), written)
        objective = annotate(objective, written)
        yield objective
        yield from relative_of(objective, written)


def _composite(whole: Place, slo: schema.Slo, references: References) -> Iterator[Objective]:
    """The parts, shown and deciding nothing, and what decides: the budget that they have spent together."""
    parts = []
    for index, threshold in enumerate(slo.spec.objectives):
        place = whole.below("spec", "objectives", index)
        if not threshold.has_indicator:
            raise place.error("has no indicator, and others have: in a composite SLO give each one, or an indicatorRef")
        sli = references.sli(place, threshold.indicator, threshold.indicator_ref)
        written = read_annotations(whole, slo.metadata, sli.place, sli.metadata)
        display = threshold.display_name or sli.metadata.display_name or sli.metadata.name
        held = _Threshold(threshold, place, sli, slo.spec.budgeting_method)
        objective = _objective(f"{slo.metadata.name}-{index + 1}", display, held, written)
        objective = annotate_composite(objective, written)
        _refuse_without_budget(objective, held)
        parts.append((Part(objective, threshold.composite_weight or 1.0), written))
    for part, _ in parts:
        yield replace(part.objective, severity="info")
    first, written = parts[0]
    yield replace(
        annotate_composite(first.objective, written),
        name=slo.metadata.name,
        display=f"{slo.metadata.display_name or slo.metadata.name}: error budget spent",
        unit="%",
        op=Op.LTE,
        value=BUDGET,
        indicator=CompositeIndicator(tuple(part for part, _ in parts)),
        source=str(whole.below("spec", "objectives")),
    )


def _refuse_without_budget(objective: Objective, threshold: _Threshold) -> None:
    """A part must be a share that may be off its best by something."""
    indicator, place = objective.indicator, threshold.place
    if not threshold.is_ratio and not isinstance(indicator, RatioIndicator | SliceIndicator):
        raise place.error(
            "has no error budget: in a composite SLO give a ratioMetric, or good or bad and total, or budgetingMethod: "
            "Timeslices"
        )
    best = 0.0 if objective.upper else indicator.scale if isinstance(indicator, RatioIndicator) else 100.0
    if objective.value == best or (objective.value < best) == objective.upper:
        raise place.error(f"{objective.target} leaves no error budget to spend")


def _objective(name: str, display: str, threshold: _Threshold, written: Written) -> Objective:
    """A threshold as an objective, before its annotations."""
    held = _hold(threshold, written)
    recovery = isinstance(held.indicator, RecoveryIndicator)
    return Objective(
        name=name,
        display=f"{display}{_of_slices(held, threshold, written)}",
        unit=held.unit,
        op=held.op,
        value=held.value,
        indicator=held.indicator,
        phases=(Phase.RECOVERY,) if recovery else (Phase.CHAOS,),
        source=str(threshold.place),
    )


def _of_slices(held: Held, threshold: _Threshold, written: Written) -> str:
    """What a row of slices shows, behind its title: `: slices <= 800 ms`."""
    if not isinstance(held.indicator, SliceIndicator):
        return ""
    condition = held.indicator.condition
    if condition is None:
        return ": mean of slices"
    unit = "%" if threshold.is_ratio else written["unit"][0] if "unit" in written else ""
    return f": slices {target_text(condition.op, condition.value, unit)}"


def _hold(threshold: _Threshold, written: Written) -> Held:
    """What a threshold holds against its indicator. Raises SpecError where the two do not go together."""
    spec, place = threshold.spec, threshold.place
    for key, given in (("op", spec.op), ("value", spec.value)):
        if threshold.is_ratio and given is not None:
            raise place.below(key).error("goes with a thresholdMetric; a ratioMetric has target or targetPercent")
    if threshold.method == "Occurrences":
        for key, given in (("timeSliceTarget", spec.time_slice_target), ("timeSliceWindow", spec.time_slice_window)):
            if given is not None:
                raise place.below(key).error("goes with time slices; budgetingMethod Occurrences has none")
        return _hold_ratio(threshold, _target(threshold)) if threshold.is_ratio else _hold_threshold(threshold)
    if spec.time_slice_window is None:
        raise place.below("timeSliceWindow").error(f"is missing: {threshold.method} needs it, such as 1m")
    return _hold_slices(threshold, spec.time_slice_window)


def _hold_slices(threshold: _Threshold, slice_s: float) -> Held:
    spec, place = threshold.spec, threshold.place
    if threshold.method == "RatioTimeslices":
        if spec.time_slice_target is not None:
            raise place.below("timeSliceTarget").error("goes with Timeslices; RatioTimeslices takes the mean of slices")
        if not threshold.is_ratio:
            raise place.error("RatioTimeslices takes the mean of ratios: give a ratioMetric, or Timeslices")
        mean = _hold_ratio(threshold, _target(threshold))
        return replace(mean, indicator=_sliced(mean, place, slice_s, None))
    if threshold.is_ratio and spec.time_slice_target is None:
        raise place.below("timeSliceTarget").error("is missing: from which share of good events a slice is good")
    target = _target(threshold)
    good = (
        _hold_ratio(threshold, _percent(spec.time_slice_target)) if threshold.is_ratio else _hold_threshold(threshold)
    )
    condition = SliceCondition(good.op, good.value)
    return Held(_sliced(good, place, slice_s, condition), Op.GTE, float(target), "%")


def _sliced(held: Held, place: Place, slice_s: float, condition: SliceCondition | None) -> SliceIndicator:
    if isinstance(held.indicator, RecoveryIndicator | SliceIndicator | CompositeIndicator):
        raise place.error("a recovery time is of the whole run; give budgetingMethod: Occurrences")
    return SliceIndicator(held.indicator, slice_s, condition)


def _percent(share: float | None) -> Decimal:
    return Decimal(repr(share)) * 100


def _target(threshold: _Threshold) -> Decimal:
    if threshold.spec.percent is None:
        what = "a ratioMetric is" if threshold.method == "Occurrences" else "time slices are"
        raise threshold.place.below("target").error(f"is missing: {what} held against target or targetPercent")
    return threshold.spec.percent


def _hold_ratio(threshold: _Threshold, target: Decimal) -> Held:
    metric, place = threshold.sli.spec.ratio_metric, threshold.sli.place.below("spec", "ratioMetric")
    assert metric is not None, "only called for a ratioMetric"
    return read_ratio(metric, target, place)


def _hold_threshold(threshold: _Threshold) -> Held:
    spec = threshold.spec
    if spec.op is None or spec.value is None:
        missing = "op" if spec.op is None else "value"
        raise threshold.place.below(missing).error("is missing: a thresholdMetric is held against op and value")
    metric = threshold.sli.spec.threshold_metric
    assert metric is not None, "the schema lets no indicator through without a metric"
    return read_threshold(metric, Op(spec.op), spec.value)
