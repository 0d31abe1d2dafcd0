"""The supervisor's HTTP API, on loopback and for who has the token: what `kubectl` would be in a cluster.

    GET  /state                                        the state document
    POST /pods/{name}/delete  {"grace_s": 0}           delete the pod: SIGKILL, or SIGTERM first and a grace
    POST /pods/{name}/kill    {"signal": "SIGKILL"}    send its process a signal

Errors are `{"error": "..."}`: 400 bad body, 401 bad token, 404 no such path or pod, 409 the pod has no process now.

The standard library's server, in a thread that hands each request to the event loop: a handful of requests a run does
not pay for the import of a web framework, which takes as long as the rest of the stack's start.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from aftershock.stack.pods import Deployment, Pod
from aftershock.stack.ports import HOST

MAX_GRACE_S = 3600.0
MAX_BODY_BYTES = 64 * 1024
LOOP_TIMEOUT_S = 10.0

log = logging.getLogger(__name__)


class RefusedError(Exception):
    """An answer other than 200, and why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Api:
    """The requests and what they do; to be called in the event loop."""

    token: str
    state: Callable[[], dict[str, Any]]
    deployment: Deployment

    def handle(self, method: str, path: str, authorization: str, body: bytes) -> dict[str, Any]:
        """Do what is asked; the document to answer with. Raises RefusedError."""
        if not hmac.compare_digest(authorization.encode(), f"Bearer {self.token}".encode()):
            raise RefusedError(401, "wrong or missing bearer token; it is in the stack's state.json")
        match method, *path.removeprefix("/").split("/"):
            case "GET", "state":
                return self.state()
            case "POST", "pods", name, "delete":
                return self._delete(self._pod(unquote(name)), _field(body, "grace_s", 0))
            case "POST", "pods", name, "kill":
                return self._kill(self._pod(unquote(name)), _field(body, "signal", "SIGKILL"))
        raise RefusedError(404, f"there is no {method} {path}; there are /state, /pods/NAME/delete, /pods/NAME/kill")

    def _delete(self, pod: Pod, grace_s: Any) -> dict[str, Any]:
        number = isinstance(grace_s, int | float) and not isinstance(grace_s, bool)
        if not number or not math.isfinite(grace_s) or not 0 <= grace_s <= MAX_GRACE_S:
            raise RefusedError(400, f"grace_s must be 0 to {MAX_GRACE_S:g} seconds, not {grace_s!r}")
        self.deployment.delete(pod, grace_s)
        return {"pod": pod.name, "phase": pod.phase}

    def _kill(self, pod: Pod, name: Any) -> dict[str, Any]:
        if not isinstance(name, str) or name not in signal.Signals.__members__:
            raise RefusedError(400, f"signal must be a name like SIGKILL, not {name!r}")
        if pod.process is None:
            raise RefusedError(409, f"pod {pod.name} has no process now: {pod.last_exit or 'it has not started'}")
        pod.process.signal(signal.Signals[name])
        return {"pod": pod.name, "signal": name}

    def _pod(self, name: str) -> Pod:
        pods = {pod.name: pod for pod in self.deployment.pods}
        if name not in pods:
            raise RefusedError(404, f"there is no pod {name!r}; there are {', '.join(pods) or 'none'}")
        return pods[name]


def _field(body: bytes, name: str, default: Any) -> Any:
    """The one field a body may have."""
    try:
        document = json.loads(body or b"{}")
    except ValueError as error:
        raise RefusedError(400, f"the body is not JSON ({error})") from error
    if not isinstance(document, dict) or set(document) - {name}:
        raise RefusedError(400, f"the body must be an object with nothing but {name!r}")
    return document.get(name, default)


@contextmanager
def served(api: Api, port: int) -> Iterator[None]:
    """Answer requests while the block runs, by the event loop that runs now."""
    loop = asyncio.get_running_loop()

    async def handle(*request: Any) -> dict[str, Any]:
        return api.handle(*request)

    def in_loop(*request: Any) -> dict[str, Any]:
        return asyncio.run_coroutine_threadsafe(handle(*request), loop).result(LOOP_TIMEOUT_S)

    server = ThreadingHTTPServer((HOST, port), type("Handler", (_Handler,), {"answer": staticmethod(in_loop)}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.socket.close()


class _Handler(BaseHTTPRequestHandler):
    """One connection, in its own thread."""

    protocol_version = "HTTP/1.1"
    timeout = 30
    disable_nagle_algorithm = True
    answer: Callable[..., dict[str, Any]]

    def do_GET(self) -> None:
        self._respond()

    def do_POST(self) -> None:
        self._respond()

    def log_message(self, *message: Any) -> None:
        log.debug(*message)

    def _respond(self) -> None:
        try:
            authorization = self.headers.get("Authorization", "")
            status, document = 200, self.answer(self.command, self.path, authorization, self._body())
        except RefusedError as refused:
            status, document = refused.status, {"error": str(refused)}
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            raise RefusedError(400, f"Content-Length must be 0 to {MAX_BODY_BYTES}, not {length!r}")
        return self.rfile.read(int(length))
