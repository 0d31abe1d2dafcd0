"""The embedded stack with its real parts: it starts, it heals, it tells, it goes."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from minio import Minio

from aftershock.errors import InputError, StackError
from aftershock.processes import Identity
from aftershock.stack.cleanup import cleanup, writers_of
from aftershock.stack.settings import StackSettings
from aftershock.stack.stack import lost, running_stack
from aftershock.stack.state import PodState, StackState, StoreState, read_state, state_path

pytestmark = pytest.mark.integration

STAND_IN = Path(__file__).with_name("stand_in.py")


def small(behaviour: str, **more: Any) -> StackSettings:
    """Settings of a quick stack around a stand-in for the model server."""
    command = (sys.executable, str(STAND_IN), behaviour)
    few = {"replicas": 1, "store": False, "prometheus": False, "restart_delay_s": 0.2}
    return StackSettings(**{**few, "model_server": command, **more})


def until(condition: Callable[[], Any], what: str) -> Any:
    """Poll until the condition holds; its value. Fails, saying what did not come, after half a minute."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.02)
    pytest.fail(f"{what} did not come within 30 s")


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[Path]:
    """A run directory; at the end, no process that works for the run may be alive."""
    path = tmp_path / "runs" / "r1"
    path.mkdir(parents=True)
    yield path
    gone(path)


def gone(run_dir: Path) -> None:
    """No process that works for the run is alive, or will be in a moment."""
    until(lambda: not writers_of(run_dir / "events.jsonl"), f"the end of {writers_of(run_dir / 'events.jsonl')}")


def current(run_dir: Path) -> StackState:
    """The state of the run's stack, now."""
    return read_state(state_path(run_dir))


def ask(state: StackState, path: str, body: dict[str, Any] | None = None) -> Any:
    """Ask the supervisor: GET, or POST if there is a body."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(state.supervisor.url + path, data, {"Authorization": f"Bearer {state.supervisor.token}"})
    with urlopen(request, timeout=5) as answer:
        return json.load(answer)


def up(state: StackState) -> dict[str, float]:
    """What Prometheus says of its targets: pod, else job -> 1 or 0."""
    assert state.prometheus is not None
    with urlopen(f"{state.prometheus.url}/api/v1/query?{urlencode({'query': 'up'})}", timeout=5) as answer:
        result = json.load(answer)["data"]["result"]
    return {series["metric"].get("pod", series["metric"]["job"]): float(series["value"][1]) for series in result}


def client(store: StoreState | None) -> Minio:
    assert store is not None
    return Minio(store.endpoint, store.access_key, store.secret_key, secure=False)


class Page(BaseHTTPRequestHandler):
    """What a load generator would show."""

    def do_GET(self) -> None:
        content = b"aftershock_requests_total 1\n"
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *message: Any) -> None:
        return


@contextmanager
def listening(port: int) -> Iterator[None]:
    """A load generator's page on `port`."""
    with ThreadingHTTPServer(("127.0.0.1", port), Page) as load:
        threading.Thread(target=load.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield
        load.shutdown()


def listener(port: int) -> socket.socket | None:
    """A socket that listens on the port; None while somebody else does."""
    try:
        return socket.create_server(("127.0.0.1", port))
    except OSError:
        return None


def events(run_dir: Path, kind: str) -> list[dict[str, Any]]:
    """What the stack has said so far, of one kind."""
    lines = (run_dir / "events.jsonl").read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["event"] == kind]


def completion(state: StackState) -> str:
    """An answer of the model, through the gateway."""
    body = json.dumps({"model": "canary", "prompt": "The capital of France is", "max_tokens": 4}).encode()
    assert state.gateway is not None
    request = Request(f"{state.gateway.url}/v1/completions", body, {"Content-Type": "application/json"})
    with urlopen(request, timeout=10) as answer:
        text: str = json.load(answer)["choices"][0]["text"]
    return text


