"""Each thing that Litmus would stumble over later, one at a time, against a cluster that is else in order."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.litmus import access
from aftershock.chaos.litmus.backend import LitmusBackend
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.litmus.creation import MANAGED_BY, OWNER
from aftershock.chaos.litmus.kinds import Kind
from aftershock.chaos.render import render_fault
from aftershock.errors import ChaosError, InputError

from .fake_api_server import NAMESPACE, FakeApiServer
from .replay import ReplayClock

LABELS = {"app": "inference"}


def elsewhere(fault: str = "pod-delete", probes: str = "none") -> ChaosEngine:
    """An engine in the namespace of the cluster's Litmus, and its target in another one."""
    fields = {"chaos_namespace": NAMESPACE, "namespace": "shop", "label": "app=inference", "probes": probes}
    return parse_engine(
        render_fault(fault, {}, cluster=True, confirmed=("blast-radius", "scrape-gap"), **fields), "test"
    )


def rendered(fault: str = "pod-delete", **parameters: str) -> ChaosEngine:
    text = render_fault(fault, parameters, namespace=NAMESPACE, label="app=inference")
    return parse_engine(text, "test")


def add_pod(
    server: FakeApiServer, name: str, *, ready: bool = True, owner: str = "ReplicaSet", phase: str = "Running"
) -> None:
    metadata = {"labels": LABELS, "ownerReferences": [{"kind": owner, "name": "inference"}]}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    server.add("pods", name, metadata=metadata, status={"conditions": conditions, "phase": phase})


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


def about_to_start(server: FakeApiServer) -> None:
    spec = {"engineState": "stop", "appinfo": rendered().document["spec"]["appinfo"]}
    server.add("chaosengines", "other", metadata={"labels": {MANAGED_BY: OWNER}}, spec=spec)


