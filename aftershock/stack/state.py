"""What a running stack says about itself: one document, in a file and over the supervisor's API.

`runs/<run-id>/stack/state.json` appears when the supervisor answers, is replaced whenever something changes, and goes
when the stack has stopped.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from aftershock.errors import StackError
from aftershock.processes import Identity
from aftershock.stack.private import write_private

NAMESPACE = "inference"
LABELS = {"app": "model-server"}
KIND = "deployment"


@dataclass(frozen=True)
class SupervisorState:
    """Who supervises, and where it takes orders."""

    pid: int
    started: float
    url: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class GatewayState:
    """The service address of the model servers, and where faults are set."""

    url: str
    admin_url: str
    token: str = field(repr=False)


@dataclass(frozen=True)
class PrometheusState:
    """Where queries go."""

    url: str


@dataclass(frozen=True)
class StoreState:
    """The object store: `host:port` of its S3 API, and its one user."""

    endpoint: str
    access_key: str
    secret_key: str = field(repr=False)


@dataclass(frozen=True)
class PodState:
    """One model server as a Kubernetes pod would show it. `slot` and `url` outlive the name."""

    name: str
    slot: int
    pid: int | None
    """None while no process runs: before the first start, and between a crash and the restart."""
    started: float | None
    url: str
    phase: Literal["Pending", "Running", "Terminating"]
    ready: bool
    restarts: int
    created_at: datetime
    ready_at: datetime | None
    """When the present process first answered its readiness probe."""
    last_exit: str | None = None
    """How the process before ended."""


@dataclass(frozen=True)
class PartState:
    """A part that is started once: gateway, prometheus, store."""

    name: str
    pid: int | None
    started: float | None
    status: Literal["running", "exited"]
    ready: bool
    reason: str | None = None
    """How it ended, or why it never ran."""


@dataclass(frozen=True)
class StackState:
    """The whole document."""

    run_id: str
    supervisor: SupervisorState
    gateway: GatewayState | None
    """None, and no pods, where only Prometheus or the store is wanted."""
    prometheus: PrometheusState | None
    store: StoreState | None
    metrics_port: int
    """Held free for the load generator; Prometheus scrapes it."""
    pods: tuple[PodState, ...]
    parts: tuple[PartState, ...]
    namespace: str = NAMESPACE
    labels: dict[str, str] = field(default_factory=lambda: dict(LABELS))
    kind: str = KIND
    version: Literal[1] = 1

    @property
    def ready(self) -> bool:
        """Whether every part and every pod is ready."""
        return all(part.ready for part in self.parts) and all(pod.ready for pod in self.pods)

    @property
    def processes(self) -> dict[Identity, str]:
        """Every process of the stack, and what it is."""
        members = [
            ("supervisor", self.supervisor.pid, self.supervisor.started),
            *((part.name, part.pid, part.started) for part in self.parts),
            *((pod.name, pod.pid, pod.started) for pod in self.pods),
        ]
        return {
            Identity(pid, started): name for name, pid, started in members if pid is not None and started is not None
        }

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; instants as RFC 3339."""
        document: dict[str, Any] = _adapter().dump_python(self, mode="json")
        return document


def state_path(run_dir: Path) -> Path:
    """Where the stack of a run keeps its state."""
    return run_dir / "stack" / "state.json"


def write_state(path: Path, state: StackState) -> None:
    """Replace the file, atomically; only the user who runs the stack can read it. Raises RunDirectoryError."""
    write_private(path, _adapter().dump_json(state, indent=2).decode() + "\n")


def read_state(path: Path) -> StackState:
    """What `write_state` wrote. Raises StackError if no stack runs there, or the file is none of ours."""
    try:
        return _adapter().validate_json(path.read_bytes())
    except OSError as error:
        raise StackError(f"{path}: no stack runs there ({error.strerror}); start one with `aftershock run`") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise StackError(f"{path}: {place}: {first['msg']}; not the state of a stack of this version") from error


@cache
def _adapter() -> TypeAdapter[StackState]:
    return TypeAdapter(StackState)
