"""The history where there is no store: what the errors say. The real store is in tests/integration."""

from __future__ import annotations

import socket
from collections.abc import Callable

import pytest

from aftershock.errors import StoreError
from aftershock.report.history import Store


@pytest.fixture
def nobody() -> Store:
    """A store at a port on which nothing listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    return Store(f"127.0.0.1:{port}", "key", "a-secret")


def test_a_store_that_does_not_answer_is_not_ready(nobody: Store) -> None:
    assert not nobody.ready()


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.publish("run", {"report.html": b"x"}),
        lambda store: store.list_runs(),
        lambda store: store.fetch("run", "report.html"),
    ],
    ids=["publish", "list_runs", "fetch"],
)
def test_a_store_that_does_not_answer_is_one_clear_line(nobody: Store, call: Callable[[Store], object]) -> None:
    with pytest.raises(StoreError) as caught:
        call(nobody)
    message = str(caught.value)
    assert "\n" not in message
    assert nobody.endpoint in message
    assert "Connection refused" in message
    assert "store_endpoint" in message
    assert "a-secret" not in message
    assert caught.value.__cause__ is not None


@pytest.mark.parametrize("endpoint", ["", "no host", "127.0.0.1:port", "host/path?query", "ftp://host"])
def test_an_endpoint_that_is_none_is_an_error(endpoint: str) -> None:
    with pytest.raises(StoreError, match="store_endpoint="):
        Store(endpoint, "key", "secret")
