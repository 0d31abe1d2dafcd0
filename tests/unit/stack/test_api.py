"""The supervisor's API over real HTTP: who may ask, what is refused, how."""

from __future__ import annotations

import asyncio
import http.client
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aftershock.stack.api import Api, served
from aftershock.stack.pods import Deployment
from aftershock.stack.ports import HOST, PortPool
from aftershock.stack.process import Command

TOKEN = "t0k3n"

Answer = tuple[int, dict[str, Any]]
Ask = Callable[..., Answer]


def conversation(tmp_path: Path, talk: Callable[[Ask, str], None], replicas: int = 1) -> None:
    """Serve the API for a Deployment that was never started, while `talk` asks it about its first pod."""

    async def run() -> None:
        pool = PortPool()
        port = pool.take()
        command = Command("x", ("true",), tmp_path, tmp_path / "log")
        deployment = Deployment([1] * replicas, lambda slot, port: command, 0.0, lambda: None)
        api = Api(TOKEN, lambda: {"version": 1}, deployment)

        def ask(method: str, path: str, body: str = "", token: str = TOKEN) -> Answer:
            connection = http.client.HTTPConnection(HOST, port, timeout=5)
            connection.request(method, path, body, {"Authorization": f"Bearer {token}"})
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            return answer.status, json.loads(content)

        with served(api, port):
            await asyncio.to_thread(talk, ask, deployment.pods[0].name if replicas else "")
        pool.close()

    asyncio.run(run())


def test_the_state_is_told(tmp_path: Path) -> None:
    def talk(ask: Ask, pod: str) -> None:
        assert ask("GET", "/state") == (200, {"version": 1})

    conversation(tmp_path, talk)


def test_a_stack_without_pods_says_so(tmp_path: Path) -> None:
    def talk(ask: Ask, pod: str) -> None:
        assert ask("POST", "/pods/x/delete") == (404, {"error": "there is no pod 'x'; there are none"})

    conversation(tmp_path, talk, replicas=0)


def test_without_the_token_nothing_is_said_or_done(tmp_path: Path) -> None:
    def talk(ask: Ask, pod: str) -> None:
        for method, path in (
            ("GET", "/state"),
            ("POST", f"/pods/{pod}/kill"),
            ("POST", f"/pods/{pod}/delete"),
            ("GET", "/x"),
        ):
            status, document = ask(method, path, token="wrong")
            assert status == 401
            assert "token" in document["error"]
        assert ask("GET", "/state")[0] == 200

    conversation(tmp_path, talk)


def test_deleting_a_pod_that_has_no_process_yet(tmp_path: Path) -> None:
    def talk(ask: Ask, pod: str) -> None:
        assert ask("POST", f"/pods/{pod}/delete", '{"grace_s": 0.5}') == (200, {"pod": pod, "phase": "Terminating"})

    conversation(tmp_path, talk)


@pytest.mark.parametrize(
    ("path", "body", "status", "word"),
    [
        ("/pods/nobody/delete", "", 404, "nobody"),
        ("/pods/nobody/kill", "", 404, "nobody"),
        ("/pods/POD/restart", "", 404, "/pods/NAME/delete"),
        ("/stop", "", 404, "/pods/NAME/delete"),
        ("/pods/POD/kill", "", 409, "has not started"),
        ("/pods/POD/kill", '{"signal": "KILL"}', 400, "SIGKILL"),
        ("/pods/POD/kill", '{"signal": 9}', 400, "SIGKILL"),
        ("/pods/POD/kill", '{"signal": ["SIGKILL"]}', 400, "SIGKILL"),
        ("/pods/POD/delete", "{", 400, "JSON"),
        ("/pods/POD/delete", "[]", 400, "object"),
        ("/pods/POD/delete", '{"grace": 1}', 400, "grace_s"),
        ("/pods/POD/delete", '{"grace_s": -1}', 400, "-1"),
        ("/pods/POD/delete", '{"grace_s": true}', 400, "True"),
        ("/pods/POD/delete", '{"grace_s": NaN}', 400, "nan"),
        ("/pods/POD/delete", '{"grace_s": "1"}', 400, "'1'"),
        ("/pods/POD/delete", "x" * 70_000, 400, "70000"),
    ],
)
def test_refusals_say_why(tmp_path: Path, path: str, body: str, status: int, word: str) -> None:
    def talk(ask: Ask, pod: str) -> None:
        got, document = ask("POST", path.replace("POD", pod), body)
        assert got == status
        assert word in document["error"]

    conversation(tmp_path, talk)
