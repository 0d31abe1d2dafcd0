"""The litmus backend against a live API server, with real pods killed by the recorded Litmus."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import timedelta

import pytest

from aftershock.chaos.engine import parse_engine
from aftershock.chaos.litmus import backend as backend_module
from aftershock.chaos.litmus import deadlines
from aftershock.chaos.litmus.sweep import sweep
from aftershock.errors import ChaosError
from aftershock.windows import utc_now
from tests.cluster.backend.scene import Running, Scene, token_kubeconfig, with_probe
from tests.cluster.furnish import CHAOS, TARGET
from tests.cluster.rig.waiting import wait_until

NOBODY = "http://10.96.0.250:80/"
"""An address of no Service: connections are refused."""


def http_probe(*, stop: bool) -> dict[str, object]:
    return {
        "name": "front-door",
        "type": "httpProbe",
        "mode": "Continuous",
        "httpProbe/inputs": {"url": NOBODY, "method": {"get": {"criteria": "==", "responseCode": "200"}}},
        "runProperties": {"probeTimeout": "1s", "interval": "1s", "attempt": 1, "stopOnFailure": stop},
    }


def test_pods_are_deleted_and_the_outcome_is_a_pass(scene: Scene) -> None:
    before, began = scene.targets(), utc_now()
    backend, engine = scene.backend(), scene.engine()
    backend.preflight(engine)
    outcome = Running.of(backend, engine).result()

    assert (outcome.verdict, outcome.phase, outcome.error_code) == ("Pass", "Completed", None)
    assert outcome.effects >= 1
    assert before - scene.targets(), "no pod of the target was replaced"
    assert outcome.injected_at is not None and began < outcome.injected_at < utc_now()
    assert outcome.reverted_at is not None and outcome.reverted_at >= outcome.injected_at
    assert outcome.result["status"]["experimentStatus"]["verdict"] == "Pass"
    scene.assert_clean()
    kept = {path.name for path in scene.archive.iterdir()}
    assert {"engine.json", "results.json", "events.json", f"{engine.name}-runner.log"} <= kept
    assert any(name.startswith("pod-delete-") for name in kept), "the log of the experiment is missing"


def test_a_failing_probe_is_a_fail_and_is_named(scene: Scene) -> None:
    outcome = Running.of(scene.backend(), with_probe(scene.engine(), http_probe(stop=False))).result()
    assert (outcome.verdict, outcome.phase) == ("Fail", "Completed_With_Probe_Failure")
    assert "front-door" in str(outcome.reason)
    scene.assert_clean()


def test_a_probe_that_stops_is_told_from_us(scene: Scene) -> None:
    engine = scene.engine(TOTAL_CHAOS_DURATION="60", CHAOS_INTERVAL="5")
    outcome = Running.of(scene.backend(), with_probe(engine, http_probe(stop=True))).result()
    assert outcome.verdict == "Stopped"
    assert "front-door" in str(outcome.reason)
    scene.assert_clean()


def test_a_stop_is_verified_and_nothing_dies_after_it(scene: Scene) -> None:
    running = Running.of(scene.backend(), scene.engine(TOTAL_CHAOS_DURATION="120", CHAOS_INTERVAL="3"))
    running.wait_for("ChaosInject")
    running.stop.set()
    outcome = running.result()
    assert outcome.verdict == "Stopped"
    assert any("verified" in sentence for sentence in outcome.evidence)
    scene.assert_clean()
    scene.wait_whole()
    survivors = scene.targets()
    time.sleep(7)  # two intervals of the fault: nothing can be polled for that must not happen
    assert scene.targets() == survivors


def test_without_a_target_preflight_refuses_and_litmus_errs(scene: Scene) -> None:
    engine = scene.engine(label="app=nobody")
    with pytest.raises(ChaosError, match=r"no pod has app=nobody in namespace inference"):
        scene.backend().preflight(engine)
    outcome = Running.of(scene.backend(), engine).result()
    assert (outcome.verdict, outcome.error_code) == ("Error", "TARGET_SELECTION_ERROR")
    assert outcome.injected_at is None
    scene.assert_clean()


def test_an_unknown_experiment_ends_by_our_deadline(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    known = scene.engine()
    document = {**known.document, "spec": {**known.document["spec"], "experiments": [{"name": "no-such-fault"}]}}
    engine = parse_engine(json.dumps(document), "test")
    with pytest.raises(ChaosError, match="no ChaosExperiment no-such-fault"):
        scene.backend().preflight(engine)
    monkeypatch.setattr(deadlines, "START_S", 8.0)
    outcome = Running.of(scene.backend(), engine).result()
    assert (outcome.verdict, outcome.error_code) == ("Error", "NOT_STARTED")
    assert "Unable to get chaos resources" in str(outcome.reason)
    scene.assert_clean()


def test_a_restart_of_the_api_server_costs_nothing(scene: Scene) -> None:
    rig = scene.rig
    running = Running.of(scene.backend(), scene.engine(TOTAL_CHAOS_DURATION="20", CHAOS_INTERVAL="5"))
    running.wait_for("ChaosInject")
    rig.stop_apiserver()
    try:
        time.sleep(3)  # long enough for every watch to have failed
    finally:
        rig.start_apiserver()
    outcome = running.result()
    assert outcome.verdict == "Pass", outcome.reason
    assert outcome.effects >= 2, outcome.evidence
    scene.assert_clean()


def test_rights_lost_in_the_middle_end_the_run_and_not_the_bound_of_the_fault(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A token that is not valid any more, as an expired one: whoever it was bound to is gone."""
    kubectl, api = scene.cluster.kubectl, scene.api(scene.cluster.kubeconfig)
    kubectl("create", "secret", "generic", "pass", f"--namespace={CHAOS}")
    bound = ("--bound-object-kind=Secret", "--bound-object-name=pass")
    token = kubectl("create", "token", "aftershock", f"--namespace={CHAOS}", *bound).strip()
    credentials = token_kubeconfig(scene.cluster, scene.archive.with_name("short-lived"), token)
    monkeypatch.setattr(
        backend_module,
        "deadlines_of",
        lambda engine: replace(deadlines.deadlines_of(engine), blind_s=6, stop_s=6, clean_s=6),
    )
    running = Running.of(scene.backend(credentials), scene.engine(TOTAL_CHAOS_DURATION="12", CHAOS_INTERVAL="3"))
    running.wait_for("ChaosInject")
    kubectl("delete", "secret", "pass", f"--namespace={CHAOS}")
    outcome = running.result(300)
    assert (outcome.verdict, outcome.error_code) == ("Error", "API_LOST")
    assert "401" in str(outcome.reason) or any("401" in sentence for sentence in outcome.evidence)
    assert scene.names("chaosengines"), "nobody could delete it"

    wait_until(lambda: not scene.chaos_pods(), 120, lambda: f"{scene.chaos_pods()} go on without an end")
    removed = sweep(api, CHAOS, scene.run_id)
    assert {item.kind for item in removed} >= {"ChaosEngine"}
    assert all(item.removed for item in removed), removed
    scene.assert_clean()


