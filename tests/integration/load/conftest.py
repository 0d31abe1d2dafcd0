"""What the load tests share: plans against a fake model server, and free ports."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from aftershock.load.dataset import Item
from aftershock.load.plan import LoadPlan
from aftershock.windows import Phase


@pytest.fixture
def make_plan(tmp_path: Path) -> Callable[..., LoadPlan]:
    """Builds a plan: short, small and without an exporter, unless told otherwise."""

    def make(target_url: str, **changes: Any) -> LoadPlan:
        fields: dict[str, Any] = {
            "phase": Phase.BASELINE,
            "target_url": target_url,
            "model": "fake",
            "protocol": "completions",
            "rate": 50.0,
            "arrivals": "constant",
            "seconds": 1.0,
            "items": [Item(f"item-{i}", f"question {i}") for i in range(7)],
            "max_tokens": 16,
            "temperature": 0.0,
            "request_timeout_s": 5.0,
            "seed": 1,
            "records_path": tmp_path / "records" / "baseline.parquet",
            "scrape_interval_s": 0.2,
        }
        return LoadPlan(**fields | changes)

    return make


@pytest.fixture
def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
