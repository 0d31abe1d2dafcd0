"""PromQL templates: `{{ phase }}` and `{{ window }}`, or `{{ lookback }}`, filled in when they are asked. No I/O.

`{{ selector }}`, the label matchers of the experiment, is filled in when a document is read: it is the same for all.

Specs come from outside, so the engine is Jinja's sandbox without globals, and an unknown name is an error, never an
empty string: a selector that lost its label would quietly match everything.
"""

from __future__ import annotations

import re
from functools import cache

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from aftershock.windows import Phase

VARIABLES = ("phase", "window")
"""Of a query over one phase."""
LINE_VARIABLES = ("lookback",)
"""Of a query over the whole run."""

_EXAMPLES = {"phase": Phase.BASELINE.value, "window": "1000ms", "lookback": "3000ms"}

_SELECTOR = re.compile(r"\{\{-?\s*selector\s*-?\}\}")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"' r"|'(?:[^'\\]|\\.)*'" r"|`[^`]*`")
_RANGE = re.compile(r"\[\s*((?:\d+(?:ms|[smhdwy]))+)\s*(?::[^\]]*)?\]")
_PART = re.compile(r"(\d+)(ms|[smhdwy])")
_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0, "y": 31_536_000.0}


def duration(seconds: float) -> str:
    """A PromQL duration: whole milliseconds, at least one."""
    return f"{max(1, round(seconds * 1000))}ms"


def parse_duration(text: str) -> float:
    """Seconds of a PromQL duration such as `1m30s`; 0 for anything else."""
    return sum(int(n) * _UNITS_S[unit] for n, unit in _PART.findall(text))


def ranges_s(query: str) -> list[float]:
    """Every range `[...]` that `query` looks back over, in seconds."""
    return [parse_duration(one) for one in _RANGE.findall(_TEXT.sub('""', query))]


def longest_range_s(query: str) -> float:
    """The longest of its ranges, in seconds; 0 if it only looks at the instant."""
    return max(ranges_s(query), default=0.0)


def bucket_selector(histogram: str) -> str:
    """`name{...}` of a histogram -> `name_bucket{...}`."""
    name, brace, matchers = histogram.partition("{")
    return f"{name.strip()}_bucket{brace}{matchers}"


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    environment.globals.clear()
    return environment


def fill(template: str, *, phase: Phase, window_s: float) -> str:
    """The PromQL of `phase`; `{{ window }}` becomes the duration of `window_s`.

    Raises ValueError with the reason, in one line, for a template that cannot be filled.
    """
    return _render(template, {"phase": phase.value, "window": duration(window_s)})


def fill_line(template: str, *, lookback_s: float) -> str:
    """The PromQL of a line over the whole run; `{{ lookback }}` becomes the duration of `lookback_s`."""
    return _render(template, {"lookback": duration(lookback_s)})


def uses_selector(template: str) -> bool:
    """Whether it has a `{{ selector }}`."""
    return _SELECTOR.search(template) is not None


def with_selector(template: str, matchers: str) -> str:
    """`template` with `matchers` (checked ones; empty: none) for each `{{ selector }}`, and no comma too many.

    Raises ValueError, in one line, for a `{{ selector }}` that does not stand where matchers do.
    """
    parts = _SELECTOR.split(template)
    filled = parts[0]
    for following in parts[1:]:
        before, after = filled.rstrip()[-1:], following.lstrip()[:1]
        if before not in ("{", ",") or after not in ("}", ","):
            raise ValueError(
                "PromQL template: {{ selector }} stands between the braces of a selector, with commas between it and "
                'other matchers: name{label="value", {{ selector }}}'
            )
        if matchers:
            filled += matchers + following
        elif after == ",":
            filled += following.lstrip()[1:].lstrip()
        else:
            filled = filled.rstrip().removesuffix(",") + following
    return filled


def check(template: str, variables: tuple[str, ...] = VARIABLES) -> None:
    """Raise ValueError, in one line, if `template` needs more than `variables` or is no template at all."""
    _render(template, {name: _EXAMPLES[name] for name in variables})


def _render(template: str, variables: dict[str, str]) -> str:
    known = ", ".join(f"{{{{ {name} }}}}" for name in variables)
    try:
        filled = _environment().from_string(template).render(variables).strip()
    except (TemplateError, TypeError, ValueError, ArithmeticError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"PromQL template: {reason}; allowed: {known}") from error
    if not filled:
        raise ValueError("PromQL is empty")
    return filled
