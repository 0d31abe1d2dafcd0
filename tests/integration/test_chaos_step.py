"""The chaos step: load and fault together, and neither ever without the other."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

from aftershock import steps
from aftershock.chaos import backend as seam
from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.engine import ChaosEngine
from aftershock.errors import AftershockError, ChaosError
from aftershock.experiment import Experiment
from aftershock.testing.model_server import FakeModelServer
from aftershock.windows import Window, utc_now

pytestmark = pytest.mark.integration


@dataclass
class FakeBackend:
    """Injects nothing; says that it does."""

    ramp_s: float = 0.0
    hold_s: float = 0.5
    fails: bool = False
    bookkeeping_s: float = 0.0
    name: str = "fake"
    runs: int = 0
    stopped_after_s: float | None = field(default=None)

    def preflight(self, engine: ChaosEngine) -> None:
        """Nothing to refuse."""

    def run(self, engine: ChaosEngine, stop: threading.Event, on_event: Callable[[ChaosEvent], None]) -> ChaosOutcome:
        """Wait, say ChaosInject, hold; or fail before that."""
        self.runs += 1
        began = time.monotonic()
        injected = None
        if not self.fails:
            stop.wait(self.ramp_s)
            injected = utc_now()
            on_event(ChaosEvent(injected, "ChaosInject", "pretending"))
            if stop.wait(self.hold_s):
                self.stopped_after_s = time.monotonic() - began
            for _ in engine.experiments:
                on_event(ChaosEvent(utc_now(), "PostChaosCheck", "pretending"))
                stop.wait(self.bookkeeping_s)
        verdict = "Error" if self.fails else "Stopped" if self.stopped_after_s else "Pass"
        return ChaosOutcome(
            verdict=verdict, phase=verdict, error_code="TARGET_SELECTION_ERROR" if self.fails else None,
            reason="no target pods found" if self.fails else None, injected_at=injected, reverted_at=utc_now(),
            effects=1, evidence=(), result={}, events=(), backend=self.name,
        )  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture
def server() -> Iterator[FakeModelServer]:
    with FakeModelServer(ttft_s=0.002, inter_token_s=0.0005) as running:
        yield running


def run_chaos(
    tmp_path: Path, server: FakeModelServer, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, **fields: object
) -> None:
    monkeypatch.setitem(seam.BACKENDS, "local", lambda experiment, archive: backend)
    values = {"target_url": server.url, "chaos_s": 2.0, "rate": 50.0, "metrics_port": free_port(), **fields}
    experiment = Experiment(prometheus_url="http://127.0.0.1:9", scrape_interval_s=0.1, **values)  # type: ignore[arg-type]
    (tmp_path / "experiment.yaml").write_text(experiment.to_yaml())
    (tmp_path / "engine.yaml").write_text(steps.render_engine(experiment.model_copy(update={"run_id": "r1"})))
    steps.chaos(
        tmp_path / "experiment.yaml",
        tmp_path / "engine.yaml",
        records_out=tmp_path / "records",
        window_out=tmp_path / "window.json",
        outcome_out=tmp_path / "outcome.json",
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def window(tmp_path: Path) -> Window:
    return Window.from_dict(json.loads((tmp_path / "window.json").read_text()))


def test_the_load_lasts_chaos_s_from_the_injection(
    tmp_path: Path, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = FakeBackend(ramp_s=1.0, hold_s=0.5)
    run_chaos(tmp_path, server, backend, monkeypatch)
    seen = window(tmp_path)
    assert seen.injected_at is not None
    assert (seen.end - seen.injected_at).total_seconds() >= 2.0
    assert (seen.injected_at - seen.start).total_seconds() >= 0.9  # the first request is due 20 ms after the start
    assert seen.seconds < 60, "not as long as the bound against backends that never end"
    assert len(pd.read_parquet(tmp_path / "records")) > 100


def test_the_load_waits_for_a_fault_that_takes_longer(
    tmp_path: Path, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = FakeBackend(hold_s=3.0)
    run_chaos(tmp_path, server, backend, monkeypatch, chaos_s=1.0)
    assert window(tmp_path).seconds >= 2.9
    assert backend.stopped_after_s is None, "it ended by itself"


def test_the_load_does_not_wait_for_bookkeeping_but_for_every_fault(
    tmp_path: Path, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = FakeBackend(hold_s=1.0, bookkeeping_s=3.0)
    run_chaos(tmp_path, server, backend, monkeypatch, chaos_s=2.0, fault="pod-delete,container-kill")
    assert 3.5 < window(tmp_path).seconds < 6.5, "the second fault is over 4 s after the start, the backend after 7 s"
    assert backend.stopped_after_s is None


def test_a_fault_that_fails_ends_the_load_and_everything_is_written(
    tmp_path: Path, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ChaosError, match="TARGET_SELECTION_ERROR: no target pods found") as caught:
        run_chaos(tmp_path, server, FakeBackend(fails=True), monkeypatch, chaos_s=600.0)
    assert caught.value.code == "TARGET_SELECTION_ERROR"
    assert window(tmp_path).seconds < 60
    assert json.loads((tmp_path / "outcome.json").read_text())["verdict"] == "Error"
    assert (tmp_path / "records").exists()


def test_no_fault_without_load(tmp_path: Path, server: FakeModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = FakeBackend()
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(AftershockError, match="port"):
        run_chaos(tmp_path, server, backend, monkeypatch, metrics_port=taken.getsockname()[1])
    assert backend.runs == 0
