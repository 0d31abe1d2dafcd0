"""The metrics of an OpenSLO document -> indicators and what they are held against. No I/O."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from aftershock.slo import schema
from aftershock.slo.fields import SELECTOR
from aftershock.slo.objective import (
    OPS,
    Indicator,
    Op,
    QuantileIndicator,
    RatioIndicator,
    RecoveryIndicator,
    ScalarIndicator,
)
from aftershock.slo.yamltext import Place


@dataclass(frozen=True)
class Held:
    """An indicator, and the comparison that it is held to."""

    indicator: Indicator
    op: Op
    value: float
    unit: str


def read_threshold(metric: schema.ThresholdMetric, op: Op, value: float) -> Held:
    """A thresholdMetric, held against op and value.

    `target` decides nothing here: it is the share of good values, and a phase has one value, which is good or not.
    """
    spec = metric.metric_source.spec
    match spec:
        case schema.QuerySpec():
            return Held(ScalarIndicator(spec.query, spec.samples), op, value, "")
        case schema.HistogramSpec():
            return Held(QuantileIndicator(spec.histogram, spec.quantile, spec.scale), op, value, "")
        case schema.CountsSpec():
            indicator = RatioIndicator(total=spec.total, good=spec.good, bad=spec.bad, scale=spec.scale)
            return Held(indicator, op, value, "%" if spec.scale == 100 else "")
        case schema.RecoverySpec():
            symbol, bound = spec.recovery.holds.split()
            recovery = RecoveryIndicator(
                spec.recovery.query, OPS[symbol], float(bound), spec.recovery.windows, spec.recovery.step
            )
            return Held(recovery, op, value, "s")


def read_ratio(metric: schema.RatioMetric, target: Decimal, place: Place) -> Held:
    """The ratioMetric at `place`, held against its target in percent.

    `bad` is shown as the share of bad events, which is what people call an error rate: a target of 99 % good is
    `<= 1 %` bad, the same condition.
    """
    good, budget = float(target), float(100 - target)
    if metric.raw is not None:
        indicator = ScalarIndicator(f"100 * ({metric.raw.metric_source.spec.query})")
        failures = metric.raw_type == "failure"
        return Held(indicator, Op.LTE, budget, "%") if failures else Held(indicator, Op.GTE, good, "%")
    counts = {
        name: _count(part.metric_source.spec.query, bool(metric.counter), place.below(name, "metricSource", "spec"))
        for name, part in (("good", metric.good), ("bad", metric.bad), ("total", metric.total))
        if part is not None
    }
    shares = RatioIndicator(total=counts["total"], good=counts.get("good"), bad=counts.get("bad"))
    return Held(shares, Op.LTE, budget, "%") if metric.bad else Held(shares, Op.GTE, good, "%")


def _count(query: str, counter: bool, place: Place) -> str:
    """PromQL of a count over the window.

    `counter: true` with a plain selector, as OpenSLO writes it, means the counter's increase over the window, summed
    over its series. Any other query must say by itself what it counts.
    """
    if counter and SELECTOR.fullmatch(query):
        return f"sum(increase({query}[{{{{ window }}}}]))"
    if counter and "{{" not in query:
        raise place.below("query").error(
            "counts since the server started; with counter: true give a plain selector (its increase is taken), "
            "or PromQL that takes its own increase over [{{ window }}]"
        )
    return query
