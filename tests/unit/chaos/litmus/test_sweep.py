"""Leftovers of dead runs are found by label, stopped, removed, and named."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from aftershock.chaos.engine import RUN_ID_LABEL
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.litmus.sweep import sweep

from .fake_api_server import NAMESPACE, FakeApiServer
from .replay import ReplayClock


@pytest.fixture
def flowing(clock: ReplayClock) -> Iterator[ReplayClock]:
    """Time that passes, a thousand times as fast as it should."""
    done = threading.Event()

    def flow() -> None:
        while not done.wait(0.001):
            clock.advance(clock.seconds + 1)

    thread = threading.Thread(target=flow)
    thread.start()
    yield clock
    done.set()
    thread.join()


def add(server: FakeApiServer, plural: str, name: str, run: str, *, ours: bool = True) -> None:
    labels = {RUN_ID_LABEL: run} if ours else {}
    status = {"engineStatus": "initialized"} if plural == "chaosengines" else {}
    metadata = {"labels": {**labels, "chaosUID": "u"}, "finalizers": ["chaosengine.litmuschaos.io/finalizer"]}
    server.add(plural, name, metadata=metadata, status=status)


@pytest.fixture
def littered(server: FakeApiServer) -> FakeApiServer:
    for run in ("one", "two"):
        add(server, "chaosengines", f"pod-delete-{run}", run)
        add(server, "chaosresults", f"pod-delete-{run}-pod-delete", run)
        add(server, "jobs", f"job-{run}", run)
        add(server, "pods", f"helper-{run}", run)
    add(server, "pods", "somebody-elses", "x", ours=False)
    return server


def stops(server: FakeApiServer) -> None:
    """A fake operator that stops engines, and lets them go."""

    def stop() -> None:
        for engine in list(server.objects["chaosengines"].values()):
            server.change("MODIFIED", "chaosengines", {**engine, "status": {"engineStatus": "stopped"}})

    server.on_stop = stop


def test_all_of_all_runs_is_removed_and_named(littered: FakeApiServer, cluster: Cluster, flowing: ReplayClock) -> None:
    stops(littered)
    found = sweep(cluster, NAMESPACE, clock=flowing)
    assert len(found) == 8
    assert all(leftover.removed for leftover in found)
    assert str(found[0]) == "removed: ChaosEngine chaos-test/pod-delete-one of run one"
    assert [pod["metadata"]["name"] for pod in littered.objects["pods"].values()] == ["somebody-elses"]
    methods = [method for method, path, _ in littered.requests if "pod-delete-one" in path]
    assert methods[:2] == ["PATCH", "DELETE"]


def test_one_run_is_removed_and_the_other_stays(
    littered: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    stops(littered)
    found = sweep(cluster, NAMESPACE, "two", clock=flowing)
    assert {leftover.run_id for leftover in found} == {"two"}
    assert littered.find("chaosengines", "pod-delete-one")


def test_an_engine_without_an_operator_is_reported_and_keeps_its_finalizer(
    littered: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    littered.on_delete = lambda _: None
    found = sweep(cluster, NAMESPACE, "one", clock=flowing)
    engine = found[0]
    assert not engine.removed
    assert "is the chaos-operator running?" in str(engine)
    left = littered.find("chaosengines", "pod-delete-one")
    assert left is not None
    assert left["metadata"]["finalizers"]


def test_an_empty_cluster_gives_nothing(server: FakeApiServer, cluster: Cluster) -> None:
    server.refusals["GET", "chaosengines"] = 404
    assert sweep(cluster, NAMESPACE) == ()
