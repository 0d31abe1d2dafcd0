"""How long the run waits for what. Each wait ends; none of them is counted in another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aftershock.chaos.engine import ChaosEngine, EngineExperiment

START_S = 120.0
"""A dead operator's lease alone takes 18 s to pass on, and the runner's image may have to be pulled."""
SETUP_S = 180.0
"""From the runner's start to the fault: an image to pull, then some 10 s of Litmus' own preparations."""
OPERATOR_STOP_S = 180.0
"""The operator itself waits this long for the pods of a stopped engine to be gone."""


@dataclass(frozen=True)
class Deadlines:
    """Seconds, all of them."""

    start_s: float
    """From the creation of the engine until its runner has begun."""
    run_s: float
    """From there until the engine is over."""
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
    grace_s = float(spec.get("terminationGracePeriodSeconds") or 30)
    return Deadlines(
        start_s=START_S,
        run_s=SETUP_S + sum(_experiment_s(experiment) for experiment in engine.experiments),
        stop_s=OPERATOR_STOP_S + grace_s,
    )


def _experiment_s(experiment: EngineExperiment) -> float:
    duration_s = _seconds(experiment.value("TOTAL_CHAOS_DURATION", "60"))
    interval_s = _seconds(experiment.value("CHAOS_INTERVAL", "0"))
    ramps_s = 2 * _seconds(experiment.value("RAMP_TIME", "0"))
    return duration_s + interval_s + ramps_s + 2 * experiment.status_check_timeout_s


def _seconds(text: str) -> float:
    """The larger end of a range such as `5-10`; what is no number counts nothing here (Litmus reads it as 0)."""
    try:
        return float(text.rpartition("-")[2])
    except ValueError:
        return 0.0
