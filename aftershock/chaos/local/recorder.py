"""What a run of an engine leaves behind: events, and one ChaosResult of Litmus' shape for each experiment.

The results are written to a file whenever they change, so that a crash leaves what was known until then.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.engine import ChaosEngine, EngineExperiment
from aftershock.errors import RunDirectoryError
from aftershock.files import write_json
from aftershock.windows import utc_now

TargetStatus = Literal["targeted", "injected", "reverted"]

LocalVerdict = Literal["Pass", "Stopped", "Error"]
"""Without probes, nothing here can Fail."""

_PHASES = {"Pass": "Completed", "Stopped": "Stopped", "Error": "Error"}
_WORST_FIRST = ("Error", "Stopped", "Pass")

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Ending:
    """How an experiment ended, and why if not well."""

    verdict: LocalVerdict
    code: str | None = None
    reason: str | None = None


class Recorder:
    """Of the whole engine. Nothing here raises: whatever the disk or a listener does, the fault must be reverted."""

    def __init__(self, engine: ChaosEngine, uid: str, path: Path, on_event: Callable[[ChaosEvent], None]) -> None:
        self.engine = engine
        self.uid = uid
        self._path = path
        self._on_event = on_event
        self._events: list[ChaosEvent] = []
        self._records: list[Record] = []

    def event(self, reason: str, message: str, kind: Literal["Normal", "Warning"] = "Normal") -> None:
        """Record that something happened, and tell the listener."""
        event = ChaosEvent(utc_now(), reason, message, kind)
        self._events.append(event)
        try:
            self._on_event(event)
        except Exception:
            log.warning("the listener failed on %s", reason, exc_info=True)

    def begin(self, experiment: EngineExperiment) -> Record:
        """The record of the next experiment."""
        record = Record(self, experiment)
        self._records.append(record)
        self.save()
        return record

    def save(self) -> None:
        """Write the results as they are now."""
        try:
            write_json(self._path, self._result())
        except RunDirectoryError as error:
            log.warning("the ChaosResult is not up to date: %s", error)

    def outcome(self, backend: str) -> ChaosOutcome:
        """Of all experiments: the worst verdict, from the first injection to the last revert."""
        endings = [record.ending for record in self._records if record.ending]
        worst = min(endings, key=lambda ending: _WORST_FIRST.index(ending.verdict))
        injected = [record.injected_at for record in self._records if record.injected_at]
        reverted = [record.reverted_at for record in self._records if record.reverted_at]
        return ChaosOutcome(
            verdict=worst.verdict,
            phase=_PHASES[worst.verdict],
            error_code=worst.code,
            reason=worst.reason,
            injected_at=min(injected, default=None),
            reverted_at=max(reverted) if injected and len(reverted) == len(injected) else None,
            effects=sum(record.effects for record in self._records),
            evidence=tuple(sentence for record in self._records for sentence in record.evidence),
            result=self._result(),
            events=tuple(self._events),
            backend=backend,
        )

    def _result(self) -> dict[str, Any]:
        results = [record.result() for record in self._records]
        if len(self.engine.experiments) == 1 and results:
            return results[0]
        return {"apiVersion": "v1", "kind": "List", "items": results}


@dataclass
class Record:
    """Of one experiment, as it goes on."""

    recorder: Recorder
    experiment: EngineExperiment
    injected_at: datetime | None = None
    reverted_at: datetime | None = None
    effects: int = 0
    evidence: list[str] = field(default_factory=list)
    ending: Ending | None = None
    targets: dict[str, TargetStatus] = field(default_factory=dict)

    def event(self, reason: str, message: str, kind: Literal["Normal", "Warning"] = "Normal") -> None:
        """Record that something happened."""
        self.recorder.event(reason, message, kind)

    def mark(self, pod: str, status: TargetStatus) -> None:
        """Set what was last done to a target."""
        self.targets[pod] = status
        self.recorder.save()

    def injected(self, at: datetime) -> None:
        """The fault acts; the first call counts, and until the next `reverted` no end of it is known."""
        self.injected_at = self.injected_at or at
        self.reverted_at = None

    def reverted(self, at: datetime) -> None:
        """The fault was seen to have ended; the last call counts."""
        self.reverted_at = at

    def effect(self, count: int, sentence: str) -> None:
        """The fault was seen to act `count` times."""
        self.effects += count
        self.evidence.append(sentence)

    def finish(self, ending: Ending) -> Ending:
        """The last word on this experiment; given back."""
        self.ending = ending
        name, why = self.experiment.name, f": {ending.reason}" if ending.reason else ""
        match ending.verdict:
            case "Pass":
                self.event("Summary", f"{name} experiment has been Passed")
            case "Stopped":
                self.event("Summary", f"{name} experiment has been aborted{why}", "Warning")
            case "Error":
                self.event("Summary", f"{name} experiment has failed with an error{why}", "Warning")
        self.recorder.save()
        return ending

    def result(self) -> dict[str, Any]:
        """The ChaosResult."""
        engine, verdict = self.recorder.engine, self.ending.verdict if self.ending else None
        return {
            "apiVersion": "litmuschaos.io/v1alpha1",
            "kind": "ChaosResult",
            "metadata": {
                "name": engine.result_name(self.experiment),
                "namespace": engine.namespace,
                "labels": {**engine.labels, "chaosUID": self.recorder.uid},
            },
            "spec": {"engine": engine.name, "experiment": self.experiment.name},
            "status": {
                "experimentStatus": self._experiment_status(),
                "history": {
                    "passedRuns": int(verdict == "Pass"),
                    "failedRuns": 0,
                    "stoppedRuns": int(verdict == "Stopped"),
                    "targets": [
                        {"name": name, "kind": "pod", "chaosStatus": status} for name, status in self.targets.items()
                    ],
                },
            },
        }

    def _experiment_status(self) -> dict[str, Any]:
        if self.ending is None:
            return {"phase": "Running", "verdict": "Awaited", "probeSuccessPercentage": "Awaited"}
        status: dict[str, Any] = {
            "phase": _PHASES[self.ending.verdict],
            "verdict": self.ending.verdict,
            "probeSuccessPercentage": "100" if self.ending.verdict == "Pass" else "0",
        }
        if self.ending.code:
            status["errorOutput"] = {"errorCode": self.ending.code, "reason": self.ending.reason}
        return status
