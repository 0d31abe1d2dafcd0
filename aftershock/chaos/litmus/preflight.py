"""What can be known before a fault starts: Litmus would fail at most of it later, with few words or none.

Each check raises ChaosError (InputError where the engine itself is wrong) with what to do. A check that we are not
allowed to make is skipped with a warning: the minimal Role suffices for a run.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.litmus.access import check_own_access, check_service_account_access
from aftershock.chaos.litmus.clock import Clock, SystemClock
from aftershock.chaos.litmus.cluster import Cluster, DeniedError, NotFoundError, UnauthorizedError
from aftershock.chaos.litmus.kinds import ENGINES, EXPERIMENTS, LITMUS_API, NAMESPACES, PODS, RESULTS, SERVICE_ACCOUNTS
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.rivals import check_others
from aftershock.errors import ChaosError, InputError

WITHOUT_HELPER = ("pod-delete", "pod-network-partition", "pod-autoscaler", "node-drain", "node-taint")
"""Faults that need no privileged pod."""

OWNERS: Mapping[str, str] = {
    "deployment": "ReplicaSet",
    "rollout": "ReplicaSet",
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
    "deploymentconfig": "ReplicationController",
}
"""Kind of workload -> kind of its pods' owner. Litmus passes over pods with another owner."""

WHOLE_S = 30.0
"""How long a service may take to become whole: an earlier fault, or a rollout, may just have ended."""
AGAIN_S = 2.0

log = logging.getLogger(__name__)


class NotWholeError(ChaosError):
    """Some of the target's pods are not ready."""


def check(cluster: Cluster, engine: ChaosEngine, clock: Clock | None = None) -> None:
    """All checks, the cheapest and most telling first. Raises what the first one raises that fails."""
    check_state(engine)
    check_installed(cluster)
    for each in CHECKS.values():
        try:
            _check(each, cluster, engine, clock or SystemClock())
        except UnauthorizedError:
            raise
        except DeniedError as error:
            log.warning("not checked, for lack of rights: %s", error)


def _check(each: Callable[[Cluster, ChaosEngine], None], cluster: Cluster, engine: ChaosEngine, clock: Clock) -> None:
    until_s = clock.monotonic() + WHOLE_S
    while True:
        try:
            return each(cluster, engine)
        except NotWholeError as error:
            if clock.monotonic() >= until_s:
                raise
            log.info("waiting for a whole target: %s", error)
        clock.sleep(AGAIN_S)


def check_state(engine: ChaosEngine) -> None:
    """The engine is one that starts. Raises InputError."""
    if engine.state == "stop":
        raise InputError(f"engine {engine.name}: spec.engineState is stop, with which nothing would ever happen")


def check_installed(cluster: Cluster) -> None:
    """The API server knows the three kinds of Litmus."""
    try:
        found = {str(each.get("name")) for each in cluster.get(LITMUS_API).get("resources") or []}
    except NotFoundError:
        found = set()
    missing = {kind.plural for kind in (ENGINES, EXPERIMENTS, RESULTS)} - found
    if missing:
        raise ChaosError(
            f"{cluster.host}: Litmus is not installed (no {', '.join(sorted(missing))} in {LITMUS_API}); "
            "apply its CRDs and its operator first"
        )


def _check_experiments(cluster: Cluster, engine: ChaosEngine) -> None:
    for experiment in engine.experiments:
        try:
            cluster.get(EXPERIMENTS.path(engine.namespace, experiment.name))
        except NotFoundError as error:
            raise ChaosError(
                f"namespace {engine.namespace} has no ChaosExperiment {experiment.name}; apply the one of the public "
                "charts there: Litmus looks nowhere else, and would wait for ever"
            ) from error


