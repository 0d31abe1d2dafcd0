"""Small stand-ins for the stack: a supervisor and a gateway that keep their books and answer over real HTTP."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.local.backend import LocalBackend

TOKEN = "secret"


@dataclass
class FakePod:
    """A pod as the supervisor tells of it. Becomes ready at `ready_from` (monotonic)."""

    slot: int
    name: str
    pid: int
    restarts: int = 0
    ready_from: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """As in GET /state."""
        ready = time.monotonic() >= self.ready_from
        return {
            "name": self.name,
            "slot": self.slot,
            "pid": self.pid,
            "phase": "Running" if ready else "Pending",
            "ready": ready,
            "restarts": self.restarts,
            "ready_at": datetime.now(UTC).isoformat() if ready else None,
            "url": "http://127.0.0.1:1",
        }


@dataclass
class FakeStack:
    """Both servers. Tests turn its knobs while it runs."""

    folder: Path
    pods: list[FakePod] = field(default_factory=list)
    restart_s: float = 0.1
    ignore_kills: bool = False
    kills: list[tuple[str, Any]] = field(default_factory=list)
    faults: dict[str, dict[str, Any]] = field(default_factory=dict)
    posted: list[dict[str, Any]] = field(default_factory=list)
    injections: int = 7
    refuse_faults: str = ""
    forgetful: bool = False
    """The gateway forgets its faults, as one that was restarted."""
    _servers: list[ThreadingHTTPServer] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.supervisor_url = self._serve(self._supervise)
        self.gateway_url = self._serve(self._gateway)
        self.write_state()

    @property
    def state_file(self) -> Path:
        """Where the backend looks."""
        return self.folder / "state.json"

    def write_state(self, supervisor_pid: int | None = None) -> None:
        """The state file; the supervisor is this process unless another is given."""
        pid = supervisor_pid or os.getpid()
        document = {
            "supervisor": {
                "pid": pid,
                "started": psutil.Process(pid).create_time(),
                "url": self.supervisor_url,
                "token": TOKEN,
            },
            "gateway": {"url": "http://127.0.0.1:1", "admin_url": self.gateway_url, "token": TOKEN},
            "namespace": "inference",
            "labels": {"app": "model-server"},
            "kind": "deployment",
            "pods": [pod.to_dict() for pod in self.pods],
        }
        self.folder.mkdir(exist_ok=True)
        self.state_file.write_text(json.dumps(document))

    def stop_gateway(self) -> None:
        """As if its process had died."""
        server = self._servers[1]
        server.shutdown()
        server.server_close()

    def close(self) -> None:
        """Stop both servers."""
        for server in self._servers:
            server.shutdown()
            server.server_close()

    def active(self) -> list[dict[str, Any]]:
        """Faults that act now."""
        return [fault for fault in self.faults.values() if fault["state"] == "active"]

    def _supervise(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if path == "/state":
            return 200, {"pods": [pod.to_dict() for pod in self.pods]}
        _, _, name, action = path.split("/")
        pod = next((pod for pod in self.pods if pod.name == name), None)
        if method != "POST" or pod is None:
            return 404, {"error": f"no pod {name}"}
        self.kills.append((name, body["grace_s"] if action == "delete" else body["signal"]))
        if not self.ignore_kills:
            pod.pid += 1000
            pod.ready_from = time.monotonic() + self.restart_s
            if action == "delete":
                pod.name = f"model-server-{pod.slot}-g{pod.pid}"
            else:
                pod.restarts += 1
        return 202, {"name": name}

    def _gateway(self, method: str, path: str, body: Any) -> tuple[int, Any]:
        if self.forgetful:
            self.faults.clear()
        if method == "POST":
            if self.refuse_faults:
                return 400, {"error": self.refuse_faults}
            self.posted.append(body)
            fault = {**body, "state": "active", "injections": 0, "expires_at": "2030-01-01T00:00:00+00:00"}
            self.faults[body["id"]] = fault
            return 201, fault
        if path == "/faults":
            return 200, {"faults": list(self.faults.values())}
        found = self.faults.get(path.rpartition("/")[2])
        if found is None:
            return 404, {"error": "no such fault"}
        found["injections"] = self.injections
        if method == "DELETE":
            found["state"] = "reverted"
        return 200, found

    def _serve(self, answer: Callable[[str, str, Any], tuple[int, Any]]) -> str:
        class Handler(BaseHTTPRequestHandler):
            def handle_one(self) -> None:
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                if self.headers["Authorization"] != f"Bearer {TOKEN}":
                    status, document = 401, {"error": "token"}
                else:
                    status, document = answer(self.command, self.path, body)
                content = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_DELETE = handle_one  # noqa: N815

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                """Quiet."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        self._servers.append(server)
        return f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[FakeStack]:
    """Two pods, a supervisor and a gateway."""
    pods = [FakePod(slot, f"model-server-{slot}-aaaaa", 100 + slot) for slot in (0, 1)]
    fake = FakeStack(tmp_path / "stack", pods)
    yield fake
    fake.close()