def test_the_whole_stack_starts_heals_and_goes(run_dir: Path) -> None:
    with running_stack(StackSettings(restart_delay_s=0.2), run_dir, "r1") as state:
        assert state.ready
        assert [part.name for part in state.parts] == ["prometheus", "store", "gateway"], "in the order of their start"
        assert state.store is not None
        assert completion(state)
        assert stat.S_IMODE(state_path(run_dir).stat().st_mode) == 0o600
        for part in ("supervisor", "gateway", "prometheus", "store", "model-server-0", "model-server-1"):
            assert (run_dir / "logs" / f"{part}.log").exists()

        # A container that is killed comes back in its pod.
        killed, deleted = state.pods
        assert killed.pid is not None
        os.kill(killed.pid, signal.SIGKILL)

        def restarted() -> PodState | None:
            pod = current(run_dir).pods[0]
            return pod if pod.restarts == 1 and pod.ready else None

        pod = until(restarted, "the restart")
        assert (pod.name, pod.slot, pod.url, pod.last_exit) == (killed.name, 0, killed.url, "killed by SIGKILL")
        assert pod.pid != killed.pid

        # A pod that is deleted is followed by another.
        assert ask(state, f"/pods/{deleted.name}/delete", {"grace_s": 0}) == {
            "pod": deleted.name,
            "phase": "Terminating",
        }

        def replaced() -> PodState | None:
            pod = current(run_dir).pods[1]
            return pod if pod.name != deleted.name and pod.ready else None

        pod = until(replaced, "the new pod")
        assert (pod.slot, pod.url, pod.restarts) == (1, deleted.url, 0)
        assert deleted.pid is not None and deleted.started is not None
        assert not Identity(deleted.pid, deleted.started).alive()
        with pytest.raises(HTTPError, match="404"):
            ask(state, f"/pods/{deleted.name}/delete", {})

        # Prometheus sees everybody, the new pod under its new name.
        with listening(state.metrics_port):
            expected = {killed.name, pod.name, "gateway", "prometheus", "load"}
            until(lambda: {name for name, value in up(state).items() if value == 1} == expected, f"up of {expected}")
        assert current(run_dir).ready
        before = time.monotonic()
    assert time.monotonic() - before < 5
    assert not list((run_dir / "stack").glob("*.json.lock"))
    assert not state_path(run_dir).exists()
    assert not list(Path("/tmp").glob(f"seaweedfs-*-{state.store.endpoint.split(':')[1]}.sock"))


def test_two_at_once_and_the_history_stays(run_dir: Path) -> None:
    second = run_dir.with_name("r2")
    second.mkdir()
    settings = small("serve", store=True)
    with running_stack(settings, run_dir, "r1") as one:
        client(one.store).make_bucket("runs")
        with running_stack(settings, second, "r2") as two:
            assert client(two.store).list_buckets() == []
            assert (second / "stack" / "store" / "s3.json").exists()
            assert "in use by another run" in (second / "events.jsonl").read_text()
            client(one.store).put_object("runs", "k", io.BytesIO(b"kept"), 4)
        assert one.ready
    gone(second)
    with running_stack(settings, second, "r2") as later:
        assert later.store is not None and one.store is not None
        assert later.store.secret_key == one.store.secret_key
        answer = client(later.store).get_object("runs", "k")
        assert answer.read() == b"kept"
        answer.close()
    gone(second)


def test_a_dead_prometheus_is_said_and_the_rest_goes_on(run_dir: Path) -> None:
    with running_stack(small("serve", prometheus=True), run_dir, "r1") as state:
        (pid,) = [part.pid for part in state.parts if part.name == "prometheus"]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

        def exited() -> StackState | None:
            now = current(run_dir)
            return now if not now.ready else None

        parts = {part.name: part for part in until(exited, "the end of Prometheus in the state").parts}
        assert (parts["prometheus"].status, parts["prometheus"].reason) == ("exited", "killed by SIGKILL")
        assert (parts["gateway"].status, parts["gateway"].ready) == ("running", True)
        assert "prometheus killed by SIGKILL" in (run_dir / "events.jsonl").read_text()
        assert ask(state, "/state")["pods"][0]["ready"] is True


def test_a_dead_gateway_is_an_error_of_the_infrastructure(run_dir: Path) -> None:
    with running_stack(small("serve"), run_dir, "r1") as state:
        assert lost(state) is None
        (pid,) = [part.pid for part in state.parts if part.name == "gateway"]
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        (error,) = until(lambda: events(run_dir, "error"), "the error event")
        assert (error["type"], error["exit_code"]) == ("StackError", 4)
        assert error["message"].startswith("gateway killed by SIGKILL; it is not restarted; ")
        assert error["message"].endswith(f"see {run_dir / 'logs' / 'gateway.log'}")
        assert lost(state) == f"the stack's gateway (pid {pid}) has ended, and the run with it; see gateway.log"


def test_a_stack_that_is_stopped_says_nothing_of_errors(run_dir: Path) -> None:
    with running_stack(small("serve", prometheus=True), run_dir, "r1"):
        pass
    assert events(run_dir, "error") == events(run_dir, "warning") == []


def test_a_model_server_whose_port_is_lost_is_an_error_of_the_infrastructure(run_dir: Path) -> None:
    with running_stack(small("serve"), run_dir, "r1") as state:
        (pod,) = state.pods
        port = int(pod.url.rpartition(":")[2])
        assert pod.pid is not None
        os.kill(pod.pid, signal.SIGKILL)
        thief = until(lambda: listener(port), "the free port")
        with thief:
            error = until(lambda: events(run_dir, "error"), "the error event")[0]
        assert (error["type"], error["exit_code"]) == ("StackError", 4)
        assert error["message"].startswith(f"{pod.name} cannot be restarted: another program has port {port}; see ")


