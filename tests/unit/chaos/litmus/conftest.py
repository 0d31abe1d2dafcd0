"""The fake API server, its clock, and the real client that is connected to it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest
from kubernetes import client

from aftershock.chaos.litmus.cluster import Cluster

from .fake_api_server import FakeApiServer, serving
from .replay import Replay, ReplayClock


@pytest.fixture
def clock() -> Iterator[ReplayClock]:
    """Time that stands still until a replay, or the test, moves it."""
    clock = ReplayClock()
    yield clock
    clock.close()


@pytest.fixture
def flowing(clock: ReplayClock) -> Iterator[ReplayClock]:
    """Time that passes, a thousand times as fast as it should."""
    done = threading.Event()

    def flow() -> None:
        while not done.wait(0.001):
            clock.advance(clock.seconds + 1)

    thread = threading.Thread(target=flow)
    thread.start()
    yield clock
    done.set()
    thread.join()


@pytest.fixture
def server(clock: ReplayClock) -> Iterator[FakeApiServer]:
    """A fake API server."""
    with serving() as state:
        yield state
        clock.close()


@pytest.fixture
def cluster(server: FakeApiServer) -> Cluster:
    """The real client, connected to the fake server."""
    settings = client.Configuration()
    settings.host = server.url
    settings.retries = False
    return Cluster(client.ApiClient(configuration=settings))


@pytest.fixture
def replay(server: FakeApiServer, clock: ReplayClock) -> Callable[[str], Replay]:
    """Load a recording into the server."""
    return lambda name: Replay(server, clock, name)
