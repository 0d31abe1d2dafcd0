"""What Prometheus scrapes from the gateway."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aftershock.exposition import HistogramSeries, family, page, sample
from aftershock.gateway.faults.board import FaultBoard
from aftershock.gateway.faults.catalog import KINDS
from aftershock.gateway.replicas import Replica

NO_REPLICA = ""
"""Label `replica` of a request that was answered without one."""
CLIENT_GONE = 499
"""Label `code` of a request whose client left before the end of its answer (nginx' number; HTTP has none)."""
USUAL_CODES = (200, CLIENT_GONE, 502, 504)
"""Counters that exist from the start: increase() does not see the first increment of one that appears later."""

_DURATION = "aftershock_gateway_request_duration_seconds"
_TTFT = "aftershock_gateway_ttft_seconds"
_REQUESTS = "aftershock_gateway_requests_total"
_IN_FLIGHT = "aftershock_gateway_in_flight"
_READY = "aftershock_gateway_replica_ready"
_FAULTS = "aftershock_gateway_faults_active"
_INJECTIONS = "aftershock_gateway_fault_injections_total"


class GatewayMetrics:
    """All series of one gateway."""

    def __init__(self, replicas: Sequence[Replica], board: FaultBoard) -> None:
        self._replicas = replicas
        self._board = board
        self._requests = {(replica.name, code): 0 for replica in replicas for code in USUAL_CODES}
        self._requests[NO_REPLICA, 503] = 0
        self._durations: dict[tuple[str, int], HistogramSeries] = {}
        self._ttft = {replica.name: HistogramSeries(_TTFT, {"replica": replica.name}) for replica in replicas}
        for replica in replicas:
            self._duration(replica.name, 200)

    def _duration(self, replica: str, code: int) -> HistogramSeries:
        series = HistogramSeries(_DURATION, {"replica": replica, "code": str(code)})
        self._durations[replica, code] = series
        return series

    def finished(self, replica: str, code: int, duration_s: float, ttft_s: float | None) -> None:
        """One request is over. `ttft_s` is None where no body byte of a good answer reached the client."""
        key = replica, code
        self._requests[key] = self._requests.get(key, 0) + 1
        (self._durations.get(key) or self._duration(replica, code)).observe(duration_s)
        if ttft_s is not None:
            self._ttft[replica].observe(ttft_s)

    def page(self) -> bytes:
        """All series in Prometheus' text format."""
        return page(self._lines())

    def _lines(self) -> Iterator[str]:
        yield from family(_DURATION, "histogram", "From a request to the end of its answer.")
        for duration in self._durations.values():
            yield from duration.lines()
        yield from family(_TTFT, "histogram", "From a request to the first byte of its body sent, status < 400.")
        for ttft in self._ttft.values():
            yield from ttft.lines()
        yield from family(_REQUESTS, "counter", "Requests by the status the client got; 499: it left.")
        for (name, code), count in self._requests.items():
            yield sample(_REQUESTS, {"replica": name, "code": str(code)}, count)
        yield from family(_IN_FLIGHT, "gauge", "Requests at a replica now.")
        yield from (sample(_IN_FLIGHT, {"replica": replica.name}, replica.in_flight) for replica in self._replicas)
        yield from family(_READY, "gauge", "1 if probes succeed.")
        yield from (sample(_READY, {"replica": replica.name}, int(replica.ready)) for replica in self._replicas)
        yield from family(_FAULTS, "gauge", "Faults that act now.")
        yield sample(_FAULTS, {}, self._board.active_count)
        yield from family(_INJECTIONS, "counter", "Connections, requests and chunks a fault touched.")
        yield from (sample(_INJECTIONS, {"kind": kind}, self._board.injections[kind]) for kind in KINDS)
