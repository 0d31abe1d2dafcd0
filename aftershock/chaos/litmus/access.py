"""Who may do what: our own rights, and those of the service account under which the fault runs.

Asked of the API server itself, so that aggregated roles, groups and webhooks count. Without its rights, Litmus' runner
tries for half a minute, exits with 0, and the engine becomes `completed` with nothing done and not a word about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.litmus.kinds import (
    ACCESS_REVIEWS,
    ENGINES,
    EVENTS,
    EXPERIMENTS,
    JOBS,
    LITMUS_GROUP,
    OWN_ACCESS_REVIEWS,
    PODS,
    RESULTS,
    Kind,
)
from aftershock.chaos.litmus.read import section
from aftershock.chaos.template import load_fault
from aftershock.errors import ChaosError, TemplateError

_OWN: tuple[tuple[Kind, tuple[str, ...]], ...] = (
    (ENGINES, ("create", "get", "list", "watch", "patch", "delete")),
    (RESULTS, ("get", "list", "watch", "delete")),
    (EXPERIMENTS, ("get",)),
    (JOBS, ("list", "watch")),
    (PODS, ("list", "watch")),
    (EVENTS, ("list", "watch")),
)
"""What a run does, besides reading logs: a right that is missing in the middle of a fault would leave us blind."""

_ONLY_FOR = {"apps.openshift.io": "deploymentconfig", "argoproj.io": "rollout"}
"""API group -> the one kind of workload that needs rights in it."""
_IN_TARGET = (
    "pods",
    "pods/exec",
    "pods/log",
    "pods/eviction",
    "deployments",
    "statefulsets",
    "replicasets",
    "daemonsets",
    "replicationcontrollers",
    "deploymentconfigs",
    "rollouts",
    "networkpolicies",
)
"""What Litmus reads or changes where the target is; pods it also has where the engine is."""


_BY_OPERATION = {"present": ("list",), "absent": ("list",), "create": ("create",), "delete": ("list", "delete")}
"""What a k8sProbe asks of the API server."""


@dataclass(frozen=True)
class Right:
    """One thing that one may do."""

    verb: str
    group: str
    resource: str
    """With its subresource, as in pods/log."""
    namespace: str
    """Empty for kinds without one."""

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}{'.' + self.group if self.group else ''}"

    def attributes(self) -> dict[str, str]:
        """As a review wants them."""
        resource, _, sub = self.resource.partition("/")
        return {
            "verb": self.verb,
            "group": self.group,
            "resource": resource,
            "subresource": sub,
            "namespace": self.namespace,
        }


def check_own_access(cluster: Cluster, engine: ChaosEngine) -> None:
    """We may do all that a run does."""
    rights = [Right(verb, kind.group, kind.plural, engine.namespace) for kind, verbs in _OWN for verb in verbs]
    if engine.appinfo.namespace not in ("", engine.namespace):
        rights += [Right(verb, "", "pods", engine.appinfo.namespace) for verb in ("list", "watch")]
    missing = [right for right in rights if not _allowed(cluster, OWN_ACCESS_REVIEWS, right, {})]
    if missing:
        raise ChaosError(
            f"these credentials may not {_listed(missing)}; bind the orchestrator's role of deploy/ to them"
        )


def check_service_account_access(cluster: Cluster, engine: ChaosEngine) -> None:
    """The engine's service account may do all that its experiments do."""
    name = section(engine.document, "spec").get("chaosServiceAccount")
    user = {
        "user": f"system:serviceaccount:{engine.namespace}:{name}",
        "groups": ["system:serviceaccounts", f"system:serviceaccounts:{engine.namespace}", "system:authenticated"],
    }
    needed = [
        right
        for experiment in engine.experiments
        for right in _needed(_rules(cluster, engine.namespace, experiment.name), engine)
    ]
    rights = dict.fromkeys([*needed, *_of_probes(engine)])
    missing = [right for right in rights if not _allowed(cluster, ACCESS_REVIEWS, right, user)]
    if missing:
        raise ChaosError(
            f"service account {engine.namespace}/{name} may not {_listed(missing)}; "
            "bind the fault's role of deploy/ to it"
        )


def _rules(cluster: Cluster, namespace: str, experiment: str) -> list[Mapping[str, Any]]:
    """From our template; for a fault that we have none of, from what its ChaosExperiment documents."""
    try:
        return [rule.model_dump(by_alias=True) for rule in load_fault(experiment).rbac]
    except TemplateError:
        found = cluster.get(EXPERIMENTS.path(namespace, experiment))
        return list(section(found, "spec", "definition").get("permissions") or [])


def _needed(rules: Iterable[Mapping[str, Any]], engine: ChaosEngine) -> Iterator[Right]:
    target = engine.appinfo.namespace or engine.namespace
    for rule in rules:
        for group in rule.get("apiGroups") or []:
            if _ONLY_FOR.get(group, engine.appinfo.kind) != engine.appinfo.kind:
                continue
            for resource in rule.get("resources") or []:
                for namespace in _namespaces(group, resource, engine.namespace, target):
                    for verb in rule.get("verbs") or []:
                        yield Right(str(verb), group, resource, namespace)


def _of_probes(engine: ChaosEngine) -> Iterator[Right]:
    """What the engine's probes do under the same account."""
    for experiment in section(engine.document, "spec").get("experiments") or []:
        for probe in section(experiment, "spec").get("probe") or []:
            yield from _of_probe(probe, engine.namespace)


def _of_probe(probe: Mapping[str, Any], namespace: str) -> Iterator[Right]:
    if section(probe, "runProperties").get("stopOnFailure"):
        yield from (Right(verb, LITMUS_GROUP, ENGINES.plural, namespace) for verb in ("get", "update"))
    if section(probe, "cmdProbe/inputs", "source"):  # a pod of its own, in which the command is run
        yield from (Right("create", "", resource, namespace) for resource in ("pods", "pods/exec"))
    inputs = section(probe, "k8sProbe/inputs")
    for verb in _BY_OPERATION.get(str(inputs.get("operation") or "").lower(), ()):
        named = "get" if verb == "list" and inputs.get("resourceNames") else verb
        group, resource, where = (str(inputs.get(name) or "") for name in ("group", "resource", "namespace"))
        yield Right(named, group, resource, where)


def _namespaces(group: str, resource: str, engine: str, target: str) -> list[str]:
    if resource.partition("/")[0] == "nodes":
        return [""]
    if group == LITMUS_GROUP or resource not in _IN_TARGET:
        return [engine]
    return list(dict.fromkeys([engine, target])) if resource.startswith("pods") else [target]


def _allowed(cluster: Cluster, kind: Kind, right: Right, user: Mapping[str, Any]) -> bool:
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview" if kind is OWN_ACCESS_REVIEWS else "SubjectAccessReview",
        "spec": {**user, "resourceAttributes": right.attributes()},
    }
    answer = cluster.create(kind.path(None), review)
    return bool(section(answer, "status").get("allowed"))


def _listed(rights: list[Right]) -> str:
    """The first few of each namespace."""
    by_namespace: dict[str, list[Right]] = {}
    for right in rights:
        by_namespace.setdefault(right.namespace, []).append(right)
    return ", nor ".join(
        f"{_few(missing)} in {f'namespace {namespace}' if namespace else 'the cluster as a whole'}"
        for namespace, missing in by_namespace.items()
    )


def _few(rights: list[Right]) -> str:
    shown = ", ".join(str(right) for right in rights[:5])
    return f"{shown} and {len(rights) - 5} more" if len(rights) > 5 else shown
