"""The time lines of a run as one picture: panels on a common time axis, with the phases and the fault across them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from markupsafe import Markup

from aftershock.report.scales import Scale, finite, spread, time_scale, value_scale
from aftershock.report.svg import Point, area, element, fits, label, line, picture, plot_class
from aftershock.report.wording import clock, elapsed
from aftershock.slo.verdict import number

TOP = 44.0
"""Room above the first panel: one strip for the phases, one for the fault."""
BETWEEN = 34.0
"""Room above each panel, for its title."""
BOTTOM = 40.0
"""Room below the last panel: ticks and the title of the time axis."""
LABEL_GAP = 13.0
POINTER_WIDTH = 600.0
"""Narrower ones are for telephones, which have no pointer to read values with."""
MOST_GUIDES = 12
"""More kills than this are marked in the fault's strip only, lest their guides hide the lines."""


@dataclass(frozen=True)
class Band:
    """One phase, in seconds since the origin."""

    name: str
    start_s: float
    end_s: float


@dataclass(frozen=True)
class FaultSpan:
    """When the fault was there, in seconds since the origin; `end_s` is None if its end was not seen."""

    name: str
    start_s: float
    end_s: float | None
    marks: tuple[tuple[float, str], ...] = ()
    """Instants at which it struck, each with what was said of it."""


@dataclass(frozen=True)
class Line:
    """One line of a panel. `class_` names its style in the page's CSS."""

    label: str
    points: tuple[Point, ...]
    class_: str
    filled: bool = False


@dataclass(frozen=True)
class Bound:
    """A limit of the SLO that belongs into a panel."""

    value: float
    text: str


@dataclass(frozen=True)
class Panel:
    """Lines that share a value axis."""

    title: str
    unit: str
    lines: tuple[Line, ...]
    height: float = 84.0
    least_high: float = 0.0
    may_be_log: bool = False
    bound: Bound | None = None


@dataclass(frozen=True)
class Frame:
    """What all panels share: the time axis and what is drawn across them."""

    origin: datetime
    span_s: float
    bands: tuple[Band, ...] = ()
    fault: FaultSpan | None = None
    step_s: float = 1.0
    panels: tuple[Panel, ...] = field(default=())


def timeline_picture(frame: Frame, width: float, description: str) -> Markup:
    """The whole picture, `width` pixels wide."""
    left, right = (56.0, width - 44.0) if width >= 600 else (44.0, width - 34.0)
    x = time_scale(frame.span_s, left, right)
    tops, top = [], TOP
    for panel in frame.panels:
        top += BETWEEN
        tops.append(top)
        top += panel.height
    children = [
        *_phases(frame, x, top),
        *_fault(frame, x, tops, top),
        *(part for panel, start in zip(frame.panels, tops, strict=True) for part in _panel(panel, x, start)),
        *_time_axis(frame, x, top),
        *(_readings(frame, x, TOP, top) if width >= POINTER_WIDTH else ()),
    ]
    return picture(children, width, top + BOTTOM, description, plot_class(width))


def _phases(frame: Frame, x: Scale, bottom: float) -> list[Markup]:
    """The phases' areas, and their names where there is room: else their first letter."""
    out = []
    for band in frame.bands:
        start, end = x(band.start_s), x(band.end_s)
        out.append(element("rect", x=start, y=4, width=end - start, height=bottom - 4, class_=f"band {band.name}"))
        name = next((text for text in (band.name, band.name[:1].upper()) if fits(text, end - start - 4)), "")
        if name:
            out.append(label(name, (start + end) / 2, 17, f"phase {band.name}", "middle"))
    return out


def _fault(frame: Frame, x: Scale, tops: Sequence[float], bottom: float) -> list[Markup]:
    """A bar in the fault's strip, its shade across the panels, and a mark for each strike."""
    fault = frame.fault
    if fault is None:
        return []
    start = x(fault.start_s)
    end = max(x(frame.span_s if fault.end_s is None else fault.end_s), start + 2)
    out = [element("rect", x=start, y=26, width=end - start, height=bottom - 26, class_="fault-shade")]
    out.append(element("rect", x=start, y=26, width=end - start, height=4, class_="fault-bar"))
    guides = fault.marks if len(fault.marks) <= MOST_GUIDES else ()
    for at, _ in guides:
        out += [element("line", x1=x(at), x2=x(at), y1=tops[0], y2=bottom, class_="strike-line")] if tops else []
    for at, text in fault.marks:
        arrow = element("path", element("title", text), d=f"M{x(at) - 4:.1f},31h8l-4,8z", class_="strike")
        out.append(arrow)
    text = fault.name if fault.end_s is not None else f"{fault.name}, end not seen"
    before = len(text) * 6.2 + 6 < start - x.start
    out.append(label(text, start - 6 if before else end + 6, 36, "fault-name", "end" if before else "start"))
    return out


