"""Faults that end a model server: over in an instant, and repeated every CHAOS_INTERVAL."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from aftershock.chaos.local.api import RefusedError
from aftershock.chaos.local.machine import Unlimited
from aftershock.chaos.local.scene import Scene, serving_slots
from aftershock.chaos.local.state import Pod
from aftershock.chaos.local.targets import Selection, read_selection
from aftershock.chaos.local.tunables import Tunables
from aftershock.errors import ChaosError
from aftershock.windows import utc_now

POD_GRACE_S = 30.0
"""What Kubernetes gives a pod that is deleted without FORCE."""

LAST_LOOK_S = 1.0
"""How long a stopped fault looks for the effect of a kill it has just sent."""


@dataclass(frozen=True)
class _Shot:
    """A kill that the supervisor accepted."""

    pod: Pod
    at: datetime


class _Kills(Unlimited, ABC):
    """Fire at the targets, wait out the interval, wait until the service has recovered; again until time is over."""

    def __init__(self, tunables: Tunables, duration_s: int, interval_s: int) -> None:
        self.selection: Selection = read_selection(tunables)
        self.duration_s = tunables.seconds("TOTAL_CHAOS_DURATION", duration_s, low=1)
        self.interval_s = tunables.seconds("CHAOS_INTERVAL", interval_s)
        self._shots: list[_Shot] = []
        """Not yet seen to have hit."""

    @abstractmethod
    def inject(self, scene: Scene) -> None:
        """In rounds; how targets are drawn for them is the fault's own."""

    @abstractmethod
    def _fire(self, scene: Scene, pod: Pod) -> None:
        """Tell the supervisor."""

    @abstractmethod
    def _gone(self, pod: Pod, now: Pod | None) -> bool:
        """Whether `pod` was hit, `now` being what there is under its name."""

    @abstractmethod
    def _successor(self, pod: Pod, pods: Sequence[Pod]) -> Pod | None:
        """What serves in the place of a pod that was hit, or will."""

    def revert(self, scene: Scene) -> None:
        """A kill cannot be taken back, and the supervisor restarts the pod; only look whether the last ones hit."""
        end = time.monotonic() + LAST_LOOK_S
        while self._shots and time.monotonic() < end:
            self._confirm(scene, scene.supervisor.pods(), final=True)
            time.sleep(0.05 if self._shots else 0)  # not `scene.wait`: a stop has been asked for already

    def _round(self, scene: Scene, targets: Sequence[Pod], end: float) -> None:
        """One kill of each target, and the time until the next one is due."""
        scene.announce(targets)
        for pod in targets:
            at = utc_now()
            self._send(scene, pod)
            scene.record.injected(at)
            scene.record.reverted(at)
            self._shots.append(_Shot(pod, at))
        scene.hold(min(self.interval_s, end - time.monotonic()))
        scene.wait_until(partial(self._recovered, scene), f"the service was whole again after {scene.experiment.name}")

    def _send(self, scene: Scene, pod: Pod) -> None:
        try:
            self._fire(scene, pod)
        except RefusedError as error:
            raise ChaosError(f"{pod.name} could not be killed: {error}", code="CHAOS_INJECT_ERROR") from error

    def _recovered(self, scene: Scene, pods: Sequence[Pod]) -> bool:
        self._confirm(scene, pods, final=False)
        return not self._shots and serving_slots(pods) >= scene.slots

    def _confirm(self, scene: Scene, pods: Sequence[Pod], final: bool) -> None:
        """Count the kills that were seen to hit; unless it is the final look, only once their successor serves."""
        by_name = {pod.name: pod for pod in pods}
        for shot in list(self._shots):
            successor = self._successor(shot.pod, pods)
            if not self._gone(shot.pod, by_name.get(shot.pod.name)):
                continue
            if final or (successor and successor.serving):
                self._shots.remove(shot)
                scene.record.effect(1, _sentence(shot, successor))


class _PodDelete(_Kills):
    def __init__(self, tunables: Tunables) -> None:
        super().__init__(tunables, duration_s=15, interval_s=5)
        self.force = tunables.boolean("FORCE", default=True)
        if self.selection.names and self.interval_s < self.duration_s:
            raise tunables.refusal(
                "TARGET_PODS",
                ",".join(self.selection.names),
                "a deleted pod comes back under another name, so that a second round finds none; "
                "set CHAOS_INTERVAL to TOTAL_CHAOS_DURATION",
            )

    def inject(self, scene: Scene) -> None:
        end = time.monotonic() + self.duration_s
        while time.monotonic() < end:
            for batch in scene.batches():
                if time.monotonic() < end:
                    self._round(scene, batch, end)

    def _fire(self, scene: Scene, pod: Pod) -> None:
        scene.supervisor.delete(pod.name, 0.0 if self.force else POD_GRACE_S)

    def _gone(self, pod: Pod, now: Pod | None) -> bool:
        return now is None or now.phase == "Terminating"

    def _successor(self, pod: Pod, pods: Sequence[Pod]) -> Pod | None:
        return next((other for other in pods if other.slot == pod.slot and other.name != pod.name), None)


class _ContainerKill(_Kills):
    def __init__(self, tunables: Tunables) -> None:
        super().__init__(tunables, duration_s=20, interval_s=10)
        self.signal = tunables.choice("SIGNAL", "SIGKILL", ("SIGKILL", "SIGTERM"))

    def inject(self, scene: Scene) -> None:
        for batch in scene.batches():
            end = time.monotonic() + self.duration_s
            names = Selection(names=tuple(pod.name for pod in batch))
            while time.monotonic() < end:
                self._round(scene, names.choose(scene.supervisor.pods(), scene.random), end)

    def _fire(self, scene: Scene, pod: Pod) -> None:
        scene.supervisor.kill(pod.name, self.signal)

    def _gone(self, pod: Pod, now: Pod | None) -> bool:
        return now is None or now.restarts > pod.restarts or now.pid != pod.pid

    def _successor(self, pod: Pod, pods: Sequence[Pod]) -> Pod | None:
        return next((other for other in pods if other.name == pod.name), None)


def pod_delete(tunables: Tunables) -> _Kills:
    """The pod goes and another of a new name takes its place; targets are drawn anew for every round."""
    return _PodDelete(tunables)


def container_kill(tunables: Tunables) -> _Kills:
    """The process gets the signal and is started again in the same pod; targets stay the same."""
    return _ContainerKill(tunables)


def _sentence(shot: _Shot, successor: Pod | None) -> str:
    at = f"{shot.at:%H:%M:%S}.{shot.at.microsecond // 1000:03d} UTC"
    killed = f"{at}: {shot.pod.name} (pid {shot.pod.pid}) was killed"
    if successor is None or not successor.serving:
        return f"{killed}; nothing served in its place yet when the fault ended"
    after = f" {(successor.ready_at - shot.at).total_seconds():.1f} s later" if successor.ready_at else ""
    return f"{killed}; {successor.name} (pid {successor.pid}) was ready in its place{after}"
