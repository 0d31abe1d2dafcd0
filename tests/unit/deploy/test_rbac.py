"""The roles are what is needed: no right less than the code and the templates' headers ask for, and none more."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pytest

from aftershock.chaos.litmus import kinds
from aftershock.chaos.litmus.access import _OWN
from aftershock.chaos.litmus.kinds import Kind
from aftershock.chaos.template import list_faults

Object = dict[str, Any]
Build = Callable[[str], list[Object]]
Right = tuple[str, str, str]
"""API group, resource, verb."""

CHAOS, TARGET = "aftershock-chaos", "inference"


def rights(rules: Iterable[Mapping[str, Any]]) -> set[Right]:
    return {
        (group, resource, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def role(objects: Iterable[Object], kind: str, name: str, namespace: str | None = None) -> set[Right]:
    """The rights of one role; no star and no name stands for more than it says."""
    (found,) = [
        item
        for item in objects
        if (item["kind"], item["metadata"]["name"], item["metadata"].get("namespace")) == (kind, name, namespace)
    ]
    assert all(rule.keys() == {"apiGroups", "resources", "verbs"} for rule in found["rules"])
    granted = rights(found["rules"])
    assert not any("*" in right for right in granted)
    return granted


def asked(*, of_nodes: bool) -> set[Right]:
    """What the headers of all faults of one class ask for."""
    faults = [fault for fault in list_faults() if fault.hits_nodes == of_nodes]
    return rights(rule.model_dump(by_alias=True) for fault in faults for rule in fault.rbac)


def of(kind: Kind, *verbs: str) -> set[Right]:
    return {(kind.group, kind.plural, verb) for verb in verbs}


def test_the_orchestrator_may_do_what_a_run_does(everything: list[Object]) -> None:
    a_run = set[Right]().union(*(of(kind, *verbs) for kind, verbs in _OWN))
    logs = {("", "pods/log", "get")}
    preflight = of(kinds.SERVICE_ACCOUNTS, "get") | of(kinds.NAMESPACES, "get")
    assert role(everything, "Role", "aftershock", CHAOS) == a_run | logs | preflight


def test_the_orchestrator_looks_at_the_target_s_pods(everything: list[Object]) -> None:
    assert role(everything, "Role", "aftershock", TARGET) == of(kinds.PODS, "list", "watch")


def test_preflight_looks_beyond_a_namespace_and_changes_nothing(everything: list[Object]) -> None:
    nodes = {("", "nodes", "get"), ("", "nodes", "list")}
    looks = of(kinds.ACCESS_REVIEWS, "create") | of(kinds.ENGINES, "list") | of(kinds.NAMESPACES, "get") | nodes
    assert role(everything, "ClusterRole", "aftershock-preflight") == looks


def test_cleanup_adds_what_only_the_sweep_deletes(everything: list[Object]) -> None:
    swept = of(kinds.JOBS, "delete") | of(kinds.PODS, "delete")
    assert role(everything, "Role", "aftershock-cleanup", CHAOS) == swept


def test_faults_of_pods_may_do_what_their_headers_say(everything: list[Object]) -> None:
    assert role(everything, "Role", "aftershock-pod-chaos", CHAOS) == asked(of_nodes=False)


def test_in_the_target_s_namespace_they_may_what_is_about_the_target(everything: list[Object]) -> None:
    litmus_own = {("", "events"), ("", "configmaps"), ("batch", "jobs")}
    about_target = {
        (group, resource, verb)
        for group, resource, verb in asked(of_nodes=False)
        if group != kinds.LITMUS_GROUP and (group, resource) not in litmus_own
    }
    assert role(everything, "Role", "aftershock-pod-chaos", TARGET) == about_target


def test_faults_of_nodes_may_do_what_their_headers_say(everything: list[Object]) -> None:
    needed = asked(of_nodes=True)
    nodes = {right for right in needed if right[1] == "nodes"}
    assert role(everything, "Role", "aftershock-node-chaos", CHAOS) == needed - nodes
    beyond = role(everything, "ClusterRole", "aftershock-node-chaos") - nodes
    drain = {("", "pods", "get"), ("", "pods", "list"), ("", "pods/eviction", "create"), ("apps", "daemonsets", "get")}
    assert beyond == drain <= needed


@pytest.mark.parametrize("part", ["orchestrator", "preflight", "cleanup", "target"])
def test_nobody_may_read_secrets_or_give_rights(part: str, build: Build) -> None:
    dangerous = {"secrets", "roles", "clusterroles", "rolebindings", "clusterrolebindings", "serviceaccounts/token"}
    for item in build(part):
        assert not {resource for _, resource, _ in rights(item.get("rules", []))} & dangerous
