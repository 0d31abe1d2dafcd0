"""The gateway as a process: how it starts, and every way it ends."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

if TYPE_CHECKING:
    from tests.integration.gateway.conftest import Stand

pytestmark = pytest.mark.integration


@asynccontextmanager
async def process(folder: Path, **settings: Any) -> AsyncIterator[asyncio.subprocess.Process]:
    """`python -m aftershock.gateway`; killed at the end if it is still there."""
    path = folder / "gateway.json"
    path.write_text(json.dumps({"token": "t", "replicas": [{"name": "0", "url": "http://127.0.0.1:9"}], **settings}))
    running = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "aftershock.gateway",
        str(path),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
        await running.communicate()


async def first_line(running: asyncio.subprocess.Process) -> dict[str, str]:
    """Where it listens, as it tells."""
    assert running.stdout is not None
    addresses: dict[str, str] = json.loads(await running.stdout.readline())
    return addresses


@asynccontextmanager
async def streaming(it: Stand, url: str) -> AsyncIterator[aiohttp.ClientResponse]:
    """A stream through the gateway at `url`, of which one event has arrived."""

    async def healthy() -> bool:
        async with it.client.get(f"{url}/healthz") as response:
            return response.status == 200

    await it.until(healthy)
    async with it.client.get(f"{url}/stream") as response:
        it.replicas[0].gate.release()
        assert await response.content.readany() == b"data: 0\n\n"
        yield response


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_lets_requests_in_flight_end(stand: type[Stand], tmp_path: Path, number: int) -> None:
    async with stand() as it:
        replicas = [{"name": "0", "url": it.replicas[0].url}]
        async with process(tmp_path, replicas=replicas, drain_timeout_s=20) as running:
            url = (await first_line(running))["url"]
            async with streaming(it, url) as response:
                running.send_signal(number)

                async def refuses() -> bool:
                    try:
                        async with aiohttp.ClientSession() as session, session.get(f"{url}/healthz"):
                            return False
                    except aiohttp.ClientConnectionError:
                        return True

                await it.until(refuses)
                it.replicas[0].gate.release()
                assert await response.content.readany() == b"data: 1\n\n"
                for _ in range(998):
                    it.replicas[0].gate.release()
                rest = await response.read()
                assert rest.endswith(b"data: 999\n\n")
            assert await asyncio.wait_for(running.wait(), 10) == 0


async def test_draining_is_bounded(stand: type[Stand], tmp_path: Path) -> None:
    async with stand() as it:
        replicas = [{"name": "0", "url": it.replicas[0].url}]
        async with process(tmp_path, replicas=replicas, drain_timeout_s=0.2) as running:
            async with streaming(it, (await first_line(running))["url"]) as response:
                running.terminate()
                with pytest.raises(aiohttp.ClientPayloadError):
                    await response.read()
            assert await asyncio.wait_for(running.wait(), 10) == 0


async def test_a_bad_configuration_is_one_line_and_exit_2(tmp_path: Path) -> None:
    async with process(tmp_path, replicas=[], retires=1) as running:
        _, errors = await running.communicate()
        assert running.returncode == 2
        (line,) = errors.decode().splitlines()
        assert "gateway.json: replicas: " in line
        assert "retires: Extra inputs are not permitted" in line


async def test_a_taken_port_is_one_line_and_exit_4(stand: type[Stand], tmp_path: Path) -> None:
    async with stand() as it, process(tmp_path, port=it.replicas[0].port) as running:
        _, errors = await running.communicate()
        assert running.returncode == 4
        (line,) = [line for line in errors.decode().splitlines() if " INFO " not in line]
        assert f"127.0.0.1:{it.replicas[0].port}" in line
        assert "choose another" in line
