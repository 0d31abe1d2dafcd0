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
from aftershock.chaos.litmus.cluster import Cluster, DeniedError, NotFoundError
from aftershock.chaos.litmus.kinds import ENGINES, EXPERIMENTS, LITMUS_API, NAMESPACES, PODS, RESULTS, SERVICE_ACCOUNTS
from aftershock.chaos.litmus.read import section
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

log = logging.getLogger(__name__)


def check(cluster: Cluster, engine: ChaosEngine) -> None:
    """All checks, the cheapest and most telling first."""
    if engine.state == "stop":
        raise InputError(f"engine {engine.name}: spec.engineState is stop, with which nothing would ever happen")
    _check_litmus(cluster)
    checks: tuple[Callable[[Cluster, ChaosEngine], None], ...] = (
        check_own_access,
        _check_experiments,
        _check_service_account,
        check_service_account_access,
        _check_pod_security,
        _check_name,
        _check_target,
        _check_others,
    )
    for each in checks:
        try:
            each(cluster, engine)
        except DeniedError as error:
            log.warning("not checked, for lack of rights: %s", error)


def _check_litmus(cluster: Cluster) -> None:
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
            "or run `aftershock cleanup`"
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
    strangers = [_name(pod) for pod in pods if owner and owner not in _owners(pod)]
    if len(strangers) == len(pods):
        raise ChaosError(f"no pod with {where} belongs to a {info.kind} ({strangers[0]} does not)", _NO_TARGET)
    unready = [_name(pod) for pod in pods if not _is_ready(pod)]
    if unready:
        raise ChaosError(
            f"pods with {where} are not ready: {', '.join(unready)}; there is no baseline without a whole service",
            "STATUS_CHECKS_ERROR",
        )


_NO_TARGET = "TARGET_SELECTION_ERROR"


def _check_others(cluster: Cluster, engine: ChaosEngine) -> None:
    """Two faults on one target: neither run could say which one it measured."""
    try:
        engines = cluster.list(ENGINES, None).get("items") or []
    except DeniedError:
        engines = cluster.list(ENGINES, engine.namespace).get("items") or []
    ours = section(engine.document, "spec", "appinfo")
    for other in engines:
        namespace = section(other, "metadata").get("namespace")
        same = section(other, "spec", "appinfo") == ours if ours else namespace == engine.namespace
        if same and _is_active(other):
            raise ChaosError(
                f"ChaosEngine {namespace}/{_name(other)} is active on the same target; wait for it, "
                "or run `aftershock cleanup` if it is a leftover"
            )


def _is_active(engine: Mapping[str, Any]) -> bool:
    over = section(engine, "status").get("engineStatus") in ("completed", "stopped")
    return section(engine, "spec").get("engineState") != "stop" and not over


def _is_ready(pod: Mapping[str, Any]) -> bool:
    conditions = section(pod, "status").get("conditions") or []
    ready = any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)
    return ready and not section(pod, "metadata").get("deletionTimestamp")


def _owners(pod: Mapping[str, Any]) -> list[str]:
    return [str(owner.get("kind")) for owner in section(pod, "metadata").get("ownerReferences") or []]


def _name(found: Mapping[str, Any]) -> str:
    return str(section(found, "metadata").get("name"))
