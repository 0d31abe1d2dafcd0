"""The recorded Litmus as documents to apply, and its installation on the test cluster.

`python -m tests.cluster.rig exec -- PYTHON -m tests.cluster.recorded_litmus.install [NAMESPACE...]` installs the
operator and, in each namespace, what pod-delete needs there.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from tests.cluster.recorded_litmus.reconcile import POD_VARIABLE, PodPieces
from tests.cluster.recorded_litmus.timing import SPEED_VARIABLE, speed
from tests.cluster.rig import manifests
from tests.cluster.rig.cluster import DIRECTORY_VARIABLE, Cluster
from tests.cluster.rig.images import IMAGE
from tests.cluster.rig.layout import REPOSITORY, Layout, default_directory
from tests.cluster.rig.mounts import PYTHON, host_mounts
from tests.cluster.rig.waiting import wait_until

Document = dict[str, Any]

NAMESPACE = "litmus"
OPERATOR = "chaos-operator"
SERVICE_ACCOUNT = "litmus-admin"
"""Under which the faults of the recordings ran."""
PUBLICATION = "operator-3.18.0"
"""Whose schema of the ChaosEngine is installed: the recorded operator's own."""
EXPERIMENT_DEFAULTS = {
    "TOTAL_CHAOS_DURATION": "15",
    "RAMP_TIME": "",
    "FORCE": "true",
    "CHAOS_INTERVAL": "5",
    "PODS_AFFECTED_PERC": "",
    "TARGET_CONTAINER": "",
    "TARGET_PODS": "",
    "DEFAULT_HEALTH_CHECK": "false",
    "NODE_LABEL": "",
    "SEQUENCE": "parallel",
}
"""Environment that the published chart sets for pod-delete."""
SERVED_S = 30.0
_READ = ("get", "list")


def _rule(groups: str, resources: str, *verbs: str) -> Document:
    return {"apiGroups": [groups], "resources": resources.split(","), "verbs": list(verbs)}


EXPERIMENT_RULES = (
    _rule("", "pods", "create", "delete", *_READ, "patch", "update", "deletecollection"),
    _rule("", "events", "create", *_READ, "patch", "update"),
    _rule("", "configmaps,replicationcontrollers", *_READ),
    _rule("", "pods/log", *_READ, "watch"),
    _rule("", "pods/exec", *_READ, "create"),
    _rule("apps", "deployments,statefulsets,replicasets,daemonsets", *_READ),
    _rule("batch", "jobs", "create", *_READ, "delete", "deletecollection"),
    _rule(
        "litmuschaos.io", "chaosengines,chaosexperiments,chaosresults", "create", *_READ, "patch", "update", "delete"
    ),
)
"""What the published chart of pod-delete asks for, without OpenShift's and Argo's kinds."""

OPERATOR_RULES = (
    _rule("litmuschaos.io", "chaosengines", *_READ, "watch", "update", "patch"),
    _rule("litmuschaos.io", "chaosexperiments", "get"),
    _rule("", "serviceaccounts", "get"),
    _rule("", "pods", *_READ, "watch", "create", "delete", "deletecollection"),
    _rule("batch", "jobs", *_READ, "delete", "deletecollection"),
    _rule("", "events", "create", "get", "patch"),
)
"""What the recorded operator does, and no more."""


def custom_resource_definitions() -> list[Document]:
    """The three kinds of Litmus, without status subresource, keeping unknown fields where the published ones do."""
    schema = json.loads((files("aftershock") / "chaos" / "crds" / f"{PUBLICATION}.json").read_text(encoding="utf-8"))
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    definition = {"type": "object", "properties": {"definition": anything}}
    described = {"type": "object", "additionalProperties": {"type": "string"}}
    return [
        _definition("ChaosEngine", schema),
        _definition("ChaosResult", _schema(spec=anything, status=anything)),
        _definition("ChaosExperiment", _schema(spec=definition, status=anything, description=described)),
    ]


def _schema(**properties: Document) -> Document:
    known = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"type": "object"}}
    return {"type": "object", "properties": {**known, **properties}}


def _definition(kind: str, schema: Document) -> Document:
    singular = kind.lower()
    names = {"kind": kind, "listKind": f"{kind}List", "plural": f"{singular}s", "singular": singular}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.litmuschaos.io"},
        "spec": {"group": "litmuschaos.io", "names": names, "scope": "Namespaced", "versions": [version]},
    }


