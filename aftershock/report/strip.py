"""A row's values against its bound, as a picture the size of a table cell: one dot and whisker a phase."""

from __future__ import annotations

from markupsafe import Markup

from aftershock.report.scales import Scale, value_scale
from aftershock.report.svg import element, label, picture
from aftershock.report.wording import metric
from aftershock.slo.objective import Op
from aftershock.slo.verdict import PhaseValue, VerdictRow
from aftershock.windows import Phase

WIDTH, LANE = 150.0, 13.0
LEFT, RIGHT = 16.0, WIDTH - 6.0
ROOM = 0.15
"""How far the axis goes beyond the bound, as a share of it, so that both of its sides can be seen."""


def interval_strip(row: VerdictRow) -> Markup:
    """Empty where there is no value to draw."""
    lanes = [(phase, value) for phase, value in _measured(row) if value.value is not None]
    if not lanes:
        return Markup()
    limit = row.bound
    numbers = [number for _, value in lanes for number in (value.value, value.low, value.high) if number is not None]
    x = value_scale([*numbers, limit, limit * (1 + ROOM) if limit > 0 else limit], LEFT, RIGHT, least_high=limit + 1e-6)
    height = LANE * len(lanes) + 4
    children = [
        _breach(row.op, x(limit), height),
        element("line", x1=x(limit), x2=x(limit), y1=0, y2=height, class_="limit"),
    ]
    for index, (phase, value) in enumerate(lanes):
        children += _lane(phase, value, x, LANE * index + LANE / 2 + 2, phase in row.judged)
    return picture(children, WIDTH, height, f"{metric(row)} of each phase against {row.target}", "strip")


def _measured(row: VerdictRow) -> list[tuple[Phase, PhaseValue]]:
    return [(phase, row.phases[phase]) for phase in Phase if phase in row.phases]


def _breach(op: Op, limit: float, height: float) -> Markup:
    """The side on which the objective is broken."""
    start, end = (limit, RIGHT + 4) if op in (Op.LTE, Op.LT) else (LEFT - 4, limit)
    return element("rect", x=start, y=0, width=max(0.0, end - start), height=height, class_="breach")


def _lane(phase: Phase, value: PhaseValue, x: Scale, y: float, judged: bool) -> list[Markup]:
    out = [label(phase.value[0].upper(), 0, y + 3.5, "lane-name")]
    low = value.low if value.low is not None else value.value
    high = value.high if value.high is not None else value.value
    if low is not None and high is not None and high > low:
        out.append(element("line", x1=x(low), x2=x(high), y1=y, y2=y, class_=f"whisker {phase}"))
    if value.value is not None:
        class_ = f"dot {phase}{'' if judged else ' hollow'}"
        out.append(element("circle", cx=x(value.value), cy=y, r=3.4 if judged else 2.8, class_=class_))
    return out
