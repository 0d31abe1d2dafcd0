"""One ChaosEngine (litmuschaos.io/v1alpha1), read from YAML: what every backend is given, and all it may rely on.

Only what an injector needs is lifted into fields; `document` keeps the rest, so that a backend which hands the engine
on to a cluster loses nothing. An engine in which Litmus would see something other than the author meant is refused
here, whoever wrote it: that is cheaper than a fault that hits the wrong pods.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from aftershock.errors import EngineError

RUN_ID_LABEL = "aftershock.io/run-id"
"""Label by which a run's chaos is found again, also after the death of the run."""

LOADER: type[yaml.SafeLoader | yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The parser in C where PyYAML was built with it: the same documents, ten times as fast."""

_NAME = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
_LABEL = re.compile(
    r"([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"  # key
    r"=[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?"  # value
)
_LONGEST_NAME = 63
"""The operator makes the engine's name the value of the label `app`; with a longer one no runner ever appears."""


@dataclass(frozen=True)
class AppInfo:
    """Which pods the fault may hit. All three empty: none by label (node faults, TARGET_PODS, selectors)."""

    namespace: str = ""
    label: str = ""
    kind: str = ""


@dataclass(frozen=True)
class EngineExperiment:
    """One fault of the engine. Litmus runs several one after the other."""

    name: str
    env: Mapping[str, str]
    status_check_timeout_s: float = 180.0
    """How long Litmus waits for the target to be running again; over: STATUS_CHECKS_ERROR. Defaults: the runner's."""

    def value(self, name: str, default: str = "") -> str:
        """A tunable as Litmus reads it: one that is set to the empty string is not set."""
        return self.env.get(name) or default


@dataclass(frozen=True)
class ChaosEngine:
    """What to inject, where, and under which name."""

    name: str
    namespace: str
    uid: str | None
    """Given by whoever accepts the engine (API server or local backend); None in a file."""
    state: Literal["active", "stop"]
    appinfo: AppInfo
    experiments: tuple[EngineExperiment, ...]
    labels: Mapping[str, str]
    document: Mapping[str, Any]

    def result_name(self, experiment: EngineExperiment) -> str:
        """Name that Litmus gives to the ChaosResult of one experiment."""
        parts = (self.name, experiment.name, experiment.value("INSTANCE_ID"))
        return "-".join(part for part in parts if part)


class _Part(BaseModel):
    """Kubernetes objects hold more than we read, and a number is no string to them."""

    model_config = ConfigDict(extra="ignore", strict=True)


class _Metadata(_Part):
    name: str
    namespace: str = "default"
    uid: str | None = None
    labels: dict[str, str] | None = None

    @field_validator("name")
    @classmethod
    def _legal(cls, value: str) -> str:
        if not re.fullmatch(_NAME, value) or len(value) > _LONGEST_NAME:
            raise ValueError(f"must be 1 to {_LONGEST_NAME} of a-z, 0-9, - and ., not starting or ending in - or .")
        return value


class _AppInfo(_Part):
    appns: str = ""
    applabel: str = ""
    appkind: Literal["", "deployment", "statefulset", "daemonset", "deploymentconfig", "rollout"] = ""

    @field_validator("applabel")
    @classmethod
    def _one_label(cls, value: str) -> str:
        if value and not _LABEL.fullmatch(value):
            raise ValueError(
                "must be exactly one key=value, each at most 63 long; Litmus reads a comma as OR and a set as pod names"
            )
        return value


class _EnvVar(_Part):
    name: str = Field(min_length=1)
    value: str = ""
    value_from: Any = Field(None, alias="valueFrom")


class _Timeouts(_Part):
    """The runner passes both as soon as one is above 0; what is missing then is 0, not the default."""

    delay: int = Field(0, ge=0)
    timeout: int = Field(0, ge=0)


class _Components(_Part):
    env: list[_EnvVar] | None = None
    timeouts: _Timeouts | None = Field(None, alias="statusCheckTimeouts")


class _ExperimentSpec(_Part):
    components: _Components | None = None


class _Experiment(_Part):
    name: str = Field(pattern=f"^{_NAME}$")
    spec: _ExperimentSpec | None = None


class _Spec(_Part):
    state: Literal["", "active", "stop"] | None = Field(None, alias="engineState")
    appinfo: _AppInfo | None = None
    selectors: Any = None
    experiments: list[_Experiment] = Field(min_length=1)


class _Document(_Part):
    api_version: Literal["litmuschaos.io/v1alpha1"] = Field(alias="apiVersion")
    kind: Literal["ChaosEngine"]
    metadata: _Metadata
    spec: _Spec


def parse_engine(text: str, source: str) -> ChaosEngine:
    """Read the one ChaosEngine in `text`. Raises EngineError: `source`, the path in the document, and what is wrong."""
    document = _load(text, source)
    try:
        parsed = _Document.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        path = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise EngineError(f"{source}: {path}={_short(first['input'])}: {message}") from error
    return ChaosEngine(
        name=parsed.metadata.name,
        namespace=parsed.metadata.namespace,
        uid=parsed.metadata.uid,
        state="stop" if parsed.spec.state == "stop" else "active",
        appinfo=_appinfo(parsed.spec, source),
        experiments=_experiments(parsed.spec.experiments, source),
        labels=parsed.metadata.labels or {},
        document=document,
    )


def _load(text: str, source: str) -> dict[str, Any]:
    try:
        documents = [document for document in yaml.load_all(text, Loader=LOADER) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error).partition("\n")[0]
        raise EngineError(f"{source}{line}: not YAML ({problem})") from error
    if len(documents) != 1:
        raise EngineError(f"{source}: must hold exactly one ChaosEngine, holds {len(documents)} documents")
    if not isinstance(documents[0], dict):
        raise EngineError(f"{source}: must be a ChaosEngine, is a {type(documents[0]).__name__}")
    return documents[0]


def _appinfo(spec: _Spec, source: str) -> AppInfo:
    info = spec.appinfo or _AppInfo()
    given = [bool(info.appns), bool(info.applabel), bool(info.appkind)]
    if any(given) and not all(given) and not spec.selectors:
        raise EngineError(
            f"{source}: spec.appinfo: needs appns, applabel and appkind, or none of them; "
            "with fewer, Litmus stops at once or hits any pod of the namespace"
        )
    return AppInfo(info.appns, info.applabel, info.appkind)


def _experiments(parsed: list[_Experiment], source: str) -> tuple[EngineExperiment, ...]:
    names = [experiment.name for experiment in parsed]
    for name in names:
        if names.count(name) > 1:
            raise EngineError(f"{source}: spec.experiments: {name} is listed twice; both would share one ChaosResult")
    return tuple(_experiment(experiment, source) for experiment in parsed)


def _experiment(parsed: _Experiment, source: str) -> EngineExperiment:
    components = (parsed.spec and parsed.spec.components) or _Components()
    timeouts = components.timeouts or _Timeouts(delay=0, timeout=0)
    timeout_s = float(timeouts.timeout) if timeouts.delay or timeouts.timeout else 180.0
    env: dict[str, str] = {}
    for variable in components.env or []:
        if variable.name in env:
            raise EngineError(f"{source}: experiment {parsed.name}: env {variable.name} is given twice; give it once")
        if variable.value_from is not None:
            raise EngineError(
                f"{source}: experiment {parsed.name}: env {variable.name} has valueFrom; "
                "give a value, so that the run's artifacts say what was injected"
            )
        env[variable.name] = variable.value
    return EngineExperiment(parsed.name, env, timeout_s)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
