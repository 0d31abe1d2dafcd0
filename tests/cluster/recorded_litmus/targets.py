"""What an engine aims at: the TARGETS grammar between operator and experiment, and the choice among the pods found.

    kind:namespace:[filter];kind:namespace:[filter]

A filter with `=` is labels, else names; both are split at the comma, and each part adds pods (a union, never AND).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

Pod = TypeVar("Pod")


class IncompleteTargetError(ValueError):
    """Exactly one of appkind and applabel, or a selector without its list: the operator stops such an engine."""


@dataclass(frozen=True)
class Target:
    """One part of TARGETS."""

    kind: str
    """Kind of the owner in lower case; `pod` for pods by name, `KIND` for any pod of the namespace."""
    namespace: str
    labels: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def render_targets(spec: Mapping[str, Any]) -> str:
    """TARGETS from the spec of an engine; selectors win over appinfo. Raises IncompleteTargetError."""
    if selectors := spec.get("selectors"):
        return _from_selectors(selectors)
    info = spec.get("appinfo") or {}
    namespace, label, kind = (str(info.get(key) or "") for key in ("appns", "applabel", "appkind"))
    if bool(label) != bool(kind):
        raise IncompleteTargetError("appinfo needs both applabel and appkind")
    if not (namespace or label):
        return ""
    return f"{kind or 'KIND'}:{namespace}:[{label}]"


def _from_selectors(selectors: Mapping[str, Any]) -> str:
    pods, workloads = selectors.get("pods") or (), selectors.get("workloads") or ()
    parts = [("pod", pod.get("namespace", ""), pod.get("names", "")) for pod in pods]
    parts += [(each["kind"], each.get("namespace", ""), each.get("names") or each.get("labels")) for each in workloads]
    if not parts:
        raise IncompleteTargetError("selectors needs pods or workloads")
    return ";".join(f"{kind}:{namespace}:[{wanted}]" for kind, namespace, wanted in parts)


def parse_targets(text: str) -> tuple[Target, ...]:
    """The parts of TARGETS."""
    return tuple(_target(part) for part in text.split(";") if part)


def _target(part: str) -> Target:
    kind, namespace, wanted = part.split(":", 2)
    items = tuple(item for item in wanted.strip("[]").split(",") if item)
    if "=" in wanted:
        return Target(kind, namespace, labels=items)
    return Target(kind, namespace, names=items)


def describe(targets: Sequence[Target]) -> str:
    """As the error of an experiment without a target names them."""
    return "[" + ",".join(_describe(target) for target in targets) + "]"


def _describe(target: Target) -> str:
    key, items = ("labels", target.labels) if target.labels else ("names", target.names)
    return f"{{namespace: {target.namespace}, kind: {target.kind}, {key}: [{','.join(items)}]}}"


def from_range(text: str, chance: random.Random) -> int:
    """A number, or one out of `a-b`; what is no number is 0, as Litmus reads it."""
    low, _, high = text.partition("-")
    try:
        return chance.randint(int(low), int(high)) if high else int(low or "0")
    except ValueError:
        return 0


def choose(pods: Sequence[Pod], percentage: int, chance: random.Random) -> list[Pod]:
    """That share of the pods, rounded down, at least one: neighbours in the list, from a random one on."""
    count = max(1, min(percentage, 100) * len(pods) // 100)
    start = chance.randrange(len(pods))
    return [pods[(start + step) % len(pods)] for step in range(count)]
