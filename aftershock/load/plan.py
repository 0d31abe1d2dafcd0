"""What a load is told, what it says while it runs, and what it found. Value types; no I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from aftershock.load.dataset import Item
from aftershock.windows import Phase, Window

KEEPING_UP_LAG_S = 0.05
"""A load whose P99 send lag is above this did not keep up. It inflates latencies, so it can break an SLO by itself."""

KEEPING_UP_SHARE = 0.99
"""Nor did one that sent less than this share of its schedule within it."""


@dataclass(frozen=True)
class LoadPlan:
    """One phase of load. Durations in seconds."""

    phase: Phase
    target_url: str
    """Base URL of the service, without /v1."""
    model: str
    protocol: str
    """completions or chat."""
    rate: float
    """Requests per second."""
    arrivals: str
    """poisson or constant."""
    seconds: float
    """Upper bound of the schedule; a stop event ends it earlier."""
    items: Sequence[Item]
    """Request number i asks item i modulo their number, in every phase."""
    max_tokens: int
    temperature: float
    request_timeout_s: float
    """From the scheduled time to the end of the answer."""
    seed: int
    records_path: Path
    """The Parquet file that is there at the end; while the load runs, its parts are in the folder `<name>.parts`."""
    metrics_port: int = 0
    """Where Prometheus scrapes; 0: nowhere."""
    scrape_interval_s: float = 1.0
    """How often Prometheus scrapes; of several, the one that is slowest."""
    metrics_host: str = "127.0.0.1"
    """Address the metrics are served on; 0.0.0.0 in a pod."""


@dataclass(frozen=True)
class LoadProgress:
    """Where a load stands, about once a second."""

    elapsed_s: float
    sent: int
    ok: int
    failed: int
    p99_s: float | None
    """Of the successful requests of the last three seconds; None without any."""
    send_lag_p99_s: float | None


@dataclass(frozen=True)
class LoadResult:
    """What a load did, and whether it was the load that was asked for."""

    window: Window
    """Without the instants of a fault: the load knows none."""
    settled: bool
    """Whether the last values were scraped before `window.settled_at`; if not, Prometheus may lack the phase's end."""
    sent: int
    ok: int
    failed: int
    offered_rate: float
    """Requests per second that were due within the window."""
    achieved_rate: float
    """Requests per second that were sent: the same number over the time it took to send them."""
    send_lag_p99_s: float
    """From due to sent; the upper bound of a histogram bucket, so at most 10 % too high."""
    loop_lag_p99_s: float
    """How late the event loop ran timers: what the generator may have added to any time it took."""
    resent: int = 0
    """Requests that met a kept-alive connection as the service closed it, and were sent again on a new one."""
    warnings: tuple[str, ...] = ()
    """What makes the result worth less, one sentence each."""

    @property
    def keeping_up(self) -> bool:
        """Whether the generator did as asked; if not, its latencies say as much of itself as of the service."""
        return self.send_lag_p99_s <= KEEPING_UP_LAG_S and self.achieved_rate >= KEEPING_UP_SHARE * self.offered_rate
