"""How latencies were distributed in each phase: one curve a phase, on axes on which a tail can be read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup

from aftershock.report.plots import Bound
from aftershock.report.scales import Scale, log_scale, tail_scale
from aftershock.report.svg import element, label, number, picture, plot_class
from aftershock.slo.verdict import number as figure
from aftershock.windows import Phase

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_STEPS = 240
"""Points of one curve; denser towards the tail, where a share is told by few requests."""
GIVEN_UP = "cancelled"
"""Outcome of requests that were ended with the run: they say nothing about the service."""
LEFT, TOP, BOTTOM = 56.0, 22.0, 44.0
HEIGHT = 300.0


@dataclass(frozen=True)
class Distribution:
    """Latencies of the requests of one phase that were answered, sorted, in ms, and how many there were in all."""

    phase: Phase
    latencies_ms: tuple[float, ...]
    requests: int

    @property
    def answered(self) -> int:
        """How many did not fail."""
        return len(self.latencies_ms)

    def quantile(self, share: float) -> float | None:
        """The latency within which `share` of all requests was answered; None if fewer were. An order statistic."""
        rank = max(1, math.ceil(share * self.requests))
        return self.latencies_ms[rank - 1] if rank <= self.answered else None


def read_distributions(records: DataFrame | None) -> list[Distribution]:
    """One of each phase that sent requests. A request that failed was never answered, however quickly it failed."""
    if records is None or records.empty:
        return []
    out = []
    for phase in Phase:
        rows = records[(records["phase"] == phase.value) & (records["outcome"] != GIVEN_UP)]
        latencies = rows.loc[rows["outcome"] == "ok", "latency_s"].dropna()
        if len(rows):
            # A clock may stand still between two readings, and a logarithm has no zero; 1 µs is below all that counts.
            milliseconds = sorted(max(float(value) * 1000, 1e-3) for value in latencies)
            out.append(Distribution(phase, tuple(milliseconds), len(rows)))
    return out


def distribution_picture(
    distributions: Sequence[Distribution], limit: Bound | None, width: float, description: str
) -> Markup:
    """The curves: x the latency (log), y the share of all requests answered within it, each further nine as wide."""
    left, right = (LEFT, width - 24) if width >= 600 else (48.0, width - 12)
    values = [value for one in distributions for value in (one.latencies_ms[0], one.latencies_ms[-1])]
    values += [limit.value] if limit and limit.value > 0 else []
    bottom = TOP + HEIGHT
    x = log_scale(min(values), max(values), left, right)
    y = tail_scale(max(one.requests for one in distributions), bottom, TOP)
    children = [*_grid(x, y), *_limit(limit, x, y)]
    for one in distributions:
        children.append(_curve(one, x, y))
    children += _legend(distributions, x, y)
    axis = label(
        "latency from the scheduled time, ms (log scale)", (left + right) / 2, bottom + 36, "axis-title", "middle"
    )
    return picture([*children, axis], width, bottom + BOTTOM, description, plot_class(width))


def _grid(x: Scale, y: Scale) -> list[Markup]:
    out = []
    for tick in y.ticks:
        at = y(tick)
        out.append(element("line", x1=x.start, x2=x.end, y1=at, y2=at, class_="grid" if tick else "rim"))
        out.append(label(f"{figure(tick * 100)} %", x.start - 6, at + 4, "tick", "end"))
    for tick in x.ticks:
        at = x(tick)
        out.append(element("line", x1=at, x2=at, y1=y.start, y2=y.end, class_="grid"))
        out.append(label(figure(tick), at, y.start + 17, "tick", "middle"))
    return out


def _limit(limit: Bound | None, x: Scale, y: Scale) -> list[Markup]:
    if limit is None or limit.value <= 0:
        return []
    at = x(limit.value)
    rule = element("line", x1=at, x2=at, y1=y.start, y2=y.end, class_="bound")
    anchor = "end" if at > (x.start + x.end) / 2 else "start"
    return [rule, label(limit.text, at + 4 if anchor == "end" else at - 4, y.end - 6, "bound-name", anchor)]


def _curve(one: Distribution, x: Scale, y: Scale) -> Markup:
    """A staircase that ends at the share of requests that were answered at all."""
    ranks = _ranks(one.answered)
    if not ranks:
        return Markup()
    parts = [f"M{number(x(one.latencies_ms[0]))},{number(y.start)}"]
    parts += [f"H{number(x(one.latencies_ms[rank - 1]))}V{number(y(rank / one.requests))}" for rank in ranks]
    return element("path", d="".join(parts), class_=f"ecdf {one.phase}")


def _ranks(count: int) -> list[int]:
    """Which order statistics to draw: all, or MOST_STEPS spaced by share of what is slower."""
    if count <= MOST_STEPS:
        return list(range(1, count + 1))
    decades = math.log10(count)
    steps = (1 - 10 ** (-decades * step / MOST_STEPS) for step in range(1, MOST_STEPS + 1))
    return sorted({max(1, math.ceil(share * count)) for share in steps} | {1, count})


def _legend(distributions: Sequence[Distribution], x: Scale, y: Scale) -> list[Markup]:
    """At the lower right, where a distribution on these axes has no curve."""
    out = []
    for index, one in enumerate(distributions):
        at = y.start - 12 - 18 * (len(distributions) - 1 - index)
        out.append(element("path", d=f"M{number(x.end - 92)},{number(at - 4)}h24", class_=f"ecdf {one.phase}"))
        out.append(label(one.phase.value, x.end - 62, at, "legend"))
    return out