TROUBLES: dict[str, tuple[Callable[[FakeApiServer], None], str]] = {
    "no experiment": (without("chaosexperiments"), "no ChaosExperiment pod-delete"),
    "no service account": (without("serviceaccounts"), "no service account"),
    "no target": (without("pods"), "no pod has app=inference in namespace chaos-test"),
    "target not ready": (lambda server: add_pod(server, "inference-3", ready=False), "not ready: inference-3"),
    "restricted": (set_labels("restricted"), "refuses Litmus' runner"),
    "target evicted": (
        lambda server: add_pod(server, "inference-0", ready=False, phase="Failed"),
        "have ended and are still there: inference-0; delete them",
    ),
    "abort going on": (other_engine("initialized", "stop"), "chaos-test/other is active on the same target"),
    "engine about to start": (about_to_start, "chaos-test/other is about to start on the same target"),
    "token that expires in the middle": (
        lambda server: server.refusals.update({("GET", "serviceaccounts"): 401}),
        "401",
    ),
    "rights here and there": (
        lambda server: server.denied.update({("create", "events"), ("list", "nodes"), ("watch", "pods")}),
        r"may not watch pods in namespace chaos-test; bind",
    ),
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
def test_trouble_is_named_before_anything_starts(
    sound: FakeApiServer, cluster: Cluster, flowing: ReplayClock, trouble: str
) -> None:
    cause, says = TROUBLES[trouble]
    cause(sound)
    with pytest.raises(ChaosError, match=says):
        LitmusBackend(cluster, clock=flowing).preflight(rendered())
    assert sound.requests == []


def test_a_service_that_becomes_whole_in_time_is_waited_for(
    sound: FakeApiServer, cluster: Cluster, clock: ReplayClock
) -> None:
    """A rollout, or an earlier fault, has just ended."""
    add_pod(sound, "inference-3", ready=False)
    slept: list[float] = []

    def becomes_ready(seconds: float) -> None:
        slept.append(seconds)
        add_pod(sound, "inference-3", ready=len(slept) == 3)

    clock.sleep = becomes_ready  # type: ignore[method-assign]
    LitmusBackend(cluster, clock=clock).preflight(rendered())
    assert len(slept) == 3


def test_missing_rights_are_named_with_the_namespace_of_each(sound: FakeApiServer, cluster: Cluster) -> None:
    sound.denied.update({("create", "events"), ("create", "pods")})
    says = (
        f"may not create pods, create events in namespace {NAMESPACE}, nor create pods in namespace shop; "
        "bind the fault's role"
    )
    with pytest.raises(ChaosError, match=says):
        access.check_service_account_access(cluster, elsewhere())


def test_pods_of_another_kind_are_no_target(sound: FakeApiServer, cluster: Cluster) -> None:
    sound.objects["pods"].clear()
    add_pod(sound, "inference-1", owner="RayCluster")
    with pytest.raises(ChaosError, match="belongs to a deployment"):
        LitmusBackend(cluster).preflight(rendered())


@pytest.mark.parametrize(
    "harmless",
    [
        other_engine("completed", "stop"),
        other_engine("stopped"),
        other_engine("", "stop"),
        set_labels("baseline"),
        lambda server: add_pod(server, "migration", ready=False, owner="Job", phase="Succeeded"),
        lambda server: add_pod(server, "failed-job", ready=False, owner="Job", phase="Failed"),
        lambda server: add_pod(server, "debugging", ready=False, owner="Nobody", phase="Pending"),
    ],
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


# --- engine and target in two namespaces ------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The rights that are asked for of the service account: (verb and resource, namespace), in their order."""
    rights: list[tuple[str, str]] = []
    allowed = access._allowed

    def listen(cluster: Cluster, kind: Kind, right: access.Right, user: Mapping[str, Any]) -> bool:
        if user:
            rights.append((str(right), right.namespace))
        return allowed(cluster, kind, right, user)

    monkeypatch.setattr(access, "_allowed", listen)
    return rights


def test_rights_are_asked_for_where_litmus_uses_them(
    sound: FakeApiServer, cluster: Cluster, asked: list[tuple[str, str]]
) -> None:
    access.check_service_account_access(cluster, elsewhere())
    namespaces = {right: {where for each, where in asked if each == right} for right, _ in asked}
    assert namespaces["delete pods"] == {NAMESPACE, "shop"}
    assert namespaces["create jobs.batch"] == {NAMESPACE}
    assert namespaces["update chaosengines.litmuschaos.io"] == {NAMESPACE}
    for workload in ("deployments.apps", "replicasets.apps", "replicationcontrollers"):
        assert namespaces[f"get {workload}"] == {"shop"}


def test_a_network_policy_is_made_where_the_target_is(
    sound: FakeApiServer, cluster: Cluster, asked: list[tuple[str, str]]
) -> None:
    access.check_service_account_access(cluster, elsewhere("pod-network-partition"))
    assert ("create networkpolicies.networking.k8s.io", "shop") in asked
    assert ("create networkpolicies.networking.k8s.io", NAMESPACE) not in asked


PROBES = """
- name: claims
  type: k8sProbe
  mode: SOT
  k8sProbe/inputs: {group: "", version: v1, resource: persistentvolumeclaims, namespace: data, operation: absent}
  runProperties: {probeTimeout: 1s, interval: 1s}
- name: lease
  type: k8sProbe
  mode: EOT
  k8sProbe/inputs: {group: coordination.k8s.io, version: v1, resource: leases, namespace: data, operation: present,
    resourceNames: leader}
  runProperties: {probeTimeout: 1s, interval: 1s}
"""


def test_what_probes_look_at_has_to_be_allowed_too(
    sound: FakeApiServer, cluster: Cluster, asked: list[tuple[str, str]]
) -> None:
    access.check_service_account_access(cluster, elsewhere(probes=PROBES))
    assert asked[-2:] == [("list persistentvolumeclaims", "data"), ("get leases.coordination.k8s.io", "data")]
    sound.denied.add(("list", "persistentvolumeclaims"))
    with pytest.raises(ChaosError, match=r"may not list persistentvolumeclaims in namespace data; bind"):
        access.check_service_account_access(cluster, elsewhere(probes=PROBES))
