"""How long the run waits for what. Each wait ends; none of them is counted in another."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aftershock.chaos.engine import ChaosEngine, EngineExperiment
from aftershock.chaos.litmus.read import seconds, section

START_S = 120.0
"""A dead operator's lease alone takes 18 s to pass on, and the runner's image may have to be pulled."""
SETUP_S = 180.0
"""From the runner's start to the fault: an image to pull, then some 10 s of Litmus' own preparations."""
OPERATOR_STOP_S = 180.0
"""The operator itself waits this long for the pods of a stopped engine to be gone."""
MANY = 10
"""Targets, where they cannot be counted from here (nodes by label): too high a guess only costs patience."""


@dataclass(frozen=True)
class Deadlines:
    """Seconds, all of them."""

    start_s: float
    """From the creation of the engine until its runner has begun."""
    run_s: float
    """From there until the engine is over, if all targets are hit at the same time."""
    stop_s: float
    """From the wish to stop until the stop is verified."""
    settle_s: float = 15.0
    """From the end of the engine until its results are final: the runner writes the engine after the result."""
    clean_s: float = 90.0
    """From the deletion of the engine until it and its pods are gone."""
    blind_s: float = 120.0
    """Without a sight of the engine; a restart of an API server takes 10 s."""
    retry_s: float = 3.0
    """Between two tries of the same request."""


def deadlines_of(engine: ChaosEngine) -> Deadlines:
    """What is fair to this engine: Litmus overruns the set duration by its status checks, and by one round of them."""
    spec: Mapping[str, Any] = engine.document.get("spec") or {}
    grace_s = seconds(str(spec.get("terminationGracePeriodSeconds") or 30))
    return Deadlines(
        start_s=START_S,
        run_s=SETUP_S + sum(_experiment_s(experiment) for experiment in engine.experiments),
        stop_s=OPERATOR_STOP_S + grace_s,
    )


def serial_s(engine: ChaosEngine, pods: int) -> float:
    """What a run may take beyond `run_s` where targets are hit one by one; `pods`: those under the target's label."""
    return sum(_serial_s(engine, experiment, pods) for experiment in engine.experiments)


def _experiment_s(experiment: EngineExperiment) -> float:
    duration_s = seconds(experiment.value("TOTAL_CHAOS_DURATION", "60"))
    interval_s = seconds(experiment.value("CHAOS_INTERVAL", "0"))
    ramps_s = 2 * seconds(experiment.value("RAMP_TIME", "0"))
    return duration_s + interval_s + ramps_s + 2 * experiment.status_check_timeout_s


def _serial_s(engine: ChaosEngine, experiment: EngineExperiment, pods: int) -> float:
    """Helpers are waited for one by one, each for the whole duration; pod-delete kills one pod in each interval."""
    if experiment.value("SEQUENCE", "parallel") == "parallel":  # `random` may come out as serial
        return 0.0
    if experiment.name.startswith("pod-delete"):
        each_s = seconds(experiment.value("CHAOS_INTERVAL", "10"))
    else:
        each_s = seconds(experiment.value("TOTAL_CHAOS_DURATION", "60"))
    between_s = seconds(experiment.value("INTER_POD_KILL_INTERVAL_SECONDS", "0")) + experiment.status_check_timeout_s
    return (_targets(engine, experiment, pods) - 1) * (each_s + between_s)


def _targets(engine: ChaosEngine, experiment: EngineExperiment, pods: int) -> int:
    """How many are hit, at most."""
    selected = section(engine.document, "spec", "selectors").get("pods") or []
    names = experiment.value("TARGET_PODS") or experiment.value("TARGET_NODES")
    names = names or ",".join(str(each.get("names")) for each in selected if isinstance(each, Mapping))
    if names:
        return len(names.split(","))
    percent = seconds(experiment.value("PODS_AFFECTED_PERC") or experiment.value("NODES_AFFECTED_PERC", "0"))
    return max(1, math.ceil((pods or MANY) * min(percent, 100.0) / 100.0))
