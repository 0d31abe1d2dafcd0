"""Documents for the API server, and waiting for what they ask for."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

READY_S = 90


class HasKubectl(Protocol):
    """A cluster, as far as this module is concerned."""

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """What `kubectl ARGUMENTS` prints. Raises InfrastructureError with its own words if it fails."""


def apply(cluster: HasKubectl, documents: Iterable[Mapping[str, Any]]) -> None:
    """Create or change these objects. Raises InfrastructureError with kubectl's words where one is refused."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(documents)}
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", given=json.dumps(listed))


def wait_ready(cluster: HasKubectl, namespace: str, *deployments: str, seconds: float = READY_S) -> None:
    """Wait until the deployments have all the replicas they want, ready. Raises InfrastructureError if they do not."""
    for name in deployments:
        timeout = f"--timeout={seconds:g}s"
        cluster.kubectl("rollout", "status", f"deployment/{name}", f"--namespace={namespace}", timeout)


def namespace(name: str) -> dict[str, Any]:
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def deployment(name: str, space: str, replicas: int, pod: Mapping[str, Any]) -> dict[str, Any]:
    """A Deployment of pods with this `spec`, labelled `app: NAME`."""
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": space, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def service(name: str, space: str, port: int, address: str) -> dict[str, Any]:
    """A Service in front of the pods labelled `app: NAME`, at a cluster address of our choice."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": space, "labels": {"app": name}},
        "spec": {
            "clusterIP": address,
            "selector": {"app": name},
            "ports": [{"name": "http", "port": port, "targetPort": "http"}],
        },
    }
