"""Whether what Prometheus counted is what the load generator says it sent and graded. No I/O.

A count that the collector makes is exact, so the two must be equal. Where they are not, Prometheus has not seen all of
the phase, and its other numbers of that phase are those of a part as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aftershock.slo.circumstances import LoadHealth
from aftershock.slo.frame import Role
from aftershock.slo.objective import Compare, Objective, QuantileIndicator, RatioIndicator
from aftershock.slo.recorded import Recorded, Seconds, answered
from aftershock.slo.samples import Answers, Samples, UnmeasuredError
from aftershock.slo.values import bucket_around, buckets_of
from aftershock.slo.verdict import number
from aftershock.windows import Phase

if TYPE_CHECKING:
    import pandas as pd

REQUESTS = "aftershock_requests_total"
"""The metric that counts what `sent` of the load says."""
GRADES = "aftershock_eval_total"
"""The metric that counts what the column `correct` of the records says."""


def counts_all(template: str, metric: str) -> bool:
    """Whether `template` counts everything that `metric` has of a phase, and nothing else."""
    plain = f'sum(increase({metric}{{phase="{{{{phase}}}}"}}[{{{{window}}}}]))'
    return "".join(template.split()) == plain


def disagreements(
    objectives: Sequence[Objective],
    samples: Samples,
    load: Mapping[Phase, LoadHealth],
    recorded: Recorded,
) -> dict[Phase, str]:
    """Phases of which Prometheus counted something else than was sent, timed or graded, and both numbers."""
    found: dict[Phase, str] = {}
    records = recorded.records
    for objective in objectives:
        indicator = objective.indicator
        if not isinstance(indicator, RatioIndicator | QuantileIndicator):
            continue
        for phase in Phase:
            problem = ""
            if isinstance(indicator, QuantileIndicator):
                seconds = recorded.seconds(indicator, phase)
                if seconds is not None:
                    problem = _against_times(samples.of(objective), phase, indicator, answered(seconds))
            elif counts_all(indicator.total, REQUESTS) and phase in load:
                problem = _against_sent(samples.of(objective), phase, load[phase].sent)
            elif counts_all(indicator.total, GRADES) and objective.compare is Compare.DROP and records is not None:
                problem = _against_grades(samples.of(objective), phase, records)
            if problem:
                found.setdefault(phase, problem)
    return found


def _against_sent(answers: Answers, phase: Phase, sent: int | None) -> str:
    counted = _counted(answers, Role.TOTAL, phase)
    if counted is None or sent is None or counted == sent:
        return ""
    return f"Prometheus counted {counted} requests, the load generator sent {sent}"


def _against_times(answers: Answers, phase: Phase, indicator: QuantileIndicator, seconds: Seconds) -> str:
    """The histogram must have as many times as the records, and the quantile of both must lie in the same bucket."""
    try:
        buckets = buckets_of(answers.series(Role.BUCKET, phase), 1.0)
    except UnmeasuredError:
        return ""
    counted = round(max(bucket.cumulative for bucket in buckets))
    if counted != len(seconds):
        return f"Prometheus counted the times of {counted} answers, the records have {len(seconds)}"
    around = bucket_around(buckets, indicator.quantile) if counted else None
    if around is None:
        return ""
    low, high = around
    rank = indicator.quantile * counted
    if (seconds <= low).sum() < rank + 1e-6 and (seconds <= high).sum() >= rank - 1e-6:
        return ""
    return (
        f"the {indicator.quantile:g} quantile is between {number(low)} and {number(high)} s in Prometheus and not in "
        "the records"
    )


def _against_grades(answers: Answers, phase: Phase, records: pd.DataFrame) -> str:
    of_phase = records.loc[records["phase"] == phase.value, "correct"]
    total, good = (_counted(answers, role, phase) for role in (Role.TOTAL, Role.GOOD))
    if of_phase.empty or total is None or good is None:
        return ""
    grades = of_phase.dropna().astype(bool)
    if (good, total) == (int(grades.sum()), len(grades)):
        return ""
    return f"Prometheus counted {good} of {total} answers as right, the records {grades.sum()} of {len(grades)}"


def _counted(answers: Answers, role: Role, phase: Phase) -> int | None:
    try:
        return round(answers.single(role, phase))
    except UnmeasuredError:
        return None
