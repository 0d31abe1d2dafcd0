"""A model server that does as it is told: OpenAI's API, streamed, with set times, errors and misbehaviours.

    with FakeModelServer(ttft_s=0.02, inter_token_s=0.002, tokens=10) as server:
        ...                      # load on server.url
        server.set(error_rate=0.5)
        served = server.served() # what was really done, and when

It runs in a thread, or with `process=True` in a process of its own: then it shares no interpreter with the client that
is being measured, and `server.pid` can be stopped or killed. The times that it tells are of the monotonic clock, which
all processes of a machine share. Written on bare asyncio, because half of its work is to break HTTP.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Self

from aftershock.testing.model_wire import ModelServerSettings, Served, Server


class FakeModelServer:
    """Starts on entry, stops on exit. Keyword arguments are the fields of ModelServerSettings."""

    def __init__(self, *, process: bool = False, **settings: Any) -> None:
        self._settings = ModelServerSettings(**settings)
        self._in_process = process
        self._process: subprocess.Popen[bytes] | None = None
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], object] = lambda: None
        self.url = ""

    def __enter__(self) -> Self:
        self.url = self._start_process() if self._in_process else self._start_thread()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def pid(self) -> int:
        """Of the server's own process."""
        if self._process is None:
            raise RuntimeError("the server runs in a thread; start it with process=True")
        return self._process.pid

    def set(self, **changes: Any) -> None:
        """Change settings from the next request on."""
        self._call("/fake/settings", changes)

    def served(self) -> list[Served]:
        """All requests so far, in order of arrival."""
        return [Served(**entry) for entry in self._call("/fake/served")]

    def stop(self) -> None:
        """End it at once; connections are dropped. May be called twice."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        if self._thread is not None:
            self._stop()
            self._thread.join()
            self._thread = None

    def _call(self, path: str, body: Mapping[str, Any] | None = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data), timeout=10) as response:
            return json.loads(response.read())

    def _start_process(self) -> str:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, self._settings.model_dump_json()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the model server did not start; its standard error says why")
        return str(json.loads(line)["url"])

    def _start_thread(self) -> str:
        started = threading.Event()
        failures: list[OSError] = []

        async def main() -> None:
            stopped = asyncio.Event()
            loop = asyncio.get_running_loop()
            self._stop = lambda: loop.call_soon_threadsafe(stopped.set)
            try:
                async with Server(self._settings) as server:
                    self.url = server.url
                    started.set()
                    await stopped.wait()
            except OSError as error:
                failures.append(error)
                started.set()

        self._thread = threading.Thread(target=lambda: asyncio.run(main()), name="fake-model-server", daemon=True)
        self._thread.start()
        started.wait()
        if failures:
            self._thread.join()
            self._thread = None
            raise failures[0]
        return self.url


def _main(settings: ModelServerSettings) -> None:
    """The process: one JSON line with the address, then serve until the other end of standard input is gone."""

    async def main() -> None:
        async with Server(settings) as server:
            sys.stdout.write(json.dumps({"url": server.url}) + "\n")
            sys.stdout.flush()
            threading.Thread(target=_die_with_parent, daemon=True).start()
            await asyncio.Event().wait()

    asyncio.run(main())


def _die_with_parent() -> None:
    sys.stdin.buffer.read()
    os._exit(0)


if __name__ == "__main__":
    _main(ModelServerSettings.model_validate_json(sys.argv[1]))
