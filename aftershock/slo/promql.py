"""PromQL templates: `{{ phase }}` and `{{ window }}`, filled in for each phase that is asked. No I/O.

Specs come from outside, so the engine is Jinja's sandbox without globals, and an unknown name is an error, never an
empty string: a selector that lost its label would quietly match everything.
"""

from __future__ import annotations

from functools import cache

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from aftershock.windows import Phase

VARIABLES = ("phase", "window")


@cache
def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(undefined=StrictUndefined, autoescape=False)
    environment.globals.clear()
    return environment


def fill(template: str, *, phase: Phase, window_s: float) -> str:
    """The PromQL of `phase`. `{{ window }}` becomes a PromQL duration of `window_s` seconds, in milliseconds.

    Raises ValueError with the reason, in one line, for a template that cannot be filled.
    """
    return _render(template, {"phase": phase.value, "window": f"{round(window_s * 1000)}ms"})


def check(template: str, variables: tuple[str, ...] = VARIABLES) -> None:
    """Raise ValueError, in one line, if `template` needs more than `variables` or is no template at all."""
    values = {"phase": Phase.BASELINE.value, "window": "1000ms"}
    _render(template, {name: values[name] for name in variables})


def _render(template: str, variables: dict[str, str]) -> str:
    known = ", ".join(f"{{{{ {name} }}}}" for name in variables) or "no variables at all"
    try:
        filled = _environment().from_string(template).render(variables).strip()
    except (TemplateError, TypeError, ValueError, ArithmeticError, OverflowError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"PromQL template: {reason}; allowed: {known}") from error
    if not filled:
        raise ValueError("PromQL is empty")
    return filled
