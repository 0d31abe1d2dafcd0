"""Logs of Litmus' pods: of the right container, to their end, and of bounded size."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.litmus import archive
from aftershock.chaos.litmus.archive import Archive
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.render import render_fault

from .fake_api_server import NAMESPACE, FakeApiServer

POD = "pod-delete-abc-xyz"


@pytest.fixture
def engine() -> ChaosEngine:
    return parse_engine(render_fault("pod-delete", {}, namespace=NAMESPACE, label="app=inference"), "test")


def pod(state: str, *containers: str) -> dict[str, Any]:
    names = containers or ("pod-delete-abc",)
    return {
        "metadata": {"name": POD},
        "spec": {"containers": [{"name": name} for name in names]},
        "status": {"containerStatuses": [{"name": name, "state": {state: {}}} for name in names]},
    }


def noticed(kept: Archive, engine: ChaosEngine, *seen: dict[str, Any]) -> Ledger:
    """The ledger after each of these sights of the pod."""
    ledger = Ledger(engine, "u")
    for each in seen:
        ledger.pods[POD] = each
        kept.notice(ledger)
    return ledger


def log(folder: Path) -> str:
    return (folder / f"{POD}.log").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        (("istio-proxy", "pod-delete-abc"), "pod-delete-abc"),
        (("istio-proxy", "chaos-runner"), "chaos-runner"),
        (("odd", "odder"), "odd"),
    ],
)
def test_the_log_is_that_of_litmus_own_container(
    server: FakeApiServer,
    cluster: Cluster,
    engine: ChaosEngine,
    tmp_path: Path,
    containers: tuple[str, ...],
    expected: str,
) -> None:
    server.on_log = lambda pod, container: f"{pod} {container}"
    kept = Archive(cluster, engine, tmp_path)
    kept.close(noticed(kept, engine, pod("terminated", *containers)))
    assert log(tmp_path) == f"{POD} {expected}"


def test_a_connection_that_ends_is_not_taken_for_the_end_of_the_log(
    server: FakeApiServer, cluster: Cluster, engine: ChaosEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "RETRY_S", 0.01)
    lines: list[str] = []

    def grows(_: str, __: str) -> str:
        lines.append(f"line {len(lines)}")
        return "\n".join(lines)

    server.on_log = grows
    kept = Archive(cluster, engine, tmp_path)
    ledger = noticed(kept, engine, pod("running"))
    deadline = time.monotonic() + 10
    while len(lines) < 3:
        assert time.monotonic() < deadline, "it is not read again"
        time.sleep(0.005)
    noticed(kept, engine, pod("terminated"))
    kept._tails[POD].thread.join(10)
    assert not kept._tails[POD].thread.is_alive(), "it is read again though its container has ended"
    kept.close(ledger)
    assert log(tmp_path).endswith(lines[-1])


def test_of_a_long_log_the_beginning_and_the_end_are_kept(
    server: FakeApiServer, cluster: Cluster, engine: ChaosEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "HALF_BYTES", 1000)
    text = "".join(f"{number:09d}\n" for number in range(1000))
    server.on_log = lambda *_: text
    kept = Archive(cluster, engine, tmp_path)
    kept.close(noticed(kept, engine, pod("terminated")))
    assert log(tmp_path) == f"{text[:1000]}\n[8000 bytes are left out here]\n{text[-1000:]}"


def test_a_log_of_many_small_pieces_costs_no_more_than_its_length() -> None:
    text = archive._Text()
    began = time.process_time()
    for number in range(200_000):
        text.add(b"%019d\n" % number)
    assert time.process_time() - began < 2, "as long as copying it all with each piece would take minutes"
    assert text.size == 4_000_000
    assert text.text().endswith("0000000000000199999\n")
