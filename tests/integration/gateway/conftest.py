"""A gateway in this process, before replicas that do what a test tells them to. Everything speaks real HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Self

import aiohttp
import pytest
from aiohttp import web
from prometheus_client.parser import text_string_to_metric_families

from aftershock.gateway.server import gateway
from aftershock.gateway.settings import GatewaySettings

TOKEN = "only-for-tests"
DEADLINE_S = 10.0
TEST_LIMIT_S = 30.0


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run tests that are coroutines, each in a loop of its own, within a time limit."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, TEST_LIMIT_S))
    return True


class Replica:
    """A model server whose streams advance when the test says so (`gate.release()`), or by themselves (`?n=5`)."""

    def __init__(self) -> None:
        self.port = 0
        self.healthy = True
        self.gate = asyncio.Semaphore(0)
        self.requests: list[str] = []
        self.connections: set[Any] = set()
        self.client_left = asyncio.Event()
        self.sent_bytes = 0
        self._runner: web.ServerRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen, on the same port as before if there was one."""
        server = web.Server(self._handle, handler_cancellation=True, access_log=None, auto_decompress=False)
        self._runner = web.ServerRunner(server, shutdown_timeout=0.01)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        self.port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Refuse connections and end those there are, as a killed process does."""
        if self._runner is not None:
            for connection in self._runner.server.connections if self._runner.server else ():
                if connection.transport is not None:
                    connection.transport.abort()
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/health":
            return web.Response(status=200 if self.healthy else 503)
        self.requests.append(request.path_qs)
        self.connections.add(request.protocol)
        routes: dict[str, Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]] = {
            "/stream": self._stream,
            "/flood": self._flood,
            "/reset": self._reset,
            "/nonsense": self._nonsense,
            "/silent": self._silent,
            "/empty": self._empty,
        }
        try:
            return await routes.get(request.path, self._echo)(request)
        except asyncio.CancelledError:
            self.client_left.set()
            raise

    async def _echo(self, request: web.BaseRequest) -> web.StreamResponse:
        """What arrived, as JSON."""
        body = await request.read()
        seen = {
            "method": request.method,
            "target": request.raw_path,
            "headers": [[name, value] for name, value in request.headers.items()],
            "body": body.decode("latin-1"),
        }
        headers = [("X-Twice", "a"), ("X-Twice", "b"), ("Connection", "X-Private"), ("X-Private", "hop")]
        response = web.Response(body=json.dumps(seen).encode(), content_type="application/json")
        response.headers.extend(headers)
        return response

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        """Numbered events; each waits for the gate unless `n` says how many come at once."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        writer = await response.prepare(request)
        assert writer is not None
        writer.send_headers()
        count = int(request.query.get("n", 0))
        for number in range(count or 1000):
            if not count:
                await self.gate.acquire()
            await response.write(event(number))
        return response

    async def _flood(self, request: web.BaseRequest) -> web.StreamResponse:
        """More than anyone should hold in memory."""
        response = web.StreamResponse()
        await response.prepare(request)
        for _ in range(1024):
            await response.write(bytes(65536))
            self.sent_bytes += 65536
        return response

    async def _nonsense(self, request: web.BaseRequest) -> web.StreamResponse:
        """Something, but not HTTP."""
        assert request.transport is not None
        request.transport.write(b"NONSENSE\r\n\r\n")
        return await self._silent(request)

    async def _silent(self, request: web.BaseRequest) -> web.StreamResponse:
        """No answer, ever."""
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def _empty(self, request: web.BaseRequest) -> web.StreamResponse:
        """A status that has no body."""
        return web.Response(status=204)

    async def _reset(self, request: web.BaseRequest) -> web.StreamResponse:
        """Not even an answer."""
        assert request.transport is not None
        request.transport.abort()
        await asyncio.sleep(DEADLINE_S)
        raise AssertionError("the connection was not reset")


def event(number: int) -> bytes:
    """One event of a stream."""
    return b"data: %d\n\n" % number


class Stand:
    """Replicas, a gateway and a client. `async with stand(replicas=2, retries=1) as it: ...`"""

    def __init__(self, replicas: int = 1, *, wait_ready: bool = True, **settings: Any) -> None:
        self.replicas = [Replica() for _ in range(replicas)]
        self.url = self.admin_url = ""
        self._wait_ready = wait_ready
        self._given = settings
        self._stack = contextlib.AsyncExitStack()

    async def __aenter__(self) -> Self:
        for replica in self.replicas:
            await replica.start()
            self._stack.push_async_callback(replica.stop)
        self.settings = GatewaySettings.model_validate(
            {
                "token": TOKEN,
                "replicas": [{"name": str(i), "url": replica.url} for i, replica in enumerate(self.replicas)],
                "health": {"period_s": 0.05, "timeout_s": 0.5},
                "drain_timeout_s": 0.2,
                **self._given,
            }
        )
        addresses = await self._stack.enter_async_context(gateway(self.settings))
        self.url, self.admin_url = addresses.url, addresses.admin_url
        self.client = await self._stack.enter_async_context(aiohttp.ClientSession(auto_decompress=False))
        if self._wait_ready:
            await self.until_ready(*[True] * len(self.replicas))
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    async def admin(self, method: str, path: str, document: Any = None, token: str = TOKEN) -> tuple[int, Any]:
        """Ask the fault API; the status and the JSON of the answer."""
        headers = {"Authorization": f"Bearer {token}"}
        async with self.client.request(method, self.admin_url + path, json=document, headers=headers) as response:
            return response.status, await response.json()

    @contextlib.asynccontextmanager
    async def fault(self, kind: str, duration_s: float = 60.0, **parameters: Any) -> AsyncIterator[str]:
        """A fault that is reverted at the end of the block; its id."""
        document = {"kind": kind, "duration_s": duration_s, **parameters}
        status, fault = await self.admin("POST", "/faults", document)
        assert status == 201, fault
        yield fault["id"]
        status, fault = await self.admin("DELETE", f"/faults/{fault['id']}")
        assert status == 200, fault

    async def get(self, path: str, **options: Any) -> tuple[int, bytes]:
        """Status and body of a public path."""
        async with self.client.get(self.url + path, **options) as response:
            return response.status, await response.read()

    async def count(self, metric: str, **labels: str) -> float:
        """The value of one sample of the gateway's metrics; 0 if there is none."""
        _, text = await self.get("/metrics")
        for family in text_string_to_metric_families(text.decode()):
            for sample in family.samples:
                if sample.name == metric and sample.labels == labels:
                    return sample.value
        return 0.0

    async def until_ready(self, *expected: bool) -> None:
        """Wait until the replicas have this readiness."""

        async def holds() -> bool:
            _, document = await self.admin("GET", "/replicas")
            return [replica["ready"] for replica in document["replicas"]] == list(expected)

        await self.until(holds)

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        """Poll until a condition holds; a failure if it does not."""
        async with asyncio.timeout(DEADLINE_S):
            while not await holds():
                await asyncio.sleep(0.01)


@pytest.fixture
def stand() -> type[Stand]:
    """The class, so that a test can say what it needs."""
    return Stand
