"""The faults that the local backend knows: name in the engine -> what does it. A new fault is a line here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from aftershock.chaos.local import kills, network, stress
from aftershock.chaos.local.scene import Scene
from aftershock.chaos.local.targets import Selection
from aftershock.chaos.local.tunables import Tunables
from aftershock.errors import EngineError


class Fault(Protocol):
    """One fault with its tunables. It keeps what it has started, so that `revert` can end it."""

    @property
    def selection(self) -> Selection:
        """Which pods it is to hit."""

    def check(self, pods: int, folder: Path) -> None:
        """Raise InputError if it were too much for this machine, `pods` pods being hit at one time."""

    def inject(self, scene: Scene) -> None:
        """Do it, and hold it until its time is over. Waits only by `scene`, so that a stop unwinds it."""

    def revert(self, scene: Scene) -> None:
        """End whatever was started and not ended yet; nothing if nothing was. Raises ChaosError where that failed."""


FAULTS: dict[str, Callable[[Tunables], Fault]] = {
    "pod-delete": kills.pod_delete,
    "container-kill": kills.container_kill,
    "pod-cpu-hog": stress.cpu_hog,
    "pod-memory-hog": stress.memory_hog,
    "pod-io-stress": stress.io_stress,
    "pod-network-latency": network.latency,
    "pod-network-loss": network.loss,
    "pod-network-partition": network.partition,
    "pod-http-latency": network.http_latency,
    "pod-http-status-code": network.http_status_code,
}


def build_fault(name: str, tunables: Tunables) -> Fault:
    """The fault called `name`. Raises EngineError for one that is unknown, or with tunables it cannot honour."""
    if name not in FAULTS:
        raise EngineError(f"experiment {name}: the local backend does not know it; it knows {', '.join(FAULTS)}")
    return FAULTS[name](tunables)
