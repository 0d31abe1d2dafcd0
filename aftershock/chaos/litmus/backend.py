"""The litmus backend: one engine from its creation to its deletion, told by what the API server shows of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Queue

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.litmus.abort import delete, stop_engine
from aftershock.chaos.litmus.archive import Archive
from aftershock.chaos.litmus.clock import Clock, SystemClock
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.litmus.conclusion import conclude, without_engine
from aftershock.chaos.litmus.creation import create_engine
from aftershock.chaos.litmus.deadlines import deadlines_of
from aftershock.chaos.litmus.kinds import ENGINES, EVENTS, JOBS, PODS, RESULTS
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.machine import Decision, Machine, Stage
from aftershock.chaos.litmus.preflight import check
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sightings import Message, Topic
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
        check(self._cluster, engine)

    def run(self, engine: ChaosEngine, stop: threading.Event, on_event: Callable[[ChaosEvent], None]) -> ChaosOutcome:
        """Create the engine, follow it to its end, delete it, and say what came of it."""
        if stop.is_set():
            return without_engine("STOPPED_BY_US", "stopped before the engine was created", stopped=True)
        try:
            created = create_engine(self._cluster, engine)
        except ChaosError as error:
            return without_engine("ENGINE_NOT_CREATED", str(error))
        uid = str(section(created, "metadata")["uid"])
        machine = Machine(Ledger(engine, uid, created), deadlines_of(engine), self._clock.monotonic())
        try:
            self._follow(machine, stop, on_event)
        finally:
            if machine.stage is not Stage.DONE:  # a defect of ours must not leave a fault behind
                stop_engine(self._cluster, engine.namespace, engine.name, uid)
                delete(self._cluster, ENGINES, engine.namespace, engine.name, uid)
        for name, result in machine.ledger.results.items():  # it would be in the way of a run of the same name
            delete(self._cluster, RESULTS, engine.namespace, name, str(section(result, "metadata").get("uid")))
        return conclude(machine)

    def _follow(self, machine: Machine, stop: threading.Event, on_event: Callable[[ChaosEvent], None]) -> None:
        ledger, clock = machine.ledger, self._clock
        engine = ledger.engine
        archive = Archive(self._cluster, engine.namespace, self._archive, clock)
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
