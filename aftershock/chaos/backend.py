"""The seam between a run and whoever injects its fault: what a backend is given, and what it must give back.

A backend reads the rendered ChaosEngine, never the experiment's parameters: what it does is what the artifact says.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, Protocol

from aftershock.chaos.engine import ChaosEngine
from aftershock.errors import InputError
from aftershock.experiment import Experiment

Verdict = Literal["Pass", "Fail", "Stopped", "Error"]


@dataclass(frozen=True)
class ChaosEvent:
    """Something that happened to the engine, under the reason that Litmus gives it."""

    at: datetime
    reason: str
    """ChaosEngineInitialized, PreChaosCheck, ChaosInject, ChaosRevert, PostChaosCheck, Summary and their like."""
    message: str
    type: Literal["Normal", "Warning"] = "Normal"

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; the instant as RFC 3339."""
        return {"at": self.at.isoformat(), "reason": self.reason, "message": self.message, "type": self.type}


@dataclass(frozen=True)
class EarlyStop:
    """How the run itself ended a fault before its time."""

    by: str
    """Who: `slo-watch`."""
    reason: str
    """One of StopReason."""
    message: str
    objective: str | None
    value: float | None
    bound: float | None
    unit: str
    breached_at: datetime
    """When it began: the first reading in breach, or since when there was none."""
    asked_at: datetime
    """When the backend was told."""
    verified_at: datetime | None
    """When the fault was seen to be over; None if it was not."""

    @property
    def seconds_to_stop(self) -> float | None:
        """From the beginning of the breach to the verified stop."""
        return None if self.verified_at is None else (self.verified_at - self.breached_at).total_seconds()

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready; instants as RFC 3339."""
        return {
            "by": self.by,
            "reason": self.reason,
            "message": self.message,
            "objective": self.objective,
            "value": self.value,
            "bound": self.bound,
            "unit": self.unit,
            "breached_at": self.breached_at.isoformat(),
            "asked_at": self.asked_at.isoformat(),
            "verified_at": self.verified_at.isoformat() if self.verified_at else None,
            "seconds_to_stop": self.seconds_to_stop,
        }


@dataclass(frozen=True)
class ChaosOutcome:
    """What came of a ChaosEngine: the whole truth for the report, and for the judge whether the fault acted at all."""

    verdict: Verdict
    phase: str
    """Litmus' word for it: Completed, Completed_With_Probe_Failure, Stopped or Error."""
    error_code: str | None
    """Litmus' errorCode; only with the verdict Error."""
    reason: str | None
    """Why it is an Error, or who stopped it; None for a Pass."""
    injected_at: datetime | None
    """The first true effect; None if there was none."""
    reverted_at: datetime | None
    """When the end of the fault was seen (kills: the last kill); None if it was not seen."""
    effects: int
    """How often the fault was seen to act (kills, requests touched, busy seconds...). A Pass with 0: no effect."""
    evidence: tuple[str, ...]
    """One sentence for each thing that was seen."""
    result: dict[str, Any]
    """The ChaosResult; for an engine of several experiments a List of them."""
    events: tuple[ChaosEvent, ...]
    backend: str
    stop_verified_at: datetime | None = None
    """When a fault that was stopped was seen to be over, where the backend knows better than by its own return."""
    stop: EarlyStop | None = None
    """None unless the run itself ended the fault; a backend does not know."""

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready, as in `chaos_result.json`."""
        return {
            "verdict": self.verdict,
            "phase": self.phase,
            "error_code": self.error_code,
            "reason": self.reason,
            "injected_at": self.injected_at.isoformat() if self.injected_at else None,
            "reverted_at": self.reverted_at.isoformat() if self.reverted_at else None,
            "effects": self.effects,
            "evidence": list(self.evidence),
            "result": self.result,
            "events": [event.to_dict() for event in self.events],
            "backend": self.backend,
            "stop_verified_at": self.stop_verified_at.isoformat() if self.stop_verified_at else None,
            "stop": self.stop.to_dict() if self.stop else None,
        }


class ChaosBackend(Protocol):
    """Injects the fault of a ChaosEngine. Blocking: the caller runs it in a thread of its own."""

    @property
    def name(self) -> str:
        """Its name in the registry."""

    def preflight(self, engine: ChaosEngine) -> None:
        """Refuse, before anything has started, what could not be done later. Raises InputError or ChaosError."""

    def run(self, engine: ChaosEngine, stop: threading.Event, on_event: Callable[[ChaosEvent], None]) -> ChaosOutcome:
        """Inject, hold and revert; end early once `stop` is set. Has always reverted when it returns or raises.

        A fault that fails is an outcome (verdict Error), not an exception.
        """


def create_backend(experiment: Experiment, archive: Path | None = None) -> ChaosBackend:
    """The backend that the experiment names; it names none but those known. Raises InputError if that cannot work.

    `archive` is a folder for what a backend keeps beside its outcome (logs of pods, objects as they were last seen).
    """
    return BACKENDS[experiment.backend](experiment, archive)


def _local(experiment: Experiment, archive: Path | None) -> ChaosBackend:
    # Imported when chosen: a run against a cluster must not pay for the local backend, nor the other way round.
    from aftershock.chaos.local.backend import LocalBackend

    if experiment.stack == "none":
        raise InputError("stack=none: the local backend acts on the embedded stack; start it with `aftershock run`")
    return LocalBackend(Path(experiment.stack), experiment.seed)


def _litmus(experiment: Experiment, archive: Path | None) -> ChaosBackend:
    from aftershock.chaos.litmus.backend import LitmusBackend
    from aftershock.chaos.litmus.cluster import Cluster

    context = "" if experiment.kube_context == "auto" else experiment.kube_context
    return LitmusBackend(Cluster.connect(context), archive=archive)


BACKENDS: dict[str, Callable[[Experiment, Path | None], ChaosBackend]] = {"local": _local, "litmus": _litmus}
"""Name -> factory. A new backend is a file and a line here."""
