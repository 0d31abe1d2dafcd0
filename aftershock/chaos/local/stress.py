"""Faults that take away a resource: worker processes beside the model server, on the same machine.

In a cluster the workers run in the control group of the target; here they share the machine with the whole stack.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from aftershock.chaos.local import machine
from aftershock.chaos.local.scene import READY_POLL_S, Scene
from aftershock.chaos.local.state import Pod
from aftershock.chaos.local.targets import read_selection
from aftershock.chaos.local.tunables import Tunables
from aftershock.chaos.local.workers import START_S, Workers
from aftershock.errors import ChaosError, InputError

GIB = 1024 * machine.MIB
MARGIN_S = 2.0
"""How much longer than asked a worker may live if nobody ends it."""


class _Stress(ABC):
    """Start workers for each target, hold them, end them; serially for each pod in turn, as Litmus does."""

    kind: str

    def __init__(self, tunables: Tunables, duration_s: int, workers: int) -> None:
        self.selection = read_selection(tunables)
        self.duration_s = tunables.seconds("TOTAL_CHAOS_DURATION", duration_s, low=1)
        self.workers = workers
        """For each target."""
        self._running: tuple[Workers, Sequence[Pod]] | None = None
        self._peak = 0.0
        """The most that all workers together had done, or held, when they were looked at."""

    @abstractmethod
    def check(self, pods: int, folder: Path) -> None:
        """Raise InputError if it were too much for the machine."""

    @abstractmethod
    def _options(self, folder: Path) -> Mapping[str, Any]:
        """What each worker is told."""

    @abstractmethod
    def _tally(self, pods: str) -> tuple[int, str]:
        """How often it acted, and the evidence; from `_peak`."""

    def inject(self, scene: Scene) -> None:
        """The fault begins when every worker is at work."""
        for batch in scene.batches():
            scene.announce(batch)
            workers = self._start(scene, batch)
            scene.injected(batch)
            scene.hold(self.duration_s, partial(self._observe, workers))
            self.revert(scene)

    def revert(self, scene: Scene) -> None:
        """End the workers, and tell what they did."""
        if self._running is None:
            return
        (workers, pods), self._running = self._running, None
        workers.stop()
        self._measure(workers)
        count, sentence = self._tally(", ".join(pod.name for pod in pods))
        self._peak = 0.0
        scene.record.effect(count, sentence)
        scene.reverted(pods)

    def _start(self, scene: Scene, pods: Sequence[Pod]) -> Workers:
        workers = Workers(scene.folder)
        self._running = workers, pods
        options = self._options(scene.folder)
        for pod in pods:
            for _ in range(self.workers):
                workers.start(pod.name, self.kind, options, self.duration_s + START_S + MARGIN_S)
        end = time.monotonic() + START_S
        while not workers.up:
            if time.monotonic() > end:
                raise ChaosError(f"the workers were not at work after {START_S:g} s", code="CHAOS_INJECT_ERROR")
            scene.wait(READY_POLL_S)
            workers.check()
        return workers

    def _observe(self, workers: Workers) -> None:
        workers.check()
        self._measure(workers)

    def _measure(self, workers: Workers) -> None:
        self._peak = max(self._peak, sum(worker.amount for worker in workers.all))


class _CpuHog(_Stress):
    kind = "cpu"

    def __init__(self, tunables: Tunables) -> None:
        wanted = tunables.integer("CPU_CORES", 1, 0, 1024)
        super().__init__(tunables, duration_s=60, workers=wanted or machine.cores())
        self.load_percent = tunables.integer("CPU_LOAD", 100, 0, 100)

    def check(self, pods: int, folder: Path) -> None:
        wanted, most = pods * self.workers, 8 * machine.cores()
        if wanted > most:
            raise InputError(
                f"pod-cpu-hog: CPU_CORES={self.workers} on {pods} pods makes {wanted} workers; "
                f"with {machine.cores()} cores at most {most} are safe"
            )

    def _options(self, folder: Path) -> Mapping[str, Any]:
        return {"load_percent": self.load_percent}

    def _tally(self, pods: str) -> tuple[int, str]:
        seconds = max(1, round(self._peak)) if self._peak >= 0.1 else 0  # a third of a second is an effect, too
        return seconds, f"workers beside {pods} used {self._peak:.1f} s of CPU time ({self.load_percent} % load asked)"


class _MemoryHog(_Stress):
    kind = "memory"

    def __init__(self, tunables: Tunables) -> None:
        super().__init__(tunables, duration_s=60, workers=tunables.integer("NUMBER_OF_WORKERS", 1, 1, 64))
        self.mib = tunables.integer("MEMORY_CONSUMPTION", 500, 1, 10_000_000)
        """For each target; its workers share it, as those of stress-ng do."""

    def check(self, pods: int, folder: Path) -> None:
        safe = int(machine.available_memory() * machine.SAFE_SHARE / machine.MIB)
        if pods * self.mib > safe:
            raise InputError(
                f"pod-memory-hog: MEMORY_CONSUMPTION={self.mib} on {pods} pods takes {pods * self.mib} MiB; "
                f"half of what this machine has available is {safe} MiB"
            )

    def _options(self, folder: Path) -> Mapping[str, Any]:
        return {"bytes": self.mib * machine.MIB // self.workers}

    def _tally(self, pods: str) -> tuple[int, str]:
        held = int(self._peak / machine.MIB)
        return held, f"workers beside {pods} held {held} MiB of memory in RAM"


class _IoStress(_Stress):
    kind = "io"

    def __init__(self, tunables: Tunables) -> None:
        super().__init__(tunables, duration_s=120, workers=tunables.integer("NUMBER_OF_WORKERS", 4, 1, 64))
        self.percentage = tunables.integer("FILESYSTEM_UTILIZATION_PERCENTAGE", 0, 0, 100)
        self.gib = tunables.integer("FILESYSTEM_UTILIZATION_BYTES", 0, 0, 1_000_000)
        if not self.percentage and not self.gib:
            self.percentage = 10  # Litmus' default; where both are given, the percentage wins there too

    def check(self, pods: int, folder: Path) -> None:
        free, wanted = machine.free_disk(folder), pods * self._size(folder)
        if wanted > free * machine.SAFE_SHARE:
            raise InputError(
                f"pod-io-stress: {self._asked()} on {pods} pods takes {wanted / GIB:.1f} GiB; "
                f"half of what is free in {folder} is {free * machine.SAFE_SHARE / GIB:.1f} GiB"
            )

    def _asked(self) -> str:
        if self.percentage:
            return f"FILESYSTEM_UTILIZATION_PERCENTAGE={self.percentage}"
        return f"FILESYSTEM_UTILIZATION_BYTES={self.gib}"

    def _size(self, folder: Path) -> int:
        """Bytes of disk for each target; its workers share them, as those of stress-ng do."""
        return machine.free_disk(folder) * self.percentage // 100 if self.percentage else self.gib * GIB

    def _options(self, folder: Path) -> Mapping[str, Any]:
        return {"bytes": max(machine.MIB, self._size(folder) // self.workers), "folder": str(folder)}

    def _tally(self, pods: str) -> tuple[int, str]:
        written = int(self._peak / machine.MIB)
        return written, f"workers beside {pods} wrote {written} MiB and forced them to the disk"


def cpu_hog(tunables: Tunables) -> _Stress:
    """pod-cpu-hog: CPU_CORES busy processes for each target (0: one a core), each busy CPU_LOAD % of the time."""
    return _CpuHog(tunables)


def memory_hog(tunables: Tunables) -> _Stress:
    """pod-memory-hog: MEMORY_CONSUMPTION MiB for each target, held in RAM."""
    return _MemoryHog(tunables)


def io_stress(tunables: Tunables) -> _Stress:
    """pod-io-stress: files of the given share of the free disk, written again and again."""
    return _IoStress(tunables)
