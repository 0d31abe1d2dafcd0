"""The litmus backend: one engine from its creation to its deletion, told by what the API server shows of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from queue import Queue

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.litmus.abort import delete, stop_engine
from aftershock.chaos.litmus.archive import Archive
from aftershock.chaos.litmus.clock import Clock, SystemClock
from aftershock.chaos.litmus.cluster import Cluster, ClusterError, DeniedError, UnauthorizedError
from aftershock.chaos.litmus.conclusion import conclude, without_engine
from aftershock.chaos.litmus.creation import create_engine, start_engine
from aftershock.chaos.litmus.deadlines import deadlines_of
from aftershock.chaos.litmus.kinds import ENGINES, EVENTS, JOBS, PODS, RESULTS
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.machine import Decision, Machine
from aftershock.chaos.litmus.preflight import check
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.removal import remove_engines
from aftershock.chaos.litmus.rivals import check_alone, check_still_alone
from aftershock.chaos.litmus.sightings import Message, Object, Topic
from aftershock.chaos.litmus.watcher import View, Watcher
from aftershock.errors import ChaosError

POLL_S = 0.25
"""How soon a wish to stop is noticed."""

log = logging.getLogger(__name__)


class LitmusBackend:
    """Has the Litmus of a cluster act out the engine."""

    name = "litmus"

    def __init__(self, cluster: Cluster, *, archive: Path | None = None, clock: Clock | None = None) -> None:
        """`archive`: folder for logs and objects of the run."""
        self._cluster = cluster
        self._archive = archive
        self._clock = clock or SystemClock()

    def preflight(self, engine: ChaosEngine) -> None:
        """Refuse what Litmus would only fail at later, often without a word. Changes nothing in the cluster."""
        check(self._cluster, engine, self._clock)

    def run(self, engine: ChaosEngine, stop: threading.Event, on_event: Callable[[ChaosEvent], None]) -> ChaosOutcome:
        """Create the engine, follow it to its end, delete it, and say what came of it."""
        if stop.is_set():
            return without_engine("STOPPED_BY_US", "stopped before the engine was created", stopped=True)
        try:
            created = create_engine(self._cluster, engine, self._clock, stop)
        except ChaosError as error:
            return without_engine("ENGINE_NOT_CREATED", str(error), stopped=stop.is_set())
        try:
            with self._removed_on_failure(created):
                started = self._start(engine, created, stop)
        except ChaosError as error:
            return without_engine("NOT_STARTED", str(error), stopped=stop.is_set())
        uid = str(section(created, "metadata")["uid"])
        machine = Machine(Ledger(engine, uid, started), deadlines_of(engine), self._clock.monotonic())
        with self._removed_on_failure(created):  # a defect of ours must not leave a fault behind
            gaps = self._follow(machine, stop, on_event)
        kept = self._delete_results(machine.ledger)
        outcome = conclude(machine)
        evidence = (*outcome.evidence, *gaps, *kept)
        return replace(outcome, evidence=evidence, stop_verified_at=self._stop_verified_at(machine))

    def _start(self, engine: ChaosEngine, created: Object, stop: threading.Event) -> Object:
        """Start the engine unless other chaos is there, or it is to be stopped already. Raises ChaosError."""
        try:
            check_alone(self._cluster, engine, created, self._clock)
        except UnauthorizedError:
            raise
        except DeniedError as error:
            log.warning("other chaos is not looked for, for lack of rights: %s", error)
        started = start_engine(self._cluster, created, self._clock, stop)
        try:
            check_still_alone(self._cluster, engine, created, self._clock)
        except ClusterError as error:  # the run itself sees to an API server that does not answer
            log.warning("other chaos is not looked for again: %s", error)
        return started

    @contextmanager
    def _removed_on_failure(self, created: Object) -> Iterator[None]:
        """Stop and delete the engine if what is done within fails, whatever the reason."""
        try:
            yield
        except BaseException as error:
            (removal,) = remove_engines(self._cluster, [created], self._clock)
            if removal.gone or not isinstance(error, ChaosError):
                raise
            name = section(created, "metadata").get("name")
            raise ChaosError(
                f"{error}; and ChaosEngine {name} is still there: {removal.note}; run `aftershock cleanup`"
            ) from error

    def _delete_results(self, ledger: Ledger) -> tuple[str, ...]:
        """They would be in the way of a run of the same name; but nothing else says what is still injected."""
        if not ledger.deleted or ledger.live_pods or ledger.unreverted:
            return tuple(
                f"ChaosResult {name} is kept, as the fault may not be over; `aftershock cleanup` removes it"
                for name in ledger.results
            )
        for name, result in ledger.results.items():
            uid = str(section(result, "metadata").get("uid"))
            delete(self._cluster, RESULTS, ledger.engine.namespace, name, uid)
        return ()

    def _stop_verified_at(self, machine: Machine) -> datetime | None:
        """On the wall clock; the clean-up after it took its time too."""
        if machine.stop_verified_s is None:
            return None
        return self._clock.now() - timedelta(seconds=self._clock.monotonic() - machine.stop_verified_s)

    def _follow(
        self, machine: Machine, stop: threading.Event, on_event: Callable[[ChaosEvent], None]
    ) -> tuple[str, ...]:
        """Until the machine is done. Given back is what the archive lacks."""
        ledger, clock = machine.ledger, self._clock
        engine = ledger.engine
        archive = Archive(self._cluster, engine, self._archive)
        inbox: Queue[Message] = Queue()
        watchers = [Watcher(self._cluster, view, inbox, clock) for view in _views(engine, ledger.uid)]
        for watcher in watchers:
            watcher.start()
        try:
            while (decision := machine.decide(clock.monotonic())) is not Decision.RETURN:
                if decision is Decision.STOP:
                    stop_engine(self._cluster, engine.namespace, engine.name, ledger.uid)
                elif decision is Decision.DELETE:
                    delete(self._cluster, ENGINES, engine.namespace, engine.name, ledger.uid)
                message = clock.receive(inbox, POLL_S)
                if message is not None:
                    _tell(on_event, ledger.apply(message))
                    archive.notice(ledger)
                if stop.is_set():
                    machine.want_stop()
        finally:
            for watcher in watchers:
                watcher.close()
            archive.close(ledger)
        return archive.gaps


def _views(engine: ChaosEngine, uid: str) -> list[View]:
    own = {"labelSelector": f"chaosUID={uid}"}
    views = [
        View(Topic.ENGINE, ENGINES, engine.namespace, {"fieldSelector": f"metadata.name={engine.name}"}),
        View(Topic.RESULT, RESULTS, engine.namespace, own),
        View(Topic.JOB, JOBS, engine.namespace, own),
        View(Topic.POD, PODS, engine.namespace, own),
        View(Topic.EVENT, EVENTS, engine.namespace),  # of the engine, its results and its pods: no selector says "or"
    ]
    if engine.appinfo.label:
        target = {"labelSelector": engine.appinfo.label}
        views.append(View(Topic.TARGET, PODS, engine.appinfo.namespace or engine.namespace, target))
    return views


def _tell(on_event: Callable[[ChaosEvent], None], events: list[ChaosEvent]) -> None:
    for event in events:
        try:
            on_event(event)
        except Exception:
            log.warning("the listener failed on %s", event.reason, exc_info=True)
