"""What the embedded stack is asked for, and what its supervisor is handed."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from aftershock.errors import InputError


def _words(value: Any) -> Any:
    """A command may be given as one line, as flags and variables are."""
    return tuple(shlex.split(value)) if isinstance(value, str) else value


class StackSettings(BaseModel):
    """How the embedded stack is built. Each field is also a flag of `aftershock run`. Frozen once validated."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field("canary", description="Model the replicas serve: canary or smollm2")
    replicas: int = Field(2, ge=1, le=32, description="Model server processes behind the gateway")
    slots: int = Field(4, ge=1, le=256, description="Requests one model server computes at once; more wait")
    context_tokens: int = Field(512, ge=16, le=131_072, description="Tokens of prompt and answer per slot")
    restart_delay_s: float = Field(
        2.0,
        ge=0,
        le=3_600,
        description="Seconds from the end of a model server to the start of its successor: what scheduling, image and "
        "container cost in a cluster",
    )
    gateway_port: int = Field(0, ge=0, le=65_535, description="Port of the service address; 0: any free one")
    gateway_retries: int = Field(
        0,
        ge=0,
        le=10,
        description="Other replicas the gateway tries after a refused or reset connection; 0 as a Kubernetes Service",
    )
    ready_timeout_s: float = Field(
        60.0, gt=0, le=3_600, description="Seconds in which every part of the stack has to be ready"
    )
    scrape_interval_s: float = Field(1.0, ge=0.1, le=300, description="How often Prometheus scrapes, seconds")
    servers: bool = Field(True, description="Start model servers and gateway; not for a service that runs elsewhere")
    prometheus: bool = Field(True, description="Start a Prometheus")
    store: bool = Field(True, description="Start an object store, which keeps the history of all runs")
    model_server: Annotated[tuple[str, ...], BeforeValidator(_words)] = Field(
        (),
        description="Command of another model server; it is given --model --port --slots --ctx --name, serves GET "
        "/health and ends on SIGTERM. Empty: llama.cpp",
    )

    @classmethod
    def checked(cls, values: Mapping[str, Any]) -> Self:
        """`values` as settings. Raises InputError: name, value, what is allowed; one line."""
        unknown = sorted(set(values) - set(cls.model_fields))
        if unknown:
            raise InputError(f"stack: unknown setting {unknown[0]!r}; known are {', '.join(cls.model_fields)}")
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = ".".join(str(part) for part in first["loc"])
            raise InputError(f"stack: {name}={first['input']!r}: {first['msg']}") from error


class Launch(BaseModel):
    """The one document the supervisor starts from: the settings, and where the command found what they need."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    run_id: str = Field(description="Name of the run")
    run_dir: Path = Field(description="Directory of the run, absolute")
    settings: StackSettings = Field(description="What was asked for")
    model_path: Path | None = Field(None, description="GGUF file the replicas serve; null: there are none")
    prometheus: Path | None = Field(None, description="Prometheus binary; null: none is wanted")
    weed: Path | None = Field(None, description="SeaweedFS binary; null: no store is wanted")

    @property
    def stack_dir(self) -> Path:
        """The stack's own folder in the run directory; closed to other users, since it holds tokens."""
        return self.run_dir / "stack"

    def log(self, part: str) -> Path:
        """Log file of one part."""
        return self.run_dir / "logs" / f"{part}.log"
