"""What Prometheus scrapes from the gateway.

Written by hand because the scrape is answered on the loop that carries the streams: with these fine buckets
prometheus_client spends 10 to 20 ms on an exposition, once a second, which would show as latency of the service under
test. Here the text of each line is made once, and a scrape only joins numbers to it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate

from aftershock.gateway.faults.board import FaultBoard
from aftershock.gateway.faults.catalog import KINDS
from aftershock.gateway.replicas import Replica

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
FIRST_BUCKET_S = 0.0005
LAST_BUCKET_S = 60.0
BUCKET_FACTOR = 1.1
"""A quantile read from such buckets is off by less than 10 % whatever its size."""
NO_REPLICA = ""
"""Label `replica` of a request that was answered without one."""
CLIENT_GONE = 499
"""Label `code` of a request whose client left before the end of its answer (nginx' number; HTTP has none)."""
USUAL_CODES = (200, CLIENT_GONE, 502, 504)
"""Counters that exist from the start: increase() does not see the first increment of one that appears later."""


def bucket_bounds() -> tuple[float, ...]:
    """Upper bounds in seconds, growing by `BUCKET_FACTOR`; the last one is at least `LAST_BUCKET_S`."""
    bounds = [FIRST_BUCKET_S]
    while bounds[-1] < LAST_BUCKET_S:
        bounds.append(float(f"{FIRST_BUCKET_S * BUCKET_FACTOR ** len(bounds):.6g}"))
    return tuple(bounds)


def _labels(labels: Mapping[str, str]) -> str:
    escaped = {
        key: value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"") for key, value in labels.items()
    }
    return "{" + ",".join(f'{key}="{value}"' for key, value in escaped.items()) + "}" if labels else ""


class Histogram:
    """One series of a histogram."""

    def __init__(self, name: str, labels: Mapping[str, str], bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0
        edges = [*map(repr, bounds), "+Inf"]
        self._prefixes = [f"{name}_bucket{_labels({**labels, 'le': edge})} " for edge in edges]
        self._tails = f"{name}_sum{_labels(labels)} ", f"{name}_count{_labels(labels)} "

    def observe(self, value: float) -> None:
        """Count one value; a bound belongs to the bucket below it."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    def lines(self) -> list[str]:
        """Its part of the exposition."""
        totals = list(accumulate(self._counts))
        lines = [prefix + str(total) for prefix, total in zip(self._prefixes, totals, strict=True)]
        return [*lines, f"{self._tails[0]}{self._sum!r}", f"{self._tails[1]}{totals[-1]}"]


class GatewayMetrics:
    """All series of one gateway."""

    def __init__(self, replicas: Sequence[Replica], board: FaultBoard) -> None:
        self._replicas = replicas
        self._board = board
        self._bounds = bucket_bounds()
        self._requests = {(replica.name, code): 0 for replica in replicas for code in USUAL_CODES}
        self._requests[NO_REPLICA, 503] = 0
        self._durations: dict[tuple[str, int], Histogram] = {}
        self._ttft = {
            replica.name: Histogram("aftershock_gateway_ttft_seconds", {"replica": replica.name}, self._bounds)
            for replica in replicas
        }
        for replica in replicas:
            self._duration(replica.name, 200)

    def _duration(self, replica: str, code: int) -> Histogram:
        labels = {"replica": replica, "code": str(code)}
        series = Histogram("aftershock_gateway_request_duration_seconds", labels, self._bounds)
        self._durations[replica, code] = series
        return series

    def finished(self, replica: str, code: int, duration_s: float, ttft_s: float | None) -> None:
        """One request is over. `ttft_s` is None where no body byte of a good answer reached the client."""
        key = replica, code
        self._requests[key] = self._requests.get(key, 0) + 1
        (self._durations.get(key) or self._duration(replica, code)).observe(duration_s)
        if ttft_s is not None:
            self._ttft[replica].observe(ttft_s)

    def exposition(self) -> str:
        """Everything in Prometheus' text format."""
        prefix = "aftershock_gateway_"
        lines: list[str] = []

        def family(name: str, kind: str, text: str, values: Mapping[str, float]) -> None:
            lines.extend((f"# HELP {prefix}{name} {text}", f"# TYPE {prefix}{name} {kind}"))
            lines.extend(f"{prefix}{name}{labels} {value}" for labels, value in values.items())

        def by_replica(value: Callable[[Replica], float]) -> dict[str, float]:
            return {_labels({"replica": replica.name}): value(replica) for replica in self._replicas}

        family("request_duration_seconds", "histogram", "From a request to the end of its answer.", {})
        lines.extend(line for series in self._durations.values() for line in series.lines())
        family("ttft_seconds", "histogram", "From a request to the first byte of its body sent, status < 400.", {})
        lines.extend(line for series in self._ttft.values() for line in series.lines())
        requests = {_labels({"replica": name, "code": str(code)}): n for (name, code), n in self._requests.items()}
        family("requests_total", "counter", "Requests by the status the client got; 499: it left.", requests)
        family("in_flight", "gauge", "Requests at a replica now.", by_replica(lambda replica: replica.in_flight))
        family("replica_ready", "gauge", "1 if probes succeed.", by_replica(lambda replica: int(replica.ready)))
        family("faults_active", "gauge", "Faults that act now.", {"": self._board.active_count})
        injections = {_labels({"kind": kind}): self._board.injections[kind] for kind in KINDS}
        family("fault_injections_total", "counter", "Connections, requests and chunks a fault touched.", injections)
        return "\n".join(lines) + "\n"
