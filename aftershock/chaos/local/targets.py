"""Which pods a fault hits: Litmus' rules, drawn from a seed so that a run can be repeated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from aftershock.chaos.engine import AppInfo, ChaosEngine
from aftershock.chaos.local.state import Pod, StackState
from aftershock.chaos.local.tunables import Tunables
from aftershock.errors import ChaosError


@dataclass(frozen=True)
class Selection:
    """How many, which, and all at once or one after the other."""

    names: tuple[str, ...] = ()
    """TARGET_PODS; wins over the percentage."""
    percentage: tuple[int, int] = (100, 100)
    sequence: str = "parallel"

    def drawn(self, random: Random) -> Selection:
        """With each range and `SEQUENCE=random` decided. Litmus does this once, before the first round."""
        percentage = random.randint(*self.percentage)
        sequence = random.choice(("parallel", "serial")) if self.sequence == "random" else self.sequence
        return Selection(self.names, (percentage, percentage), sequence)

    def most(self, pods: int) -> int:
        """How many of `pods` pods it can hit at one time."""
        if self.sequence == "serial":
            return 1
        return len(self.names) or affected(self.percentage[1], pods)

    def choose(self, pods: Sequence[Pod], random: Random) -> tuple[Pod, ...]:
        """The targets among `pods`. Raises ChaosError (TARGET_SELECTION_ERROR) where there is none."""
        if self.names:
            return tuple(_named(name, pods) for name in self.names)
        candidates = [pod for pod in pods if pod.phase != "Terminating"]
        if not candidates:
            raise selection_error("no target pods found: the stack has none")
        start, count = random.randrange(len(candidates)), affected(self.percentage[0], len(candidates))
        return tuple(candidates[(start + step) % len(candidates)] for step in range(count))

    def batches(self, targets: Sequence[Pod]) -> list[tuple[Pod, ...]]:
        """The targets in the groups that are hit at one time."""
        return [(pod,) for pod in targets] if self.sequence == "serial" else [tuple(targets)]


EVERY_POD = Selection()
"""What pod-network-partition hits: its policy selects by label."""


def read_selection(tunables: Tunables) -> Selection:
    """TARGET_PODS, PODS_AFFECTED_PERC and SEQUENCE."""
    return Selection(
        names=tunables.names("TARGET_PODS"),
        percentage=tunables.percentages("PODS_AFFECTED_PERC", 0),
        sequence=tunables.choice("SEQUENCE", "parallel", ("parallel", "serial", "random")),
    )


def affected(percentage: int, pods: int) -> int:
    """How many of `pods` pods `percentage` is: rounded down, but at least one."""
    return max(1, min(percentage, 100) * pods // 100)


def check_appinfo(engine: ChaosEngine, names: Sequence[str], stack: StackState) -> None:
    """Raise ChaosError (TARGET_SELECTION_ERROR) unless the engine means the pods of this stack."""
    info = engine.appinfo
    namespace = info.namespace or engine.namespace  # Litmus looks for TARGET_PODS beside the engine
    if namespace != stack.namespace:
        raise selection_error(f"namespace {namespace!r}: the stack's pods are in {stack.namespace!r}")
    if info == AppInfo():
        if not names:
            raise selection_error("provide one of the appLabel or TARGET_PODS")
        return
    key, _, value = info.label.partition("=")
    if stack.labels.get(key) != value:
        raise selection_error(f"label {info.label!r}: the stack's pods have {_labels(stack)}")
    if info.kind != stack.kind:
        raise selection_error(f"kind {info.kind!r}: the owner of the stack's pods is a {stack.kind}")


def selection_error(reason: str) -> ChaosError:
    """The error Litmus gives where there is nothing to hit; for the caller to raise."""
    return ChaosError(f"no targets: {reason}", code="TARGET_SELECTION_ERROR")


def _named(name: str, pods: Sequence[Pod]) -> Pod:
    for pod in pods:
        if pod.name == name:
            return pod
    raise selection_error(f"TARGET_PODS: there is no pod {name!r}; there are {', '.join(pod.name for pod in pods)}")


def _labels(stack: StackState) -> str:
    return ",".join(f"{key}={value}" for key, value in stack.labels.items())
