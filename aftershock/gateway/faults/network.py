"""Faults of the network between the gateway and a replica, acted out where the gateway reads and writes.

There is no packet here, only connections, requests and *chunks* (what one read from the socket yields). Each kind says
how that differs from what the kernel (netem, as Litmus uses it) or a NetworkPolicy does to packets.
"""

from __future__ import annotations

import math
from random import Random
from typing import Literal

from pydantic import Field

from aftershock.gateway.faults.kind import MAX_DURATION_S, Chunk, Effect, FaultSpec, Head

RTO_S = 0.2
"""Linux' smallest TCP retransmission time-out, which it uses on any short path."""
CONNECT_RTO_S = 1.0
"""The first retransmission time-out of a SYN (RFC 6298)."""
MAX_RTO_S = 120.0
"""Where doubling stops (TCP_RTO_MAX)."""


class CorrelatedUniform:
    """Uniform numbers in [0, 1) that lean on the one before, by netem's rule: x = (1 - c) * u + c * x_before."""

    def __init__(self, rng: Random, correlation: float) -> None:
        self._rng = rng
        self._correlation = correlation
        self._last: float | None = None

    def draw(self) -> float:
        """The next number. The first one leans on nothing."""
        value = self._rng.random()
        if self._last is not None:
            value = (1 - self._correlation) * value + self._correlation * self._last
        self._last = value
        return value


class _Latency(Effect):
    def __init__(self, spec: NetworkLatency, rng: Random) -> None:
        self._mean_s = spec.latency_ms / 1000
        self._jitter_s = spec.jitter_ms / 1000
        self._uniform = CorrelatedUniform(rng, spec.correlation_percent / 100)

    def _delay_s(self) -> float:
        return max(0.0, self._mean_s + self._jitter_s * (2 * self._uniform.draw() - 1))

    def on_connect(self) -> float:
        return self._delay_s()

    def on_response_start(self, head: Head) -> float:
        return self._delay_s()

    def on_chunk(self, chunk: Chunk) -> float:
        return self._delay_s()


class NetworkLatency(FaultSpec):
    """What leaves the replica arrives `latency_ms` ± `jitter_ms` later (uniform), as with netem on a pod's egress.

    Here: a new connection opens that much later (the SYN-ACK), and so does each chunk of an answer arrive, also of
    answers under way. Chunks are shifted, not slowed: their spacing stays, and their order is kept, as a TCP receiver
    would see it. netem delays packets, so a large answer also loses throughput to TCP's window; here it does not.
    Correlation leans on the chunk before in the same answer; netem's on the packet before of the whole interface.
    """

    kind: Literal["network-latency"] = "network-latency"
    latency_ms: float = Field(2000, ge=0, le=3_600_000, description="Mean delay in milliseconds")
    jitter_ms: float = Field(0, ge=0, le=3_600_000, description="Largest deviation from the mean, in milliseconds")
    correlation_percent: float = Field(0, ge=0, le=100, description="How much a delay leans on the one before it")

    def begin(self, rng: Random) -> Effect:
        """A delay for each connection, head and chunk."""
        return _Latency(self, rng)


def retransmission_delay_s(rng: Random, probability: float, first_rto_s: float) -> float:
    """How much later a segment arrives when each of its transmissions is lost with `probability`.

    TCP waits `first_rto_s`, then twice that, and so on. Infinity where nothing gets through.
    """
    if probability >= 1:
        return math.inf
    delay_s, rto_s = 0.0, first_rto_s
    while rng.random() < probability:
        delay_s += rto_s
        if delay_s > MAX_DURATION_S:
            return math.inf
        rto_s = min(2 * rto_s, MAX_RTO_S)
    return delay_s


class _Loss(Effect):
    def __init__(self, spec: NetworkLoss, rng: Random) -> None:
        self._probability = spec.percentage / 100
        self._rng = rng

    def _delay_s(self, first_rto_s: float) -> float | None:
        return retransmission_delay_s(self._rng, self._probability, first_rto_s) or None

    def on_connect(self) -> float | None:
        return self._delay_s(CONNECT_RTO_S)

    def on_response_start(self, head: Head) -> float | None:
        return self._delay_s(RTO_S)

    def on_chunk(self, chunk: Chunk) -> float | None:
        return self._delay_s(RTO_S)


class NetworkLoss(FaultSpec):
    """What leaves the replica is lost with `percentage`, as with netem on a pod's egress.

    TCP hides loss behind delay, so that is what happens here: a lost chunk arrives after TCP's retransmission
    time-outs (0.2 s, then 0.4, 0.8, ... while it is lost again) and the chunks behind it wait; a lost SYN-ACK opens the
    connection 1, 3, 7, ... s later. 100 % is silence until the fault ends. Not acted out: fast retransmission, lost
    acknowledgements, the shrinking congestion window, and TCP's giving up after about 15 minutes.
    When the fault ends, what was lost arrives at once; TCP would wait for its next time-out.
    """

    kind: Literal["network-loss"] = "network-loss"
    percentage: float = Field(100, ge=0, le=100, description="Chance of each transmission to be lost, in percent")

    def begin(self, rng: Random) -> Effect:
        """A draw for each transmission of each connection, head and chunk."""
        return _Loss(self, rng)


class _Partition(Effect):
    def __init__(self, spec: NetworkPartition) -> None:
        self._request = None if spec.direction == "egress" else math.inf

    def on_connect(self) -> float:
        return math.inf

    def on_request(self) -> float | None:
        return self._request

    def on_response_start(self, head: Head) -> float:
        return math.inf

    def on_chunk(self, chunk: Chunk) -> float:
        return math.inf


class NetworkPartition(FaultSpec):
    """Silence: nothing passes, and nobody is told. No refusal, no reset; peers find out by their own time-outs.

    Directions are seen from the replica. `ingress` drops what is sent to it: requests do not arrive. `egress` drops
    what it sends: requests on open connections still arrive and are worked on, for nobody. No connection can be opened
    and no answer continues in either case: TCP needs both ways (under `ingress` a stream would in truth pass a window
    of unacknowledged data before it stops). When the fault ends, what was held arrives at once.
    Litmus makes a NetworkPolicy: without a CNI that enforces it, it does nothing. With one, a policy speaks of who may
    open a connection: `egress` alone forbids the pod to call others, while answers on connections that were allowed in
    still pass, so a model server that calls nobody goes on serving. `egress` here is harsher, a cut cable: it silences
    the service. Some CNIs also leave established connections alone under `ingress`; this one cuts them.
    """

    kind: Literal["network-partition"] = "network-partition"
    direction: Literal["ingress", "egress", "all"] = Field("all", description="Whose packets are dropped")

    def begin(self, rng: Random) -> Effect:
        """The same for every exchange."""
        return _Partition(self)
