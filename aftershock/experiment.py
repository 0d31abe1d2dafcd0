"""What a run is: one model, from which the flags, the environment, the YAML file and the KFP parameters are made.

`Experiment` is flat on purpose: each field is one flag (`--chaos-s 30`), one variable (`AFTERSHOCK_CHAOS_S=30`), one
key of the file (`chaos_s: 30`) and one parameter of the pipeline (`chaos_s`). `resolve` merges them: flags win over the
environment, the environment over the file, the file over the defaults.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from aftershock.errors import ExperimentError
from aftershock.matchers import checked_matchers
from aftershock.windows import Phase

ENVIRONMENT_PREFIX = "AFTERSHOCK_"
RESERVED_VARIABLES = {
    "AFTERSHOCK_JOURNAL",  # where progress goes (progress.py)
    "AFTERSHOCK_PROMETHEUS",  # the Prometheus binary (stack/prometheus.py)
    "AFTERSHOCK_CACHE",  # where downloads are kept (stack/prometheus.py)
    "AFTERSHOCK_IMAGE",  # the image of the compiled components
    "AFTERSHOCK_STORE_ACCESS_KEY",  # credentials are never parameters: parameters are stored and shown
    "AFTERSHOCK_STORE_SECRET_KEY",
}
"""Variables with our prefix that are not parameters of an experiment."""

EMBEDDED = "embedded"
"""Value of an address that means: the part of the embedded stack that has this role."""

AUTO = "auto"
"""Value of a name that means: the one that follows from the rest."""

NO_FAULT = "none"
"""Value of `fault` for a control run."""

NOTHING = "none"
"""Value of `engine`, `probes`, `slo_probes` and `selector` that means: there is none."""


def _parameters(value: Any) -> Any:
    """Accept `{"K": "v"}` as JSON text too (environment, flags) and scalars as the strings Litmus wants."""
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except json.JSONDecodeError as error:
            raise ValueError(f"is not JSON ({error.msg})") from error
    if not isinstance(value, dict):
        raise ValueError("must map names to values")
    return {str(key): _scalar(item) for key, item in value.items()}


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))  # KFP turns the integers of a struct into floats
    if isinstance(value, str | int | float):
        return str(value)
    raise ValueError(f"values must be strings or numbers, not {type(value).__name__}")


FaultParameters = Annotated[dict[str, str], BeforeValidator(_parameters)]


class Experiment(BaseModel):
    """Everything that decides what a run does. Frozen once validated."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str = Field(
        "auto",
        description="Name of the run: its directory, its label on the chaos, its key in the history. auto: by the time",
    )
    target_url: str = Field(
        EMBEDDED,
        description="Base URL of the inference service, without /v1; embedded: the stack that `aftershock run` starts",
    )
    model: str = Field(
        "canary",
        description="Model name sent with each request; with the embedded stack also the "
        "model it serves: canary or smollm2",
    )
    protocol: Literal["completions", "chat"] = Field("completions", description="OpenAI endpoint that takes the load")
    namespace: str = Field("inference", description="Namespace of the pods that the fault hits")
    label: str = Field("app=model-server", description="One key=value label of the pods that the fault hits")
    kind: Literal["deployment", "statefulset", "daemonset", "deploymentconfig", "rollout"] = Field(
        "deployment", description="Kind of the workload that owns the pods"
    )
    chaos_namespace: str = Field(
        "auto", description="Namespace of the ChaosEngine and of Litmus' pods; auto: that of the pods"
    )
    service_account: str = Field(
        "auto", description="Service account that the fault runs under, in that namespace; auto: the one of deploy/"
    )
    fault: str = Field(
        "pod-delete",
        description="Fault template, see `aftershock faults`; several, separated by commas: one after the other; "
        "none: a control run",
    )
    fault_parameters: FaultParameters = Field(
        {},
        description="Tunables of the fault under Litmus' names, as a JSON object; of several faults as fault.NAME",
    )
    engine: str = Field(
        "none",
        description="ChaosEngine to use instead of the templates: a file, or the YAML itself; none: render `fault`",
    )
    probes: str = Field(
        "none", description="Probes that Litmus shall run beside the fault: a file with a list of them, or the YAML"
    )
    slo_probes: str = Field(
        "none",
        description="Have Litmus itself watch the SLO's stop conditions, as promProbes: Prometheus' URL as pods see "
        "it; auto: prometheus_url; none: leave it to us",
    )
    slo_watch: bool = Field(
        True, description="Stop the fault once a stop condition of the SLO is breached for as long as it says"
    )
    confirm: str = Field(
        "none",
        description="Harm in a cluster that is meant, separated by commas: blast-radius, duration, scrape-gap; none",
    )
    baseline_s: float = Field(20.0, ge=1, le=86_400, description="Length of the baseline phase, seconds")
    chaos_s: float = Field(30.0, ge=1, le=86_400, description="Length of the chaos phase and of the fault, seconds")
    recovery_s: float = Field(20.0, ge=1, le=86_400, description="Length of the recovery phase, seconds")
    rate: float = Field(60.0, gt=0, le=100_000, description="Offered load, requests per second")
    arrivals: Literal["poisson", "constant"] = Field(
        "poisson",
        description="Gaps between requests: exponential, as independent users make them, or constant",
    )
    dataset: str = Field("canary", description="Questions to ask: canary, or a JSON Lines file")
    max_tokens: int = Field(16, ge=1, le=32_768, description="Upper bound of tokens per answer")
    temperature: float = Field(0.0, ge=0, le=2, description="Sampling temperature; 0 keeps answers comparable")
    request_timeout_s: float = Field(
        10.0,
        gt=0,
        le=3_600,
        description="A request without a full answer after this "
        "many seconds, counted from its scheduled time, has failed",
    )
    seed: int = Field(1, ge=0, description="Seed of arrivals and of what the fault picks")
    slo: str = Field("canary", description="SLO document: a name from `slo_specs`, a file, or the YAML itself")
    selector: str = Field(
        "none",
        description="Labels of the target's series in Prometheus, for `{{ selector }}` in the SLO's queries, as "
        'job="vllm",namespace="llm"; none',
    )
    policy: Literal["strict", "point"] = Field(
        "strict",
        description="strict: PASS or FAIL only where the whole "
        "confidence interval agrees; point: by the point estimate",
    )
    prometheus_url: str = Field(EMBEDDED, description="Base URL of Prometheus; embedded: the stack's own")
    scrape_interval_s: float = Field(1.0, ge=0.1, le=300, description="How often Prometheus scrapes, seconds")
    metrics_port: int = Field(9464, ge=1, le=65_535, description="Port on which the load generator is scraped")
    backend: Literal["local", "litmus"] = Field(
        "local", description="Who injects: local acts on the embedded stack, litmus hands the ChaosEngine to a cluster"
    )
    kube_context: str = Field(
        "auto", description="Context of the kubeconfig, for litmus; auto: its current one, or the pod's service account"
    )
    store_endpoint: str = Field(
        EMBEDDED,
        description="host:port of the S3 store that keeps the history; embedded: "
        "the stack's own; none: keep no history",
    )
    store_bucket: str = Field(
        "aftershock", pattern=r"^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$", description="Bucket of the history"
    )
    gate: bool = Field(True, description="Fail the pipeline run where the verdict is not PASS")
    stack: str = Field(
        "none", description="State file of the embedded stack, for the local backend; set by `aftershock run`"
    )

    @field_validator("run_id")
    @classmethod
    def _run_id_is_a_label(cls, value: str) -> str:
        # Becomes part of a ChaosEngine's name, which may have 40 characters before Litmus' own suffixes break it.
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", value):
            raise ValueError("must be 1 to 32 of a-z, 0-9 and -, not starting or ending in -")
        if value == "store":
            raise ValueError("is the name of the folder beside the runs that holds the history; choose another")
        return value

    @field_validator("label")
    @classmethod
    def _one_label(cls, value: str) -> str:
        # Litmus lists each of several labels by itself and joins the results: an OR that hits more than was meant.
        name = r"[A-Za-z0-9]([A-Za-z0-9._/-]{0,251}[A-Za-z0-9])?"
        if not re.fullmatch(rf"{name}=[A-Za-z0-9]([A-Za-z0-9._-]{{0,61}}[A-Za-z0-9])?", value):
            raise ValueError("must be exactly one key=value; Litmus reads a comma as OR")
        return value

    @field_validator("namespace", "chaos_namespace")
    @classmethod
    def _namespace_is_a_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", value):
            raise ValueError("must be a Kubernetes namespace name")
        return value

    @field_validator("service_account")
    @classmethod
    def _service_account_is_a_name(cls, value: str) -> str:
        if not re.fullmatch(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", value):
            raise ValueError("must be the name of a service account")
        return value

    @field_validator("target_url", "prometheus_url", "slo_probes")
    @classmethod
    def _url(cls, value: str, info: ValidationInfo) -> str:
        words = ("auto", "none") if info.field_name == "slo_probes" else (EMBEDDED,)
        if value not in words and not re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", value):
            raise ValueError(f"must be http:// or https:// with a host, or {' or '.join(words)}")
        return value.rstrip("/")

    @field_validator("store_endpoint")
    @classmethod
    def _host_and_port(cls, value: str) -> str:
        if value not in (EMBEDDED, "none") and not re.fullmatch(r"(https?://)?[A-Za-z0-9.\[\]:-]+(:\d{1,5})?/?", value):
            raise ValueError("must be host:port, a URL, embedded or none")
        return value

    @field_validator("selector")
    @classmethod
    def _selector_is_matchers(cls, value: str) -> str:
        return value if value == NOTHING else checked_matchers(value) or NOTHING

    @property
    def phase_seconds(self) -> dict[Phase, float]:
        """How long each phase is to be."""
        return {
            Phase.BASELINE: self.baseline_s,
            Phase.CHAOS: self.chaos_s,
            Phase.RECOVERY: self.recovery_s,
        }

    @property
    def matchers(self) -> str:
        """What `selector` says, as PromQL has it between braces; empty where it says nothing."""
        return "" if self.selector == NOTHING else self.selector

    @property
    def confirmed(self) -> tuple[str, ...]:
        """What `confirm` names."""
        return () if self.confirm == "none" else tuple(part.strip() for part in self.confirm.split(",") if part.strip())

    @property
    def engine_namespace(self) -> str:
        """Where the ChaosEngine lives."""
        return self.namespace if self.chaos_namespace == AUTO else self.chaos_namespace

    def needs_stack(self) -> bool:
        """Whether any part of it is to be the embedded stack's."""
        return EMBEDDED in (self.target_url, self.prometheus_url, self.store_endpoint)

    def to_yaml(self) -> str:
        """The experiment as a file that `aftershock run -f` takes."""
        return yaml.safe_dump(self.model_dump(mode="json"), sort_keys=False, allow_unicode=True)


def load_experiment(text: str, source: str = "experiment") -> Experiment:
    """Read one experiment from YAML. Raises ExperimentError naming `source`, the key, its value and what is allowed."""
    return validate(_mapping(text, source), source)


def resolve(*, flags: Mapping[str, Any], environment: Mapping[str, str], file: Path | None = None) -> Experiment:
    """Merge flags over environment over file over defaults. Raises ExperimentError at the first thing wrong."""
    merged: dict[str, Any] = {}
    if file is not None:
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ExperimentError(f"{file}: cannot be read ({error}); give a YAML file with -f") from error
        merged |= _mapping(text, str(file))
        validate(merged, str(file))
    merged |= _from_environment(environment)
    merged |= flags
    return validate(merged, "experiment")


def validate(values: Mapping[str, Any], source: str) -> Experiment:
    """`values` as an Experiment. Raises ExperimentError: source, name, value, what is allowed; one line."""
    unknown = sorted(set(values) - set(Experiment.model_fields))
    if unknown:
        raise ExperimentError(
            f"{source}: unknown parameter {unknown[0]!r}; known are {', '.join(Experiment.model_fields)}"
        )
    try:
        return Experiment.model_validate(dict(values))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise ExperimentError(f"{source}: {name}={first['input']!r}: {message}") from error


def _mapping(text: str, source: str) -> dict[str, Any]:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        raise ExperimentError(f"{source}{line}: not YAML ({getattr(error, 'problem', error)})") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise ExperimentError(f"{source}: must map parameter names to values, not be a {type(data).__name__}")
    return {str(key): value for key, value in data.items()}


def _from_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for variable, value in environment.items():
        if not variable.startswith(ENVIRONMENT_PREFIX) or variable in RESERVED_VARIABLES:
            continue
        name = variable.removeprefix(ENVIRONMENT_PREFIX).lower()
        if name not in Experiment.model_fields:
            raise ExperimentError(
                f"environment: {variable}={value!r} is no parameter; known are "
                f"{', '.join(ENVIRONMENT_PREFIX + field.upper() for field in Experiment.model_fields)}"
            )
        values[name] = value
    return values
