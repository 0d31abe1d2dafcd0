"""Verdicts in words: one plain sentence a row, with value, interval, n and target, to be quoted. No I/O."""

from __future__ import annotations

from aftershock.slo.objective import Objective, QuantileIndicator, RecoveryIndicator, SliceIndicator
from aftershock.slo.slices import slices_needed
from aftershock.slo.statistics import samples_needed
from aftershock.slo.verdict import PhaseValue, Reason, Status, number
from aftershock.windows import Phase

_CLAUSES = {
    Reason.COMPLIES: "; the whole interval complies with {target}",
    Reason.POINT_COMPLIES: ", which complies with {target}; the verdict rests on the point alone",
    Reason.BREACHES: "; the whole interval breaches {target}",
    Reason.POINT_BREACHES: ", which breaches {target}; the verdict rests on the point alone",
    Reason.NOT_RECOVERED: ", which breaches {target}",
    Reason.STRADDLES: "; {target} lies inside the interval, so neither side is proven",
    Reason.TOO_FEW_SAMPLES: "; that is too few samples to judge {target}{needed}",
    Reason.SATURATED: "; the histogram has no bucket that could show compliance with {target}",
    Reason.CENSORED: ", which is too short to judge {target}; lengthen the recovery phase",
    Reason.BASELINE_NOT_STEADY: "; {target} was not met before the fault either{because}, so this is not attributable "
    "to the fault",
    Reason.LOAD_FELL_BEHIND: ", but the load generator fell behind{because}, so {target} was not put to the test",
    Reason.LAST_SCRAPE_MISSED: ", but Prometheus missed the last values{because}, so {target} cannot be judged",
    Reason.COUNTS_DISAGREE: ", but the counts disagree{because}, so {target} cannot be judged",
    Reason.NO_EFFECT: ", which complies with {target}, but the fault was not seen to act on anything",
    Reason.STOPPED: ", which complies with {target}, but the fault was stopped before its time",
    Reason.EMPTY: "the query has no result",
    Reason.NAN: "the answer is not a number",
    Reason.INFINITE: "the answer is infinite",
    Reason.NO_OBSERVATIONS: "nothing was observed",
    Reason.UNREACHABLE: "Prometheus did not answer",
    Reason.MISSING: "it was not measured",
    Reason.NOT_REVERTED: "there is no instant to count from",
    Reason.QUERY_ERROR: "Prometheus refused the query",
    Reason.INCONSISTENT: "the answers contradict each other",
    Reason.FAULT_ERROR: "; the fault is not known to have been injected and reverted, so {target} was not put to the "
    "test",
}
"""What follows the measured value, or, for rows without one, the display name."""


def explain(
    objective: Objective, phase: Phase, value: PhaseValue, reason: Reason, *, because: str = "", counted: str = ""
) -> str:
    """Why the row has its verdict.

    `because` is what is known of the cause of an INCONCLUSIVE by circumstances, `counted` what n is a number of.
    """
    clause = _CLAUSES[reason].format(
        target=objective.target, needed=_needed(objective, value), because=f" ({because})" if because else ""
    )
    if value.status.known:
        return f"{_measured(objective, phase, value, counted)}{clause}."
    detail = f" ({value.detail})" if value.detail else ""
    return f"{objective.display}, {phase.value} phase: {clause}{detail}; {objective.target} cannot be judged."


def _measured(objective: Objective, phase: Phase, value: PhaseValue, counted: str) -> str:
    """`P99 latency was 940 ms in the chaos phase (95 % interval 905 to 988, n = 1800)`"""
    unit = f" {objective.unit}" if objective.unit else ""
    amount = f"{number(value.value or 0.0)}{unit}"
    if isinstance(objective.indicator, RecoveryIndicator):
        if value.status is Status.AT_LEAST:
            return f"{objective.display}: last broken {amount} after the end of the fault, not back when watching ended"
        relapse = f"; {value.detail}" if value.detail else ""
        return f"{objective.display} was {amount} from the end of the fault ({_between(value)}{relapse})"
    if value.status is Status.AT_LEAST:
        amount = f"above {amount}"
    interval = f"95 % interval {_between(value)}" if value.has_interval else "no interval known"
    n = "n unknown" if value.n is None else f"n = {value.n}{counted}"
    if value.effective_n is not None:
        n += f", effective n = {value.effective_n}"
    return f"{objective.display} was {amount} in the {phase.value} phase ({interval}, {n})"


def _between(value: PhaseValue) -> str:
    if value.low is None:
        return f"up to {number(value.high or 0.0)}"
    if value.high is None:
        return f"{number(value.low)} or more"
    return f"{number(value.low)} to {number(value.high)}"


def _needed(objective: Objective, value: PhaseValue) -> str:
    """How many it takes, where that is known."""
    needed = objective.min_samples
    if isinstance(objective.indicator, QuantileIndicator):
        needed = max(needed, samples_needed(objective.indicator.quantile))
    elif isinstance(objective.indicator, SliceIndicator):
        needed = max(needed, slices_needed(objective))
    independent = "" if value.effective_n is None else " independent ones"
    return f"; it takes {needed}{independent}" if needed else ""
