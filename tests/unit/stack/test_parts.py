"""A part that is started once: if it loses the race for a port it tries another, and when it has ended it stays so."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from aftershock.stack.parts import Part
from aftershock.stack.ports import HOST, PortPool
from aftershock.stack.probe import get_status
from aftershock.stack.process import Command
from aftershock.stack.state import PartState

SERVER = """
import http.server, sys
http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[1]), bind='127.0.0.1')
"""


@dataclass
class WebServer:
    """Recipe of a small server. It wants `port` first, then free ones."""

    folder: Path
    port: int
    pool: PortPool
    code: str = SERVER
    stays: bool = False
    vital: bool = False
    name: str = "web"

    @property
    def ports(self) -> tuple[int, ...]:
        return (self.port,)

    def move(self) -> None:
        if not self.stays:
            self.port = self.pool.take()

    def command(self) -> Command:
        with (self.folder / "starts").open("a") as file:
            file.write(f"{self.port}\n")
        argv = (sys.executable, "-c", self.code, str(self.port))
        return Command(self.name, argv, self.folder, self.folder / "web.log")

    async def ready(self) -> bool:
        return await get_status(self.port, "/") == 200

    def starts(self) -> int:
        """How often it was started."""
        return len((self.folder / "starts").read_text().splitlines())


@pytest.fixture
def pool() -> Iterator[PortPool]:
    pool = PortPool()
    yield pool
    pool.close()


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AFTERSHOCK_JOURNAL", str(tmp_path / "events.jsonl"))
    return tmp_path / "events.jsonl"


def settle(recipe: WebServer, kill_when_ready: bool = False) -> PartState:
    """Run a part until it is ready, or has ended for good; its state then. Nothing of it is left."""

    async def run() -> PartState:
        part = Part(recipe, lambda: None)
        task = asyncio.create_task(part.run())
        async with asyncio.timeout(30):
            while not task.done() and not part.state.ready:
                await asyncio.sleep(0.02)
            if kill_when_ready:
                assert part.state.pid is not None
                os.kill(part.state.pid, signal.SIGKILL)
                await task
        state = part.state
        task.cancel()
        await part.stop()
        await asyncio.gather(task, return_exceptions=True)
        return state

    return asyncio.run(run())


def test_it_becomes_ready(tmp_path: Path, pool: PortPool) -> None:
    state = settle(WebServer(tmp_path, pool.take(), pool))
    assert (state.status, state.ready, state.reason) == ("running", True, None)


def test_another_port_is_taken_where_the_first_is_lost(tmp_path: Path, pool: PortPool) -> None:
    with socket.create_server((HOST, 0)) as winner:
        taken = winner.getsockname()[1]
        recipe = WebServer(tmp_path, taken, pool)
        state = settle(recipe)
    assert state.ready
    assert recipe.starts() == 2
    assert recipe.port != taken


def test_the_race_is_lost_only_three_times(tmp_path: Path, pool: PortPool, journal: Path) -> None:
    with socket.create_server((HOST, 0)) as winner:
        recipe = WebServer(tmp_path, winner.getsockname()[1], pool, stays=True)
        state = settle(recipe)
    assert (state.status, state.reason) == ("exited", "exited with code 1")
    assert recipe.starts() == 3


def test_a_part_that_fails_for_another_reason_is_not_tried_again(tmp_path: Path, pool: PortPool, journal: Path) -> None:
    recipe = WebServer(tmp_path, pool.take(), pool, code="raise SystemExit(7)")
    state = settle(recipe)
    assert (state.status, state.ready, state.reason) == ("exited", False, "exited with code 7")
    assert recipe.starts() == 1


def test_a_part_that_ends_later_is_reported_and_not_restarted(tmp_path: Path, pool: PortPool, journal: Path) -> None:
    recipe = WebServer(tmp_path, pool.take(), pool)
    state = settle(recipe, kill_when_ready=True)
    assert (state.status, state.ready, state.reason) == ("exited", False, "killed by SIGKILL")
    assert recipe.starts() == 1
    (event,) = [json.loads(line) for line in journal.read_text().splitlines()]
    assert event["event"] == "warning"
    assert event["message"].startswith("web killed by SIGKILL; it is not restarted; ")


def test_the_end_of_a_vital_part_is_an_error_with_its_log(tmp_path: Path, pool: PortPool, journal: Path) -> None:
    settle(WebServer(tmp_path, pool.take(), pool, vital=True), kill_when_ready=True)
    (event,) = [json.loads(line) for line in journal.read_text().splitlines()]
    assert (event["event"], event["type"], event["exit_code"]) == ("error", "StackError", 4)
    assert event["message"].startswith("web killed by SIGKILL; it is not restarted; its last words: ")
    assert event["message"].endswith(f"; see {tmp_path / 'web.log'}")


def test_a_vital_part_that_gets_no_port_is_an_error(tmp_path: Path, pool: PortPool, journal: Path) -> None:
    with socket.create_server((HOST, 0)) as winner:
        settle(WebServer(tmp_path, winner.getsockname()[1], pool, stays=True, vital=True))
    (event,) = [json.loads(line) for line in journal.read_text().splitlines()]
    assert (event["event"], event["exit_code"]) == ("error", 4)
    assert "Address already in use" in event["message"]
