"""Pods: what a Deployment and its kubelet do when containers end and pods are deleted. The processes serve nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from aftershock.processes import Identity
from aftershock.stack.pods import Deployment
from aftershock.stack.process import Command, last_line
from aftershock.stack.state import PodState

NEVER_S = 600.0

TRAPS_SIGTERM = """
import signal, time
signal.signal(signal.SIGTERM, lambda *_: print("asked to end", flush=True))
print("up", flush=True)
while True: time.sleep(60)
"""


class Cluster:
    """A Deployment of one replica that runs in a test, and ways to wait for it."""

    def __init__(self, folder: Path, restart_delay_s: float, argv: tuple[str, ...]) -> None:
        self.log = folder / "log"
        command = Command("model-server-0", argv, folder, self.log, grace_s=0.2)
        self.seen: list[PodState] = []
        self.deployment = Deployment([9], lambda slot, port: command, restart_delay_s, self._changed)

    def _changed(self) -> None:
        self.seen.append(self.pod)

    @property
    def pod(self) -> PodState:
        """The only pod, now."""
        return self.deployment.pods[0].state

    async def until(self, condition: Callable[[PodState], bool]) -> PodState:
        """The pod, once it is as wanted."""
        async with asyncio.timeout(20):
            while not condition(self.pod):
                await asyncio.sleep(0.01)
        return self.pod

    def delete(self, grace_s: float = 0) -> None:
        """Delete the pod."""
        self.deployment.delete(self.deployment.pods[0], grace_s)


def play(cluster: Cluster, story: Callable[[Cluster], Awaitable[None]]) -> None:
    """Run the deployment while the story is told; then stop it."""

    async def run() -> None:
        task = asyncio.create_task(cluster.deployment.run())
        try:
            await story(cluster)
        finally:
            task.cancel()
            await cluster.deployment.stop()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


SLEEPER = ("sleep", "600")


def test_a_container_that_ends_waits_for_its_restart_without_a_process(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        before = await cluster.until(lambda pod: pod.pid is not None)
        assert before.pid is not None
        os.kill(before.pid, signal.SIGKILL)
        after = await cluster.until(lambda pod: pod.pid is None)
        assert (after.name, after.phase, after.ready, after.restarts) == (before.name, "Running", False, 0)
        assert after.last_exit == "killed by SIGKILL"

    play(Cluster(tmp_path, NEVER_S, SLEEPER), story)


def test_restarts_are_counted_in_the_same_pod(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        name = cluster.pod.name
        pod = await cluster.until(lambda pod: pod.restarts >= 2)
        assert pod.name == name
        assert pod.last_exit == "exited with code 3"

    play(Cluster(tmp_path, 0.01, ("sh", "-c", "exit 3")), story)


def test_a_deleted_pod_is_followed_by_a_pending_one(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        old = await cluster.until(lambda pod: pod.pid is not None)
        cluster.delete()
        assert cluster.pod.phase == "Terminating"
        new = await cluster.until(lambda pod: pod.name != old.name)
        assert (new.slot, new.url, new.phase, new.pid, new.restarts) == (0, old.url, "Pending", None, 0)
        assert old.pid is not None and old.started is not None
        assert not Identity(old.pid, old.started).alive()
        cluster.delete()  # one that has not started can be deleted too
        await cluster.until(lambda pod: pod.name not in (old.name, new.name))

    play(Cluster(tmp_path, NEVER_S, SLEEPER), story)


def test_a_pod_can_be_deleted_between_crash_and_restart(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        old = await cluster.until(lambda pod: pod.last_exit is not None)
        cluster.delete(grace_s=30)
        new = await cluster.until(lambda pod: pod.name != old.name)
        assert new.phase == "Pending"

    play(Cluster(tmp_path, NEVER_S, ("true",)), story)


def test_a_grace_asks_first(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        async with asyncio.timeout(20):
            while last_line(cluster.log) != "up":
                await asyncio.sleep(0.01)
        name = cluster.pod.name
        cluster.delete(grace_s=0.5)
        await cluster.until(lambda pod: pod.name != name)
        assert last_line(cluster.log) == "asked to end"
        assert {pod.phase for pod in cluster.seen if pod.name == name} == {"Running", "Terminating"}

    play(Cluster(tmp_path, NEVER_S, (sys.executable, "-c", TRAPS_SIGTERM)), story)


def test_a_forced_delete_does_not_wait_for_an_earlier_grace(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        async with asyncio.timeout(20):
            while last_line(cluster.log) != "up":
                await asyncio.sleep(0.01)
        name = cluster.pod.name
        cluster.delete(grace_s=NEVER_S)
        cluster.delete(grace_s=0)
        await cluster.until(lambda pod: pod.name != name)

    play(Cluster(tmp_path, NEVER_S, (sys.executable, "-c", TRAPS_SIGTERM)), story)


def test_a_program_that_cannot_start_is_tried_again_like_a_crash(tmp_path: Path) -> None:
    async def story(cluster: Cluster) -> None:
        pod = await cluster.until(lambda pod: pod.restarts >= 1)
        assert pod.last_exit is not None
        assert pod.last_exit.startswith("did not start: model-server-0: cannot start /no/such/server")

    play(Cluster(tmp_path, 0.01, ("/no/such/server",)), story)
