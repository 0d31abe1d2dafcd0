"""Where a fault acts: the stack, the targets, the clock and the record of one experiment, as a fault gets them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from aftershock.chaos.engine import EngineExperiment
from aftershock.chaos.local.gateway import Gateway
from aftershock.chaos.local.recorder import Record
from aftershock.chaos.local.state import Pod
from aftershock.chaos.local.stop import StopSwitch
from aftershock.chaos.local.supervisor import Supervisor
from aftershock.chaos.local.targets import Selection
from aftershock.errors import ChaosError
from aftershock.windows import utc_now

OBSERVE_S = 0.5
"""How often a held fault is looked at."""

READY_POLL_S = 0.1
"""Litmus asks every statusCheckTimeouts.delay seconds; asking more often only brings kills closer to CHAOS_INTERVAL."""


@dataclass
class Scene:
    """One experiment on its way."""

    experiment: EngineExperiment
    selection: Selection
    supervisor: Supervisor
    gateway: Gateway
    folder: Path
    """Of the run's chaos; what a fault writes goes there."""
    switch: StopSwitch
    record: Record
    random: Random
    slots: int
    """Places of the service when the experiment began; as many must be served again after a kill."""

    def choose(self) -> tuple[Pod, ...]:
        """Draw the targets among the pods there are now, and record them."""
        targets = self.selection.choose(self.supervisor.pods(), self.random)
        for pod in targets:
            self.record.mark(pod.name, "targeted")
        return targets

    def batches(self) -> list[tuple[Pod, ...]]:
        """Targets drawn now, in the groups that are hit at one time."""
        return self.selection.batches(self.choose())

    def announce(self, targets: Sequence[Pod]) -> None:
        """Say on whom the fault is about to be injected."""
        for pod in targets:
            self.record.event("ChaosInject", f"Injecting {self.experiment.name} chaos on {pod.name}")

    def injected(self, targets: Sequence[Pod]) -> None:
        """The fault acts on `targets` from now on."""
        self.record.injected(utc_now())
        for pod in targets:
            self.record.mark(pod.name, "injected")

    def reverted(self, targets: Sequence[Pod]) -> None:
        """The fault on `targets` was seen to have ended."""
        self.record.reverted(utc_now())
        for pod in targets:
            self.record.mark(pod.name, "reverted")
            self.record.event("ChaosRevert", f"Reverted {self.experiment.name} chaos on {pod.name}")

    def wait(self, seconds: float) -> None:
        """Let time pass; ends with StopRequestedError when a stop is asked for."""
        self.switch.wait(seconds)

    def hold(self, seconds: float, observe: Callable[[], None] = lambda: None) -> None:
        """Keep a fault up, looking at it and at the stack now and then. Raises ChaosError where either is gone."""
        self.switch.check()
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.wait(min(left, OBSERVE_S))
            self.supervisor.check_alive()
            observe()

    def wait_until(self, condition: Callable[[Sequence[Pod]], bool], what: str) -> None:
        """Litmus' status check. Raises ChaosError (STATUS_CHECKS_ERROR) when the experiment's time-out is over."""
        timeout_s = self.experiment.status_check_timeout_s
        end = time.monotonic() + timeout_s
        while not condition(pods := self.supervisor.pods()):
            if time.monotonic() >= end:
                states = ", ".join(f"{pod.name} {pod.phase}{'' if pod.ready else ' not ready'}" for pod in pods)
                raise ChaosError(
                    f"not after {timeout_s:g} s: {what} ({states or 'no pods'}); see the stack's logs, "
                    "or raise statusCheckTimeouts.timeout",
                    code="STATUS_CHECKS_ERROR",
                )
            self.wait(READY_POLL_S)

    def wait_ready(self) -> None:
        """Wait until each place of the service has a pod that serves."""
        self.wait_until(lambda pods: serving_slots(pods) >= self.slots, "all pods were ready")


def serving_slots(pods: Sequence[Pod]) -> int:
    """How many places of the service have a pod that serves."""
    return len({pod.slot for pod in pods if pod.serving})
