"""What the embedded stack says about itself, in its state file and by its supervisor: only what a fault needs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from aftershock.errors import ChaosError
from aftershock.processes import Identity


class _Part(BaseModel):
    """The document belongs to the stack, which may say more than we read."""

    model_config = ConfigDict(extra="ignore", frozen=True)


class Pod(_Part):
    """One model server, as its supervisor sees it. `slot` is its place in the service, and outlives the name."""

    name: str
    slot: int
    pid: int | None = None
    phase: str
    ready: bool
    restarts: int = 0
    ready_at: datetime | None = None

    @property
    def serving(self) -> bool:
        """Whether Litmus' status check would be content with it."""
        return self.ready and self.phase == "Running"


class Process(_Part):
    """A process by its identity: a pid alone may by now be another's."""

    pid: int
    started: float

    def alive(self) -> bool:
        """Whether it still runs."""
        return Identity(self.pid, self.started).alive()


class SupervisorAddress(Process):
    """Where the supervisor answers, and what it wants to see."""

    url: str
    token: str


class GatewayAddress(_Part):
    """Where the gateway takes faults, and what it wants to see."""

    admin_url: str
    token: str


class StackState(_Part):
    """The whole document."""

    supervisor: SupervisorAddress
    gateway: GatewayAddress
    namespace: str
    labels: dict[str, str]
    kind: str
    pods: tuple[Pod, ...]


def read_state(path: Path) -> StackState:
    """Read the stack's state file. Raises ChaosError where there is none, or where it is not what it should be."""
    try:
        return StackState.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ChaosError(f"{path}: no embedded stack ({error.strerror}); start one with `aftershock run`") from error
    except ValidationError as error:
        raise ChaosError(
            f"{path}: not the state of a stack with model servers ({first_reason(error)}); "
            "start one with `aftershock run`"
        ) from error


def parse_pods(document: Any) -> tuple[Pod, ...]:
    """The pods in a document that the supervisor gave, by slot. Raises ChaosError where it has none."""
    try:
        pods = [Pod.model_validate(item) for item in document["pods"]]
    except (KeyError, TypeError) as error:
        raise ChaosError(f"supervisor: /state lists no pods ({error}); is something else on its port?") from error
    except ValidationError as error:
        raise ChaosError(f"supervisor: /state has a pod that is none ({first_reason(error)})") from error
    return tuple(sorted(pods, key=lambda pod: (pod.slot, pod.name)))


def first_reason(error: ValidationError) -> str:
    """The first thing pydantic found, in one line."""
    first = error.errors(include_url=False)[0]
    return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
