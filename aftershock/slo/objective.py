"""An objective: one row of the compliance table, as the judge and the collector see it. Value types; no I/O.

PromQL in here is still a template: `{{ phase }}` and `{{ window }}` are filled in for each phase when it is asked, and
`{{ lookback }}` of a recovery query once.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from aftershock.slo.frame import Role
from aftershock.slo.promql import bucket_selector
from aftershock.windows import Phase


class Op(StrEnum):
    """Comparison of a value with the objective's, as OpenSLO spells it."""

    LTE = "lte"
    GTE = "gte"
    LT = "lt"
    GT = "gt"

    @property
    def symbol(self) -> str:
        """As a reader expects it: `<=` and so on."""
        return {"lte": "<=", "gte": ">=", "lt": "<", "gt": ">"}[self.value]

    def holds(self, value: float, bound: float) -> bool:
        """Whether `value <op> bound`; False for NaN."""
        match self:
            case Op.LTE:
                return value <= bound
            case Op.GTE:
                return value >= bound
            case Op.LT:
                return value < bound
            case Op.GT:
                return value > bound


OPS = {op.symbol: op for op in Op}
"""By the symbol that a reader expects."""


@dataclass(frozen=True)
class ScalarIndicator:
    """A PromQL expression with exactly one sample as its answer, taken as it is.

    Without `samples` (PromQL of the number of observations behind it) no interval and no sample size is known, and
    the verdict rests on the point.
    """

    query: str
    samples: str | None = None


@dataclass(frozen=True)
class QuantileIndicator:
    """A quantile of a classic Prometheus histogram, from the increase of its buckets over the window.

    `histogram` is the series without `_bucket`, with its selector: `name{label="value"}`. `scale` converts to the unit
    shown (1000: seconds to milliseconds).
    """

    histogram: str
    quantile: float
    scale: float = 1.0


@dataclass(frozen=True)
class RatioIndicator:
    """A share, from counts over the window. Exactly one of `good` and `bad` is given, as PromQL, and `total`.

    The value is good/total, or bad/total, times `scale` (100: percent).
    """

    total: str
    good: str | None = None
    bad: str | None = None
    scale: float = 100.0


@dataclass(frozen=True)
class RecoveryIndicator:
    """Seconds from the end of the fault until `query` holds again for `windows` steps in a row: see `recovery.py`.

    `query` is PromQL over all phases, evaluated each `step_s`.
    """

    query: str
    op: Op
    bound: float
    windows: int = 3
    step_s: float = 1.0


@dataclass(frozen=True)
class SliceCondition:
    """What a time slice must meet to be a good one."""

    op: Op
    value: float


@dataclass(frozen=True)
class SliceIndicator:
    """An indicator of each time slice of a phase by itself: see `slices.py`.

    With a condition: the share of slices that meet it (OpenSLO: Timeslices), in percent. Without one: the mean of the
    slices' values (RatioTimeslices), which are shares in percent.
    """

    each: ScalarIndicator | QuantileIndicator | RatioIndicator
    slice_s: float
    condition: SliceCondition | None = None


@dataclass(frozen=True)
class Part:
    """An objective of a composite, and how much it weighs."""

    objective: Objective
    weight: float = 1.0


@dataclass(frozen=True)
class CompositeIndicator:
    """The weighted mean of the error budgets that several objectives have spent: see `composite.py`."""

    parts: tuple[Part, ...]


Indicator = (
    ScalarIndicator | QuantileIndicator | RatioIndicator | RecoveryIndicator | SliceIndicator | CompositeIndicator
)


def templates(indicator: Indicator) -> dict[Role, str]:
    """What an indicator asks of Prometheus. The same template under the same role has the same answers."""
    asked: dict[Role, str | None]
    match indicator:
        case ScalarIndicator():
            asked = {Role.VALUE: indicator.query, Role.SAMPLES: indicator.samples}
        case RatioIndicator():
            asked = {Role.GOOD: indicator.good, Role.BAD: indicator.bad, Role.TOTAL: indicator.total}
        case QuantileIndicator():
            asked = {Role.BUCKET: bucket_selector(indicator.histogram)}
        case RecoveryIndicator():
            # The steps are part of the question; PromQL has comments, so this is still PromQL.
            asked = {Role.RECOVERY: f"{indicator.query}  # each {indicator.step_s:g} s"}
        case SliceIndicator():
            each = templates(indicator.each)
            each.pop(Role.SAMPLES, None)  # the observations are the slices
            asked = {role: f"{template}  # in slices of {indicator.slice_s:g} s" for role, template in each.items()}
        case CompositeIndicator():
            asked = {}  # its objectives ask
    return {role: template for role, template in asked.items() if template is not None}


def target_text(op: Op, value: float, unit: str) -> str:
    """`<= 800 ms`"""
    return f"{op.symbol} {value:g}{f' {unit}' if unit else ''}"


class Compare(StrEnum):
    """What of a phase is held against the objective."""

    VALUE = "value"
    DROP = "drop"
    """Baseline minus phase, in the indicator's unit: what was lost."""
    INCREASE = "increase"
    """Phase minus baseline, in the indicator's unit."""
    RELATIVE = "relative"
    """Phase minus baseline, in percent of the baseline."""


@dataclass(frozen=True)
class StopCondition:
    """How much worse than the objective it may become under a fault, and for how long, before the fault is stopped."""

    bound: float
    """In the objective's unit; worse than its value."""
    for_s: float = 5.0
    """Seconds that a breach of `bound` has to last."""


@dataclass(frozen=True)
class Objective:
    """One row: `indicator <op> value`, in the phases named."""

    name: str
    display: str
    unit: str
    op: Op
    value: float
    indicator: Indicator
    phases: tuple[Phase, ...] = (Phase.CHAOS,)
    compare: Compare = Compare.VALUE
    severity: str = "critical"
    min_samples: int = 0
    source: str = ""
    """Where it was read: `file:line`."""
    stop: StopCondition | None = None
    """When the fault is to be stopped on account of it; None: never."""
    failures_slow: bool = False
    """A quantile in which failed requests count as slower than the objective. The judge makes such rows itself."""

    @property
    def target(self) -> str:
        """`<= 800 ms`, for tables."""
        return target_text(self.op, self.value, self.unit)

    @property
    def upper(self) -> bool:
        """Whether larger values are worse."""
        return self.op in (Op.LTE, Op.LT)
