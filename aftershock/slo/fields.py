"""The strict base of the OpenSLO models, what all objects have, and the types of their fields. No I/O.

Each type checks one kind of text that YAML cannot: a name, PromQL, a condition, a duration. The messages are what the
user reads behind `file:line: path:`.
"""

from __future__ import annotations

import dataclasses
import math
import re
from datetime import datetime
from typing import Annotated, Any, Literal
from zoneinfo import available_timezones

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationInfo, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from aftershock.slo import promql

SELECTOR = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\s*(\{.*\})?", re.DOTALL)
"""A PromQL vector selector and nothing else: a metric's name, perhaps with matchers."""


MINUTES = {"m": 1, "h": 60, "d": 1440, "w": 10_080}
"""Of the units of OpenSLO's durations, those of a fixed length."""
LONGEST_PHASE_S = 86_400.0

_KEY = re.compile(r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[a-zA-Z0-9]([a-zA-Z0-9._-]{0,61}[a-zA-Z0-9])?")


@dataclasses.dataclass
class Reading:
    """What the models need to know, and what they note, while they read one document."""

    matchers: str = ""
    """What `{{ selector }}` stands for."""
    selects: bool = False
    """Whether a query has a `{{ selector }}`."""
    spellings: list[str] = dataclasses.field(default_factory=list)


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
            raise wrong(f"must be a mapping, not {shown(data)}")
        fields = {field.alias or name: field for name, field in cls.model_fields.items()}
        for key in data:
            if key not in fields:
                raise wrong(f"unknown key; allowed: {', '.join(fields)}", str(key))
        for key, field in fields.items():
            if field.is_required() and key not in data:
                raise wrong(f"is missing: {field.description}", key)
        return data


def shown(value: Any) -> str:
    """A value as an error shows it."""
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
                    info.context.spellings.append(f"{value!r} is read as {spelling!r}")
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


def _promql(value: str, info: ValidationInfo) -> str:
    return _template(value, info, promql.VARIABLES)


def _line_promql(value: str, info: ValidationInfo) -> str:
    return _template(value, info, promql.LINE_VARIABLES)


def _template(value: str, info: ValidationInfo, variables: tuple[str, ...]) -> str:
    """The template with the matchers of the experiment in it."""
    reading = info.context or Reading()
    reading.selects = reading.selects or promql.uses_selector(value)
    filled = promql.with_selector(value, reading.matchers)
    promql.check(filled, variables)
    return filled.strip()


def _histogram(value: str, info: ValidationInfo) -> str:
    value = _promql(value, info)
    if not SELECTOR.fullmatch(value):
        raise ValueError('must be a histogram\'s name, perhaps with matchers: name{label="value"}')
    name = value.partition("{")[0].strip()
    if name.endswith("_bucket"):
        raise ValueError(f"give the name without _bucket: {name.removesuffix('_bucket')}")
    return value


def seconds_of(text: str) -> float | None:
    """Seconds of `500ms`, `1s` or `2m`; None for what is none of these."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)", text)
    return float(match[1]) * {"ms": 0.001, "s": 1.0, "m": 60.0}[match[2]] if match else None


def _seconds(value: Any) -> Any:
    """What `seconds_of` reads, or a number of seconds."""
    seconds = seconds_of(value) if isinstance(value, str) else None
    return value if seconds is None else seconds


def _or_zero(value: str) -> str:
    return value if re.fullmatch(r"0[mhdwMQY]", value) else _duration(value)


def _slice_window(value: Any) -> Any:
    """Seconds of a number of minutes, or of a duration."""
    if isinstance(value, str):
        match = re.fullmatch(r"([1-9][0-9]*)([mhdw])", value)
        minutes = float(int(match[1]) * MINUTES[match[2]]) if match else 0.0
    else:
        minutes = value if isinstance(value, int | float) and not isinstance(value, bool) else 0.0
    if not 0 < minutes * 60 <= LONGEST_PHASE_S:
        raise ValueError("must be a number of minutes (0.1: six seconds), or such as 1m or 2h, at most 1d")
    return minutes * 60.0


def _key(value: str) -> str:
    if not _KEY.fullmatch(value):
        raise ValueError("must be at most 63 letters, digits, - _ and . as a key, perhaps behind a domain and a slash")
    return value


def _label(value: Any) -> Any:
    if isinstance(value, str) or (isinstance(value, list) and all(isinstance(one, str) for one in value)):
        return value
    raise ValueError("must be text or a list of texts; put it between quotes")


def _start_time(value: Any) -> Any:
    """YAML makes a datetime of `2020-01-21 12:30:00`; OpenSLO allows no time zone in it."""
    if isinstance(value, datetime) and value.tzinfo is None:
        return f"{value:%Y-%m-%d %H:%M:%S}"
    if isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", value):
        datetime.fromisoformat(value)
        return value
    raise ValueError("must be YYYY-MM-DD HH:MM:SS, without a time zone")


def _time_zone(value: str) -> str:
    known = available_timezones()
    if known and value not in known:
        raise ValueError("is no time zone of the IANA database, such as Europe/Berlin")
    return value


def _condition(value: str) -> str:
    match = re.fullmatch(r"\s*(<=|>=|<|>)\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s*", value)
    if match is None:
        raise ValueError("must be <=, >=, < or > and a number, such as '<= 1'")
    return f"{match[1]} {float(match[2]):.15g}"


Name = Annotated[str, AfterValidator(_name)]
Text = Annotated[str, BeforeValidator(_text)]
Key = Annotated[str, AfterValidator(_key)]
Label = Annotated[Any, AfterValidator(_label)]
Description = Annotated[str, Field(max_length=1050)]
Duration = Annotated[str, AfterValidator(_duration)]
DurationOrZero = Annotated[str, AfterValidator(_or_zero)]
SliceWindow = Annotated[float, BeforeValidator(_slice_window)]
StartTime = Annotated[str, BeforeValidator(_start_time)]
TimeZone = Annotated[str, AfterValidator(_time_zone)]
Number = Annotated[float, AfterValidator(_finite)]
Promql = Annotated[str, AfterValidator(_promql)]
LinePromql = Annotated[str, AfterValidator(_line_promql)]
Histogram = Annotated[str, AfterValidator(_histogram)]
Condition = Annotated[str, AfterValidator(_condition)]
Seconds = Annotated[float, BeforeValidator(_seconds), Field(gt=0, le=3600)]
BudgetingMethod = Annotated[
    Literal["Occurrences", "Timeslices", "RatioTimeslices"], spelt("Occurrences", "Timeslices", "RatioTimeslices")
]
Operator = Annotated[Literal["lte", "gte", "lt", "gt"], spelt("lte", "gte", "lt", "gt")]
Scale = Annotated[Number, Field(gt=0)]


class Metadata(Strict):
    """What every object has."""

    name: Name = Field(description="the object's name")
    display_name: str | None = None
    labels: dict[Key, Label] = {}
    annotations: dict[Key, Text] = {}


class Object(Strict):
    """One document."""

    api_version: str = Field(description="openslo/v1")
    kind: str = Field(description="one of OpenSLO's kinds")
    metadata: Metadata = Field(description="at least its name")
