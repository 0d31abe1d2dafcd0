"""How often series are really scraped, and whether a run's phases and queries fit that. Pure: numbers in, words out."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from aftershock.slo.objective import Objective, RecoveryIndicator, SliceIndicator, templates
from aftershock.slo.promql import ranges_s

TOLERANCE = 0.1
"""Share by which an interval may differ from the one that was given: a busy Prometheus scrapes a little late."""

PHASE_SCRAPES = 5
"""The fewest in a phase: with less, what a missed scrape costs is as large as what is measured."""

RATE_SCRAPES = 2
"""The fewest in the range of a rate: with one there is no rate."""

_FEWEST_GAPS = 3


def interval_s(series: Iterable[Sequence[float]]) -> float | None:
    """Seconds between scrapes, from the times of raw samples: the usual gap of the slowest series. None: too few."""
    usual = []
    for times in series:
        gaps = [later - earlier for earlier, later in pairwise(sorted(times))]
        if len(gaps) >= _FEWEST_GAPS:
            usual.append(statistics.median(gaps))  # a scrape that was missed makes one gap longer, and no other
    return max(usual, default=None)


def shown(seconds: float) -> str:
    """`0.25 s`, as people give it."""
    return f"{seconds:.3g} s"


def is_slower(real_s: float, given_s: float) -> bool:
    """Whether scrapes come more seldom than the run was told."""
    return real_s > given_s * (1 + TOLERANCE)


def is_faster(real_s: float, given_s: float) -> bool:
    """Whether scrapes come more often than the run was told."""
    return real_s < given_s * (1 - TOLERANCE)


def short_phases(real_s: float, phases: Mapping[str, float]) -> list[str]:
    """A complaint for each phase (name -> seconds) that has too few scrapes."""
    least_s = PHASE_SCRAPES * real_s
    return [
        f"{name}_s={seconds:g} has {seconds / real_s:.1f} scrapes, at least {PHASE_SCRAPES} are needed: "
        f"give --{name}-s {least_s:.4g}"
        for name, seconds in phases.items()
        if seconds < least_s * (1 - TOLERANCE)
    ]


def short_ranges(real_s: float, objective: Objective) -> list[str]:
    """A complaint for each range that is written out in the objective's queries and too short for a rate."""
    found = {seconds for template in templates(objective.indicator).values() for seconds in ranges_s(template)}
    return [
        f"{objective.name}: the range [{seconds:g}s] has {seconds / real_s:.1f} scrapes, a rate needs {RATE_SCRAPES}: "
        f"make it at least {RATE_SCRAPES * real_s:.4g} s"
        for seconds in sorted(found)
        if 0 < seconds < RATE_SCRAPES * real_s * (1 - TOLERANCE)
    ]


def short_slices(real_s: float, objective: Objective) -> list[str]:
    """A complaint where a time slice of the objective has too few scrapes to see anything grow in it."""
    indicator = objective.indicator
    if not isinstance(indicator, SliceIndicator) or indicator.slice_s >= RATE_SCRAPES * real_s * (1 - TOLERANCE):
        return []
    return [
        f"{objective.name}: a time slice of {indicator.slice_s:g} s has {indicator.slice_s / real_s:.1f} scrapes, it "
        f"needs {RATE_SCRAPES}: make it at least {RATE_SCRAPES * real_s:.4g} s"
    ]


def short_recovery(real_s: float, lookback_s: float, objective: Objective) -> list[str]:
    """A complaint where the sliding window of a recovery (`lookback_s`) has too few scrapes for a rate."""
    if not isinstance(objective.indicator, RecoveryIndicator) or lookback_s >= RATE_SCRAPES * real_s * (1 - TOLERANCE):
        return []
    return [
        f"{objective.name}: it looks back {lookback_s:g} s, {lookback_s / real_s:.1f} scrapes, where a rate needs "
        f"{RATE_SCRAPES}: give --scrape-interval-s {real_s:.3g}"
    ]
