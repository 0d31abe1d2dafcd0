"""What a gateway is told when it starts: one JSON document, checked here. The embedded stack writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from aftershock.errors import InputError


class Strict(BaseModel):
    """Unknown keys are refused: a misspelt one must not silently mean its default."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def _base_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme != "http" or not parts.hostname:
        raise ValueError("must be http://HOST:PORT")
    if parts.query or parts.fragment or parts.path.strip("/"):
        raise ValueError("must be http://HOST:PORT without a path: paths of requests are passed on as they are")
    return value.rstrip("/")


class ReplicaSettings(Strict):
    """One model server behind the gateway."""

    name: str = Field(
        min_length=1,
        max_length=63,
        pattern=r"^[A-Za-z0-9._-]+$",
        description="Label `replica` of the metrics and name in faults; the embedded stack uses the slot number",
    )
    url: Annotated[str, AfterValidator(_base_url)] = Field(description="Where it listens, as http://HOST:PORT")


class HealthSettings(Strict):
    """The readiness probe, with the meaning a kubelet gives it. Defaults suit servers that restart within a second."""

    path: str = Field("/health", pattern=r"^/", description="Path asked with GET; 200 to 399 is a success")
    period_s: float = Field(1.0, gt=0, le=300, description="Seconds from one probe to the next, on average")
    timeout_s: float = Field(1.0, gt=0, le=300, description="Seconds after which a probe without an answer has failed")
    failures: int = Field(1, ge=1, le=100, description="Failed probes in a row that make a replica unready")
    successes: int = Field(1, ge=1, le=100, description="Good probes in a row that make a replica ready")


class GatewaySettings(Strict):
    """The whole configuration. Limits are there so that no peer can hold memory or time for ever."""

    host: str = Field("127.0.0.1", description="Address both ports are bound to")
    port: int = Field(0, ge=0, le=65535, description="Public port; 0 takes a free one, told on standard output")
    admin_port: int = Field(0, ge=0, le=65535, description="Port of the fault API; 0 takes a free one")
    token: str = Field(min_length=1, repr=False, description="Bearer token the fault API asks for")
    replicas: tuple[ReplicaSettings, ...] = Field(min_length=1, description="The model servers, by distinct names")
    retries: int = Field(
        0,
        ge=0,
        le=10,
        description="Other replicas tried after a refused or reset connection, before the client got a byte; "
        "0 as a Kubernetes Service, which never retries",
    )
    connect_timeout_s: float = Field(2.0, gt=0, le=300, description="Seconds to connect to a replica, then 504")
    request_timeout_s: float = Field(
        120.0, gt=0, le=86400, description="Seconds from a request to the end of its answer, then 504 or a cut stream"
    )
    idle_timeout_s: float = Field(
        3.0,
        ge=0,
        le=300,
        description="Seconds an idle connection to a replica is kept; less than servers keep theirs (uvicorn: 5), so "
        "that no request is sent into one that is being closed. 0: a connection for each request",
    )
    drain_timeout_s: float = Field(
        10.0, ge=0, le=3600, description="Seconds that requests in flight may take to end after SIGTERM"
    )
    max_body_bytes: int = Field(16 * 1024 * 1024, ge=1, description="Largest request body; above it 413")
    health: HealthSettings = Field(default_factory=HealthSettings, description="The readiness probe of each replica")

    @model_validator(mode="after")
    def _distinct(self) -> Self:
        names = [replica.name for replica in self.replicas]
        if len(set(names)) < len(names):
            raise ValueError(f"replicas: names must differ, got {', '.join(names)}")
        if self.port and self.port == self.admin_port:
            raise ValueError(f"port and admin_port are both {self.port}; give two")
        return self


def load_settings(path: Path) -> GatewaySettings:
    """Read a configuration file. Raises InputError with the file, the key and the reason, in one line."""
    try:
        return GatewaySettings.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); give a gateway configuration file") from error
    except ValidationError as error:
        raise InputError(f"{path}: {reasons(error)}") from error


def reasons(error: ValidationError) -> str:
    """What pydantic found, as one line: `key: reason; key: reason`."""
    return "; ".join(
        ": ".join(part for part in (".".join(map(str, item["loc"])), item["msg"]) if part)
        for item in error.errors(include_url=False, include_context=False, include_input=False)
    )