def operator_documents(pieces: PodPieces, factor: float = 1.0) -> list[Document]:
    """The operator as a Deployment under its own service account; `factor` divides Litmus' own waits everywhere."""
    env = [{"name": POD_VARIABLE, "value": json.dumps(pieces.as_json())}]
    env.append({"name": SPEED_VARIABLE, "value": f"{factor:g}"})
    pod = {
        "serviceAccountName": OPERATOR,
        "terminationGracePeriodSeconds": 1,
        "containers": [pieces.container(OPERATOR, "operator", env)],
        "volumes": list(pieces.volumes),
    }
    labels = {"name": OPERATOR}
    deployment = {
        "replicas": 1,
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        *_account("ClusterRole", OPERATOR, NAMESPACE, OPERATOR_RULES),
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": OPERATOR, "namespace": NAMESPACE, "labels": labels},
            "spec": deployment,
        },
    ]


def service_account_documents(namespace: str, name: str = SERVICE_ACCOUNT) -> list[Document]:
    """A service account for faults, with the rights that the chart of pod-delete asks for, in this namespace."""
    return _account("Role", name, namespace, EXPERIMENT_RULES)


def experiment_document(namespace: str, pieces: PodPieces, name: str = "pod-delete") -> Document:
    """A ChaosExperiment whose program is the recorded pod-delete, under this name."""
    own = {"name": name, "app.kubernetes.io/part-of": "litmus", "app.kubernetes.io/component": "experiment-job"}
    container = pieces.container("", "experiment", [])
    paths = {volume["name"]: volume["hostPath"]["path"] for volume in pieces.volumes}
    definition = {
        "scope": "Namespaced",
        "permissions": [dict(rule) for rule in EXPERIMENT_RULES],
        "image": pieces.image,
        "imagePullPolicy": container["imagePullPolicy"],
        "command": container["command"],
        "args": ["-name", "pod-delete"],
        "env": [*container["env"], *({"name": key, "value": value} for key, value in EXPERIMENT_DEFAULTS.items())],
        "labels": {**own, "app.kubernetes.io/version": "ci"},
        "hostFileVolumes": [
            {"name": mount["name"], "mountPath": mount["mountPath"], "nodePath": paths[mount["name"]]}
            for mount in pieces.mounts
        ],
    }
    return {
        "apiVersion": "litmuschaos.io/v1alpha1",
        "kind": "ChaosExperiment",
        "metadata": {"name": name, "namespace": namespace, "labels": own},
        "description": {"message": "Deletes pods of the target, played by the recorded Litmus."},
        "spec": {"definition": definition},
    }


def _account(role_kind: str, name: str, namespace: str, rules: Iterable[Mapping[str, Any]]) -> list[Document]:
    """A service account, and a role of the same name bound to it (a ClusterRole: everywhere)."""
    group = "rbac.authorization.k8s.io"
    where = {"namespace": namespace} if role_kind == "Role" else {}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": namespace}},
        {
            "apiVersion": f"{group}/v1",
            "kind": role_kind,
            "metadata": {"name": name, **where},
            "rules": [dict(rule) for rule in rules],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": f"{role_kind}Binding",
            "metadata": {"name": name, **where},
            "roleRef": {"apiGroup": group, "kind": role_kind, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        },
    ]


def host_pieces() -> PodPieces:
    """Pods that run this checkout with this Python, mounted from the machine."""
    volumes, mounts = host_mounts()
    env = {"PYTHONPATH": str(REPOSITORY), "PYTHONDONTWRITEBYTECODE": "1"}
    return PodPieces(IMAGE, PYTHON, env, tuple(volumes), tuple(mounts))


def install(cluster: Cluster, *namespaces: str, factor: float = 1.0) -> None:
    """Install kinds and operator and, in each namespace, which is made if need be, pod-delete with `litmus-admin`.

    Raises InfrastructureError where the cluster refuses, or the operator does not start.
    """
    pieces = host_pieces()
    manifests.apply(cluster, custom_resource_definitions())
    # Not `kubectl wait`: of a kind without any conditions yet, it says that this is an error.
    wait_until(lambda: _are_served(cluster), SERVED_S, lambda: f"Litmus' kinds are not served after {SERVED_S:g} s")
    documents = operator_documents(pieces, factor)
    for namespace in namespaces:
        documents += [
            manifests.namespace(namespace),
            *service_account_documents(namespace),
            experiment_document(namespace, pieces),
        ]
    manifests.apply(cluster, documents)
    manifests.wait_ready(cluster, NAMESPACE, OPERATOR)


def _are_served(cluster: Cluster) -> bool:
    done = cluster.run(["kubectl", "get", "--raw=/apis/litmuschaos.io/v1alpha1"])
    return done.returncode == 0 and len(json.loads(done.stdout)["resources"]) >= len(custom_resource_definitions())


if __name__ == "__main__":
    directory = Path(os.environ.get(DIRECTORY_VARIABLE) or default_directory())
    install(Cluster(Layout.of(directory)), *sys.argv[1:], factor=speed())
