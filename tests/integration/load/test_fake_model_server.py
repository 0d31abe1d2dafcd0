"""The fake server keeps its own promises; what it does wrong is tried in test_outcomes.py."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

import psutil
import pytest
from pydantic import ValidationError

from aftershock.testing.model_server import FakeModelServer

pytestmark = pytest.mark.integration


def complete(server: FakeModelServer, prompt: str = "hi") -> int:
    body = json.dumps({"model": "fake", "prompt": prompt, "stream": True}).encode()
    try:
        with urllib.request.urlopen(f"{server.url}/v1/completions", body, timeout=10) as response:
            assert response.read().endswith(b"data: [DONE]\n\n")
            return int(response.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.parametrize("process", [False, True])
def test_times_are_kept_and_told(process: bool) -> None:
    with FakeModelServer(process=process, ttft_s=0.05, inter_token_s=0.02, tokens=4) as server:
        before = time.monotonic()
        assert complete(server, "when?") == 200
        after = time.monotonic()
        (served,) = server.served()
    assert served.prompt == "when?"
    assert served.tokens == 4
    assert served.first_token_s is not None
    assert served.finished_s is not None
    assert before < served.received_s < served.first_token_s < served.finished_s < after
    assert served.first_token_s - served.received_s >= 0.05
    assert served.finished_s - served.received_s >= 0.05 + 3 * 0.02


def test_a_seed_decides_which_requests_fail() -> None:
    def statuses(seed: int) -> list[int]:
        with FakeModelServer(ttft_s=0, inter_token_s=0, tokens=1, error_rate=0.5, seed=seed) as server:
            return [complete(server) for _ in range(20)]

    assert statuses(1) == statuses(1) != statuses(2)
    assert set(statuses(1)) == {200, 500}


def test_health_follows_readiness() -> None:
    def health() -> int:
        try:
            with urllib.request.urlopen(f"{server.url}/health", timeout=10) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    with FakeModelServer() as server:
        assert health() == 200
        server.set(ready=False)
        assert health() == 503


def test_settings_are_checked() -> None:
    with pytest.raises(ValidationError):
        FakeModelServer(ttft=1)
    with FakeModelServer() as server, pytest.raises(urllib.error.HTTPError, match="400") as caught:
        server.set(ttft=1)
    caught.value.close()


def test_a_port_that_is_taken() -> None:
    with FakeModelServer() as server, pytest.raises(OSError), FakeModelServer(port=int(server.url.rsplit(":", 1)[1])):
        pass


def test_a_server_process_does_not_outlive_the_process_that_started_it() -> None:
    script = (
        "import time; from aftershock.testing.model_server import FakeModelServer\n"
        "with FakeModelServer(process=True) as server: print(server.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = psutil.Process(int(parent.stdout.readline()))
        parent.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 20
    while child.is_running() and child.status() != psutil.STATUS_ZOMBIE and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not child.is_running() or child.status() == psutil.STATUS_ZOMBIE
