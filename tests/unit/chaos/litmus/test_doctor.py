"""Each thing that is wrong with a cluster is a finding of its own, and none hides another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from aftershock.chaos.engine import RUN_ID_LABEL
from aftershock.chaos.litmus import doctor
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.render import render
from aftershock.checkup import Check, Finding, Status, examine
from aftershock.errors import ExitCode
from aftershock.experiment import Experiment

from .fake_api_server import NAMESPACE, FakeApiServer

ACCOUNT = "aftershock-pod-chaos"
OPERATOR = {"name": "chaos-operator"}
OPERATOR_IMAGE = "registry.example/litmus/chaos-operator:3.18.0"
Examine = Callable[..., dict[str, Finding]]


def experiment(fault: str, **parameters: Any) -> Experiment:
    fields = {"run_id": "r1", "namespace": NAMESPACE, "label": "app=inference", "backend": "litmus", "fault": fault}
    return Experiment.model_validate(fields | parameters)


@pytest.fixture
def examined(cluster: Cluster) -> Examine:
    """All findings about the cluster, by name."""

    def look(fault: str = "pod-delete", **parameters: Any) -> dict[str, Finding]:
        asked = experiment(fault, **parameters)
        rendered = Check("experiment", "fault", lambda: render(asked))
        checks = doctor.checks(asked, lambda: render(asked), rendered, lambda _: cluster)
        return {finding.name: finding for finding in examine([rendered, *checks]) if finding.group == doctor.GROUP}

    return look


def add_pod(
    server: FakeApiServer, pod: str, label: dict[str, str], *, image: str = "llm:1", ready: bool = True
) -> None:
    metadata = {"labels": label, "ownerReferences": [{"kind": "ReplicaSet", "name": pod}]}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    spec = {"nodeName": "node-1", "containers": [{"image": image}]}
    server.add("pods", pod, metadata=metadata, spec=spec, status={"conditions": conditions})


def add_node(server: FakeApiServer, name: str, runtime: str, kubelet: str = "v1.36.2") -> None:
    info = {"containerRuntimeVersion": runtime, "kubeletVersion": kubelet}
    server.add("nodes", name, status={"nodeInfo": info})


@pytest.fixture
def sound(server: FakeApiServer) -> Iterator[FakeApiServer]:
    """A cluster in which every check is ok; nothing may change in it."""
    for fault in ("pod-delete", "pod-network-latency"):
        server.add("chaosexperiments", fault)
    server.add("serviceaccounts", ACCOUNT)
    server.add("namespaces", NAMESPACE)
    add_pod(server, "inference-1", {"app": "inference"})
    add_pod(server, "operator-1", OPERATOR, image=OPERATOR_IMAGE)
    add_node(server, "node-1", "containerd://1.7.2")
    yield server
    assert server.requests == []


def failed(findings: dict[str, Finding]) -> set[str]:
    return {name for name, finding in findings.items() if finding.status is Status.FAIL}


def test_a_sound_cluster(sound: FakeApiServer, examined: Examine) -> None:
    findings = examined("pod-network-latency")
    assert {finding.status for finding in findings.values()} == {Status.OK}, findings
    assert "v1.36.2" in findings["API server"].text
    assert f"operator-1 is ready ({OPERATOR_IMAGE})" in findings["operator"].text
    assert findings["container runtime"].text == "containerd://1.7.2 on 1 node"


def test_a_fault_without_helper_needs_no_runtime(sound: FakeApiServer, examined: Examine) -> None:
    assert examined()["container runtime"].status is Status.SKIPPED


def test_several_things_wrong_are_several_findings(sound: FakeApiServer, examined: Examine) -> None:
    for plural in ("chaosexperiments", "serviceaccounts"):
        sound.objects.pop(plural)
    sound.objects["pods"].clear()
    findings = examined()
    assert failed(findings) == {"ChaosExperiments", "service account", "target pods", "operator"}
    assert findings["its rights"].status is Status.SKIPPED
    assert findings["names"].status is Status.OK


def test_without_litmus_what_is_not_of_litmus_is_still_checked(sound: FakeApiServer, examined: Examine) -> None:
    sound.refusals["GET", "v1alpha1"] = 404
    findings = examined()
    assert failed(findings) == {"Litmus"}
    skipped = {name for name, finding in findings.items() if finding.status is Status.SKIPPED}
    assert skipped == {"operator", "leftovers", "ChaosExperiments", "names", "other chaos", "container runtime"}


def test_credentials_that_do_not_count(sound: FakeApiServer, examined: Examine) -> None:
    sound.refusals["GET", "v1"] = 401
    findings = examined()
    assert failed(findings) == {"API server"}
    assert "does not accept these credentials" in findings["API server"].text
    assert {finding.status for name, finding in findings.items() if name != "API server"} == {Status.SKIPPED}


def test_no_api_server(server: FakeApiServer, examined: Examine) -> None:
    server.down = True
    assert failed(examined()) == {"API server"}


def test_what_may_not_be_looked_at_is_skipped(sound: FakeApiServer, examined: Examine) -> None:
    sound.refusals.update({("GET", "nodes"): 403, ("GET", "namespaces"): 403, ("POST", "subjectaccessreviews"): 403})
    findings = examined("pod-network-latency")
    skipped = {name for name, finding in findings.items() if finding.status is Status.SKIPPED}
    assert skipped == {"container runtime", "pod security", "its rights"}
    assert "for lack of rights" in findings["pod security"].text
    assert not failed(findings)


def test_an_operator_by_its_image(sound: FakeApiServer, examined: Examine) -> None:
    sound.objects["pods"].pop("uid-of-operator-1")
    assert failed(examined()) == {"operator"}
    add_pod(sound, "litmus-7f", {"app": "litmus"}, image=OPERATOR_IMAGE)
    assert "litmus-7f is ready" in examined()["operator"].text


def test_an_operator_that_is_not_ready(sound: FakeApiServer, examined: Examine) -> None:
    sound.objects["pods"].pop("uid-of-operator-1")
    add_pod(sound, "operator-2", OPERATOR, ready=False)
    findings = examined()
    assert failed(findings) == {"operator"}
    assert "operator-2 is not ready" in findings["operator"].text


@pytest.mark.parametrize(
    ("runtime", "kubelet", "tunables"),
    [
        ("cri-o://1.30", "v1.30.1", '{"CONTAINER_RUNTIME": "crio", "SOCKET_PATH": "/run/crio/crio.sock"}'),
        (
            "containerd://1.7.2-k3s1",
            "v1.30.1+k3s1",
            '{"CONTAINER_RUNTIME": "containerd", "SOCKET_PATH": "/run/k3s/containerd/containerd.sock"}',
        ),
    ],
)
def test_another_container_runtime(
    sound: FakeApiServer, examined: Examine, runtime: str, kubelet: str, tunables: str
) -> None:
    sound.objects["nodes"].clear()
    add_node(sound, "node-1", runtime, kubelet)
    add_node(sound, "node-2", "containerd://1.7.2")
    findings = examined("pod-network-latency")
    assert failed(findings) == {"container runtime"}
    assert findings["container runtime"].exit_code is ExitCode.BAD_INPUT
    assert f"--fault-parameters '{tunables}'" in findings["container runtime"].text
    told = examined("pod-network-latency", fault_parameters=tunables)
    assert told["container runtime"].status is Status.OK


def test_only_nodes_of_the_target_count(sound: FakeApiServer, examined: Examine) -> None:
    add_node(sound, "node-2", "cri-o://1.30")
    assert examined("pod-network-latency")["container runtime"].text == "containerd://1.7.2 on 1 node"


def test_leftovers_are_listed_and_left_alone(sound: FakeApiServer, examined: Examine) -> None:
    sound.add("chaosresults", "old-pod-delete", metadata={"labels": {RUN_ID_LABEL: "old"}})
    sound.add("jobs", "somebody-elses", metadata={"labels": {RUN_ID_LABEL: "x"}})
    findings = examined(kube_context="one")
    assert failed(findings) == {"leftovers"}
    assert f"chaosresults {NAMESPACE}/old-pod-delete are of run old" in findings["leftovers"].text
    assert "aftershock cleanup --kube-context one --run-id old" in findings["leftovers"].text


def test_with_the_local_backend_only_what_every_run_needs(sound: FakeApiServer, examined: Examine) -> None:
    sound.objects["pods"].pop("uid-of-inference-1")
    findings = examined(backend="local", kube_context="one")
    assert set(findings) == {"API server", "Litmus", "operator", "leftovers"}
    assert not failed(findings)


def test_an_engine_that_cannot_be_rendered_hides_only_its_own_checks(sound: FakeApiServer, examined: Examine) -> None:
    findings = examined("pod-delete", fault_parameters={"FORSE": "true"})
    assert not failed(findings)
    assert findings["target pods"].status is Status.SKIPPED
    assert findings["operator"].status is Status.OK
