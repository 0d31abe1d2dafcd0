"""A connection that the server closes as a request is on its way is no failure of the service; a later close is one."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

import pytest

from aftershock.load.client import Client, Exchange, open_client
from aftershock.load.outcome import Outcome
from aftershock.load.plan import LoadPlan
from aftershock.load.protocol import get_protocol
from aftershock.load.records import read_records
from aftershock.load.runner import run_load
from aftershock.testing.model_server import FakeModelServer

pytestmark = pytest.mark.integration

MakePlan = Callable[..., LoadPlan]

ENDPOINT = get_protocol("completions")


async def ask(client: Client, timeout_s: float = 10.0) -> Exchange:
    now = asyncio.get_running_loop().time
    exchange = Exchange(sent=now())
    await client.exchange(exchange, ENDPOINT.body("hi", model="fake", max_tokens=8), now() + timeout_s)
    return exchange


def test_a_request_that_crosses_a_close_is_sent_again_at_once(make_plan: MakePlan) -> None:
    with FakeModelServer(keep_alive="crossed") as server:
        plan = make_plan(server.url, rate=20, seconds=3)
        result = asyncio.run(run_load(plan))
        served = server.served()
    records = read_records(plan.records_path)
    assert list(records["outcome"].unique()) == ["ok"]
    assert result.sent == len(served) == 60  # the crossed ones were never looked at
    assert len({entry.client_port for entry in served}) == 60
    assert result.resent > 20
    assert any(f"{result.resent} of 60 requests met a connection" in warning for warning in result.warnings)
    assert (records["latency_s"] >= 0.01).all()


def test_latency_counts_from_the_schedule_also_for_what_was_sent_twice(make_plan: MakePlan) -> None:
    with FakeModelServer(keep_alive="crossed", ttft_s=0.2, tokens=1) as server:
        plan = make_plan(server.url, rate=3, seconds=1)
        result = asyncio.run(run_load(plan))
        served = server.served()
    records = read_records(plan.records_path)
    assert result.resent > 0
    for (_, record), entry in zip(records.iterrows(), served, strict=True):
        assert record["latency_s"] >= record["ttft_s"] > 0.2
        assert entry.finished_s is not None
        assert record["latency_s"] > entry.finished_s - entry.received_s
        assert record["sent_at"] >= record["scheduled_at"]
        assert record["send_lag_s"] < record["latency_s"] - 0.2


@pytest.mark.parametrize("protocol", ["completions", "chat"])
def test_a_server_that_closes_after_each_answer_without_saying_so(make_plan: MakePlan, protocol: str) -> None:
    """As llama.cpp does."""
    with FakeModelServer(process=True, keep_alive="no", ttft_s=0.001, inter_token_s=0.0) as server:
        plan = make_plan(server.url, rate=100, seconds=4, arrivals="poisson", protocol=protocol)
        result = asyncio.run(run_load(plan))
    assert result.ok == result.sent > 300


def test_a_load_on_kept_connections_sends_nothing_twice(make_plan: MakePlan) -> None:
    with FakeModelServer() as server:
        result = asyncio.run(run_load(make_plan(server.url)))
        assert len(server.served()) == result.sent == 50
    assert result.resent == 0
    assert not any("met a connection" in warning for warning in result.warnings)


def test_once_and_no_more() -> None:
    async def main() -> None:
        async with open_client(server.url, ENDPOINT) as client:
            assert (await ask(client)).outcome is Outcome.OK
            await asyncio.to_thread(server.set, misbehaviour="close-at-once")
            again = await ask(client)
            assert (again.outcome, again.error) == (Outcome.RESET, "the connection was closed before an answer began")
            assert client.resent == 1

    with FakeModelServer() as server:
        asyncio.run(main())
        assert [entry.misbehaviour for entry in server.served()] == ["none", "close-at-once", "close-at-once"]


@pytest.mark.parametrize("misbehaviour", ["close-at-once", "reset-at-once"])
def test_a_close_of_a_new_connection_is_a_failure(misbehaviour: str) -> None:
    async def main() -> None:
        async with open_client(server.url, ENDPOINT) as client:
            assert (await ask(client)).outcome is Outcome.RESET
            assert client.resent == 0

    with FakeModelServer(misbehaviour=misbehaviour) as server:
        asyncio.run(main())
        assert len(server.served()) == 1


def test_a_reset_of_a_kept_connection_is_a_close_too() -> None:
    async def main() -> None:
        async with open_client(server.url, ENDPOINT) as client:
            await ask(client)
            await asyncio.to_thread(server.set, misbehaviour="reset-at-once")
            await ask(client)
            assert client.resent == 1

    with FakeModelServer() as server:
        asyncio.run(main())
        assert len(server.served()) == 3


def test_a_close_in_mid_head_is_a_failure() -> None:
    async def main() -> None:
        async with open_client(server.url, ENDPOINT) as client:
            assert (await ask(client)).outcome is Outcome.OK
            assert (await ask(client)).outcome is Outcome.RESET
            assert client.resent == 0

    with FakeModelServer(keep_alive="crossed-in-mid-head") as server:
        asyncio.run(main())


def test_a_server_that_dies_at_work_has_failed() -> None:
    """Its connection was kept, too, but by now it must have been looking at the request."""

    async def main() -> None:
        async with open_client(server.url, ENDPOINT) as client:
            assert (await ask(client)).outcome is Outcome.OK
            await asyncio.to_thread(server.set, misbehaviour="hang")
            waiting = asyncio.create_task(ask(client))
            await asyncio.sleep(0.5)
            os.kill(server.pid, signal.SIGKILL)
            assert (await waiting).outcome is Outcome.RESET
            assert client.resent == 0

    with FakeModelServer(process=True) as server:
        asyncio.run(main())
