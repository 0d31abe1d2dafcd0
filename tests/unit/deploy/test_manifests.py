"""The manifests hang together: every name that is referred to exists, every object says what it belongs to."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from aftershock.chaos.template import list_faults

Object = dict[str, Any]
Build = Callable[[str], list[Object]]

CLUSTER_WIDE = {"ClusterRole", "ClusterRoleBinding", "Namespace"}

KUBECTL = shutil.which("kubectl")
needs_kubectl = pytest.mark.skipif(KUBECTL is None, reason="no kubectl on PATH")


def kustomize(folder: Path) -> list[Object]:
    """What kubectl makes of it."""
    assert KUBECTL
    done = subprocess.run([KUBECTL, "kustomize", str(folder)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def identity(item: Object) -> tuple[str, str, str]:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def test_every_folder_is_known(deploy: Path, everything: list[Object]) -> None:
    """A part that no test builds would rot."""
    built = {item["metadata"]["labels"]["app.kubernetes.io/component"] for item in everything}
    folders = {path.parent.name for path in deploy.glob("*/kustomization.yaml")}
    assert folders - built == {"chaos-experiments"}  # needs the network; test_chaos_experiments holds it


def test_every_object_says_what_it_belongs_to(everything: list[Object]) -> None:
    for item in everything:
        labels = item["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == labels["app.kubernetes.io/part-of"] == "aftershock"
        assert labels["app.kubernetes.io/component"]


def test_no_object_is_there_twice_and_each_has_its_namespace(everything: list[Object]) -> None:
    identities = [identity(item) for item in everything]
    assert len(identities) == len(set(identities))
    for kind, namespace, name in identities:
        assert bool(namespace) != (kind in CLUSTER_WIDE), name


def test_bindings_bind_what_there_is(everything: list[Object]) -> None:
    there = {identity(item) for item in everything}
    bindings = [item for item in everything if item["kind"].endswith("RoleBinding")]
    assert bindings
    for binding in bindings:
        role = binding["roleRef"]
        namespace = "" if role["kind"] == "ClusterRole" else binding["metadata"]["namespace"]
        assert (role["kind"], namespace, role["name"]) in there
        for subject in binding["subjects"]:
            ours = (subject["kind"], subject["namespace"], subject["name"]) in there
            assert ours or (subject["namespace"], subject["name"]) == ("kubeflow", "pipeline-runner")


def test_templates_name_service_accounts_that_are_there(everything: list[Object]) -> None:
    accounts = {item["metadata"]["name"] for item in everything if item["kind"] == "ServiceAccount"}
    assert accounts == {"aftershock", "aftershock-pod-chaos", "aftershock-node-chaos"}


def test_the_chaos_namespace_lets_helpers_in(everything: list[Object]) -> None:
    (namespace,) = [item for item in everything if item["kind"] == "Namespace"]
    assert namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "privileged"


def test_nothing_reaches_the_chaos_namespace_and_little_leaves_it(build: Build) -> None:
    policies = {item["metadata"]["name"]: item["spec"] for item in build("network")}
    assert policies["default-deny"] == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    assert not any(policy.get("ingress") for policy in policies.values())
    assert {name for name, policy in policies.items() if policy.get("egress")} == {
        "allow-api-server",
        "allow-dns",
        "allow-prometheus",
        "allow-target",
    }


def test_chaos_experiments_are_those_of_our_faults(deploy: Path) -> None:
    kustomization = yaml.safe_load((deploy / "chaos-experiments" / "kustomization.yaml").read_text())
    addresses = [url.split("/") for url in kustomization["resources"]]
    assert [parts[-2] for parts in addresses] == [fault.name for fault in list_faults()]
    (version,) = {parts[5] for parts in addresses}
    assert tuple(map(int, version.split("."))) >= (3, 25, 0)
    assert {parts[-1] for parts in addresses} == {"fault.yaml"}


@needs_kubectl
@pytest.mark.parametrize("folder", ["", "cleanup", "faults-node", "kubeflow", "monitoring"])
def test_kubectl_builds_the_same(folder: str, deploy: Path, build: Build) -> None:
    ours = {identity(item): item for item in build(folder)}
    theirs = {identity(item): item for item in kustomize(deploy / folder)}
    assert theirs == ours


@needs_kubectl
@pytest.mark.parametrize("parts", [["", "cleanup", "faults-node", "kubeflow", "monitoring"], ["orchestrator"]])
def test_all_namespaces_can_have_other_names(parts: list[str], deploy: Path, tmp_path: Path) -> None:
    """As README.md shows it, with everything and with one part alone."""
    names = {"chaos": "c-chaos", "target": "c-target", "kubeflow": "c-kubeflow", "monitoring": "c-monitoring"}
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "aftershock-namespaces",
            "annotations": {"config.kubernetes.io/local-config": "true"},
        },
        "data": names,
    }
    up = Path(*[".."] * (len(tmp_path.parts) - 1))  # kustomize takes no absolute paths
    relative = {part: str(up / (deploy / part).relative_to("/")) for part in (*parts, "components/namespaces")}
    kustomization = {
        "resources": ["namespaces.yaml", *(relative[part] for part in parts)],
        "components": [relative["components/namespaces"]],
    }
    (tmp_path / "namespaces.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    built = kustomize(tmp_path)
    assert all(item["kind"] != "ConfigMap" for item in built)
    found = set(_strings({**item, "metadata": {**item["metadata"], "labels": {}}} for item in built))
    assert not found & {"aftershock-chaos", "inference", "kubeflow", "monitoring"}
    assert found & set(names.values()) == (set(names.values()) if "" in parts else {"c-chaos"})


def _strings(value: Any) -> Any:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif not isinstance(value, int | float | None):
        for item in value:
            yield from _strings(item)
