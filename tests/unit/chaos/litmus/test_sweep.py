"""Leftovers of dead runs are found by label, stopped, removed, and named."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from aftershock.chaos.engine import RUN_ID_LABEL
from aftershock.chaos.litmus import removal
from aftershock.chaos.litmus.cluster import Cluster, DeniedError
from aftershock.chaos.litmus.sweep import sweep
from aftershock.cli import cli
from aftershock.errors import ExitCode, InfrastructureError

from .fake_api_server import NAMESPACE, FakeApiServer
from .replay import ReplayClock


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


def fails(server: FakeApiServer, wanted: tuple[str, str, str], times: int, status: int = 503) -> None:
    """The first requests of this kind are refused."""
    left = [status] * times
    server.on_request = lambda *request: left.pop() if request == wanted and left else None


def test_a_stop_that_is_refused_is_asked_for_again(
    littered: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    stops(littered)
    fails(littered, ("PATCH", "chaosengines", "pod-delete-one"), times=2)
    began_s = flowing.seconds
    assert all(leftover.removed for leftover in sweep(cluster, NAMESPACE, "one", clock=flowing))
    assert flowing.seconds - began_s < 60


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_hiccup_is_no_reason_to_give_up(
    littered: FakeApiServer, cluster: Cluster, flowing: ReplayClock, method: str
) -> None:
    stops(littered)
    fails(littered, (method, "chaosengines", "pod-delete-one"), times=3)
    found = sweep(cluster, NAMESPACE, clock=flowing)
    assert len(found) == 8
    assert all(leftover.removed for leftover in found)


def test_many_engines_without_an_operator_take_no_longer_than_one(
    littered: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    for number in range(8):
        add(littered, "chaosengines", f"more-{number}", "one")
    littered.on_delete = lambda _: None
    began_s = flowing.seconds
    found = sweep(cluster, NAMESPACE, clock=flowing)
    assert sum(leftover.kind == "ChaosEngine" and not leftover.removed for leftover in found) == 10
    assert flowing.seconds - began_s < 2 * (removal.STOP_S + removal.GONE_S)
    first_round = [path.rpartition("/")[2] for method, path, _ in littered.requests[:10] if method == "PATCH"]
    assert len(set(first_round)) == 10, "one is not waited for before the next is asked to stop"


def test_the_result_of_an_engine_that_stays_is_kept(
    littered: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    littered.on_delete = lambda _: None
    result = littered.find("chaosresults", "pod-delete-one-pod-delete")
    assert result
    labels = {**result["metadata"]["labels"], "chaosUID": "uid-of-pod-delete-one"}
    littered.change("MODIFIED", "chaosresults", {**result, "metadata": {**result["metadata"], "labels": labels}})
    (kept,) = [leftover for leftover in sweep(cluster, NAMESPACE, "one", clock=flowing) if leftover.kind == RESULTS]
    assert not kept.removed
    assert "its engine is still there" in str(kept)
    assert littered.find("chaosresults", "pod-delete-one-pod-delete")


RESULTS = "chaosresults"


@pytest.mark.parametrize("engine_is_gone", [False, True])
def test_results_without_the_runs_label_are_found(
    server: FakeApiServer, cluster: Cluster, flowing: ReplayClock, engine_is_gone: bool
) -> None:
    """Litmus takes all labels but one off the result of an engine that is aborted."""
    if not engine_is_gone:
        add(server, "chaosengines", "pod-delete-one", "one")
    stops(server)
    for run in ("one", "two"):
        metadata = {"labels": {"chaosUID": f"uid-of-pod-delete-{run}"}}
        spec = {"engine": f"pod-delete-{run}", "experiment": "pod-delete"}
        server.add(RESULTS, f"pod-delete-{run}-pod-delete", metadata=metadata, spec=spec)
    server.objects.setdefault("chaosengines", {})
    assert all(leftover.removed for leftover in sweep(cluster, NAMESPACE, "one", clock=flowing))
    assert [result["metadata"]["name"] for result in server.objects[RESULTS].values()] == ["pod-delete-two-pod-delete"]


def test_what_may_not_be_looked_for_is_named_and_the_rest_is_removed(
    littered: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    stops(littered)
    littered.refusals["GET", "jobs"] = 403
    found = sweep(cluster, NAMESPACE, clock=flowing)
    (jobs,) = [leftover for leftover in found if not leftover.removed]
    assert str(jobs).startswith("NOT removed: jobs chaos-test/* of run any (cannot be looked for: ")
    assert "403" in str(jobs)
    assert not littered.objects["chaosengines"]
    assert not littered.objects[RESULTS]


def test_rights_in_one_namespace_are_no_rights_in_all(server: FakeApiServer, cluster: Cluster) -> None:
    server.refusals["GET", "chaosengines"] = 403
    with pytest.raises(DeniedError, match="name it with --namespace"):
        sweep(cluster, None)


@pytest.mark.parametrize("operator", [True, False])
def test_the_command_fails_if_something_is_left(
    littered: FakeApiServer,
    cluster: Cluster,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flowing: ReplayClock,
    operator: bool,
) -> None:
    stops(littered)
    if not operator:
        littered.on_stop, littered.on_delete = None, lambda _: None
    monkeypatch.setattr("aftershock.chaos.litmus.cluster.Cluster.connect", lambda _: cluster)
    monkeypatch.setattr("aftershock.chaos.litmus.sweep.SystemClock", lambda: flowing)
    arguments = ["cleanup", "--runs", str(tmp_path), "--kube-context", "auto", "--run-id", "one"]
    done = CliRunner().invoke(cli, arguments, standalone_mode=False)
    if operator:
        assert (done.exception, done.return_value) == (None, ExitCode.PASS)
        return
    assert isinstance(done.exception, InfrastructureError)
    assert "pod-delete-one is still there" in str(done.exception)
    assert "NOT removed: ChaosEngine chaos-test/pod-delete-one of run one" in done.output
    assert "removed: pods chaos-test/helper-one of run one" in done.output


def test_an_empty_cluster_gives_nothing(server: FakeApiServer, cluster: Cluster) -> None:
    server.refusals["GET", "chaosengines"] = 404
    assert sweep(cluster, NAMESPACE) == ()