def _panel(panel: Panel, x: Scale, top: float) -> list[Markup]:
    """Title, value axis, the lines and their names at the right-hand end."""
    bottom = top + panel.height
    values = finite(value for drawn in panel.lines for _, value in drawn.points)
    if not values:
        empty = label("no data", (x.start + x.end) / 2, (top + bottom) / 2 + 4, "muted", "middle")
        return [*_title(panel, x, top, ""), _rim(x, bottom), empty]
    bounds = [panel.bound.value] if panel.bound else []
    y = value_scale([*values, *bounds], bottom, top, least_high=panel.least_high, may_be_log=panel.may_be_log)
    out = _title(panel, x, top, ", log scale" if y.logarithmic else "")
    for tick in y.ticks:
        out.append(element("line", x1=x.start, x2=x.end, y1=y(tick), y2=y(tick), class_="grid"))
        out.append(label(number(tick), x.start - 6, y(tick) + 4, "tick", "end"))
    out.append(_rim(x, bottom))
    if panel.bound:
        at = y(panel.bound.value)
        out.append(element("line", x1=x.start, x2=x.end, y1=at, y2=at, class_="bound"))
    for drawn in panel.lines:
        if drawn.filled:
            out.append(area(drawn.points, x, y, bottom, f"{drawn.class_} fill"))
        out.append(line(drawn.points, x, y, drawn.class_))
    if panel.bound:
        below = y(panel.bound.value) - top < LABEL_GAP  # else it would touch the panel's title
        at = y(panel.bound.value) + (12 if below else -4)
        out.append(label(panel.bound.text, x.start + 4, at, "bound-name"))
    return out + _line_names(panel, x, y)


def _title(panel: Panel, x: Scale, top: float, note: str) -> list[Markup]:
    name = element("tspan", panel.title, class_="panel-title")
    unit = element("tspan", f"  {panel.unit}{note}", class_="muted")
    return [element("text", name, unit, x=x.start, y=top - 9)]


def _rim(x: Scale, bottom: float) -> Markup:
    return element("line", x1=x.start, x2=x.end, y1=bottom, y2=bottom, class_="rim")


def _line_names(panel: Panel, x: Scale, y: Scale) -> list[Markup]:
    """Names stand where their lines end, pushed apart where they would touch. One line alone needs none."""
    named = [(drawn, finite(value for _, value in drawn.points)) for drawn in panel.lines]
    ends = [(drawn, values[-1]) for drawn, values in named if values]
    if len(panel.lines) < 2:
        return []
    places = spread([y(value) for _, value in ends], LABEL_GAP, y.end + 4, y.start - 2)
    return [
        label(drawn.label, x.end + 6, place + 4, f"line-name {drawn.class_}-name")
        for (drawn, _), place in zip(ends, places, strict=True)
    ]


def _time_axis(frame: Frame, x: Scale, bottom: float) -> list[Markup]:
    out = []
    for tick in x.ticks:
        out.append(element("line", x1=x(tick), x2=x(tick), y1=bottom, y2=bottom + 4, class_="rim"))
        out.append(label(elapsed(tick, frame.span_s), x(tick), bottom + 17, "tick", "middle"))
    unit = "seconds" if frame.span_s <= 300 else "min:s" if frame.span_s <= 7200 else "h:min"
    text = f"{unit} since {clock(frame.origin)} UTC"
    return [*out, label(text, (x.start + x.end) / 2, bottom + 34, "axis-title", "middle")]


def _readings(frame: Frame, x: Scale, top: float, bottom: float) -> list[Markup]:
    """An invisible column for each step that lights up under the pointer and tells the values there; no script."""
    readings: dict[float, list[str]] = {}
    for panel in frame.panels:
        for drawn in panel.lines:
            for at, value in drawn.points:
                if value is not None:
                    unit = f" {panel.unit}" if panel.unit else ""
                    readings.setdefault(at, []).append(f"{drawn.label} {number(value)}{unit}")
    out = []
    half = frame.step_s / 2
    for at, texts in sorted(readings.items()):
        start, end = x(at - half), x(at + half)
        when = f"+{elapsed(at, frame.span_s)} ({clock(frame.origin + timedelta(seconds=at))} UTC)"
        title = element("title", "\n".join([when, *texts]))
        out.append(element("rect", title, x=start, y=top, width=end - start, height=bottom - top, class_="reading"))
    return out
