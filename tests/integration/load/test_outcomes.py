"""Every way a request can end, on real sockets, is told by its name."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import get_args

import psutil
import pytest

from aftershock.load.client import Exchange, open_client
from aftershock.load.outcome import Outcome
from aftershock.load.protocol import get_protocol
from aftershock.testing.model_server import FakeModelServer
from aftershock.testing.model_wire import Misbehaviour

pytestmark = pytest.mark.integration

TIMEOUT_S = 0.5

EXPECTED = {
    "none": (Outcome.OK, 200, None),
    "no-done": (Outcome.OK, 200, None),
    "dribble": (Outcome.OK, 200, None),
    "hang": (Outcome.TIMEOUT, None, "no full answer within the time-out"),
    "stall": (Outcome.TIMEOUT, 200, "no full answer within the time-out"),
    "endless": (Outcome.TIMEOUT, 200, "no full answer within the time-out"),
    "reset": (Outcome.RESET, 200, "the connection was reset in mid-answer"),
    "reset-at-once": (Outcome.RESET, None, "Connection reset by peer"),
    "close-at-once": (Outcome.RESET, None, "the connection was closed before an answer began"),
    "cut": (Outcome.TRUNCATED, 200, "the connection was closed in mid-answer"),
    "truncate": (Outcome.TRUNCATED, 200, "the stream ended without [DONE] or a finish reason"),
    "malformed": (Outcome.MALFORMED, 200, "not an event"),
    "wrong-shape": (Outcome.MALFORMED, 200, "not an event"),
    "invalid-utf8": (Outcome.MALFORMED, 200, "not an event"),
    "endless-event": (Outcome.MALFORMED, 200, "an event of more than 1048576 bytes"),
    "not-streaming": (Outcome.MALFORMED, 200, "not a stream: the answer is application/json"),
    "not-http": (Outcome.MALFORMED, None, "not HTTP: "),
    "redirect": (Outcome.MALFORMED, 307, "HTTP 307: Temporary Redirect"),
    "error-event": (Outcome.HTTP_5XX, 200, "error in the stream: set to fail"),
}


def ask(url: str, *, protocol: str = "completions", prompt: str = "hi", timeout_s: float = TIMEOUT_S) -> Exchange:
    """One request with a client of its own."""

    async def main() -> Exchange:
        endpoint = get_protocol(protocol)
        async with open_client(url, endpoint) as client:
            now = asyncio.get_running_loop().time
            exchange = Exchange(sent=now())
            await client.exchange(exchange, endpoint.body(prompt, model="fake", max_tokens=8), now() + timeout_s)
            return exchange

    return asyncio.run(main())


@pytest.fixture(scope="module")
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer(ttft_s=0.005, inter_token_s=0.001, tokens=6) as running:
        yield running


def test_every_misbehaviour_is_tried() -> None:
    assert set(EXPECTED) == set(get_args(Misbehaviour))


@pytest.mark.parametrize("protocol", ["completions", "chat"])
@pytest.mark.parametrize("misbehaviour", sorted(EXPECTED))
def test_misbehaviours(server: FakeModelServer, misbehaviour: str, protocol: str) -> None:
    outcome, status, words = EXPECTED[misbehaviour]
    server.set(misbehaviour=misbehaviour)
    begin = time.monotonic()
    exchange = ask(server.url, protocol=protocol)
    assert exchange.outcome is outcome
    assert exchange.status == status
    assert (exchange.error is None) if words is None else words in str(exchange.error)
    assert time.monotonic() - begin < TIMEOUT_S + 5
    if outcome is Outcome.OK:
        assert exchange.answer == "word " * 6
        assert exchange.output_tokens == 6
        assert len(exchange.gaps) == 5
    if outcome is Outcome.TIMEOUT:
        assert exchange.finished - exchange.sent >= TIMEOUT_S


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (400, Outcome.HTTP_4XX),
        (401, Outcome.HTTP_4XX),
        (404, Outcome.HTTP_4XX),
        (429, Outcome.RATE_LIMITED),
        (500, Outcome.HTTP_5XX),
        (503, Outcome.HTTP_5XX),
    ],
)
def test_statuses_come_with_the_words_of_the_server(status: int, outcome: Outcome) -> None:
    with FakeModelServer(error_rate=1, error_status=status) as server:
        exchange = ask(server.url)
    assert exchange.outcome is outcome
    assert exchange.status == status
    assert exchange.error == f"HTTP {status}: set to fail"
    assert exchange.answer is None
    assert exchange.first_token is None


def test_nobody_listens(free_port: int) -> None:
    exchange = ask(f"http://127.0.0.1:{free_port}")
    assert (exchange.outcome, exchange.error) == (Outcome.REFUSED, "Connection refused")


def test_no_such_host() -> None:
    exchange = ask("http://no-such-host.invalid", timeout_s=20)
    assert exchange.outcome is Outcome.REFUSED
    assert exchange.no_such_host


def test_tls_that_is_none() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(4096)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        exchange = ask(f"https://127.0.0.1:{listener.getsockname()[1]}", timeout_s=20)
        thread.join()
    assert exchange.outcome is Outcome.REFUSED
    assert "SSL" in str(exchange.error)


def test_a_character_in_two_halves_and_a_half_alone(server: FakeModelServer) -> None:
    whole, lone = "\ud83d \ude00", "a \ud83d b"  # words of the answer are its tokens: the halves come apart
    server.set(misbehaviour="none", answers={"whole": whole.replace(" ", ""), "lone": lone})
    assert ask(server.url, prompt="whole").answer == "\N{GRINNING FACE}"
    assert ask(server.url, prompt="lone").answer == "a \N{REPLACEMENT CHARACTER} b"


def test_tokens_are_counted_where_no_usage_is_told(server: FakeModelServer) -> None:
    server.set(misbehaviour="none", usage=False, answers={"hi": "one two three"})
    exchange = ask(server.url)
    server.set(usage=True, answers={})
    assert exchange.told_tokens is None
    assert exchange.output_tokens == 3


def test_an_empty_answer_is_an_answer(server: FakeModelServer) -> None:
    server.set(misbehaviour="none", tokens=0)
    exchange = ask(server.url)
    server.set(tokens=6)
    assert (exchange.outcome, exchange.answer, exchange.first_token) == (Outcome.OK, "", None)


def test_connections_are_kept_alive_and_none_is_left_behind(server: FakeModelServer) -> None:
    server.set(misbehaviour="none")
    before = len(server.served())

    async def main() -> None:
        endpoint = get_protocol("completions")
        body = endpoint.body("hi", model="fake")
        now = asyncio.get_running_loop().time
        async with open_client(server.url, endpoint) as client:
            for misbehaviour in ("none", "none", "stall", "reset", "none", "none"):
                await asyncio.to_thread(server.set, misbehaviour=misbehaviour)
                await client.exchange(Exchange(sent=now()), body, now() + 0.2)

    asyncio.run(main())
    first, second, *_, fifth, sixth = (entry.client_port for entry in server.served()[before:])
    assert first == second
    assert fifth == sixth
    port = int(server.url.rsplit(":", 1)[1])
    ours = psutil.Process().net_connections("tcp")
    assert [it for it in ours if it.raddr and it.raddr.port == port and it.status == "ESTABLISHED"] == []
