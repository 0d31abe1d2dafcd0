"""What the cluster is there for: the canary model behind a Service, and a Prometheus that watches it.

The labels are those of the embedded stack. `slot` is missing: pods of a Deployment have no number.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aftershock.stack.models import CANARY, model_path
from aftershock.stack.prometheus import find_binary
from aftershock.stack.state import LABELS, NAMESPACE
from tests.cluster.rig.cluster import Cluster
from tests.cluster.rig.manifests import apply, deployment, namespace, service, wait_ready
from tests.cluster.rig.mounts import PYTHON, host_pod
from tests.cluster.rig.network import NODE_ADDRESS

MODEL_SERVER = LABELS["app"]
MODEL_ADDRESS, MODEL_PORT = "10.96.0.80", 8000
MODEL_URL = f"http://{MODEL_ADDRESS}:{MODEL_PORT}"
"""The replicas' Service, inside the cluster's network."""
SLOTS, CONTEXT_TOKENS = 4, 512

MONITORING = "monitoring"
PROMETHEUS = "prometheus"
PROMETHEUS_ADDRESS, PROMETHEUS_PORT = "10.96.0.90", 9090
PROMETHEUS_URL = f"http://{PROMETHEUS_ADDRESS}:{PROMETHEUS_PORT}"
"""Prometheus' Service, inside the cluster's network."""
TARGETS = Path("/targets/pods.json")
"""Where the pods to scrape are written down, in Prometheus' pod."""
LOAD_TARGET = f"{NODE_ADDRESS}:9464"
"""Where a load generator on the node is scraped."""


def install(cluster: Cluster, replicas: int = 2) -> None:
    """Install both, and wait until they are ready. Raises InfrastructureError where one does not become so."""
    apply(cluster, [namespace(NAMESPACE), namespace(MONITORING)])
    apply(cluster, [*model_server(replicas), *prometheus(find_binary())])
    wait_ready(cluster, NAMESPACE, MODEL_SERVER)
    wait_ready(cluster, MONITORING, PROMETHEUS)


def model_server(replicas: int) -> list[dict[str, Any]]:
    """The replicas and their Service, in the namespace of the embedded stack."""
    model = model_path(CANARY)
    flags = {
        "--model": model,
        "--host": "0.0.0.0",
        "--port": MODEL_PORT,
        "--slots": SLOTS,
        "--ctx": CONTEXT_TOKENS,
        "--name": CANARY,
    }
    pod = host_pod(
        [PYTHON, "-m", "tests.cluster.rig.model_server", *(str(part) for flag in flags.items() for part in flag)],
        ports=[{"name": "http", "containerPort": MODEL_PORT}],
        readinessProbe=_probe("/health"),
        resources=_resources("50m", "128Mi", "512Mi"),
    )
    return [
        deployment(MODEL_SERVER, NAMESPACE, replicas, pod),
        service(MODEL_SERVER, NAMESPACE, MODEL_PORT, MODEL_ADDRESS),
    ]


def prometheus(binary: Path) -> list[dict[str, Any]]:
    """Prometheus with its own service account, which may look at pods of the replicas' namespace and at nothing else.

    Debian's Prometheus cannot ask Kubernetes for its targets: a second container does so for it, see discovery.py.
    """
    metadata = {"name": PROMETHEUS, "namespace": MONITORING}
    role = {"name": PROMETHEUS, "namespace": NAMESPACE}
    pod = host_pod(
        [
            str(binary),
            "--config.file=/configuration/prometheus.json",
            "--storage.tsdb.path=/data",
            f"--web.listen-address=:{PROMETHEUS_PORT}",
        ],
        binary,
        ports=[{"name": "http", "containerPort": PROMETHEUS_PORT}],
        readinessProbe=_probe("/-/ready"),
        resources=_resources("50m", "128Mi", "512Mi"),
    )
    _add_discovery(pod)
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}]
    authorization = "rbac.authorization.k8s.io"
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{authorization}/v1", "kind": "Role", "metadata": role, "rules": rules},
        {
            "apiVersion": f"{authorization}/v1",
            "kind": "RoleBinding",
            "metadata": role,
            "roleRef": {"apiGroup": authorization, "kind": "Role", "name": PROMETHEUS},
            "subjects": [{"kind": "ServiceAccount", **metadata}],
        },
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": metadata,
            "data": {"prometheus.json": json.dumps(_configuration())},  # JSON is YAML
        },
        deployment(PROMETHEUS, MONITORING, 1, pod),
        service(PROMETHEUS, MONITORING, PROMETHEUS_PORT, PROMETHEUS_ADDRESS),
    ]


def _add_discovery(pod: dict[str, Any]) -> None:
    """Add the container that writes Prometheus' targets, and the volumes of both."""
    pod["serviceAccountName"] = PROMETHEUS
    pod["volumes"] += [
        {"name": "configuration", "configMap": {"name": PROMETHEUS}},
        {"name": "data", "emptyDir": {}},
        {"name": "targets", "emptyDir": {}},
    ]
    server = pod["containers"][0]
    targets = {"name": "targets", "mountPath": str(TARGETS.parent)}
    flags = {"--namespace": NAMESPACE, "--app": MODEL_SERVER, "--port": MODEL_PORT, "--file": TARGETS}
    finder = {
        **{field: server[field] for field in ("image", "imagePullPolicy", "workingDir")},
        "name": "discovery",
        "command": [
            PYTHON,
            "-m",
            "tests.cluster.rig.discovery",
            *(str(part) for flag in flags.items() for part in flag),
        ],
        "volumeMounts": [*server["volumeMounts"], targets],
        "resources": _resources("20m", "64Mi", "256Mi"),
    }
    server["volumeMounts"] = [
        *server["volumeMounts"],
        targets,
        {"name": "configuration", "mountPath": "/configuration"},
        {"name": "data", "mountPath": "/data"},
    ]
    pod["containers"].append(finder)


def _configuration() -> dict[str, Any]:
    return {
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            {"job_name": MODEL_SERVER, "file_sd_configs": [{"files": [str(TARGETS)]}]},
            {"job_name": "load", "static_configs": [{"targets": [LOAD_TARGET]}]},
            {"job_name": "prometheus", "static_configs": [{"targets": [f"127.0.0.1:{PROMETHEUS_PORT}"]}]},
        ],
    }


def _probe(path: str) -> dict[str, Any]:
    return {"httpGet": {"path": path, "port": "http"}, "periodSeconds": 1}


def _resources(cpu: str, memory: str, most_memory: str) -> dict[str, Any]:
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most_memory}}
