"""The backend's own doings around a run: creation, archive, listeners, deletion, and rights that end in the middle."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.litmus.backend import LitmusBackend
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.litmus.kinds import ENGINES
from aftershock.errors import ChaosError

from .fake_api_server import FakeApiServer
from .replay import Replay, ReplayClock
from .test_recordings import engine_of


def run(replay: Replay, cluster: Cluster, **options: Any) -> ChaosOutcome:
    engine, _ = engine_of(replay.body)
    return LitmusBackend(cluster, clock=replay.clock, **options).run(engine, replay.stop, lambda _: None)


def test_the_engine_is_created_strictly_and_marked_as_ours(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer
) -> None:
    assert run(replay("delete-after-completed"), cluster).stop_verified_at is None
    method, path, body = server.requests[0]
    assert (method, path.partition("?")[2]) == ("POST", "fieldValidation=Strict")
    assert body["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "aftershock"
    assert body["metadata"]["namespace"] == "chaos-test"
    deleted = [path.rpartition("/")[2] for method, path, _ in server.requests if method == "DELETE"]
    assert list(dict.fromkeys(deleted)) == ["delete-after-completed", "delete-after-completed-pod-delete"]


def test_a_stop_is_a_merge_patch_of_this_very_engine(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer
) -> None:
    played = replay("abort-by-patch")
    played.user_stops = True
    outcome = run(played, cluster)
    started, *patches = [body for method, _, body in server.requests if method == "PATCH"]
    assert started["spec"] == {"engineState": "active"}
    uid = outcome.result["metadata"]["labels"]["chaosUID"]
    assert patches
    assert all(patch == {"metadata": {"uid": uid}, "spec": {"engineState": "stop"}} for patch in patches)
    assert any("the stop was verified after" in sentence for sentence in outcome.evidence)


def test_a_stop_is_verified_before_the_clean_up_that_follows_it(
    replay: Callable[[str], Replay], cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    played = replay("abort-by-patch")
    played.user_stops = True
    ended: list[datetime] = []

    def takes_a_minute(*_: Any) -> None:
        ended.append(played.clock.now())
        played.clock.advance(played.clock.seconds + 60)

    monkeypatch.setattr("aftershock.chaos.litmus.backend.Archive.close", takes_a_minute)
    verified_at = run(played, cluster).stop_verified_at
    assert verified_at is not None
    assert timedelta(0) <= ended[0] - verified_at < timedelta(seconds=5)
    assert played.clock.now() - verified_at >= timedelta(seconds=60)


def test_logs_and_objects_are_archived_though_an_abort_deletes_the_pods(
    replay: Callable[[str], Replay], cluster: Cluster, tmp_path: Path
) -> None:
    played = replay("abort-by-patch")
    played.user_stops = True
    run(played, cluster, archive=tmp_path)
    logs = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.glob("*.log")}
    assert sorted(logs) == ["abort-by-patch-runner.log", "pod-delete-6ibd0x-c72dx.log"]
    assert logs["abort-by-patch-runner.log"] == "log of abort-by-patch-runner\n"
    events = json.loads((tmp_path / "events.json").read_text(encoding="utf-8"))
    assert {"Summary", "Killing", "Abort"} <= {event["reason"] for event in events}
    assert json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))[0]["kind"] == "ChaosResult"


@pytest.mark.parametrize(
    ("status", "says"), [(409, "exists already"), (403, "403"), (422, "422"), (503, "503"), (400, "400")]
)
def test_a_refused_creation_is_an_error_and_starts_nothing(
    replay: Callable[[str], Replay],
    cluster: Cluster,
    server: FakeApiServer,
    flowing: ReplayClock,
    status: int,
    says: str,
) -> None:
    server.refusals["POST", "chaosengines"] = status
    outcome = run(replay("pass"), cluster)
    assert (outcome.verdict, outcome.error_code) == ("Error", "ENGINE_NOT_CREATED")
    assert says in str(outcome.reason)


def test_a_creation_without_an_answer_is_looked_up(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer
) -> None:
    played = replay("delete-after-completed")
    create = server.on_create
    assert create is not None

    def loses_its_answer(body: dict[str, Any]) -> dict[str, Any]:
        played._created = {
            **played._created,
            "metadata": {**played._created["metadata"], "annotations": body["metadata"]["annotations"]},
        }
        create(body)
        raise ConnectionAbortedError

    server.on_create = loses_its_answer
    assert run(played, cluster).verdict == "Pass"


def test_a_stop_before_the_start_creates_nothing(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer
) -> None:
    played = replay("pass")
    played.stop.set()
    assert run(played, cluster).verdict == "Stopped"
    assert server.requests == []


def test_a_listener_that_fails_does_not_end_the_run(replay: Callable[[str], Replay], cluster: Cluster) -> None:
    played = replay("delete-after-completed")
    engine, _ = engine_of(played.body)

    def fails(_: ChaosEvent) -> None:
        raise ValueError("full disk")

    assert LitmusBackend(cluster, clock=played.clock).run(engine, played.stop, fails).verdict == "Pass"


def test_a_token_that_expires_in_the_middle_ends_in_api_lost(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer
) -> None:
    played = replay("pass")
    engine, _ = engine_of(played.body)

    def expires(event: ChaosEvent) -> None:
        if event.reason == "ChaosInject":
            for plural in ("chaosengines", "chaosresults", "pods", "jobs", "events"):
                server.refusals.update({(method, plural): 401 for method in ("GET", "PATCH", "DELETE")})
            server.end_watches()

    outcome = LitmusBackend(cluster, clock=played.clock).run(engine, played.stop, expires)
    assert (outcome.verdict, outcome.error_code) == ("Error", "API_LOST")
    assert "401" in str(outcome.reason)
    assert outcome.injected_at is not None


def test_a_defect_of_ours_leaves_no_fault_behind(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def defect(*_: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("aftershock.chaos.litmus.backend.Archive.notice", defect)
    with pytest.raises(RuntimeError, match="a defect"):
        run(replay("pass"), cluster)
    assert [method for method, _, _ in server.requests] == ["POST", "PATCH", "PATCH", "DELETE"]
    assert server.requests[2][2]["spec"] == {"engineState": "stop"}
    assert not server.objects["chaosengines"]


def test_a_proxy_with_errors_of_its_own_does_not_keep_the_fault_from_being_stopped(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer
) -> None:
    played = replay("abort-by-patch")
    played.user_stops = True
    server.error = lambda code: {"type": "error", "status": str(code), "code": "ClusterUnavailable"}
    refused: list[str] = []

    def unavailable_at_first(method: str, plural: str, _: str) -> int | None:
        if method in ("PATCH", "DELETE") and played.stop.is_set() and refused.count(method) < 2:
            refused.append(method)
            return 503
        return None

    server.on_request = unavailable_at_first
    outcome = run(played, cluster)
    assert refused == ["PATCH", "PATCH", "DELETE", "DELETE"]
    assert outcome.verdict == "Stopped"
    assert not server.objects["chaosengines"]


def test_a_defect_of_ours_and_a_busy_server_leave_no_fault_behind(
    replay: Callable[[str], Replay],
    cluster: Cluster,
    server: FakeApiServer,
    flowing: ReplayClock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def defect(*_: Any) -> None:
        left.extend([503] * 4)
        raise RuntimeError("a defect")

    left: list[int] = []
    server.on_request = lambda method, *_: left.pop() if method in ("PATCH", "DELETE") and left else None
    monkeypatch.setattr("aftershock.chaos.litmus.backend.Archive.notice", defect)
    with pytest.raises(RuntimeError, match="a defect"):
        run(replay("pass"), cluster)
    assert not server.objects["chaosengines"]


def test_results_are_kept_as_long_as_the_fault_may_not_be_over(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer
) -> None:
    played = replay("delete-after-completed")
    server.on_delete = lambda _: None  # there is no operator any more
    outcome = run(played, cluster)
    assert any("left behind" in sentence for sentence in outcome.evidence)
    name = "delete-after-completed-pod-delete"
    assert any(f"ChaosResult {name} is kept" in sentence for sentence in outcome.evidence)
    assert server.find("chaosresults", name)


def test_a_log_that_may_not_be_read_is_said_to_be_missing(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer, tmp_path: Path
) -> None:
    def no_logs(method: str, plural: str, name: str) -> int | None:
        return 403 if (method, plural) == ("GET", "pods") and name else None

    server.on_request = no_logs
    outcome = run(replay("delete-after-completed"), cluster, archive=tmp_path)
    assert outcome.verdict == "Pass"
    missing = [sentence for sentence in outcome.evidence if "the log of pod" in sentence]
    assert len(missing) == 2
    assert all("403" in sentence for sentence in missing)


def test_the_client_is_imported_only_where_a_cluster_is_connected_to() -> None:
    code = "import sys, aftershock.chaos.litmus.backend; assert 'kubernetes' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_no_kubeconfig_is_said_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(tmp_path / "none"))
    with pytest.raises(ChaosError, match=r"no access to a cluster .*; set KUBECONFIG"):
        Cluster.connect()


def test_a_kubeconfig_gives_address_context_and_token(
    server: FakeApiServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "other",
        "contexts": [{"name": "ours", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server.url}}],
        "users": [{"name": "u", "user": {"token": "secret"}}],
    }
    path = tmp_path / "config"
    path.write_text(json.dumps(config), encoding="utf-8")
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    Cluster.connect("ours").list(ENGINES, "chaos-test")
    assert server.authorizations == {"Bearer secret"}
    with pytest.raises(ChaosError, match="no access to a cluster"):
        Cluster.connect("neither")
