"""The canary, served by the real model server, knows its answers; the server starts, fails and ends as it should."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest

from aftershock.load.dataset import Item, load_dataset
from aftershock.load.protocol import DONE, get_protocol
from aftershock.stack.models import model_path

pytestmark = pytest.mark.integration

SERVER = [sys.executable, "-m", "aftershock.stack.model_server"]
Serve = Callable[..., tuple["subprocess.Popen[str]", str]]


def read_line(process: subprocess.Popen[str], seconds: float = 30) -> str:
    """The next line of its standard output; fails after `seconds`."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], seconds)
    assert ready, f"nothing said within {seconds:g} s"
    return process.stdout.readline()


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a model server; the process and the address it tells."""
    processes: list[subprocess.Popen[str]] = []

    def start(*arguments: str) -> tuple[subprocess.Popen[str], str]:
        command = [*SERVER, "--model", str(model_path("canary")), *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        processes.append(process)
        return process, json.loads(read_line(process))["url"]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@dataclass(frozen=True)
class Answer:
    """What came back for one item."""

    item: Item
    text: str
    tokens: int
    pieces: int
    """Events that carried text; 1 where the answer was not streamed."""

    @property
    def correct(self) -> bool:
        grade = self.item.grade()
        return grade is not None and grade(self.text)


async def ask(client: aiohttp.ClientSession, protocol: str, item: Item, **parameters: Any) -> Answer:
    """Ask one question, streamed."""
    endpoint = get_protocol(protocol)
    body = endpoint.body(item.prompt, model="canary", max_tokens=16, **parameters)
    text, tokens, pieces = "", 0, 0
    async with client.post(endpoint.path, data=body, headers={"Content-Type": "application/json"}) as response:
        response.raise_for_status()
        async for line in response.content:
            data = line.removeprefix(b"data: ").strip()
            if not data or data == DONE:
                continue
            delta = endpoint.read(data)
            text += delta.text
            pieces += bool(delta.text)
            tokens = delta.output_tokens or tokens
    return Answer(item, text, tokens, pieces)


async def ask_whole(client: aiohttp.ClientSession, item: Item) -> Answer:
    """Ask one question, answered in one piece."""
    body = {"model": "canary", "prompt": item.prompt, "max_tokens": 16, "temperature": 0}
    async with client.post("/v1/completions", json=body) as response:
        response.raise_for_status()
        answer = await response.json()
    return Answer(item, answer["choices"][0]["text"], answer["usage"]["completion_tokens"], 1)


def ask_all(url: str, question: Callable[[aiohttp.ClientSession, Item], Any], callers: int = 8) -> list[Answer]:
    """Ask every question of the set, `callers` at a time."""

    async def run() -> list[Answer]:
        limit = asyncio.Semaphore(callers)
        async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(force_close=True)) as client:

            async def one(item: Item) -> Answer:
                async with limit:
                    answer: Answer = await question(client, item)
                    return answer

            return await asyncio.gather(*(one(item) for item in load_dataset("canary")))

    return asyncio.run(run())


def accuracy(answers: list[Answer]) -> float:
    return sum(answer.correct for answer in answers) / len(answers)


@pytest.mark.parametrize("protocol", ["completions", "chat"])
def test_streamed_answers_are_right_and_several_tokens_long(serve: Serve, protocol: str) -> None:
    _, url = serve()
    answers = ask_all(url, lambda client, item: ask(client, protocol, item, temperature=0))
    assert accuracy(answers) >= 0.99, [answer for answer in answers if not answer.correct]
    assert all(6 <= answer.pieces <= 14 for answer in answers)


def test_answers_in_one_piece_are_right(serve: Serve) -> None:
    _, url = serve()
    answers = ask_all(url, ask_whole)
    assert accuracy(answers) >= 0.99, [answer for answer in answers if not answer.correct]
    assert all(7 <= answer.tokens <= 15 for answer in answers)  # the end marker counts


def test_answers_do_not_depend_on_company(serve: Serve) -> None:
    _, url = serve("--slots", "4")
    alone = ask_all(url, ask_whole, callers=1)
    together = ask_all(url, ask_whole, callers=32)
    assert [answer.text for answer in alone] == [answer.text for answer in together]


def test_the_canary_notices_a_hot_sampler(serve: Serve) -> None:
    """A canary that is right whatever is done to it would tell nothing."""
    _, url = serve()
    every_token = {"top_k": 0, "top_p": 1, "min_p": 0}
    answers = ask_all(url, lambda client, item: ask(client, "completions", item, temperature=2, **every_token))
    assert accuracy(answers) < 0.5


def test_health_is_answered_while_every_slot_is_busy_and_connections_are_many(serve: Serve) -> None:
    _, url = serve("--slots", "1")

    async def run() -> float:
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(url, connector=connector) as client, aiohttp.ClientSession(url) as probe:
            body = {"prompt": "Question:", "max_tokens": 400, "ignore_eos": True}
            load = [asyncio.create_task(client.post("/v1/completions", json=body)) for _ in range(60)]
            await asyncio.wait(load, return_when=asyncio.FIRST_COMPLETED)
            begin = time.monotonic()
            async with probe.get("/health") as response:
                response.raise_for_status()
            took = time.monotonic() - begin
            assert any(not task.done() for task in load)
            for task in load:
                task.cancel()
            await asyncio.gather(*load, return_exceptions=True)
            return took

    assert asyncio.run(run()) < 1.0


def test_metrics_and_model_name(serve: Serve) -> None:
    _, url = serve("--name", "bird")

    async def run() -> tuple[str, Any]:
        async with aiohttp.ClientSession(url) as client:
            async with client.get("/metrics") as response:
                page = await response.text()
            async with client.get("/v1/models") as response:
                return page, await response.json()

    page, models = asyncio.run(run())
    assert "llamacpp:requests_processing 0" in page
    assert [model["id"] for model in models["data"]] == ["bird"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_at_once_in_the_middle_of_an_answer(serve: Serve, number: signal.Signals) -> None:
    process, url = serve()

    async def run() -> bytes:
        body = {"prompt": "Question:", "max_tokens": 480, "ignore_eos": True, "stream": True}
        async with aiohttp.ClientSession(url) as client, client.post("/v1/completions", json=body) as response:
            received = await response.content.readline()
            process.send_signal(number)
            with contextlib.suppress(aiohttp.ClientError):
                received += await response.content.read()
            return received

    assert DONE not in asyncio.run(run())
    assert process.wait(timeout=5) == -number


def failure(*arguments: str) -> str:
    """Start a server that cannot start; what it says about that. llama.cpp may have said more."""
    result = subprocess.run([*SERVER, *arguments], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 4
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("model server: ")]
    return line


def test_a_taken_port_is_named(serve: Serve) -> None:
    _, url = serve()
    port = url.rpartition(":")[2]
    last = failure("--model", str(model_path("canary")), "--port", port)
    assert last.startswith(f"model server: cannot listen on 127.0.0.1:{port}: ")


def test_a_port_can_be_used_again_after_a_kill(serve: Serve) -> None:
    process, url = serve()
    port = int(url.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)):
        process.kill()
        process.wait(timeout=5)
    assert serve("--port", str(port))[1] == url


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "none.gguf"
    assert failure("--model", str(path)).startswith(f"model server: cannot read {path}: ")


def test_a_file_of_another_kind_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text.gguf"
    path.write_text("no model")
    assert failure("--model", str(path)) == f"model server: {path} is not a GGUF file; give one with --model"


def test_a_broken_model_is_named(tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(model_path("canary").read_bytes()[:10_000])
    assert failure("--model", str(path)).startswith(f"model server: llama.cpp does not serve {path}")


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's parent-death signal is Linux only")
def test_it_dies_with_its_parent() -> None:
    parent = f"""
import subprocess, sys
server = subprocess.Popen({[*SERVER, "--model", str(model_path("canary"))]!r}, stdout=subprocess.PIPE, text=True)
server.stdout.readline()
print(server.pid, flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen([sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    server = psutil.Process(int(read_line(process)))
    assert server.is_running()
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    psutil.wait_procs([server], timeout=5)
    assert not server.is_running() or server.status() == psutil.STATUS_ZOMBIE
