"""What runs of a cluster, in a file in its directory, so that another process can ask after it and stop it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from pydantic import TypeAdapter, ValidationError

from aftershock.errors import InfrastructureError
from aftershock.processes import Identity
from aftershock.stack.private import write_private
from tests.cluster.rig.layout import Layout


@dataclass(frozen=True)
class State:
    """The daemons that were started, by name."""

    daemons: Mapping[str, Identity] = field(default_factory=dict)
    complete: bool = False
    """Whether the start came to its end."""

    def dead(self) -> list[str]:
        """Names of the daemons that have ended."""
        return [name for name, process in self.daemons.items() if not process.alive()]

    def with_daemon(self, name: str, process: Identity) -> State:
        """The same with one more daemon, or with another process for one."""
        return State({**self.daemons, name: process}, self.complete)


def read_state(layout: Layout) -> State | None:
    """None where there is no cluster. Raises InfrastructureError where the file cannot be understood."""
    try:
        return _adapter().validate_json(layout.state.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        raise InfrastructureError(f"{layout.state} cannot be read; end this cluster with `down`") from error


def write_state(layout: Layout, state: State) -> None:
    """Replace the file, atomically."""
    write_private(layout.state, _adapter().dump_json(state, indent=2).decode() + "\n")


@cache
def _adapter() -> TypeAdapter[State]:
    return TypeAdapter(State)