def test_too_few_rights_are_named_before_anything_is_created(scene: Scene) -> None:
    kubectl = scene.cluster.kubectl
    kubectl("create", "serviceaccount", "beginner", f"--namespace={CHAOS}")
    try:
        kubectl(
            "create",
            "role",
            "beginner",
            "--verb=get,list,watch,create",
            "--resource=chaosengines",
            f"--namespace={CHAOS}",
        )
        kubectl(
            "create",
            "rolebinding",
            "beginner",
            "--role=beginner",
            f"--serviceaccount={CHAOS}:beginner",
            f"--namespace={CHAOS}",
        )
        token = kubectl("create", "token", "beginner", f"--namespace={CHAOS}").strip()
        credentials = token_kubeconfig(scene.cluster, scene.archive.with_name("beginner"), token)
        with pytest.raises(
            ChaosError, match=r"may not .*patch chaosengines.litmuschaos.io.* in namespace aftershock-chaos"
        ):
            scene.backend(credentials).preflight(scene.engine())
    finally:
        for kind in ("rolebinding", "role", "serviceaccount"):
            kubectl("delete", kind, "beginner", f"--namespace={CHAOS}", "--ignore-not-found")
    scene.assert_clean()


def test_the_service_account_of_the_fault_is_checked_too(scene: Scene) -> None:
    kubectl = scene.cluster.kubectl
    binding = ("rolebinding", "aftershock-pod-chaos", f"--namespace={TARGET}")
    kept = kubectl("get", *binding, "--output=json")
    kubectl("delete", *binding)
    try:
        with pytest.raises(
            ChaosError, match=r"service account aftershock-chaos/aftershock-pod-chaos may not .*pods.* inference"
        ):
            scene.backend().preflight(scene.engine())
    finally:
        kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", given=_fresh(kept))


