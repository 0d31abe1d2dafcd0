"""Time slices of a phase: where they lie, whether each is good, and what that says of the phase. No I/O.

OpenSLO's Timeslices is the share of good slices, RatioTimeslices the mean of the slices' shares. A slice is one
observation, so the sample size is their number, and few are soon too few: with 35 good slices of 35 it is just proven
that 90 % are good. Both intervals are Wilson's. Of a mean of shares that is the widest there can be: nothing between 0
and 1 varies more than what is always one of the two.

A slice in which nothing was counted is neither good nor bad, and left out.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from aftershock.slo.frame import Role
from aftershock.slo.objective import Objective, Op, ScalarIndicator, SliceIndicator
from aftershock.slo.samples import Answers, Sample, UnmeasuredError
from aftershock.slo.statistics import Z, wilson
from aftershock.slo.values import measure, rounded, unmeasured
from aftershock.slo.verdict import PhaseValue, Status
from aftershock.windows import Phase, Window

IDLE = (Status.NO_OBSERVATIONS, Status.EMPTY, Status.NAN)
"""A slice without traffic."""


def slice_edges(window: Window, slice_s: float) -> tuple[datetime, ...]:
    """Where the slices of a phase begin and end: one instant more than there are slices.

    The last goes on until the phase has settled, so that answers which came late count in it, and takes what is left
    over. A phase shorter than a slice is one slice. Whole milliseconds, as Prometheus has them.
    """
    start = window.start.replace(microsecond=window.start.microsecond // 1000 * 1000)
    count = slices_in(window.seconds, slice_s)
    return (*(start + timedelta(seconds=index * slice_s) for index in range(count)), window.settled_at)


def slices_in(seconds: float, slice_s: float) -> int:
    """How many slices a phase of so many seconds has."""
    return max(1, math.floor(seconds / slice_s + 1e-9))


def slices_needed(objective: Objective) -> int:
    """The fewest slices, all of them good, that prove the objective; 0 where no number does."""
    worst = objective.value / 100 if objective.upper else 1 - objective.value / 100
    return math.ceil(Z * Z * (1 - worst) / worst - 1e-9) if 0 < worst < 1 else 0


def too_few_slices(objectives: Sequence[Objective], seconds: Mapping[Phase, float]) -> list[str]:
    """A sentence for each objective that phases of so many seconds cannot prove."""
    found = []
    for objective in objectives:
        if not isinstance(objective.indicator, SliceIndicator):
            continue
        slice_s, needed = objective.indicator.slice_s, max(slices_needed(objective), objective.min_samples)
        for phase in objective.phases:
            there = slices_in(seconds[phase], slice_s)
            if there < needed:
                found.append(
                    f"{objective.name}: {objective.target} takes {needed} time slices of {slice_s:g} s to prove, and "
                    f"{phase}_s={seconds[phase]:g} has {there}: give --{phase}-s {needed * slice_s:g}, or shorter "
                    "slices"
                )
    return found


@dataclass(frozen=True)
class _Slice(Answers):
    """The samples of one slice, as if it were a phase."""

    found: Mapping[Role, list[Sample]]

    def series(self, role: Role, phase: Phase | None) -> list[Sample]:
        if role not in self.found:
            raise UnmeasuredError(Status.EMPTY, f"no {role} in this slice")
        return self.found[role]


def measure_slices(objective: Objective, indicator: SliceIndicator, phase: Phase, answers: Answers) -> PhaseValue:
    """The share of good slices, or the mean of the slices' shares, in percent."""
    try:
        slices = _slices(answers, phase)
        graded = [_grade(objective, indicator, phase, each) for each in slices]
    except UnmeasuredError as reason:
        return unmeasured(reason)
    known = [grade for grade in graded if grade is not None]
    if not known:
        return PhaseValue(status=Status.NO_OBSERVATIONS, detail=f"nothing was counted in any of {len(graded)} slices")
    n, total = len(known), math.fsum(known)
    low, high = wilson(min(total, n), n)
    what = f"{total:.0f} of {n} slices good" if indicator.condition else f"mean of {n} slices"
    idle = f"; {len(graded) - n} without traffic" if len(graded) > n else ""
    return PhaseValue(rounded(100 * total / n), rounded(100 * low), rounded(100 * high), n, detail=what + idle)


def _slices(answers: Answers, phase: Phase) -> list[_Slice]:
    """The samples by the end of their slices, in order. Raises UnmeasuredError where they were not asked for."""
    ends: dict[int, dict[Role, list[Sample]]] = defaultdict(lambda: defaultdict(list))
    for role in answers.templates:
        for sample in answers.series(role, phase):
            if sample.at is not None:
                ends[round(sample.at.timestamp() * 1000)][role].append(sample)
    return [_Slice(answers.samples, answers.name, answers.templates, dict(ends[end])) for end in sorted(ends)]


def _grade(objective: Objective, indicator: SliceIndicator, phase: Phase, answers: _Slice) -> float | None:
    """How good a slice was, 0 to 1; for a mean, its share. None if it was idle.

    Raises UnmeasuredError for what says nothing of the service: a refused query, no answer.
    """
    each = indicator.each
    if isinstance(each, ScalarIndicator):
        each = replace(each, samples=None)  # the observations are the slices
    value = measure(replace(objective, indicator=each), phase, answers)
    if value.status in IDLE:
        return None
    condition = indicator.condition
    if condition is not None and value.status is Status.INFINITE:
        return 0.0
    if value.value is None:
        raise UnmeasuredError(value.status, value.detail)
    if condition is None:
        return min(1.0, max(0.0, value.value / 100))
    unbounded = value.status is Status.AT_LEAST and condition.op in (Op.LTE, Op.LT)
    return float(condition.op.holds(value.value, condition.value) and not unbounded)
