"""Each thing that Litmus would stumble over later, one at a time, against a cluster that is else in order."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.litmus.backend import LitmusBackend
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.render import render_fault
from aftershock.errors import ChaosError, InputError

from .fake_api_server import NAMESPACE, FakeApiServer

LABELS = {"app": "inference"}


def rendered(fault: str = "pod-delete", **parameters: str) -> ChaosEngine:
    text = render_fault(fault, parameters, namespace=NAMESPACE, label="app=inference")
    return parse_engine(text, "test")


def add_pod(server: FakeApiServer, name: str, *, ready: bool = True, owner: str = "ReplicaSet") -> None:
    metadata = {"labels": LABELS, "ownerReferences": [{"kind": owner, "name": "inference"}]}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    server.add("pods", name, metadata=metadata, status={"conditions": conditions})


@pytest.fixture
def sound(server: FakeApiServer) -> FakeApiServer:
    """A cluster in which every check passes."""
    for fault in ("pod-delete", "pod-network-latency"):
        server.add("chaosexperiments", fault)
    engine = rendered()
    server.add("serviceaccounts", engine.document["spec"]["chaosServiceAccount"])
    server.add("namespaces", NAMESPACE)
    add_pod(server, "inference-1")
    add_pod(server, "inference-2")
    return server


def test_a_sound_cluster_passes_and_nothing_is_changed(sound: FakeApiServer, cluster: Cluster) -> None:
    LitmusBackend(cluster).preflight(rendered())
    assert sound.requests == []


def set_labels(level: str) -> Callable[[FakeApiServer], None]:
    labels = {"pod-security.kubernetes.io/enforce": level}
    return lambda server: server.add("namespaces", NAMESPACE, metadata={"labels": labels})


def other_engine(status: str, state: str = "active") -> Callable[[FakeApiServer], None]:
    spec = {"engineState": state, "appinfo": rendered().document["spec"]["appinfo"]}
    return lambda server: server.add("chaosengines", "other", spec=spec, status={"engineStatus": status})


def without(plural: str) -> Callable[[FakeApiServer], None]:
    return lambda server: server.objects.pop(plural, None) and None


TROUBLES: dict[str, tuple[Callable[[FakeApiServer], None], str]] = {
    "no experiment": (without("chaosexperiments"), "no ChaosExperiment pod-delete"),
    "no service account": (without("serviceaccounts"), "no service account"),
    "no target": (without("pods"), "no pod has app=inference in namespace chaos-test"),
    "target not ready": (lambda server: add_pod(server, "inference-3", ready=False), "not ready: inference-3"),
    "restricted": (set_labels("restricted"), "refuses Litmus' runner"),
    "active engine": (other_engine("initialized"), "chaos-test/other is active on the same target"),
    "own rights": (lambda server: server.denied.add(("watch", "events")), "may not watch events in namespace"),
    "rights of the fault": (
        lambda server: server.denied.add(("deletecollection", "pods")),
        "service account chaos-test/.* may not deletecollection pods",
    ),
    "a result of an earlier run": (
        lambda server: server.add("chaosresults", "pod-delete-manual-pod-delete"),
        "exists from an earlier run",
    ),
    "expired token": (lambda server: server.refusals.update({("GET", "v1alpha1"): 401}), "401"),
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_trouble_is_named_before_anything_starts(sound: FakeApiServer, cluster: Cluster, trouble: str) -> None:
    cause, says = TROUBLES[trouble]
    cause(sound)
    with pytest.raises(ChaosError, match=says):
        LitmusBackend(cluster).preflight(rendered())
    assert sound.requests == []


def test_pods_of_another_kind_are_no_target(sound: FakeApiServer, cluster: Cluster) -> None:
    sound.objects["pods"].clear()
    add_pod(sound, "inference-1", owner="RayCluster")
    with pytest.raises(ChaosError, match="belongs to a deployment"):
        LitmusBackend(cluster).preflight(rendered())


@pytest.mark.parametrize(
    "harmless", [other_engine("completed", "stop"), other_engine("stopped"), set_labels("baseline")]
)
def test_what_does_no_harm_is_let_pass(
    sound: FakeApiServer, cluster: Cluster, harmless: Callable[[FakeApiServer], None]
) -> None:
    harmless(sound)
    LitmusBackend(cluster).preflight(rendered())


def test_a_helper_needs_a_privileged_namespace(sound: FakeApiServer, cluster: Cluster) -> None:
    set_labels("baseline")(sound)
    with pytest.raises(ChaosError, match="helper pod of pod-network-latency"):
        LitmusBackend(cluster).preflight(rendered("pod-network-latency"))


def test_litmus_must_be_installed(server: FakeApiServer, cluster: Cluster) -> None:
    server.refusals["GET", "v1alpha1"] = 404
    with pytest.raises(ChaosError, match="Litmus is not installed"):
        LitmusBackend(cluster).preflight(rendered())


def test_an_engine_that_is_created_stopped_is_refused(sound: FakeApiServer, cluster: Cluster) -> None:
    engine = rendered()
    document: dict[str, Any] = {**engine.document, "spec": {**engine.document["spec"], "engineState": "stop"}}
    with pytest.raises(InputError, match="engineState is stop"):
        LitmusBackend(cluster).preflight(parse_engine(json.dumps(document), "test"))


def test_what_may_not_be_checked_is_skipped(
    sound: FakeApiServer, cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    sound.refusals["GET", "namespaces"] = 403
    sound.refusals["POST", "subjectaccessreviews"] = 403
    LitmusBackend(cluster).preflight(rendered())
    assert caplog.text.count("not checked, for lack of rights") == 2
