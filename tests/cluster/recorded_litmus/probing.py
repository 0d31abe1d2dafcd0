"""The probes of one experiment over its life: before, during and after the chaos."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.cluster.recorded_litmus.api import Api
from tests.cluster.recorded_litmus.probes import Probe, ProbeError, evaluate, panics
from tests.cluster.recorded_litmus.timing import LOOKUP_S, pause

log = logging.getLogger(__name__)


class ProbesStoppedError(Exception):
    """A probe with stopOnFailure failed where nobody has to be told: the experiment itself ends."""


@dataclass
class Record:
    """A probe, and what has become of it."""

    probe: Probe
    verdict: str = "Awaited"
    description: str = ""
    failure: ProbeError | None = None
    """Of a probe in the background, at once; its verdict follows after the chaos."""
    stopped: bool = False
    """It has stopped the experiment."""

    def document(self) -> dict[str, Any]:
        """One of `status.probeStatuses`."""
        status = {"verdict": self.verdict, **({"description": self.description} if self.description else {})}
        return {"name": self.probe.name, "type": self.probe.type, "mode": self.probe.mode, "status": status}


class Probing:
    """Runs probes; `stop_engine` is called from a thread, once, when one with stopOnFailure fails."""

    def __init__(self, probes: Iterable[Probe], api: Api, stop_engine: Callable[[], None]) -> None:
        self.records = [Record(probe) for probe in probes]
        self._api, self._stop_engine = api, stop_engine
        self._closed = threading.Event()

    def before(self) -> None:
        """Raises ProbeError (broken) or ProbesStoppedError."""
        for record in self.records:
            if record.probe.mode in ("SOT", "Edge"):
                self._decide(record, _attempt(record.probe, self._api), is_first=record.probe.mode == "Edge")
            elif record.probe.mode == "Continuous":
                self._start(record, float("inf"))

    def during(self, duration_s: float) -> None:
        """Start what is to run as long as the chaos."""
        for record in self.records:
            if record.probe.mode == "OnChaos":
                self._start(record, on_chaos_s(record.probe, duration_s))

    def after(self) -> None:
        """Raises ProbeError (broken) or ProbesStoppedError."""
        self._closed.set()
        for record in self.records:
            if record.probe.mode in ("Continuous", "OnChaos") and not record.stopped:
                self._mark(record, record.failure)
        for record in self.records:
            if record.probe.mode in ("EOT", "Edge"):
                self._decide(record, _attempt(record.probe, self._api))

    def give_up(self) -> None:
        """What was not evaluated never will be."""
        self._closed.set()
        for record in self.records:
            if record.verdict == "Awaited":
                record.verdict, record.description = "N/A", "Either probe is not executed or not evaluated"

    def _start(self, record: Record, for_s: float) -> None:
        if panics(record.probe):
            os._exit(2)
        threading.Thread(target=self._watch, args=(record, time.monotonic() + for_s), daemon=True).start()

    def _watch(self, record: Record, until: float) -> None:
        """Again and again, until the first failure."""
        probe = record.probe
        time.sleep(probe.delay_s)
        while not self._closed.is_set() and time.monotonic() < until:
            record.failure = _evaluate(probe, self._api)
            if record.failure:
                log.info("probe %s: %s", probe.name, record.failure)
                if probe.stop_on_failure:
                    pause(2 * LOOKUP_S)
                    record.stopped = True
                    self._mark(record, record.failure)
                    self._stop_engine()
                return
            self._closed.wait(probe.polling_s)

    def _decide(self, record: Record, failure: ProbeError | None, *, is_first: bool = False) -> None:
        if failure is None and is_first:
            return  # Edge: passed only when it has passed again at the end
        if record.verdict != "Failed":
            self._mark(record, failure)
        if failure and record.probe.stop_on_failure:
            record.stopped = True
            raise ProbesStoppedError(record.probe.name)
        if failure and failure.is_broken:
            raise failure

    def _mark(self, record: Record, failure: ProbeError | None) -> None:
        record.verdict = "Failed" if failure else "Passed"
        record.description = failure.reason if failure else ""


def on_chaos_s(probe: Probe, duration_s: float) -> float:
    """How long an OnChaos probe runs. A promProbe with an initial delay: not at all, which is a bug of the real one."""
    if probe.type == "promProbe" and probe.delay_s:
        return 0.0
    return duration_s


def _attempt(probe: Probe, api: Api) -> ProbeError | None:
    if panics(probe):
        os._exit(2)
    time.sleep(probe.delay_s)
    return _evaluate(probe, api)


def _evaluate(probe: Probe, api: Api) -> ProbeError | None:
    """One evaluation with its attempts; None is success."""
    failure = None
    for attempt in range(probe.attempts):
        if attempt:
            time.sleep(probe.interval_s)
        began = time.monotonic()
        try:
            evaluate(probe, api)
        except ProbeError as error:
            failure = error
            continue
        if not probe.timeout_s or time.monotonic() - began <= probe.timeout_s:
            return None
        failure = probe.failed("probe failed due to timeout")
    return failure


def percentage(records: Iterable[Record]) -> str:
    """probeSuccessPercentage of an experiment that came to its end, or was stopped on its way."""
    verdicts = [record.verdict for record in records]
    return str(100 * verdicts.count("Passed") // len(verdicts)) if verdicts else "100"


def verdict(records: Iterable[Record], *, aborted: bool) -> tuple[str, str]:
    """Phase and verdict, as the real one sees them: a failed probe that stops nothing wins over the user's abort."""
    failed = [record for record in records if record.verdict == "Failed"]
    if failed and not any(record.stopped for record in failed):
        return "Completed_With_Probe_Failure", "Fail"
    return ("Stopped", "Stopped") if aborted else ("Completed", "Pass")


def documents(records: Iterable[Record]) -> Mapping[str, Any]:
    """`probeStatuses`, absent without probes."""
    statuses = [record.document() for record in records]
    return {"probeStatuses": statuses} if statuses else {}
