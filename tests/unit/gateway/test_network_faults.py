"""The arithmetic of network faults: bounds, distributions against their formulas, and determinism."""

from __future__ import annotations

import math
import statistics
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from aftershock.gateway.faults.kind import Chunk, Effect, Head
from aftershock.gateway.faults.network import (
    CONNECT_RTO_S,
    RTO_S,
    CorrelatedUniform,
    NetworkLatency,
    NetworkLoss,
    NetworkPartition,
    retransmission_delay_s,
)

CHUNK = Chunk(b"x", last=False)


def head() -> Head:
    """Any head."""
    return Head(200, "OK", CIMultiDict())


def chunk_delays(effect: Effect, count: int) -> list[float]:
    """What an effect says to so many chunks; 0 where it leaves one alone."""
    return [effect.on_chunk(CHUNK) or 0.0 for _ in range(count)]


@given(
    latency_ms=st.floats(0, 10_000),
    jitter_ms=st.floats(0, 10_000),
    correlation=st.floats(0, 100),
    seed=st.integers(),
)
def test_jitter_stays_within_its_bounds(latency_ms: float, jitter_ms: float, correlation: float, seed: int) -> None:
    spec = NetworkLatency(duration_s=1, latency_ms=latency_ms, jitter_ms=jitter_ms, correlation_percent=correlation)
    effect = spec.begin(Random(seed))
    low, high = max(0.0, latency_ms - jitter_ms) / 1000, (latency_ms + jitter_ms) / 1000
    for delay_s in [effect.on_connect(), effect.on_response_start(head()), *chunk_delays(effect, 20)]:
        assert delay_s is not None
        assert low - 1e-9 <= delay_s <= high + 1e-9


def test_jitter_uses_the_whole_range_evenly() -> None:
    effect = NetworkLatency(duration_s=1, latency_ms=100, jitter_ms=50).begin(Random(1))
    delays = chunk_delays(effect, 10_000)
    assert statistics.fmean(delays) == pytest.approx(0.1, abs=0.002)
    assert min(delays) < 0.051
    assert max(delays) > 0.149


def test_without_jitter_every_delay_is_the_mean() -> None:
    effect = NetworkLatency(duration_s=1, latency_ms=250).begin(Random(1))
    assert set(chunk_delays(effect, 5)) == {0.25}
    assert effect.on_request() is None  # what goes to the replica is not delayed


@pytest.mark.parametrize("correlation", [0.0, 0.25, 0.9])
def test_correlation_is_what_netem_makes_of_it(correlation: float) -> None:
    uniform = CorrelatedUniform(Random(5), correlation)
    values = [uniform.draw() for _ in range(20_000)]
    assert statistics.correlation(values, [*values[1:], values[0]]) == pytest.approx(correlation, abs=0.03)


def test_the_seed_decides() -> None:
    spec = NetworkLatency(duration_s=1, latency_ms=100, jitter_ms=50)
    assert chunk_delays(spec.begin(Random(1)), 50) == chunk_delays(spec.begin(Random(1)), 50)
    assert chunk_delays(spec.begin(Random(1)), 50) != chunk_delays(spec.begin(Random(2)), 50)


def test_losses_cost_doubling_time_outs() -> None:
    delays = {retransmission_delay_s(Random(seed), 0.5, RTO_S) for seed in range(200)}
    series = [0.0, 0.2, 0.6, 1.4, 3.0, 6.2, 12.6, 25.4, 51.0, 102.2]
    assert all(any(math.isclose(delay, known) for known in series) for delay in delays)
    assert {0.0, 0.2} <= delays


@pytest.mark.parametrize("percentage", [10, 50])
def test_a_chunk_is_lost_as_often_as_asked(percentage: float) -> None:
    effect = NetworkLoss(duration_s=1, percentage=percentage).begin(Random(3))
    answers = [effect.on_chunk(CHUNK) for _ in range(5000)]
    lost = [answer for answer in answers if answer is not None]
    assert len(lost) / len(answers) == pytest.approx(percentage / 100, abs=0.02)
    twice = [delay for delay in lost if delay > RTO_S * 1.5]
    assert len(twice) / len(lost) == pytest.approx(percentage / 100, abs=0.05)


def test_time_outs_stop_doubling_at_two_minutes() -> None:
    class Unlucky(Random):
        def __init__(self, losses: int) -> None:
            super().__init__(0)
            self.losses = losses

        def random(self) -> float:
            self.losses -= 1
            return 0.0 if self.losses >= 0 else 1.0

    ten, eleven, twelve = (retransmission_delay_s(Unlucky(losses), 0.5, RTO_S) for losses in (10, 11, 12))
    assert eleven - ten == pytest.approx(120)
    assert twelve - eleven == pytest.approx(120)
    assert retransmission_delay_s(Unlucky(100_000), 0.5, RTO_S) == math.inf


def test_a_lost_syn_ack_costs_a_second() -> None:
    delays = {NetworkLoss(duration_s=1, percentage=50).begin(Random(seed)).on_connect() for seed in range(50)}
    assert {None, CONNECT_RTO_S, 3 * CONNECT_RTO_S} <= delays


def test_total_loss_is_silence_and_no_loss_is_nothing() -> None:
    assert NetworkLoss(duration_s=1, percentage=100).begin(Random(0)).on_chunk(CHUNK) == math.inf
    assert NetworkLoss(duration_s=1, percentage=0).begin(Random(0)).on_chunk(CHUNK) is None


@pytest.mark.parametrize(("direction", "request_held"), [("ingress", True), ("egress", False), ("all", True)])
def test_a_partition_holds_everything_but_egress_lets_requests_in(direction: str, request_held: bool) -> None:
    spec = NetworkPartition.model_validate({"duration_s": 1, "direction": direction})
    effect = spec.begin(Random(0))
    assert effect.on_request() == (math.inf if request_held else None)
    assert [effect.on_connect(), effect.on_response_start(head()), effect.on_chunk(CHUNK)] == [math.inf] * 3
