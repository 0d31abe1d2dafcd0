"""OpenSLO v1 as it is read: one model a kind, and the `metricSource.spec` forms that are ours. No I/O.

The models check one document by itself. What spans documents, such as an `indicatorRef`, is checked in `openslo.py`.
Unknown and missing keys are found before anything else and named with what is allowed, since a misspelt key must not
leave an objective weaker than it was written.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from aftershock.slo.alerting import FORMS as ALERT_FORMS
from aftershock.slo.alerting import SloAlertPolicy
from aftershock.slo.fields import (
    BudgetingMethod,
    Condition,
    Description,
    Duration,
    Histogram,
    LinePromql,
    Metadata,
    Number,
    Object,
    Operator,
    Promql,
    Scale,
    Seconds,
    SliceWindow,
    StartTime,
    Strict,
    TimeZone,
    spelt,
    wrong,
)


class QuerySpec(Strict):
    """A PromQL expression whose one sample is the value."""

    query: Promql = Field(description="PromQL with one sample as its answer")
    samples: Promql | None = Field(None, description="PromQL of the number of observations behind it")


class PlainQuerySpec(Strict):
    """The query of one part of a ratioMetric."""

    query: Promql = Field(description="PromQL with one sample as its answer")


class HistogramSpec(Strict):
    """A quantile of a classic histogram."""

    histogram: Histogram = Field(description="the histogram's name without _bucket, perhaps with matchers")
    quantile: Annotated[Number, Field(gt=0, lt=1)] = Field(description="0.99 for P99")
    scale: Scale = Field(1.0, description="1000 turns seconds into milliseconds")


class CountsSpec(Strict):
    """A share, from counts: unlike a ratioMetric it is held against op and value, in its own unit."""

    good: Promql | None = Field(None, description="PromQL that counts what was good")
    bad: Promql | None = Field(None, description="PromQL that counts what was bad")
    total: Promql = Field(description="PromQL that counts everything")
    scale: Scale = Field(100.0, description="100 makes percent of a share")

    @model_validator(mode="after")
    def _one_part(self) -> Self:
        if (self.good is None) == (self.bad is None):
            raise wrong("give exactly one of good and bad, beside total")
        return self


class RecoveryTime(Strict):
    """When a condition holds again."""

    query: LinePromql = Field(description="PromQL over all phases, evaluated as a range")
    holds: Condition = Field(description="the condition, such as '<= 1'")
    windows: Annotated[int, Field(ge=1, le=1000)] = 3
    step: Seconds = 1.0


class RecoverySpec(Strict):
    """Seconds from the end of the fault until a condition holds again."""

    recovery: RecoveryTime


def _form(data: Any) -> str | None:
    """Which of the four forms a `metricSource.spec` is meant to have, by the key that only this form has."""
    if not isinstance(data, dict):
        return "query-form"  # whose model then says that it must be a mapping
    forms = {"query": "query-form", "histogram": "histogram-form", "recovery": "recovery-form", "total": "counts-form"}
    return next((form for key, form in forms.items() if key in data), None)


FORMS = ("query-form", "histogram-form", "recovery-form", "counts-form", *ALERT_FORMS)
"""Tags that pydantic puts into the location of an error; they are no part of the document."""

ThresholdSpec = Annotated[
    Annotated[QuerySpec, Tag("query-form")]
    | Annotated[HistogramSpec, Tag("histogram-form")]
    | Annotated[RecoverySpec, Tag("recovery-form")]
    | Annotated[CountsSpec, Tag("counts-form")],
    Discriminator(
        _form,
        custom_error_type="spec",
        custom_error_message="give one of: query; histogram and quantile; good or bad, and total; recovery",
    ),
]


class Source(Strict):
    """What every metricSource has. Prometheus is meant where nothing is said."""

    metric_source_ref: str | None = None
    type: Annotated[Literal["Prometheus"], spelt("Prometheus")] | None = None


class ThresholdSource(Source):
    """Where a thresholdMetric is read."""

    spec: ThresholdSpec = Field(description="the query, in one of the forms of slo_specs/README.md")


class QuerySource(Source):
    """Where one part of a ratioMetric is read."""

    spec: PlainQuerySpec = Field(description="the query: PromQL")


class ThresholdMetric(Strict):
    """One number, held against op and value."""

    metric_source: ThresholdSource = Field(description="type and spec of the query")


class RatioPart(Strict):
    """One of good, bad, total and raw."""

    metric_source: QuerySource = Field(description="type and spec of the query")


class RatioMetric(Strict):
    """A share, held against target: good or bad events of all, or a ready-made ratio."""

    counter: bool | None = None
    good: RatioPart | None = None
    bad: RatioPart | None = None
    total: RatioPart | None = None
    raw_type: Annotated[Literal["success", "failure"], spelt("success", "failure")] | None = None
    raw: RatioPart | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        counted = [name for name in ("good", "bad", "total") if getattr(self, name) is not None]
        if self.raw is not None or self.raw_type is not None:
            if self.raw is None or self.raw_type is None:
                raise wrong("raw and rawType (success or failure) go together")
            if counted:
                raise wrong(
                    "raw is a ready-made ratio; it cannot be given together with good, bad or total", counted[0]
                )
            return self
        if self.total is None or (self.good is None) == (self.bad is None):
            raise wrong("give total and exactly one of good and bad, or raw and rawType")
        if self.counter is None:
            raise wrong("is missing: true if the queries select ever-growing counters, else false", "counter")
        return self


class SliSpec(Strict):
    """What is measured."""

    description: Description = ""
    threshold_metric: ThresholdMetric | None = None
    ratio_metric: RatioMetric | None = None

    @model_validator(mode="after")
    def _one_metric(self) -> Self:
        if (self.threshold_metric is None) == (self.ratio_metric is None):
            raise wrong("give exactly one of thresholdMetric and ratioMetric")
        return self


class Indicator(Strict):
    """An SLI written inside its SLO."""

    metadata: Metadata = Field(description="at least its name")
    spec: SliSpec = Field(description="thresholdMetric or ratioMetric")


class SloObjective(Strict):
    """One threshold of an SLO. Which keys go with its indicator and budgetingMethod is checked in `thresholds.py`."""

    display_name: str | None = None
    op: Operator | None = None
    value: Number | None = None
    target: Annotated[Number, Field(gt=0, lt=1)] | None = None
    target_percent: Annotated[Number, Field(gt=0, lt=100)] | None = None
    time_slice_target: Annotated[Number, Field(gt=0, le=1)] | None = None
    time_slice_window: SliceWindow | None = None
    indicator: Indicator | None = None
    indicator_ref: str | None = None
    composite_weight: Annotated[Number, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.target is not None and self.target_percent is not None:
            raise wrong("contradicts target; give one of target and targetPercent", "targetPercent")
        if self.indicator is not None and self.indicator_ref is not None:
            raise wrong("contradicts indicator; give one of indicator and indicatorRef", "indicatorRef")
        return self

    @property
    def has_indicator(self) -> bool:
        """Whether it has one of its own, as in a composite SLO."""
        return self.indicator is not None or self.indicator_ref is not None

    @property
    def percent(self) -> Decimal | None:
        """The target in percent, exactly as it was written: 1 - 0.99 is 0.01 here."""
        if self.target_percent is not None:
            return Decimal(repr(self.target_percent))
        return None if self.target is None else Decimal(repr(self.target)) * 100


class Calendar(Strict):
    """Start of a calendar-aligned time window."""

    start_time: StartTime = Field(description="YYYY-MM-DD HH:MM:SS")
    time_zone: TimeZone = Field(description="IANA name, such as Europe/Berlin")


class TimeWindow(Strict):
    """The window of the error budget. Read and checked, and not used: a run judges its phases."""

    duration: Duration = Field(description="a positive number and one of m h d w M Q Y, such as 4w")
    is_rolling: bool | None = None
    calendar: Calendar | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if bool(self.is_rolling) == (self.calendar is not None):
            raise wrong("give either isRolling: true or calendar")
        return self


class SloSpec(Strict):
    """An SLO: an indicator and the thresholds it is held against, or thresholds with an indicator each."""

    description: Description = ""
    service: str = ""
    indicator: Indicator | None = None
    indicator_ref: str | None = None
    time_window: Annotated[list[TimeWindow], Field(min_length=1, max_length=1)] | None = None
    budgeting_method: BudgetingMethod = Field(description="Occurrences, Timeslices or RatioTimeslices")
    objectives: Annotated[list[SloObjective], Field(min_length=1)] = Field(description="a list of thresholds")
    alert_policies: list[SloAlertPolicy] | None = None

    @model_validator(mode="after")
    def _one_indicator(self) -> Self:
        if self.is_composite:
            for key, given in (("indicator", self.indicator), ("indicatorRef", self.indicator_ref)):
                if given is not None:
                    raise wrong(
                        "contradicts the indicators of the objectives; give one to the SLO, or one to each objective",
                        key,
                    )
        elif (self.indicator is None) == (self.indicator_ref is None):
            raise wrong("give exactly one of indicator and indicatorRef, or one of them to each objective")
        return self

    @property
    def is_composite(self) -> bool:
        """Whether its objectives have indicators of their own."""
        return any(objective.has_indicator for objective in self.objectives)


class DataSourceSpec(Strict):
    """What kind of source a `metricSourceRef` means. Where it is, the run's prometheus_url says."""

    description: Description = ""
    type: Annotated[Literal["Prometheus"], spelt("Prometheus")] = Field(description="Prometheus")
    connection_details: Any = None


class ServiceSpec(Strict):
    """Who is served."""

    description: Description = ""


class Slo(Object):
    """kind: SLO"""

    spec: SloSpec = Field(description="indicator, objectives and budgetingMethod")


class Sli(Object):
    """kind: SLI"""

    spec: SliSpec = Field(description="thresholdMetric or ratioMetric")


class DataSource(Object):
    """kind: DataSource"""

    spec: DataSourceSpec = Field(description="type")


class Service(Object):
    """kind: Service"""

    spec: ServiceSpec | None = None