def test_two_runs_in_a_row_are_two_runs(scene: Scene) -> None:
    first = Running.of(scene.backend(), scene.engine(run_id=f"{scene.run_id}-1")).result()
    scene.wait_whole()
    second = Running.of(scene.backend(), scene.engine(run_id=f"{scene.run_id}-2")).result()
    assert (first.verdict, second.verdict) == ("Pass", "Pass")
    assert first.reverted_at is not None and second.injected_at is not None
    assert second.injected_at > first.reverted_at + timedelta(seconds=1)
    uids = {outcome.result["metadata"]["labels"]["chaosUID"] for outcome in (first, second)}
    assert len(uids) == 2
    again = Running.of(scene.backend(), scene.engine(run_id=f"{scene.run_id}-1")).result()
    assert again.verdict == "Pass", "the same name again, after everything of the first was removed"
    scene.assert_clean()


def test_a_leftover_is_refused_and_then_swept(scene: Scene) -> None:
    dead = scene.engine(run_id="dead", TOTAL_CHAOS_DURATION="300", CHAOS_INTERVAL="5")
    api = scene.api()
    api.create(f"/apis/litmuschaos.io/v1alpha1/namespaces/{CHAOS}/chaosengines", dead.document)
    wait_until(lambda: bool(scene.names("chaosresults")), 60, lambda: "the fault never started")
    with pytest.raises(ChaosError, match=r"ChaosEngine aftershock-chaos/pod-delete-dead is active on the same target"):
        scene.backend().preflight(scene.engine())

    assert sweep(api, CHAOS, "another-run") == ()
    removed = sweep(api, CHAOS, "dead")
    assert {(item.kind, item.name) for item in removed} >= {("ChaosEngine", "pod-delete-dead")}
    assert all(item.removed for item in removed), removed
    scene.assert_clean()
    scene.backend().preflight(scene.engine())


def test_without_an_operator_nothing_hangs(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl = scene.rig.kubectl
    monkeypatch.setattr(deadlines, "START_S", 6.0)
    scale = ("scale", "deployment/chaos-operator", "--namespace=litmus")
    kubectl(*scale, "--replicas=0")
    try:
        wait_until(
            lambda: not scene.names("pods", "--selector=name=chaos-operator", namespace="litmus"),
            60,
            lambda: "still there",
        )
        outcome = Running.of(scene.backend(), scene.engine()).result()
        assert (outcome.verdict, outcome.error_code) == ("Error", "NOT_STARTED")
        assert "operator" in str(outcome.reason)
        scene.assert_clean()
    finally:
        kubectl(*scale, "--replicas=1")
        kubectl("rollout", "status", "deployment/chaos-operator", "--namespace=litmus", "--timeout=60s")


def _fresh(text: str) -> str:
    """An object as it was, without what the server added."""
    document = json.loads(text)
    for name in ("resourceVersion", "uid", "creationTimestamp", "managedFields"):
        document["metadata"].pop(name, None)
    return json.dumps(document)
