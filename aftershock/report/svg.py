"""SVG as text: elements whose text and attributes are always escaped, and lines with gaps. No styles: those are CSS."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence

from markupsafe import Markup, escape

Point = tuple[float, float | None]
"""An instant (seconds) and what was measured there; None is a gap."""

CHARACTER_PX = 6.2
"""Mean width of a character of an 11 pixel label: enough to see whether a label fits."""


def element(tag: str, *children: str, **attributes: str | float | None) -> Markup:
    """`<tag ...>children</tag>`. A `str` child is escaped, a `Markup` one is not.

    Attributes: `class_` is class, `stroke_width` is stroke-width, None is left out, numbers are rounded to 0.1 pixel.
    """
    words = [tag]
    for name, value in attributes.items():
        if value is not None:
            text = value if isinstance(value, str) else number(value)
            words.append(f'{name.rstrip("_").replace("_", "-")}="{escape(text)}"')
    opening = " ".join(words)
    if not children:
        return Markup(f"<{opening}/>")
    return Markup(f"<{opening}>{Markup().join(children)}</{tag}>")


def number(value: float) -> str:
    """Of pixels: `12.3`, `12`."""
    return f"{value:.1f}".removesuffix(".0")


def label(text: str, x: float, y: float, class_: str, anchor: str = "start") -> Markup:
    """A piece of text; `y` is its base line."""
    return element("text", text, x=x, y=y, class_=class_, text_anchor=None if anchor == "start" else anchor)


def runs(points: Iterable[Point]) -> list[list[tuple[float, float]]]:
    """The stretches of `points` between gaps."""
    stretches = []
    for present, group in itertools.groupby(points, key=lambda point: point[1] is not None):
        if present:
            stretches.append([(at, value) for at, value in group if value is not None])
    return stretches


def line(points: Iterable[Point], x: Callable[[float], float], y: Callable[[float], float], class_: str) -> Markup:
    """A path through the points, lifted at gaps. A point between two gaps is drawn as a dot, not lost."""
    parts = []
    for stretch in runs(points):
        pixels = [f"{number(x(at))},{number(y(value))}" for at, value in stretch]
        parts.append("M" + "L".join(pixels) + ("h.01" if len(pixels) == 1 else ""))
    return element("path", d="".join(parts), class_=class_) if parts else Markup()


def area(
    points: Iterable[Point], x: Callable[[float], float], y: Callable[[float], float], base: float, class_: str
) -> Markup:
    """What lies between the points and the pixel `base`, stretch by stretch."""
    parts = []
    for stretch in runs(points):
        pixels = "L".join(f"{number(x(at))},{number(y(value))}" for at, value in stretch)
        parts.append(f"M{number(x(stretch[0][0]))},{number(base)}L{pixels}V{number(base)}Z")
    return element("path", d="".join(parts), class_=class_) if parts else Markup()


def plot_class(width: float) -> str:
    """By which the page picks, of one plot drawn in several widths, the one that it has room for."""
    return "plot wide" if width >= 900 else "plot medium" if width >= 600 else "plot narrow"


def picture(children: Sequence[Markup], width: float, height: float, description: str, class_: str) -> Markup:
    """A whole picture with its text alternative. It grows and shrinks with the page."""
    return element(
        "svg",
        *children,
        viewBox=f"0 0 {number(width)} {number(height)}",
        class_=class_,
        role="img",
        aria_label=description,
    )


def fits(text: str, pixels: float) -> bool:
    """Whether a label of this text has room."""
    return len(text) * CHARACTER_PX <= pixels
