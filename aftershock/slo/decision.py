"""Whether a value complies with its objective, by itself. No I/O."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from aftershock.experiment import Experiment
from aftershock.slo.composite import rests_on_points
from aftershock.slo.objective import Objective, Op, QuantileIndicator, RecoveryIndicator, SliceIndicator
from aftershock.slo.slices import slices_needed
from aftershock.slo.statistics import samples_needed
from aftershock.slo.verdict import PhaseValue, Reason, Status, Verdict

Decision = tuple[Verdict, Reason]

POLICIES: tuple[str, ...] = get_args(Experiment.model_fields["policy"].annotation)

FROM_DUE_TIME = ("aftershock_request_duration_seconds", "aftershock_ttft_seconds")
"""Histograms that count from the instant at which a request was due: the load generator's own delay is in them."""


def decide(objective: Objective, value: PhaseValue, policy: str) -> Decision:
    """Whether `value` complies, by itself.

    PASS only if the whole interval complies, FAIL only if the whole interval breaches. Under the policy `point`, and
    for a query whose interval nobody knows, the point decides.
    """
    if not value.status.known or value.value is None:
        reason = value.status.reason
        failed = value.status in (Status.QUERY_ERROR, Status.INCONSISTENT)
        return (Verdict.ERROR if failed else Verdict.NO_DATA), reason
    if (value.n is None and objective.min_samples) or (value.n is not None and value.n < objective.min_samples):
        return Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES
    if value.status is Status.AT_LEAST:
        return _decide_at_least(objective, value, policy)
    if policy == "point" or rests_on_points(objective.indicator):
        if objective.op.holds(value.value, objective.value):
            return Verdict.PASS, Reason.POINT_COMPLIES
        return Verdict.FAIL, Reason.POINT_BREACHES
    return _decide_interval(objective, value)


def _decide_interval(objective: Objective, value: PhaseValue) -> Decision:
    upper = objective.op in (Op.LTE, Op.LT)
    worst, best = (value.high, value.low) if upper else (value.low, value.high)
    if worst is not None and objective.op.holds(worst, objective.value):
        return Verdict.PASS, Reason.COMPLIES
    if best is not None and not objective.op.holds(best, objective.value):
        return Verdict.FAIL, Reason.BREACHES
    indicator = objective.indicator
    if isinstance(indicator, SliceIndicator) and (value.n or 0) < slices_needed(objective):
        return Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES
    if worst is not None and best is not None:
        return Verdict.INCONCLUSIVE, Reason.STRADDLES
    if isinstance(indicator, QuantileIndicator) and value.independent_n >= samples_needed(indicator.quantile):
        return Verdict.INCONCLUSIVE, Reason.STRADDLES if objective.failures_slow else Reason.SATURATED
    return Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES


def _decide_at_least(objective: Objective, value: PhaseValue, policy: str) -> Decision:
    """A lower bound can breach `<=`. It is never taken to comply."""
    recovery = isinstance(objective.indicator, RecoveryIndicator)
    bound = value.value if policy == "point" else value.low
    upper = objective.op in (Op.LTE, Op.LT)
    if upper and bound is not None and not objective.op.holds(bound, objective.value):
        if recovery:
            return Verdict.FAIL, Reason.NOT_RECOVERED
        return Verdict.FAIL, Reason.POINT_BREACHES if policy == "point" else Reason.BREACHES
    if objective.failures_slow:
        return Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES if bound is None else Reason.STRADDLES
    return Verdict.INCONCLUSIVE, Reason.CENSORED if recovery else Reason.SATURATED


def is_explained_by_delay(objective: Objective, value: PhaseValue, policy: str, delay_s: float) -> bool:
    """Whether a breach would be none without `delay_s`, which is the load generator's own.

    Only latencies that count from the due time hold that delay. Both ends of the interval move: what is left must still
    breach by itself.
    """
    indicator = objective.indicator
    if not isinstance(indicator, QuantileIndicator) or value.value is None:
        return False
    if objective.failures_slow and value.status is Status.AT_LEAST:
        return False  # a failed request is over the objective, whatever it waited for
    if indicator.histogram.partition("{")[0].strip() not in FROM_DUE_TIME:
        return False
    delay = delay_s * indicator.scale
    low, high = (None if end is None else end - delay for end in (value.low, value.high))
    without = replace(value, value=value.value - delay, low=low, high=high)
    return decide(objective, without, policy)[0] is not Verdict.FAIL
