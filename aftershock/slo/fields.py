"""The strict base of the OpenSLO models and the types of their fields. No I/O.

Each type checks one kind of text that YAML cannot: a name, PromQL, a condition, a duration. The messages are what the
user reads behind `file:line: path:`.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from aftershock.slo import promql

SELECTOR = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\s*(\{.*\})?", re.DOTALL)
"""A PromQL vector selector and nothing else: a metric's name, perhaps with matchers."""


def wrong(message: str, key: str = "") -> PydanticCustomError:
    """An error about `key` of the model that is being validated, or about the whole of it."""
    return PydanticCustomError("spec", "{message}", {"message": message, "key": key})


class Strict(BaseModel):
    """Base of all models: nothing unknown, nothing converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, alias_generator=to_camel)

    @model_validator(mode="before")
    @classmethod
    def _keys(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            raise wrong(f"must be a mapping, not {_shown(data)}")
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        for key in data:
            if key not in fields:
                raise wrong(f"unknown key; allowed: {', '.join(fields)}", str(key))
        for key, field in fields.items():
            if field.is_required() and key not in data:
                raise wrong(f"is missing: {field.description}", key)
        return data


def _shown(value: Any) -> str:
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def spelt(*allowed: str) -> BeforeValidator:
    """Accept any casing of `allowed`, and note it: OpenSLO's own documents are not of one mind (`TimeSlices`)."""

    def spell(value: Any, info: ValidationInfo) -> Any:
        if value in allowed or not isinstance(value, str):
            return value
        for spelling in allowed:
            if value.lower() == spelling.lower():
                if info.context is not None:
                    info.context.append(f"{value!r} is read as {spelling!r}")
                return spelling
        return value

    return BeforeValidator(spell)


def _name(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", value):
        raise ValueError("must be 1 to 63 of a-z, 0-9 and -, starting and ending with a letter or digit")
    return value


def _duration(value: str) -> str:
    if not re.fullmatch(r"[1-9][0-9]*[mhdwMQY]", value):
        raise ValueError("must be a positive whole number and one of m h d w M Q Y, such as 4w")
    return value


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("must be finite")
    return value


def _text(value: Any) -> Any:
    """Annotations are strings; a bare number means its own text."""
    return f"{value:g}" if isinstance(value, int | float) and not isinstance(value, bool) else value


def _promql(value: str) -> str:
    promql.check(value)
    return value.strip()


def _line_promql(value: str) -> str:
    promql.check(value, promql.LINE_VARIABLES)
    return value.strip()


def _histogram(value: str) -> str:
    value = _promql(value)
    if not SELECTOR.fullmatch(value):
        raise ValueError('must be a histogram\'s name, perhaps with matchers: name{label="value"}')
    name = value.partition("{")[0].strip()
    if name.endswith("_bucket"):
        raise ValueError(f"give the name without _bucket: {name.removesuffix('_bucket')}")
    return value


def _seconds(value: Any) -> Any:
    """`500ms`, `1s`, `2m`, or a number of seconds."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)", value) if isinstance(value, str) else None
    return float(match[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[match[2]] if match else value


def _occurrences(value: str) -> str:
    if value != "Occurrences":
        raise ValueError("is not supported; allowed: Occurrences")
    return value


def _condition(value: str) -> str:
    match = re.fullmatch(r"\s*(<=|>=|<|>)\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*", value)
    if match is None:
        raise ValueError("must be <=, >=, < or > and a number, such as '<= 1'")
    return f"{match[1]} {float(match[2]):.15g}"


Name = Annotated[str, AfterValidator(_name)]
Text = Annotated[str, BeforeValidator(_text)]
Duration = Annotated[str, AfterValidator(_duration)]
Number = Annotated[float, AfterValidator(_finite)]
Promql = Annotated[str, AfterValidator(_promql)]
LinePromql = Annotated[str, AfterValidator(_line_promql)]
Histogram = Annotated[str, AfterValidator(_histogram)]
Condition = Annotated[str, AfterValidator(_condition)]
Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=3600)]
BudgetingMethod = Annotated[str, spelt("Occurrences", "Timeslices", "RatioTimeslices"), AfterValidator(_occurrences)]
Scale = Annotated[Number, Field(gt=0)]
