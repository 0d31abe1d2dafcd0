"""Whether answers got longer or shorter under chaos: a service that is cut short may look fast and well. No I/O.

Two samples are compared by how often an answer of one is longer than one of the other: Cliff's delta, with the test of
Mann and Whitney for it. With enough answers any difference is significant, so it must also be worth a word: `SMALL` is
the usual least delta that is (Romano 2006).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from aftershock.slo.recorded import Recorded
from aftershock.slo.resampling import SeriesEstimate, mean_of_series
from aftershock.slo.verdict import number
from aftershock.windows import Phase

SMALL = 0.147
SIGNIFICANT = 0.01
"""A run compares two phases with the baseline each time: at 5 % every tenth control run would say something."""


@dataclass(frozen=True)
class Shift:
    """How a second sample differs from a first."""

    delta: float
    """Cliff's: share of pairs in which the second is larger, minus that in which it is smaller. From -1 to 1."""
    p: float
    """Two-sided, of the test of Mann and Whitney, for as many observations as the samples are worth."""

    @property
    def worth_a_word(self) -> bool:
        """Whether it is neither chance nor a trifle."""
        return self.p < SIGNIFICANT and abs(self.delta) >= SMALL


def shift(before: NDArray[np.int64], after: NDArray[np.int64], *, design_effect: float = 1.0) -> Shift:
    """Of two samples of whole numbers from 0 on. Raises ValueError where one is empty.

    With a `design_effect` above 1 the samples count as that many times smaller in the test.
    """
    if not len(before) or not len(after):
        raise ValueError("no comparison with nothing")
    size = int(max(before.max(), after.max())) + 1
    first, second = (np.bincount(sample, minlength=size).astype(np.float64) for sample in (before, after))
    n_first, n_second = float(len(before)), float(len(after))
    smaller = np.concatenate([[0.0], np.cumsum(first)[:-1]])
    larger = n_first - smaller - first
    delta = float((second * (smaller - larger)).sum() / (n_first * n_second))
    total = n_first + n_second
    ties = float((((first + second) / total) ** 3).sum())
    variance = (1 - ties) * total / (3 * n_first * n_second) * design_effect
    if variance <= 0:
        return Shift(delta, 1.0)
    return Shift(delta, math.erfc(abs(delta) / math.sqrt(2 * variance)))


def length_notes(recorded: Recorded) -> Iterator[str]:
    """Phases whose answers were of another length than those of the baseline, in words."""
    before = recorded.output_tokens(Phase.BASELINE)
    for phase in (Phase.CHAOS, Phase.RECOVERY):
        after = recorded.output_tokens(phase)
        if not len(before) or not len(after):
            continue
        means = [mean_of_series(sample.astype(np.float64)) for sample in (before, after)]
        worst = max(mean.dependence.design_effect for mean in means)
        found = shift(before, after, design_effect=worst)
        if found.worth_a_word:
            yield (
                f"Answers were {'longer' if found.delta > 0 else 'shorter'} in the {phase.value} phase than in the "
                f"baseline: {_told(after, means[1])} tokens against {_told(before, means[0])} "
                f"(Cliff's delta {number(found.delta)})."
            )


def _told(sample: NDArray[np.int64], mean: SeriesEstimate) -> str:
    """`a mean of 31.2 (30.1 to 32.3), 80 % of them 12 to 40`"""
    low, high = np.percentile(sample, [10, 90])
    interval = f"{number(mean.low or 0.0)} to {number(mean.high or 0.0)}"
    return f"a mean of {number(mean.value)} ({interval}), 80 % of them {number(low)} to {number(high)}"
