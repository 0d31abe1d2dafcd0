"""Parameters of a fault: what a template's header says about each, and the check of a value against it.

Litmus reads "500ms" as 0, "true " as false and an unknown name not at all, then reports Pass. So every value is
checked before anything is rendered; the message names the parameter, the value, and what is allowed.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from aftershock.errors import TemplateError

LONGEST_VALUE = 4096
"""Characters. An environment variable of a container may be longer, but nothing here has a use for that."""

_TIMES = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_SIZES = {"MB": 1.0, "MiB": 1.0, "GB": 1024.0, "GiB": 1024.0}
_FAMILIES = (_TIMES, _SIZES, {"%": 1.0})
"""Units that can be turned into each other; both only serve to say what the user should have written."""


def _text(value: Any) -> Any:
    """YAML's own scalars as the strings that an environment variable holds."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int) else value


class Parameter(BaseModel):
    """One parameter as the header describes it. Frozen."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    type: Literal["integer", "boolean", "choice", "string"]
    default: Annotated[str, BeforeValidator(_text)] = Field(description="Empty: not set, Litmus decides")
    help: str = Field(min_length=10, description="What it does to an inference service; why this default")
    unit: str = Field("", description="Unit of an integer, as a reader writes it: s, ms, %, KB, MB, MiB, GB")
    minimum: int | None = Field(None, description="Least integer")
    maximum: int | None = Field(
        None, description="Greatest integer; every integer has one, so that no fault is boundless"
    )
    choices: tuple[str, ...] = Field((), description="What a choice may be")
    pattern: str = Field("", description="Regular expression that a whole string matches")
    allowed: str = Field("", description="The pattern in words, for the error message")
    at_most: str = Field("", description="Integer parameter that bounds this one; a default above it is lowered to it")
    instead_of: str = Field("", description="Parameter that Litmus would prefer to this one: setting this unsets that")
    unset: str = Field("", description="How not set is written, where Litmus does not take the empty string for it")
    required: str = Field("", description="Why it must be given; empty: it need not")
    rendered_as: str = Field(
        "", description="Field of the engine that it becomes; empty: a variable of the environment"
    )

    @model_validator(mode="after")
    def _complete(self) -> Parameter:
        needs: dict[str, tuple[str, ...]] = {
            "integer": ("minimum", "maximum"),
            "choice": ("choices",),
            "string": ("pattern", "allowed"),
        }
        for name in needs.get(self.type, ()):
            if getattr(self, name) in (None, "", ()):
                raise ValueError(f"a parameter of type {self.type} needs {name}")
        if self.required and self.default:
            raise ValueError("a required parameter has no default")
        reason = self.refusal(self.default) if self.default else None
        if reason:
            raise ValueError(f"default {self.default!r} {reason}")
        return self

    def refusal(self, value: str) -> str | None:
        """Why `value` is not allowed, as the end of a sentence; None if it is."""
        match self.type:
            case "integer":
                return self._integer_refusal(value)
            case "boolean":
                return None if value in ("true", "false") else "must be true or false"
            case "choice":
                return None if value in self.choices else f"must be one of {', '.join(self.choices)}"
            case "string":
                return self._string_refusal(value)

    def bounds(self) -> str:
        """What is allowed, for a table."""
        match self.type:
            case "integer":
                return f"{self.minimum} to {self.maximum}"
            case "boolean":
                return "true, false"
            case "choice":
                return ", ".join(self.choices)
            case "string":
                return self.allowed

    def _integer_refusal(self, value: str) -> str | None:
        unit = f" of {self.unit}" if self.unit else ""
        allowed = f"must be a whole number{unit} from {self.minimum} to {self.maximum}"
        if not re.fullmatch(r"-?[0-9]+", value):
            plain = _without_unit(value, self.unit)
            return f"{allowed}, without a unit; give {plain}" if plain else allowed
        # A length test first: Python refuses to convert thousands of digits.
        if len(value) > 18 or not (self.minimum or 0) <= int(value) <= (self.maximum or 0):
            return allowed
        return None

    def _string_refusal(self, value: str) -> str | None:
        if len(value) > LONGEST_VALUE:
            return f"is {len(value)} characters long; at most {LONGEST_VALUE} are allowed"
        if re.search(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", value):
            return "holds a control character or half a surrogate pair, which no container's environment can"
        if not re.fullmatch(self.pattern, value):
            return f"must be {self.allowed}"
        return None


def resolve(fault: str, parameters: Mapping[str, Parameter], given: Mapping[str, str]) -> dict[str, str]:
    """A value for every parameter: the given one, checked and in its canonical form, or the default.

    Raises TemplateError at the first thing wrong. An empty value means what it means to Litmus: not set; it is taken
    where the default is empty too, else refused. What is not set in the end is written as the parameter's `unset`.
    """
    for name in given:
        if name not in parameters:
            raise TemplateError(f"{fault}: unknown parameter {shorten(name)}{closest(name, parameters)}")
    values = {name: parameter.default for name, parameter in parameters.items()}
    for name, value in given.items():
        values[name] = _accept(fault, name, parameters[name], value)
    chosen = [name for name in given if values[name]]
    for name in chosen:
        _give_way(fault, name, parameters[name].instead_of, chosen, values)
    for name, parameter in parameters.items():
        _bound(fault, name, parameter.at_most, chosen, values)
        if parameter.required and not values[name]:
            raise TemplateError(f"{fault}: {name} is not given: {parameter.required}")
    return {name: value or parameters[name].unset for name, value in values.items()}


def closest(name: str, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: what was probably meant, and what is known."""
    names = list(known)
    close = difflib.get_close_matches(name.upper(), [each.upper() for each in names], n=1)
    suggestion = next((f"; did you mean {each}?" for each in names if close and each.upper() == close[0]), "")
    return f"{suggestion or ';'} known are {', '.join(names)}"


def shorten(value: str) -> str:
    """`value` in quotes on one line, cut where it is too long to read."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}...' ({len(value)} characters)"


def _accept(fault: str, name: str, parameter: Parameter, value: str) -> str:
    canonical = value.strip() if parameter.type != "string" else value
    if parameter.type == "boolean":
        canonical = canonical.lower()
    if parameter.default == "" and canonical in ("", parameter.unset):
        return ""
    reason = parameter.refusal(canonical)
    if reason:
        raise TemplateError(f"{fault}: {name}={shorten(value)}: {reason}")
    return str(int(canonical)) if parameter.type == "integer" else canonical


def _give_way(fault: str, name: str, other: str, chosen: list[str], values: dict[str, str]) -> None:
    if not other:
        return
    if other in chosen:
        raise TemplateError(
            f"{fault}: {name}={shorten(values[name])}: Litmus would ignore it beside {other}; give one of the two"
        )
    values[other] = ""


def _bound(fault: str, name: str, limit: str, chosen: list[str], values: dict[str, str]) -> None:
    if not limit or not values[name] or not values[limit] or int(values[name]) <= int(values[limit]):
        return
    if name in chosen:
        raise TemplateError(f"{fault}: {name}={values[name]!r}: must be at most {limit}, which is {values[limit]}")
    values[name] = values[limit]


def _without_unit(value: str, unit: str) -> str | None:
    """What the user should have given instead of "500ms" or "2s" for a parameter in `unit`; None if that is unclear."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([A-Za-z%]+)", value)
    family = next((family for family in _FAMILIES if unit in family), {})
    if not match or match[2] not in family:
        return None
    number = round(float(match[1]) * family[match[2]] / family[unit], 6)
    return str(int(number)) if number.is_integer() else None
