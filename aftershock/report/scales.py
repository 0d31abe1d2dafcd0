"""From values to pixels: linear, logarithmic and tail-stretched axes, and where their ticks go."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

LOG_FROM_RATIO = 20.0
"""An axis is logarithmic from this ratio of its largest to its smallest value: else the small ones are a flat line."""

_CLOCK_STEPS_S = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


@dataclass(frozen=True)
class Scale:
    """`low` to `high` on the pixels `start` to `end`, through `transform`. Values outside stay at the rim."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    transform: Callable[[float], float] = float

    def __call__(self, value: float) -> float:
        """The pixel of `value`."""
        low, high = self.transform(self.low), self.transform(self.high)
        share = (self.transform(min(max(value, self.low), self.high)) - low) / (high - low)
        return self.start + share * (self.end - self.start)

    @property
    def logarithmic(self) -> bool:
        """Whether it has no zero; for the axis title."""
        return self.transform is math.log10


def finite(values: Iterable[float | None]) -> list[float]:
    """Those that are there and are numbers."""
    return [value for value in values if value is not None and math.isfinite(value)]


def value_scale(
    values: Sequence[float], start: float, end: float, *, least_high: float = 0.0, may_be_log: bool = False
) -> Scale:
    """Linear from zero, or logarithmic where that may be and the values (all finite) span too much for linear.

    `least_high` is the least the axis shows, so that noise near zero does not fill the panel.
    """
    if may_be_log and values and min(values) > 0 and max(values) / min(values) >= LOG_FROM_RATIO:
        return log_scale(min(values), max(values), start, end)
    low = min([0.0, *values])
    high = max([*values, least_high, low + 1e-9])
    step = nice_step((high - low) / 4)
    first, last = math.floor(low / step), math.ceil(high / step)
    ticks = tuple(step * index for index in range(first, last + 1))
    return Scale(ticks[0], ticks[-1], start, end, ticks)


def log_scale(low: float, high: float, start: float, end: float) -> Scale:
    """Logarithmic with room at both ends. Ticks at 1, 2, 5 where few decades leave room for them, else at the tens."""
    low, high = low / 1.25, high * 1.25
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    factors = (1, 2, 5) if high / low < 300 else (1,)
    every = max(1, math.ceil(len(decades) / 6)) if factors == (1,) else 1
    ticks = [factor * 10.0**decade for decade in decades[::every] for factor in factors]
    return Scale(low, high, start, end, tuple(tick for tick in ticks if low <= tick <= high), math.log10)


def tail_scale(samples: int, start: float, end: float) -> Scale:
    """Shares from 0 to nearly 1, in which each further nine of a percentile takes the same room.

    The highest share that `samples` observations can tell from 1 is where it ends.
    """
    high = max(0.99, 1 - 1 / (samples + 1))
    ticks = [tick for tick in (0.0, 0.5, 0.9, 0.99, 0.999, 0.9999) if tick <= high]
    return Scale(0.0, high, start, end, tuple(ticks), _nines)


def time_scale(span_s: float, start: float, end: float, *, room: float = 64.0) -> Scale:
    """Seconds from 0 to `span_s`, with ticks that a clock would have, at least `room` pixels apart."""
    most = max(1.0, abs(end - start) / room)
    step = next((step for step in _CLOCK_STEPS_S if span_s / step <= most), math.ceil(span_s / most))
    ticks = tuple(float(step * index) for index in range(int(span_s / step) + 1))
    return Scale(0.0, max(span_s, 1e-3), start, end, ticks)


def nice_step(least: float) -> float:
    """The smallest of 1, 2, 2.5, 5 times a power of ten that is not below `least`."""
    power: float = 10.0 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 2.5, 5, 10, 20) if factor * power >= least * (1 - 1e-9))


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions near those `wanted`, at least `gap` apart, in the same order, within `low` to `high` if they fit."""
    order = sorted(range(len(wanted)), key=lambda index: wanted[index])
    placed = [0.0] * len(wanted)
    edge = low
    for index in order:
        placed[index] = max(wanted[index], edge)
        edge = placed[index] + gap
    edge = high
    for index in reversed(order):
        placed[index] = min(placed[index], edge)
        edge = placed[index] - gap
    return placed


def _nines(share: float) -> float:
    return -math.log10(1 - share)
