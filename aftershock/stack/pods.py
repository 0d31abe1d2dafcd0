"""The model servers, kept as a Deployment and its kubelet keep pods.

A container that ends is started again in its pod, after the restart delay: same name, `restarts` one up. A pod that is
deleted is gone for good: another of a new name takes its slot, `Pending` for the restart delay. Unlike in a cluster
the successor keeps the port, and so waits for the end of the one before; the delay does not grow (no
CrashLoopBackOff); nothing is restarted because its health probe fails.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from aftershock.errors import StackError
from aftershock.progress import emit
from aftershock.stack.failure import emit_failure
from aftershock.stack.ports import HOST, is_taken
from aftershock.stack.probe import get_status
from aftershock.stack.process import Command, Process, ending
from aftershock.stack.state import PodState
from aftershock.windows import utc_now

HEALTH_PATH = "/health"
PROBE_S = 1.0
"""From one readiness probe to the next, once ready."""
STARTUP_PROBE_S = 0.05
"""The same before that: the instant of readiness is what a run measures."""

SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
"""What Kubernetes makes names of: no vowels, so no words, and no characters that look alike."""


@dataclass
class Pod:
    """One pod; changes only in the supervisor's event loop."""

    slot: int
    port: int
    name: str
    created_at: datetime = field(default_factory=utc_now)
    process: Process | None = None
    phase: Literal["Pending", "Running", "Terminating"] = "Pending"
    ready: bool = False
    ready_at: datetime | None = None
    restarts: int = 0
    last_exit: str | None = None
    deleted: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def state(self) -> PodState:
        """For the state document."""
        identity = self.process.identity if self.process else None
        return PodState(
            name=self.name,
            slot=self.slot,
            pid=identity.pid if identity else None,
            started=identity.started if identity else None,
            url=f"http://{HOST}:{self.port}",
            phase=self.phase,
            ready=self.ready,
            restarts=self.restarts,
            created_at=self.created_at,
            ready_at=self.ready_at,
            last_exit=self.last_exit,
        )


class Deployment:
    """As many pods as there are ports, each in its slot."""

    def __init__(
        self,
        ports: list[int],
        server: Callable[[int, int], Command],
        restart_delay_s: float,
        changed: Callable[[], None],
    ) -> None:
        """`server` gives the command for (slot, port); `changed` is called after every change of a pod."""
        self._server = server
        self._restart_delay_s = restart_delay_s
        self._changed = changed
        self._pods = {slot: self._new_pod(slot, port) for slot, port in enumerate(ports)}
        self._terminations: set[asyncio.Task[None]] = set()

    @property
    def pods(self) -> tuple[Pod, ...]:
        """All pods, by slot."""
        return tuple(self._pods.values())

    async def run(self) -> None:
        """Keep every slot filled, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for slot in self._pods:
                group.create_task(self._keep(slot))

    async def stop(self) -> None:
        """End all processes, all at once."""
        await asyncio.gather(*(pod.process.stop() for pod in self.pods if pod.process))

    def delete(self, pod: Pod, grace_s: float) -> None:
        """Delete a pod: SIGKILL at once, or SIGTERM and SIGKILL after the grace."""
        if not pod.deleted.is_set():
            pod.phase = "Terminating"
            pod.deleted.set()
            self._changed()
        if pod.process:
            if grace_s <= 0:
                pod.process.signal(signal.SIGKILL)  # here and now, before anybody is answered
            termination = asyncio.create_task(pod.process.stop(grace_s))
            self._terminations.add(termination)
            termination.add_done_callback(self._terminations.discard)

    async def _keep(self, slot: int) -> None:
        pod = self._pods[slot]
        while True:
            await self._live(pod)
            pod = self._pods[slot] = self._new_pod(slot, pod.port)
            self._changed()
            await self._deleted_in_delay(pod)

    async def _live(self, pod: Pod) -> None:
        """Run the pod's container, again and again, until the pod is deleted."""
        while not pod.deleted.is_set():
            pod.last_exit = await self._run_container(pod)
            was_ready = pod.ready_at is not None
            pod.process, pod.ready, pod.ready_at = None, False, None
            self._tell_end(pod, was_ready)
            self._changed()
            if not await self._deleted_in_delay(pod):
                pod.restarts += 1

    async def _run_container(self, pod: Pod) -> str:
        try:
            pod.process = await Process.start(self._server(pod.slot, pod.port))
        except StackError as error:
            return f"did not start: {error}"
        if pod.deleted.is_set():  # while it started
            pod.process.signal(signal.SIGKILL)
        else:
            pod.phase = "Running"
        self._changed()
        probe = asyncio.create_task(self._watch(pod))
        try:
            return ending(await pod.process.wait())
        finally:
            probe.cancel()

    def _tell_end(self, pod: Pod, was_ready: bool) -> None:
        emit("stack", message=f"{pod.name} {pod.last_exit}")
        if not was_ready and not pod.deleted.is_set() and is_taken(pod.port):
            log = self._server(pod.slot, pod.port).log
            emit_failure(f"{pod.name} cannot be restarted: another program has port {pod.port}; see {log}")

    async def _watch(self, pod: Pod) -> None:
        while True:
            ready = await get_status(pod.port, HEALTH_PATH) == 200
            if ready != pod.ready:
                pod.ready = ready
                if pod.ready_at is None:
                    pod.ready_at = utc_now()
                    emit("stack", message=f"{pod.name} is ready")
                self._changed()
            await asyncio.sleep(STARTUP_PROBE_S if pod.ready_at is None else PROBE_S)

    async def _deleted_in_delay(self, pod: Pod) -> bool:
        """Wait for the restart delay, or until the pod is deleted; whether it was."""
        with suppress(TimeoutError):
            await asyncio.wait_for(pod.deleted.wait(), self._restart_delay_s)
        return pod.deleted.is_set()

    def _new_pod(self, slot: int, port: int) -> Pod:
        suffix = "".join(random.choices(SUFFIX_LETTERS, k=5))
        return Pod(slot, port, f"model-server-{slot}-{suffix}")
