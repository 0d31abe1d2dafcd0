"""Where the tests of this folder act: a target to hit, the rights to hit it, and eyes on what happens.

The namespaces and the rights are those of deploy/: the chaos in one, what it hits in another.
"""

from __future__ import annotations

import json
import secrets
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client, config

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.litmus.backend import LitmusBackend
from aftershock.chaos.litmus.cluster import Cluster as ApiServer
from aftershock.chaos.render import render_fault
from tests.cluster.furnish import CHAOS, TARGET
from tests.cluster.given import GivenCluster, target_image
from tests.cluster.rig.cluster import Cluster
from tests.cluster.rig.manifests import apply, deployment, namespace, wait_ready
from tests.cluster.rig.waiting import wait_until

APP = "web"
DEADLINE_S = 60.0

Object = dict[str, Any]


@dataclass(frozen=True)
class Scene:
    """Of one test. Tests take turns: they share the namespaces and the target."""

    cluster: Cluster | GivenCluster
    kubeconfig: Path
    """Of the orchestrator's service account, which may do what deploy/ gives it and no more."""
    archive: Path
    run_id: str = field(default_factory=lambda: f"t-{secrets.token_hex(3)}")

    @property
    def rig(self) -> Cluster:
        """The cluster, where it is ours to hurt; skips the test where it is not."""
        if isinstance(self.cluster, GivenCluster):
            pytest.skip("hurts the cluster itself, which a given one is not there for")
        return self.cluster

    def api(self, kubeconfig: Path | None = None) -> ApiServer:
        """The API server as the orchestrator, or whoever the kubeconfig names, reaches it."""
        settings = client.Configuration()
        settings.retries = False
        config.load_kube_config(str(kubeconfig or self.kubeconfig), client_configuration=settings)
        return ApiServer(client.ApiClient(configuration=settings))

    def backend(self, kubeconfig: Path | None = None) -> LitmusBackend:
        """A backend under these credentials."""
        return LitmusBackend(self.api(kubeconfig), archive=self.archive)

    def engine(self, *, run_id: str = "", label: str = f"app={APP}", **tunables: str) -> ChaosEngine:
        """pod-delete on half of the target, 4 s long with a kill each 2 s, unless the tunables say otherwise."""
        values = {"TOTAL_CHAOS_DURATION": "4", "CHAOS_INTERVAL": "2", **tunables}
        text = render_fault(
            "pod-delete",
            values,
            cluster=True,
            namespace=TARGET,
            chaos_namespace=CHAOS,
            label=label,
            run_id=run_id or self.run_id,
        )
        return parse_engine(text, "test")

    def get(self, what: str, *arguments: str, namespace: str = CHAOS) -> list[Object]:
        """All objects of a kind in the namespace."""
        where = f"--namespace={namespace}"
        found: list[Object] = json.loads(self.cluster.kubectl("get", what, where, "--output=json", *arguments))["items"]
        return found

    def names(self, what: str, *arguments: str, namespace: str = CHAOS) -> set[str]:
        """Their names."""
        return {item["metadata"]["name"] for item in self.get(what, *arguments, namespace=namespace)}

    def targets(self) -> set[str]:
        """The target's pods."""
        return self.names("pods", f"--selector=app={APP}", namespace=TARGET)

    def whole(self) -> bool:
        """Whether all of the target is there and ready."""
        (found,) = self.get("deployments", f"--field-selector=metadata.name={APP}", namespace=TARGET)
        return bool(found["status"].get("readyReplicas") == found["spec"]["replicas"])

    def wait_whole(self) -> None:
        """Until the target has recovered."""
        wait_until(self.whole, DEADLINE_S, lambda: f"the target has pods {self.targets()}, not all ready")

    def chaos_pods(self) -> set[str]:
        """Litmus' pods that are not over."""
        pods = self.get("pods", "--selector=chaosUID")
        return {pod["metadata"]["name"] for pod in pods if pod["status"]["phase"] in ("Pending", "Running")}

    def assert_clean(self) -> None:
        """No engine, no result, nothing of Litmus at work."""
        assert self.names("chaosengines") == set()
        assert self.names("chaosresults") == set()
        assert self.chaos_pods() == set()


@dataclass
class Running:
    """One engine on its way, in a thread."""

    stop: threading.Event = field(default_factory=threading.Event)
    events: list[ChaosEvent] = field(default_factory=list)
    outcome: ChaosOutcome | None = None
    failure: BaseException | None = None
    _thread: threading.Thread | None = None

    @classmethod
    def of(cls, backend: LitmusBackend, engine: ChaosEngine) -> Running:
        """Start it."""
        running = cls()

        def work() -> None:
            try:
                running.outcome = backend.run(engine, running.stop, running.events.append)
            except BaseException as error:  # noqa: BLE001 - told by result()
                running.failure = error

        running._thread = threading.Thread(target=work, daemon=True)
        running._thread.start()
        return running

    def wait_for(self, reason: str) -> None:
        """Until an event with this reason was told."""
        wait_until(lambda: self.over or reason in self.reasons, DEADLINE_S, lambda: f"no {reason} among {self.reasons}")
        assert reason in self.reasons, f"over before {reason}: {self.outcome or self.failure}"

    @property
    def over(self) -> bool:
        """Whether it has returned."""
        return self.outcome is not None or self.failure is not None

    @property
    def reasons(self) -> list[str]:
        """Of the events told so far."""
        return [event.reason for event in self.events]

    def result(self, seconds: float = 180) -> ChaosOutcome:
        """What came of it."""
        assert self._thread is not None
        self._thread.join(seconds)
        assert not self._thread.is_alive(), f"still at work after {seconds:g} s; told {self.reasons}"
        if self.failure is not None:
            raise self.failure
        assert self.outcome is not None
        return self.outcome


def target(replicas: int = 2) -> Object:
    """A Deployment of pods that are ready in a moment: what is tested here is the fault, not the service."""
    pod = {
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {
                "name": "web",
                "image": target_image(),
                "imagePullPolicy": "IfNotPresent",
                "command": [
                    "sh",
                    "-c",
                    "mkdir -p /tmp/w; echo ok > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w",
                ],
                "readinessProbe": {"httpGet": {"path": "/index.html", "port": 8080}, "periodSeconds": 1},
            }
        ],
    }
    return deployment(APP, TARGET, replicas, pod)


def token_kubeconfig(cluster: Cluster | GivenCluster, path: Path, token: str) -> Path:
    """The administrator's kubeconfig with this token in place of the certificate."""
    document = json.loads(cluster.kubectl("config", "view", "--raw", "--output=json"))
    for user in document["users"]:
        user["user"] = {"token": token}
    path.write_text(json.dumps(document))
    path.chmod(0o600)
    return path


def with_probe(engine: ChaosEngine, probe: Mapping[str, Any]) -> ChaosEngine:
    """The engine with a probe on each of its experiments."""
    document = json.loads(json.dumps(engine.document))
    for experiment in document["spec"]["experiments"]:
        experiment["spec"]["probe"] = [dict(probe)]
    return parse_engine(json.dumps(document), "test")  # JSON is YAML


def make_target(cluster: Cluster | GivenCluster) -> None:
    """The target, ready."""
    apply(cluster, [namespace(TARGET), target()])
    wait_ready(cluster, TARGET, APP)
