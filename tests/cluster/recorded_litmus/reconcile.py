"""What the operator does with an engine, and what it writes into it; pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

FINALIZER = "chaosengine.litmuschaos.io/finalizer"
RUNNER_LABELS = {"app.kubernetes.io/component": "chaos-runner", "app.kubernetes.io/part-of": "litmus"}
POD_VARIABLE = "RECORDED_LITMUS_POD"
"""Environment of the operator: `PodPieces` as JSON, for the runner pods."""


class Step(StrEnum):
    """What is due for an engine."""

    NOTHING = "nothing"
    INITIALIZE = "initialize"
    """And launch at once."""
    DRIVE = "drive"
    """Launch the runner, or see whether it has ended."""
    ABORT = "abort"
    RELEASE = "release"
    """Abort, without a last status, because the engine is being deleted."""
    CLEAN = "clean"
    """After completion: remove the runner, where the engine says so."""
    RERUN = "rerun"


@dataclass(frozen=True)
class PodPieces:
    """How a pod runs the programs of this package: host Python by hostPath mounts."""

    image: str
    python: str
    env: Mapping[str, str] = field(default_factory=dict)
    volumes: tuple[Mapping[str, Any], ...] = ()
    mounts: tuple[Mapping[str, Any], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """For `POD_VARIABLE`; the constructor takes it back."""
        return asdict(self)

    def container(self, name: str, program: str, env: list[dict[str, Any]]) -> dict[str, Any]:
        """A container that runs operator, runner or experiment."""
        return {
            "name": name,
            "image": self.image,
            "imagePullPolicy": "IfNotPresent",
            "command": [self.python, "-u", "-m", "tests.cluster.recorded_litmus", program],
            "env": [*({"name": key, "value": value} for key, value in self.env.items()), *env],
            "volumeMounts": list(self.mounts),
        }


def due(engine: Mapping[str, Any]) -> Step:
    """By the table of the recorded operator's states."""
    metadata = engine["metadata"]
    state = engine["spec"].get("engineState") or "active"
    status = (engine.get("status") or {}).get("engineStatus") or ""
    held = FINALIZER in (metadata.get("finalizers") or ())
    if metadata.get("deletionTimestamp"):
        return Step.RELEASE if held else Step.NOTHING
    if state == "stop":
        return {"initialized": Step.ABORT, "completed": Step.CLEAN}.get(status, Step.NOTHING)
    if status in ("completed", "stopped"):
        return Step.RERUN
    return Step.DRIVE if status and held else Step.INITIALIZE


def initialize(engine: dict[str, Any]) -> None:
    """The first thing a client sees of the operator; it also rewrites the spec, as Go's types would."""
    engine["metadata"]["finalizers"] = [FINALIZER]
    spec = engine["spec"]
    spec["engineState"] = "active"
    spec.setdefault("components", {}).setdefault("runner", {}).setdefault("resources", {})
    for experiment in spec.get("experiments") or ():
        experiment["spec"] = _without_zeros(experiment.get("spec") or {})
        components = experiment["spec"].setdefault("components", {})
        components.setdefault("resources", {})
        components.setdefault("statusCheckTimeouts", {})
    engine["status"] = {"engineStatus": "initialized", "experiments": None}


def _without_zeros(value: Any) -> Any:
    """Go leaves out false, 0 and empty strings; empty objects and lists stay."""
    if isinstance(value, dict):
        kept = {key: _without_zeros(below) for key, below in value.items()}
        return {key: below for key, below in kept.items() if below not in (False, "", None)}
    return [_without_zeros(below) for below in value] if isinstance(value, list) else value


def stop(engine: dict[str, Any]) -> None:
    """The end of an abort: no finalizer, and a last status unless the engine is being deleted."""
    metadata = engine["metadata"]
    metadata["finalizers"] = [each for each in metadata.get("finalizers") or () if each != FINALIZER]
    if metadata.get("deletionTimestamp"):
        return
    status = engine.setdefault("status", {})
    status["engineStatus"] = "stopped"
    for experiment in status.get("experiments") or ():
        if experiment["status"] in ("Running", "Waiting for Job Creation"):
            experiment |= {"status": "Forcefully Aborted", "verdict": "Stopped"}


def rerun(engine: dict[str, Any]) -> None:
    """As if new, but already initialized; the next look adds the finalizer again."""
    engine["metadata"]["finalizers"] = []
    engine["status"] = {"engineStatus": "initialized"}


def runner_pod(engine: Mapping[str, Any], targets: str, pieces: PodPieces, speed: Mapping[str, str]) -> dict[str, Any]:
    """The pod `<engine>-runner`."""
    name, namespace, uid = (engine["metadata"][key] for key in ("name", "namespace", "uid"))
    spec = engine["spec"]
    settings = (spec.get("components") or {}).get("runner") or {}
    given = {
        "CHAOSENGINE": name,
        "TARGETS": targets,
        "EXPERIMENT_LIST": ",".join(each["name"] for each in spec["experiments"]),
        "CHAOS_SVC_ACC": spec.get("chaosServiceAccount", ""),
        "CHAOS_NAMESPACE": namespace,
        **speed,
    }
    env = [{"name": key, "value": value} for key, value in given.items()]
    pod: dict[str, Any] = {
        "serviceAccountName": spec.get("chaosServiceAccount", ""),
        "restartPolicy": "OnFailure",
        "containers": [pieces.container("chaos-runner", "runner", env)],
        "volumes": list(pieces.volumes),
    }
    pod |= {key: settings[key] for key in ("nodeSelector", "tolerations", "imagePullSecrets") if settings.get(key)}
    if grace_s := spec.get("terminationGracePeriodSeconds"):
        pod["terminationGracePeriodSeconds"] = grace_s
    owner = {"apiVersion": "litmuschaos.io/v1alpha1", "kind": "ChaosEngine", "name": name, "uid": uid}
    metadata = {
        "name": f"{name}-runner",
        "namespace": namespace,
        "labels": {"app": name, "chaosUID": uid, **RUNNER_LABELS, **(settings.get("runnerLabels") or {})},
        "annotations": settings.get("runnerAnnotations") or {},
        "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
    }
    return copy.deepcopy({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod})


def is_completed(pod: Mapping[str, Any]) -> bool:
    """The runner's container has ended, and well: kubelet starts one that has not again."""
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        if container["name"] == "chaos-runner":
            return ((container.get("state") or {}).get("terminated") or {}).get("reason") == "Completed"
    return False