def _check_service_account(cluster: Cluster, engine: ChaosEngine) -> None:
    name = str(section(engine.document, "spec").get("chaosServiceAccount") or "")
    if not name:
        raise InputError(f"engine {engine.name}: spec.chaosServiceAccount is missing; Litmus cannot start without it")
    try:
        cluster.get(SERVICE_ACCOUNTS.path(engine.namespace, name))
    except NotFoundError as error:
        raise ChaosError(
            f"namespace {engine.namespace} has no service account {name}; apply deploy/, which has it"
        ) from error


def _check_pod_security(cluster: Cluster, engine: ChaosEngine) -> None:
    namespace = cluster.get(NAMESPACES.path(None, engine.namespace))
    level = section(namespace, "metadata", "labels").get("pod-security.kubernetes.io/enforce")
    privileged = [each.name for each in engine.experiments if each.name not in WITHOUT_HELPER]
    if level == "restricted" or (level == "baseline" and privileged):
        who = f"the helper pod of {privileged[0]}" if privileged else "Litmus' runner"
        raise ChaosError(
            f"namespace {engine.namespace} enforces pod security {level!r}, which refuses {who}; "
            "run the engine in a namespace of its own that allows privileged pods"
        )


def _check_name(cluster: Cluster, engine: ChaosEngine) -> None:
    """A leftover under the same name would be taken for this run's, by Litmus if not by us."""
    taken = [(ENGINES, engine.name), *((RESULTS, engine.result_name(each)) for each in engine.experiments)]
    for kind, name in taken:
        try:
            cluster.get(kind.path(engine.namespace, name))
        except NotFoundError:
            continue
        raise ChaosError(
            f"{kind.plural} {engine.namespace}/{name} exists from an earlier run; give another run id, "
            "or run `aftershock cleanup` with --run-id and this one"
        )


def _check_target(cluster: Cluster, engine: ChaosEngine) -> None:
    info = engine.appinfo
    if not info.label:
        return  # a node fault, or selectors: the experiment itself looks them up
    where = f"{info.label} in namespace {info.namespace}"
    pods = cluster.list(PODS, info.namespace, labelSelector=info.label).get("items") or []
    if not pods:
        raise ChaosError(f"no pod has {where}; is it the label of the pods, not of the workload?", _NO_TARGET)
    owner = OWNERS.get(info.kind)
    targets = [pod for pod in pods if not owner or owner in _owners(pod)]
    if not targets:
        raise ChaosError(f"no pod with {where} belongs to a {info.kind} ({_name(pods[0])} does not)", _NO_TARGET)
    ended = [_name(pod) for pod in targets if section(pod, "status").get("phase") in ("Succeeded", "Failed")]
    if ended:
        raise ChaosError(
            f"pods with {where} have ended and are still there: {', '.join(ended)}; delete them, as Litmus chooses "
            "among these too, and would hit nothing",
            _NO_TARGET,
        )
    unready = [_name(pod) for pod in targets if not is_ready(pod)]
    if unready:
        raise NotWholeError(
            f"pods with {where} are not ready: {', '.join(unready)}; there is no baseline without a whole service",
            "STATUS_CHECKS_ERROR",
        )


_NO_TARGET = "TARGET_SELECTION_ERROR"


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Whether it serves, and is to go on with that."""
    conditions = section(pod, "status").get("conditions") or []
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return ready and not section(pod, "metadata").get("deletionTimestamp")


def _owners(pod: Mapping[str, Any]) -> list[str]:
    return [str(owner.get("kind")) for owner in section(pod, "metadata").get("ownerReferences") or []]


def _name(found: Mapping[str, Any]) -> str:
    return str(section(found, "metadata").get("name"))


CHECKS: Mapping[str, Callable[[Cluster, ChaosEngine], None]] = {
    "own rights": check_own_access,
    "ChaosExperiments": _check_experiments,
    "service account": _check_service_account,
    "its rights": check_service_account_access,
    "pod security": _check_pod_security,
    "names": _check_name,
    "other chaos": check_others,  # before the target, whose pods it may be killing
    "target pods": _check_target,
}
"""What is checked of an engine where Litmus is installed, in this order. DeniedError: we may not look."""