def test_a_killed_supervisor_takes_everything_with_it(run_dir: Path) -> None:
    with running_stack(small("serve", prometheus=True), run_dir, "r1") as state:
        os.kill(state.supervisor.pid, signal.SIGKILL)
        said = until(lambda: lost(state), "the loss")
        assert said.startswith(f"the stack's supervisor (pid {state.supervisor.pid}) has ended")
        gone(run_dir)
    assert not state_path(run_dir).exists()


def test_without_servers_there_is_neither_pod_nor_gateway(run_dir: Path) -> None:
    with running_stack(StackSettings(servers=False, store=False), run_dir, "r1") as state:
        assert (state.gateway, state.pods, [part.name for part in state.parts]) == (None, (), ["prometheus"])
        assert lost(state) is None
        assert len(writers_of(run_dir / "events.jsonl")) == 2
        assert ask(state, "/state")["gateway"] is None
        with listening(state.metrics_port):
            until(lambda: up(state) == {"prometheus": 1.0, "load": 1.0}, "up of prometheus and load")


def test_prometheus_knows_the_load_generator_from_the_start(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It acts on what it is told later only after five seconds more."""
    program = tmp_path / "prometheus"
    program.write_text("#!/bin/sh\ncp targets.json targets-at-start.json\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("AFTERSHOCK_PROMETHEUS", str(program))
    settings = small("serve", prometheus=True, store=True)
    with pytest.raises(StackError, match="prometheus exited with code 3"), running_stack(settings, run_dir, "r1"):
        pytest.fail("it started")
    groups = json.loads((run_dir / "stack" / "prometheus" / "targets-at-start.json").read_text())
    assert {group["labels"]["job"] for group in groups} == {"model-server", "gateway", "load", "prometheus"}


def test_the_supervisor_refuses_a_launch_document_in_one_line(tmp_path: Path) -> None:
    def refusal(*arguments: str) -> str:
        command = [sys.executable, "-m", "aftershock.stack.supervisor", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert (done.returncode, done.stdout) == (4, "")
        (line,) = done.stderr.splitlines()
        return line

    document = tmp_path / "launch.json"
    assert f"{document}: cannot be read (No such file or directory)" in refusal(str(document))
    document.write_text('{"run_id": 5}')
    assert f"{document}: run_id: " in refusal(str(document))
    document.write_text("{")
    assert "Invalid JSON" in refusal(str(document))
    assert "LAUNCH.json" in refusal()


def test_a_killed_command_leaves_nothing(run_dir: Path) -> None:
    code = """
import sys, time
from pathlib import Path
from aftershock.stack.settings import StackSettings
from aftershock.stack.stack import running_stack
with running_stack(StackSettings.model_validate_json(sys.argv[1]), Path(sys.argv[2]), "r1"):
    print("ready", flush=True)
    time.sleep(600)
"""
    settings = small("serve", prometheus=True).model_dump_json()
    command = subprocess.Popen([sys.executable, "-c", code, settings, str(run_dir)], stdout=subprocess.PIPE, text=True)
    assert command.stdout is not None
    assert command.stdout.readline() == "ready\n"
    assert len(writers_of(run_dir / "events.jsonl")) == 4
    assert cleanup(run_dir.parent) == [], "its owner lives"
    command.kill()
    command.communicate()
    gone(run_dir)
    assert cleanup(run_dir.parent) == [], "nothing was left but its record"
    assert not (run_dir / "stack" / "owner.json").exists()


def test_a_taken_port_is_refused_before_anything_starts(run_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(InputError, match=f"gateway_port={port}"),
            running_stack(small("serve", gateway_port=port), run_dir, "r1"),
        ):
            pytest.fail("it started")
    assert list(run_dir.iterdir()) == []


def test_a_port_of_ones_own_is_used(run_dir: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with running_stack(small("serve", gateway_port=port), run_dir, "r1") as state:
        assert state.gateway is not None
        assert state.gateway.url == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        (small("deaf", ready_timeout_s=3), r"model-server-0 was not ready within 3 s; see .*model-server-0\.log"),
        (small("broken"), r"model-server-0 exited with code 1; its last words: the weights are nowhere.*; see .*\.log"),
        (small("serve", model_server="/no/such/server"), r"model-server-0 did not start: .*/no/such/server"),
    ],
    ids=["deaf", "broken", "missing"],
)
def test_a_model_server_that_does_not_start_is_an_error(run_dir: Path, settings: StackSettings, reason: str) -> None:
    with pytest.raises(StackError, match=reason) as caught, running_stack(settings, run_dir, "r1"):
        pytest.fail("it started")
    assert "\n" not in str(caught.value)
    assert writers_of(run_dir / "events.jsonl") == ()
    assert not (run_dir / "stack" / "owner.json").exists()
