"""How long the service took to come back. No I/O.

A step of the recovery query looks back over some seconds, so it speaks of all of them and not of its instant:

- A step whose look-back reaches before the end of the fault may break (what it saw may be the fault's, and the service
  was not yet back) but not hold.
- The service was broken at some time within the look-back of the last step that broke, so the recovery lies between
  the start of that look-back and the first step that holds.
- A step without an answer (no traffic) neither holds nor breaks; nor does one that looks at the stale samples of a
  phase whose load has ended longer ago than it looks back.

Recovered is the first of as many steps in a row that hold as the objective wants. A step that breaks later is told, not
counted: over a long watch a tail percentile of a healthy service crosses its bound now and then.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from aftershock.slo.frame import Role
from aftershock.slo.objective import Objective, RecoveryIndicator
from aftershock.slo.samples import Answers, UnmeasuredError
from aftershock.slo.values import unmeasured
from aftershock.slo.verdict import PhaseValue, Status
from aftershock.windows import Phase, Window


@dataclass(frozen=True)
class Step:
    """One evaluated step that had an answer, and how far it looks back."""

    at: datetime
    holds: bool
    lookback: timedelta


def measure_recovery(
    objective: Objective, answers: Answers, windows: Sequence[Window], *, control: bool
) -> tuple[PhaseValue, bool]:
    """Seconds from the end of the fault until the condition holds again, and whether it held before the fault.

    A control run has no fault to come back from; there the seconds are counted from the end of its chaos phase.
    """
    indicator = objective.indicator
    if not isinstance(indicator, RecoveryIndicator):
        raise TypeError(f"{objective.name}: no recovery indicator")
    found = {window.phase: window for window in windows}
    try:
        steps = [step for step in _steps(indicator, answers) if _under_load(step, windows)]
        since = _end_of_fault(found, control=control)
    except UnmeasuredError as reason:
        return unmeasured(reason), True
    baseline = found.get(Phase.BASELINE)
    before = [step for step in steps if baseline and baseline.start <= step.at <= baseline.end]
    until = found[max(found, key=list(Phase).index)].end
    after = [
        step for step in steps if since <= step.at <= until and (not step.holds or since <= step.at - step.lookback)
    ]
    return _time_to_hold(after, since, indicator), _steady(before, indicator.windows)


def _steps(indicator: RecoveryIndicator, answers: Answers) -> list[Step]:
    """Steps in order. Those without an answer, or with NaN (no traffic), are left out; infinity breaks."""
    series = answers.series(Role.RECOVERY, None)
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
            steps.append(Step(sample.at, holds, timedelta(seconds=sample.range_s)))
    if not steps and silent is not None:
        raise silent
    return sorted(steps, key=lambda step: step.at)


def _under_load(step: Step, windows: Sequence[Window]) -> bool:
    """Whether the step looks back on the load of a phase."""
    return any(window.start <= step.at <= window.end + step.lookback for window in windows)


def _end_of_fault(windows: Mapping[Phase, Window], *, control: bool) -> datetime:
    chaos = windows.get(Phase.CHAOS)
    if chaos is None:
        raise UnmeasuredError(Status.MISSING, "there was no chaos phase")
    if control:
        return chaos.end
    if chaos.reverted_at is None:
        raise UnmeasuredError(Status.NOT_REVERTED, "the end of the fault was not seen")
    return chaos.reverted_at


def _steady(before: Sequence[Step], wanted: int) -> bool:
    """Whether the condition held before the fault: in most steps, and in the last ones. A few steps tell nothing."""
    if len(before) < wanted:
        return True
    held = [step.holds for step in before]
    return 2 * sum(held) > len(held) and all(held[-wanted:])


def _time_to_hold(after: Sequence[Step], since: datetime, indicator: RecoveryIndicator) -> PhaseValue:
    """The time to the first of enough steps in a row that hold; censored at the last that broke if there are none."""
    if not after:
        return PhaseValue(status=Status.NO_OBSERVATIONS, detail="no step that saw only the time after the fault")
    first = _first_run(after, indicator.windows)
    broken = next((step for step in reversed(after[:first]) if not step.holds), None)
    low = max(0.0, _seconds(since, broken.at - broken.lookback)) if broken else 0.0
    if first is not None:
        back = _seconds(since, after[first].at)
        relapse = next((step for step in after[first:] if not step.holds), None)
        detail = f"broken again at {_seconds(since, relapse.at):.1f} s" if relapse else ""
        return PhaseValue(back, low, back, len(after), detail=detail)
    detail = f"not back in {_seconds(since, after[-1].at):.1f} s of watching"
    return PhaseValue(_seconds(since, broken.at) if broken else 0.0, low, None, len(after), Status.AT_LEAST, detail)


def _first_run(steps: Sequence[Step], wanted: int) -> int | None:
    """Where the first `wanted` steps in a row begin that hold."""
    held = [step.holds for step in steps]
    return next((index for index in range(len(held) - wanted + 1) if all(held[index : index + wanted])), None)


def _seconds(since: datetime, at: datetime) -> float:
    return (at - since).total_seconds()
