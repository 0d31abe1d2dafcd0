"""How long the service took to come back. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from aftershock.slo.objective import Objective, RecoveryIndicator
from aftershock.slo.samples import Samples, UnmeasuredError
from aftershock.slo.values import unmeasured
from aftershock.slo.verdict import PhaseValue, Status
from aftershock.windows import Phase, Window


@dataclass(frozen=True)
class Step:
    """One evaluated step that had an answer."""

    at: datetime
    holds: bool


def measure_recovery(
    objective: Objective, samples: Samples, windows: Sequence[Window], *, control: bool
) -> tuple[PhaseValue, bool]:
    """Seconds from the end of the fault until the condition holds again, and whether it held before the fault.

    A control run has no fault to come back from; there the seconds are counted from the end of its chaos phase.
    """
    indicator = objective.indicator
    if not isinstance(indicator, RecoveryIndicator):
        raise TypeError(f"{objective.name}: no recovery indicator")
    found = {window.phase: window for window in windows}
    try:
        steps = _steps(objective.name, indicator, samples)
        since = _end_of_fault(found, control=control)
    except UnmeasuredError as reason:
        return unmeasured(reason), True
    baseline = found.get(Phase.BASELINE)
    before = [step for step in steps if baseline and baseline.start <= step.at <= baseline.end]
    steady = len(before) < indicator.windows or _first_run(before, indicator.windows) is not None
    until = found[max(found, key=list(Phase).index)].end
    after = [step for step in steps if since <= step.at <= until]
    return _time_to_hold(after, since, indicator), steady


def _steps(name: str, indicator: RecoveryIndicator, samples: Samples) -> list[Step]:
    """Steps in order. Those without an answer, or with NaN (no traffic), neither hold nor break; infinity breaks."""
    series = samples.series(name, "recovery", None)
    if len({sample.labels for sample in series}) > 1:
        raise UnmeasuredError(Status.INCONSISTENT, "recovery: several series where one is needed; aggregate the query")
    steps: list[Step] = []
    silent: UnmeasuredError | None = None
    for sample in series:
        try:
            holds = indicator.op.holds(sample.number(), indicator.bound)
        except UnmeasuredError as reason:
            if reason.status not in (Status.NAN, Status.EMPTY, Status.INFINITE):
                raise
            silent = silent or reason
            if reason.status is not Status.INFINITE:
                continue
            holds = False
        if sample.at is not None:
            steps.append(Step(sample.at, holds))
    if not steps and silent is not None:
        raise silent
    return sorted(steps, key=lambda step: step.at)


def _end_of_fault(windows: dict[Phase, Window], *, control: bool) -> datetime:
    chaos = windows.get(Phase.CHAOS)
    if chaos is None:
        raise UnmeasuredError(Status.MISSING, "there was no chaos phase")
    if control:
        return chaos.end
    if chaos.reverted_at is None:
        raise UnmeasuredError(Status.NOT_REVERTED, "the end of the fault was not seen")
    return chaos.reverted_at


def _time_to_hold(after: Sequence[Step], since: datetime, indicator: RecoveryIndicator) -> PhaseValue:
    """The time to the first of `windows` steps in a row that hold.

    The true instant lies between the step before, which did not hold, and that first one.
    """
    if not after:
        return PhaseValue(status=Status.NO_OBSERVATIONS, detail="no step after the fault had an answer")
    first = _first_run(after, indicator.windows)
    if first is None:
        watched = _seconds(since, after[-1])
        detail = f"not back in {watched:.1f} s of watching"
        return PhaseValue(watched, watched, None, len(after), Status.AT_LEAST, detail)
    back = _seconds(since, after[first])
    broken = _seconds(since, after[first - 1]) if first else 0.0
    return PhaseValue(back, broken, back, len(after))


def _seconds(since: datetime, step: Step) -> float:
    return (step.at - since).total_seconds()


def _first_run(steps: Sequence[Step], length: int) -> int | None:
    """Index of the first of `length` steps in a row that hold."""
    run = 0
    for index, step in enumerate(steps):
        run = run + 1 if step.holds else 0
        if run == length:
            return index - length + 1
    return None
