"""The life of faults, and what they add up to for one exchange."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from aftershock.errors import InputError
from aftershock.gateway.faults.board import REMEMBERED, DuplicateFaultError, FaultBoard, State, UnknownFaultError
from aftershock.gateway.faults.catalog import KINDS, parse_fault, registry
from aftershock.gateway.faults.exchange import Exchange
from aftershock.gateway.faults.kind import Chunk, Effect, FaultSpec
from aftershock.gateway.faults.network import NetworkLatency, NetworkLoss, NetworkPartition

CHUNK = Chunk(b"x", last=False)


def with_board(scenario: Callable[[FaultBoard], Awaitable[None]]) -> None:
    """Run a scenario in a loop, with a board for the replicas 0 and 1."""

    async def run() -> None:
        await scenario(FaultBoard(["0", "1"]))

    asyncio.run(asyncio.wait_for(run(), 10))


def latency(seconds: float, **common: object) -> NetworkLatency:
    """A latency fault that lives a minute."""
    return NetworkLatency.model_validate({"duration_s": 60.0, **common, "latency_ms": seconds * 1000})


def test_a_fault_ends_by_itself() -> None:
    async def scenario(board: FaultBoard) -> None:
        fault = board.add(NetworkPartition(duration_s=0.05))
        assert (fault.active, board.active_count) == (True, 1)
        await Exchange(board, "0", "request").connect()  # infinity, unless it ends
        assert (fault.state, board.active_count) == (State.EXPIRED, 0)
        assert board.links["0"].faults == ()

    with_board(scenario)


def test_revert_is_final_and_harmless_when_repeated() -> None:
    async def scenario(board: FaultBoard) -> None:
        fault = board.add(NetworkLoss(id="a", duration_s=0.02))
        assert board.revert("a").state is State.REVERTED
        await asyncio.sleep(0.05)
        assert board.revert("a") is fault
        assert fault.state is State.REVERTED

    with_board(scenario)


def test_faults_act_on_their_replicas_only() -> None:
    async def scenario(board: FaultBoard) -> None:
        one, both = board.add(latency(1, replicas=["1", "1"])), board.add(latency(1))
        assert one.replicas == ("1",)
        assert board.links["0"].faults == (both,)
        assert board.links["1"].faults == (one, both)
        board.revert_all()
        assert not board.links["1"].faults

    with_board(scenario)


def test_ids_are_unique_for_good_and_made_if_not_given() -> None:
    async def scenario(board: FaultBoard) -> None:
        assert board.add(latency(1)).id != board.add(latency(1)).id
        board.add(latency(1, id="a"))
        board.revert("a")
        with pytest.raises(DuplicateFaultError, match="a is taken"):
            board.add(latency(1, id="a"))
        with pytest.raises(UnknownFaultError, match="no fault has the id b"):
            board.get("b")
        with pytest.raises(InputError, match="7 unknown; known replicas: 0, 1"):
            board.add(latency(1, replicas=["7"]))

    with_board(scenario)


def test_only_so_many_ended_faults_are_remembered() -> None:
    async def scenario(board: FaultBoard) -> None:
        for _ in range(REMEMBERED + 10):
            board.revert(board.add(latency(1)).id)
        assert len(board.faults()) == REMEMBERED

    with_board(scenario)


def test_delays_add_up_and_end_with_their_fault() -> None:
    async def scenario(board: FaultBoard) -> None:
        exchange = Exchange(board, "0", "request")
        assert not exchange.disturbed()
        assert exchange.chunk(CHUNK).delays == ()
        short, long = board.add(latency(0.05)), board.add(latency(60))
        assert exchange.disturbed()
        hold = exchange.chunk(CHUNK)
        assert hold.due() == pytest.approx(hold.since + 60.05)
        asyncio.get_running_loop().call_later(0.02, board.revert, long.id)
        await hold.wait()
        assert asyncio.get_running_loop().time() >= hold.since + 0.05
        assert (short.injections, long.injections) == (1, 1)
        assert board.injections == {"network-latency": 2}

    with_board(scenario)


def test_a_fault_that_begins_later_does_not_hold_what_arrived_before() -> None:
    async def scenario(board: FaultBoard) -> None:
        board.add(latency(0.01))
        hold = Exchange(board, "0", "request").chunk(CHUNK)
        board.add(NetworkPartition(duration_s=60))
        await hold.wait()

    with_board(scenario)


def test_the_nth_request_meets_the_same_fate_whatever_else_happens() -> None:
    async def delays(noise: bool) -> list[float]:
        board = FaultBoard(["0", "1"])
        board.add(NetworkLatency(duration_s=60, latency_ms=100, jitter_ms=100, seed=4))
        seen = []
        for _ in range(10):
            exchange = Exchange(board, "0", "request")
            for _ in range(3):
                if noise:
                    Exchange(board, "0", "probe").chunk(CHUNK)
                    Exchange(board, "1", "request").chunk(CHUNK)
                seen.append(exchange.chunk(CHUNK).delays[0][1])
        return seen

    quiet = asyncio.run(delays(noise=False))
    assert asyncio.run(delays(noise=True)) == quiet
    assert len(set(quiet)) == 30


def test_kinds_are_found_by_name_and_named_once() -> None:
    assert set(KINDS) == {
        "network-latency",
        "network-loss",
        "network-partition",
        "http-latency",
        "http-status",
    }
    with pytest.raises(ValueError, match="two kinds of fault are called network-loss"):
        registry(NetworkLoss, NetworkLoss)
    assert parse_fault({"kind": "network-loss", "duration_s": 3}) == NetworkLoss(duration_s=3)


@pytest.mark.parametrize("document", [None, [], "network-loss", {"duration_s": 1}, {"kind": 3, "duration_s": 1}])
def test_what_is_no_fault_is_refused(document: object) -> None:
    with pytest.raises(InputError):
        parse_fault(document)


def test_a_kind_needs_nothing_but_parameters_and_hooks() -> None:
    class Slow(Effect):
        def on_chunk(self, chunk: Chunk) -> float:
            chunk.data = chunk.data.upper()
            return 0.0

    class Shout(FaultSpec):
        kind: str = "shout"

        def begin(self, rng: Random) -> Effect:
            return Slow()

    async def scenario(board: FaultBoard) -> None:
        fault = board.add(Shout(duration_s=1))
        chunk = Chunk(b"quiet", last=False)
        await Exchange(board, "0", "request").chunk(chunk).wait()
        assert (chunk.data, fault.injections) == (b"QUIET", 1)

    with_board(scenario)