def make_engine(
    *experiments: tuple[str, Mapping[str, str]], timeout: int = 5, appinfo: Mapping[str, str] | None = None, **spec: Any
) -> ChaosEngine:
    """An engine as the templates render it."""
    return parse_engine(
        yaml.safe_dump(
            {
                "apiVersion": "litmuschaos.io/v1alpha1",
                "kind": "ChaosEngine",
                "metadata": {
                    "name": "chaos-run1",
                    "namespace": "inference",
                    "labels": {"aftershock.io/run-id": "run1"},
                },
                "spec": {
                    "engineState": "active",
                    "appinfo": appinfo
                    or {"appns": "inference", "applabel": "app=model-server", "appkind": "deployment"},
                    "experiments": [
                        {
                            "name": name,
                            "spec": {
                                "components": {
                                    "statusCheckTimeouts": {"delay": 1, "timeout": timeout},
                                    "env": [{"name": key, "value": value} for key, value in env.items()],
                                }
                            },
                        }
                        for name, env in experiments
                    ],
                    **spec,
                },
            }
        ),
        "test",
    )


@dataclass
class Running:
    """A backend at work in a thread, as in the chaos step."""

    stack: FakeStack
    engine: ChaosEngine
    seed: int = 1
    stop: threading.Event = field(default_factory=threading.Event)
    events: list[ChaosEvent] = field(default_factory=list)
    _outcome: ChaosOutcome | None = None

    def __post_init__(self) -> None:
        backend = LocalBackend(self.stack.state_file, self.seed)

        def work() -> None:
            self._outcome = backend.run(self.engine, self.stop, self.events.append)

        self._thread = threading.Thread(target=work)
        self._thread.start()

    @property
    def live_file(self) -> Path:
        """The live engine."""
        return self.stack.folder / "chaos" / f"{self.engine.name}.yaml"

    @property
    def result_file(self) -> Path:
        """The ChaosResult as it is written while the fault is on."""
        return self.stack.folder / "chaos" / f"{self.engine.name}.result.json"

    def wait_for(self, condition: Callable[[], Any], what: str) -> Any:
        """Poll while the backend runs."""
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.01)
        self.stop.set()
        pytest.fail(f"{what} never came; events: {[event.message for event in self.events]}")

    def wait_for_event(self, reason: str) -> None:
        """Wait until the backend has said it."""
        self.wait_for(lambda: reason in self.reasons(), reason)

    def wait_for_injection(self) -> None:
        """Wait until the ChaosResult says that a target is hit."""

        def hit() -> bool:
            return self.result_file.exists() and '"injected"' in self.result_file.read_text()

        self.wait_for(hit, "the injection")

    def reasons(self) -> list[str]:
        """Of all events so far."""
        return [event.reason for event in list(self.events)]

    def outcome(self) -> ChaosOutcome:
        """What came of it; waits for the end."""
        self._thread.join(30)
        assert self._outcome is not None, "the backend did not return"
        return self._outcome


@pytest.fixture
def run(stack: FakeStack) -> Iterator[Callable[..., Running]]:
    """Starts the backend on an engine; stops it if the test forgot."""
    started: list[Running] = []

    def start(*experiments: tuple[str, Mapping[str, str]], seed: int = 1, **options: Any) -> Running:
        started.append(Running(stack, make_engine(*experiments, **options), seed))
        return started[-1]

    yield start
    for running in started:
        running.stop.set()
        running.outcome()


@pytest.fixture
def engine() -> Callable[..., ChaosEngine]:
    """Builds an engine."""
    return make_engine
