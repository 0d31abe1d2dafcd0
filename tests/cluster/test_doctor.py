"""`aftershock doctor` on a real cluster: what is wrong is a finding of its own, and looking changes nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftershock.chaos.engine import RUN_ID_LABEL
from tests.cluster.backend.scene import token_kubeconfig
from tests.cluster.furnish import CHAOS, deploy
from tests.cluster.rig import workload as rig_workload
from tests.cluster.rig.cluster import Cluster
from tests.cluster.rig.manifests import apply, namespace

BARE = "doctor-test"
"""A namespace without anything that a fault needs."""

Findings = dict[str, dict[str, dict[str, str]]]
FLAGS = {
    "backend": "litmus",
    "target_url": rig_workload.MODEL_URL,
    "prometheus_url": rig_workload.PROMETHEUS_URL,
    "store_endpoint": "none",
    "chaos_namespace": CHAOS,
}


@pytest.fixture(scope="module")
def furnished(workload: Cluster) -> Iterator[Cluster]:
    """The cluster with all that a run needs, and a namespace that has nothing of it."""
    deploy(workload, litmus_speed=4.0)
    workload.kubectl("rollout", "status", "deployment/chaos-operator", "--namespace=litmus", "--timeout=60s")
    apply(workload, [namespace(BARE)])
    yield workload
    workload.kubectl("delete", "namespace", BARE, "--timeout=60s")


def doctor(folder: Path, kubeconfig: Path | None = None, **flags: str) -> tuple[int, Findings]:
    """The real command: its exit code, and what it found, by group and name."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AFTERSHOCK_")}
    if kubeconfig is not None:
        environment["KUBECONFIG"] = str(kubeconfig)
    given = [part for name, value in (FLAGS | flags).items() for part in (f"--{name.replace('_', '-')}", value)]
    done = subprocess.run(
        [sys.executable, "-m", "aftershock.cli", "doctor", "--format", "json", *given],
        cwd=folder, env=environment, text=True, capture_output=True, timeout=170, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    found: Findings = {}
    for check in json.loads(done.stdout)["checks"]:
        found.setdefault(check["group"], {})[check["name"]] = check
    return done.returncode, found


def of_status(status: str, checks: dict[str, dict[str, str]]) -> set[str]:
    return {name for name, check in checks.items() if check["status"] == status}


def objects(cluster: Cluster) -> dict[str, Any]:
    """What doctor could have changed: uid and generation of all that it looks at."""
    kinds = "chaosengines,chaosresults,chaosexperiments,serviceaccounts,jobs,namespaces"
    items = json.loads(cluster.kubectl("get", kinds, "--all-namespaces", "--output=json"))["items"]
    return {item["metadata"]["uid"]: item["metadata"].get("generation") for item in items}


def test_all_is_well_and_nothing_is_changed(furnished: Cluster, tmp_path: Path) -> None:
    before = objects(furnished)
    code, found = doctor(tmp_path)
    assert code == 0, found
    assert {name for checks in found.values() for name in of_status("skipped", checks)} == {"container runtime"}
    assert found["Prometheus"]["scrape interval"]["text"] == "the load generator every 1 s"
    assert objects(furnished) == before


def test_the_orchestrator_s_rights_suffice(furnished: Cluster, tmp_path: Path) -> None:
    token = furnished.kubectl("create", "token", "aftershock", f"--namespace={CHAOS}").strip()
    code, found = doctor(tmp_path, token_kubeconfig(furnished, tmp_path / "kubeconfig", token))
    assert code == 0, found
    assert {"API server", "Litmus", "own rights", "service account", "target pods"} <= of_status("ok", found["cluster"])


def test_a_token_that_is_no_good(furnished: Cluster, tmp_path: Path) -> None:
    code, found = doctor(tmp_path, token_kubeconfig(furnished, tmp_path / "kubeconfig", "stolen"))
    assert code == 4
    assert of_status("fail", found["cluster"]) == {"API server"}
    assert "does not accept these credentials" in found["cluster"]["API server"]["text"]


def test_everything_that_a_bare_namespace_lacks_is_named(furnished: Cluster, tmp_path: Path) -> None:
    code, found = doctor(tmp_path, namespace=BARE, chaos_namespace=BARE)
    assert code == 4
    checks = found["cluster"]
    assert of_status("fail", checks) == {"ChaosExperiments", "service account", "target pods"}
    assert {"API server", "Litmus", "operator", "own rights", "names"} <= of_status("ok", checks)


def test_another_container_runtime(furnished: Cluster, tmp_path: Path) -> None:
    parameters = json.dumps({"CONTAINER_RUNTIME": "docker", "SOCKET_PATH": "/var/run/docker.sock"})
    code, found = doctor(tmp_path, fault="container-kill", fault_parameters=parameters)
    assert code == 2
    runtime = found["cluster"]["container runtime"]
    assert runtime["status"] == "fail" and '"CONTAINER_RUNTIME": "containerd"' in runtime["text"]


def test_a_leftover_is_named_and_stays(furnished: Cluster, tmp_path: Path) -> None:
    metadata = {"name": "left", "namespace": BARE, "labels": {RUN_ID_LABEL: "long-ago"}}
    spec = {"engineState": "stop", "experiments": [{"name": "pod-delete"}]}  # created stopped: Litmus passes it over
    engine = {"apiVersion": "litmuschaos.io/v1alpha1", "kind": "ChaosEngine", "metadata": metadata, "spec": spec}
    apply(furnished, [engine])
    try:
        code, found = doctor(tmp_path)
        assert code == 4
        assert of_status("fail", found["cluster"]) == {"leftovers"}
        assert "aftershock cleanup --kube-context auto --run-id long-ago" in found["cluster"]["leftovers"]["text"]
        assert "left" in furnished.kubectl("get", "chaosengines", f"--namespace={BARE}")
    finally:
        furnished.kubectl("delete", "chaosengine", "left", f"--namespace={BARE}", "--timeout=60s")


def test_an_operator_that_is_gone(furnished: Cluster, tmp_path: Path) -> None:
    scale = ("scale", "deployment/chaos-operator", "--namespace=litmus")
    furnished.kubectl(*scale, "--replicas=0")
    furnished.kubectl(
        "wait", "pods", "--selector=name=chaos-operator", "--for=delete", "--all-namespaces", "--timeout=60s"
    )
    try:
        code, found = doctor(tmp_path)
        assert code == 4
        assert of_status("fail", found["cluster"]) == {"operator"}
    finally:
        furnished.kubectl(*scale, "--replicas=1")
        furnished.kubectl("rollout", "status", "deployment/chaos-operator", "--namespace=litmus", "--timeout=60s")


def test_a_dead_api_server_hides_nothing_else(furnished: Cluster, tmp_path: Path) -> None:
    furnished.stop_apiserver()
    try:
        code, found = doctor(tmp_path)
    finally:
        furnished.start_apiserver()
    assert code == 4
    assert of_status("fail", found["cluster"]) == {"API server"}
    assert of_status("ok", found["cluster"]) == set()
    for group in ("target", "Prometheus", "Kubeflow Pipelines"):
        assert of_status("ok", found[group]) == set(found[group])
