"""What the recorded operator does with an engine in each state."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.recorded_litmus import reconcile
from tests.cluster.recorded_litmus.reconcile import FINALIZER, PodPieces, Step


def engine(state: str = "active", status: str = "", *, held: bool = True, deleting: bool = False) -> dict[str, Any]:
    document: dict[str, Any] = {
        "metadata": {"name": "e", "namespace": "n", "uid": "u", "finalizers": [FINALIZER] if held else []},
        "spec": {"engineState": state, "experiments": [{"name": "pod-delete"}], "chaosServiceAccount": "admin"},
    }
    if status:
        document["status"] = {"engineStatus": status}
    if deleting:
        document["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
    return document


@pytest.mark.parametrize(
    ("state", "status", "held", "deleting", "step"),
    [
        ("active", "", False, False, Step.INITIALIZE),
        ("", "", False, False, Step.INITIALIZE),
        ("active", "initialized", True, False, Step.DRIVE),
        ("active", "initialized", False, False, Step.INITIALIZE),  # second look of a rerun
        ("stop", "initialized", True, False, Step.ABORT),
        ("stop", "completed", True, False, Step.CLEAN),
        ("active", "completed", True, False, Step.RERUN),
        ("active", "stopped", False, False, Step.RERUN),
        ("stop", "", False, False, Step.NOTHING),
        ("stop", "stopped", False, False, Step.NOTHING),
        ("active", "initialized", True, True, Step.RELEASE),
        ("stop", "completed", True, True, Step.RELEASE),
        ("active", "initialized", False, True, Step.NOTHING),
    ],
)
def test_each_state_has_its_step(state: str, status: str, held: bool, deleting: bool, step: Step) -> None:
    assert reconcile.due(engine(state, status, held=held, deleting=deleting)) is step


def test_the_first_look_rewrites_the_spec_as_recorded() -> None:
    document = engine(held=False)
    get = {"get": {"criteria": "==", "responseCode": "200"}}
    inputs = {"url": "http://x", "insecureSkipVerify": False, "method": get}
    run = {"probeTimeout": "1s", "attempt": 1, "stopOnFailure": False}
    document["spec"]["experiments"] = [
        {
            "name": "pod-delete",
            "spec": {
                "components": {"env": [{"name": "RAMP_TIME", "value": ""}]},
                "probe": [{"name": "up", "httpProbe/inputs": inputs, "runProperties": run}],
            },
        }
    ]
    reconcile.initialize(document)
    assert document["metadata"]["finalizers"] == [FINALIZER]
    assert document["status"] == {"engineStatus": "initialized", "experiments": None}
    assert document["spec"]["components"] == {"runner": {"resources": {}}}
    assert document["spec"]["experiments"][0]["spec"] == {
        "components": {"env": [{"name": "RAMP_TIME"}], "resources": {}, "statusCheckTimeouts": {}},
        "probe": [
            {
                "name": "up",
                "httpProbe/inputs": {"url": "http://x", "method": get},
                "runProperties": {"probeTimeout": "1s", "attempt": 1},
            }
        ],
    }


def test_a_stop_marks_what_was_under_way() -> None:
    document = engine("stop", "initialized")
    statuses = ("Running", "Waiting for Job Creation", "Completed")
    document["status"]["experiments"] = [{"status": status, "verdict": "Pass"} for status in statuses]
    reconcile.stop(document)
    assert document["metadata"]["finalizers"] == []
    assert document["status"]["engineStatus"] == "stopped"
    assert [each["status"] for each in document["status"]["experiments"]] == [
        "Forcefully Aborted",
        "Forcefully Aborted",
        "Completed",
    ]
    assert [each["verdict"] for each in document["status"]["experiments"]] == ["Stopped", "Stopped", "Pass"]


def test_a_deleted_engine_never_says_stopped() -> None:
    document = engine("active", "initialized", deleting=True)
    reconcile.stop(document)
    assert document["metadata"]["finalizers"] == []
    assert document["status"]["engineStatus"] == "initialized"


def test_the_runner_pod_is_as_recorded() -> None:
    pieces = PodPieces("image", "/python", {"A": "b"}, ({"name": "v"},), ({"name": "v", "mountPath": "/v"},))
    document = engine()
    document["spec"]["terminationGracePeriodSeconds"] = 30
    pod = reconcile.runner_pod(document, "deployment:n:[app=x]", pieces, {"RECORDED_LITMUS_SPEED": "4"})
    assert pod["metadata"]["name"] == "e-runner"
    assert pod["metadata"]["labels"] == {
        "app": "e",
        "app.kubernetes.io/component": "chaos-runner",
        "app.kubernetes.io/part-of": "litmus",
        "chaosUID": "u",
    }
    assert pod["metadata"]["ownerReferences"][0]["uid"] == "u"
    assert pod["spec"]["serviceAccountName"] == "admin"
    assert pod["spec"]["terminationGracePeriodSeconds"] == 30
    env = {each["name"]: each["value"] for each in pod["spec"]["containers"][0]["env"]}
    assert env["TARGETS"] == "deployment:n:[app=x]"
    assert env["EXPERIMENT_LIST"] == "pod-delete"
    assert env["RECORDED_LITMUS_SPEED"] == "4"


@pytest.mark.parametrize(
    ("terminated", "wanted"), [({"reason": "Completed"}, True), ({"reason": "Error"}, False), (None, False)]
)
def test_only_a_runner_that_ended_well_completes_an_engine(terminated: dict[str, str] | None, wanted: bool) -> None:
    state = {"terminated": terminated} if terminated else {"running": {}}
    pod = {"status": {"containerStatuses": [{"name": "chaos-runner", "state": state}]}}
    assert reconcile.is_completed(pod) is wanted
    assert reconcile.is_completed({}) is False
