"""Pods of the target: which there are, to whom they belong, and whether they are up again."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kubernetes.client import ApiException

from tests.cluster.recorded_litmus.api import Api, Object, path
from tests.cluster.recorded_litmus.targets import Target, describe
from tests.cluster.recorded_litmus.timing import LOOKUP_S, pause, speed


class ChaosError(Exception):
    """Why an experiment ends with Error, in Litmus' words."""

    def __init__(self, code: str, reason: str, target: str = "", phase: str = "ChaosInject") -> None:
        super().__init__(reason)
        self.code, self.reason, self.target, self.phase = code, reason, target, phase


@dataclass(frozen=True)
class Workload:
    """The owner of pods: not the ReplicaSet, but what is above it."""

    kind: str
    """In lower case."""
    namespace: str
    name: str


def owner(api: Api, pod: Object) -> Workload | None:
    """Whose pod it is."""
    namespace = pod["metadata"]["namespace"]
    for reference in pod["metadata"].get("ownerReferences") or ():
        if reference["kind"] != "ReplicaSet":
            return Workload(reference["kind"].lower(), namespace, reference["name"])
        replica_set = api.get(path("replicasets", namespace, reference["name"]))
        for above in replica_set["metadata"].get("ownerReferences") or ():
            return Workload(above["kind"].lower(), namespace, above["name"])
    return None


def target_pods(api: Api, targets: Sequence[Target], names: Sequence[str], namespace: str) -> list[Object]:
    """Those named (TARGET_PODS), else all that the targets mean, each once. Raises ChaosError where there are none."""
    try:
        if names:
            where = targets[0].namespace if targets else namespace
            return [api.get(path("pods", where, name)) for name in names]
        if not targets:
            raise ChaosError("TARGET_SELECTION_ERROR", "provide one of the appLabel or TARGET_PODS")
        found = {pod["metadata"]["uid"]: pod for target in targets for pod in _pods_of(api, target)}
    except ApiException as error:
        raise ChaosError("TARGET_SELECTION_ERROR", f"{error.status} {error.reason}", describe(targets)) from error
    if not found:
        raise ChaosError("TARGET_SELECTION_ERROR", "no target pods found", describe(targets))
    return list(found.values())


def _pods_of(api: Api, target: Target) -> Iterable[Object]:
    at = path("pods", target.namespace)
    if target.kind == "pod":
        return [api.get(path("pods", target.namespace, name)) for name in target.names]
    if target.kind == "KIND":
        return [pod for pod in api.items(at) if not (pod["metadata"].get("labels") or {}).get("chaosUID")]
    if target.names:
        workloads = [Workload(target.kind, target.namespace, name) for name in target.names]
        return [pod for pod in api.items(at) if owner(api, pod) in workloads]
    listed = [pod for label in target.labels for pod in api.items(at, labelSelector=label)]
    return [pod for pod in listed if (whose := owner(api, pod)) and whose.kind == target.kind]


def await_recovery(api: Api, workloads: Sequence[Workload], delay_s: float, timeout_s: float) -> None:
    """Wait until all pods of the workloads are ready, in the steps of the recordings (10 s for two pods, delay 2 s).

    The timeout is the engine's, so it is not shortened. Raises ChaosError.
    """
    pause(1.5 * LOOKUP_S + 1.5 * delay_s)
    until = time.monotonic() + timeout_s
    while True:
        pods = [pod for workload in workloads for pod in _living(api, workload)]
        unready = [what for pod in pods for what in _unready(pod)]
        if pods and not unready:
            break
        if time.monotonic() >= until:
            where = unready[0] if unready else f"workloads: {', '.join(workload.name for workload in workloads)}"
            raise ChaosError("STATUS_CHECKS_ERROR", "container is not in running state", where)
        time.sleep(delay_s / speed())
    pause(delay_s * max(0, 2 * len(pods) - 2))


def _living(api: Api, workload: Workload) -> Iterable[Object]:
    for pod in api.items(path("pods", workload.namespace)):
        try:
            if not pod["metadata"].get("deletionTimestamp") and owner(api, pod) == workload:
                yield pod
        except ApiException as error:
            if error.status != 404:  # its ReplicaSet is gone already
                raise


def _unready(pod: Object) -> Iterable[str]:
    """Containers that are not up; `podName` and `containerName` as in the recorded error."""
    name = pod["metadata"]["name"]
    statuses = {each["name"]: each for each in (pod.get("status") or {}).get("containerStatuses") or ()}
    for container in pod["spec"]["containers"]:
        if not (statuses.get(container["name"]) or {}).get("ready"):
            yield f"podName: {name}, containerName: {container['name']}"
