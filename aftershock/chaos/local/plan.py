"""What the engine asks for, read and checked before anything is done: one plan for each of its experiments."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftershock.chaos.engine import ChaosEngine, EngineExperiment
from aftershock.chaos.local.faults import Fault, build_fault
from aftershock.chaos.local.state import StackState
from aftershock.chaos.local.targets import check_appinfo
from aftershock.chaos.local.tunables import Tunables
from aftershock.errors import EngineError


@dataclass(frozen=True)
class Plan:
    """One experiment. The fault is made for one use: it keeps what it starts."""

    experiment: EngineExperiment
    fault: Fault
    ramp_s: int
    health_check: bool
    """DEFAULT_HEALTH_CHECK: whether the service must be whole again afterwards. Before, it always must."""
    container: str

    def check(self, engine: ChaosEngine, stack: StackState, folder: Path) -> None:
        """Raise InputError or ChaosError for what this stack or this machine cannot give."""
        selection = self.fault.selection
        check_appinfo(engine, selection.names, stack)
        if self.container and self.container not in stack.labels.values():
            raise EngineError(
                f"experiment {self.experiment.name}: TARGET_CONTAINER={self.container!r}: the stack's pods have one "
                f"container, {' or '.join(stack.labels.values())}; leave it empty"
            )
        self.fault.check(selection.most(len(stack.pods)), folder)


def make_plans(engine: ChaosEngine) -> tuple[Plan, ...]:
    """A plan for each experiment. Raises EngineError for what the local backend cannot do at all."""
    spec = engine.document.get("spec", {})
    if engine.state == "stop":
        raise EngineError(f"engine {engine.name}: engineState is stop; Litmus does nothing with it: set it to active")
    if spec.get("selectors"):
        raise EngineError(f"engine {engine.name}: spec.selectors: the local backend reads appinfo; give that")
    for item in spec.get("experiments", []):
        _refuse_probes(item)
    return tuple(_plan(experiment) for experiment in engine.experiments)


def _refuse_probes(item: dict[str, Any]) -> None:
    """A probe that is not run would let its absence look like a Pass."""
    if (item.get("spec") or {}).get("probe"):
        raise EngineError(f"experiment {item.get('name')}: the local backend runs no probes; the SLO is judged anyway")


def _plan(experiment: EngineExperiment) -> Plan:
    tunables = Tunables(experiment)
    plan = Plan(
        experiment=experiment,
        fault=build_fault(experiment.name, tunables),
        ramp_s=tunables.seconds("RAMP_TIME", 0),
        health_check=tunables.boolean("DEFAULT_HEALTH_CHECK", default=False),
        container=tunables.text("TARGET_CONTAINER"),
    )
    tunables.refuse_the_rest()
    return plan
