"""All that was seen of one engine: messages in, facts out. Pure; it decides nothing.

Litmus rewrites its objects, restarts its Jobs and forgets; so what matters later is written down when it is seen: the
first injection, each kill, the Jobs there ever were. Facts are read from here by the machine and the conclusion.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aftershock.chaos.backend import ChaosEvent
from aftershock.chaos.engine import ChaosEngine, EngineExperiment
from aftershock.chaos.litmus.faults import FROM_MEMORY
from aftershock.chaos.litmus.presumption import Presumption
from aftershock.chaos.litmus.read import digest, experiment_of, first_stamp, last_words, section, stamp
from aftershock.chaos.litmus.related import Related
from aftershock.chaos.litmus.restarts import Restarts
from aftershock.chaos.litmus.sightings import Blackout, Contact, Listing, Message, Object, Sighting, Topic
from aftershock.chaos.litmus.targets import Targets

FINAL_VERDICTS = ("Pass", "Fail", "Stopped", "Error")
OVER = ("completed", "stopped")


@dataclass
class Ledger:
    """Facts about one engine, identified by its uid."""

    engine: ChaosEngine
    uid: str
    latest: Object | None = None
    """The engine as last seen; at first as the API server accepted it."""
    begun: bool = False
    """Its runner works, or once did: before this, nothing can have been injected."""
    deleted: bool = False
    """The engine is gone, whoever deleted it."""
    results: dict[str, Object] = field(default_factory=dict)
    """By name; only those of this engine."""
    jobs: dict[str, Object] = field(default_factory=dict)
    """By name, in the order in which they appeared; also those that are gone."""
    pods: dict[str, Object] = field(default_factory=dict)
    """Runner, experiment and helper pods that are there, by name."""
    events: list[ChaosEvent] = field(default_factory=list)
    """The engine's own Events, each occurrence, and those that are presumed."""
    presumption: Presumption = field(default_factory=Presumption)
    targets: Targets = field(default_factory=Targets)
    restarts: Restarts = field(default_factory=Restarts)
    blind: dict[Topic, str] = field(default_factory=dict)
    """Views without sight, and why."""
    marks: dict[tuple[str, str, str], datetime] = field(default_factory=dict)
    """(result, target, status) -> when that status of a target was first seen."""
    settled_at: dict[str, datetime] = field(default_factory=dict)
    """Result -> when its verdict was first seen to be final."""
    _related: Related = field(default_factory=Related)
    _counts: dict[str, int] = field(default_factory=dict)
    """Event -> occurrences that are written down."""
    _halted_at: datetime | None = None
    """When it was first seen to be stopped, or about to be; None if it is not."""

    def __post_init__(self) -> None:
        self._related.own(self.uid)

    def apply(self, message: Message) -> list[ChaosEvent]:
        """Write it down; given back are the engine's Events in it that are new."""
        before = len(self.events)
        match message:
            case Blackout(topic, reason):
                self.blind[topic] = reason
            case Contact(topic):
                self.blind.pop(topic, None)
            case Listing(topic, objects, at):
                self.blind.pop(topic, None)
                self._missing(topic, {digest(found) for found in objects}, at)
                for found in objects:
                    self._see(topic, found, at, live=False)
                self._presume(at)
            case Sighting(topic, change, seen, at, live):
                self._see(topic, seen, at, live=live)
                if change == "DELETED" and topic is Topic.TARGET:
                    self.targets.leave(digest(seen))
                elif change == "DELETED":
                    self._lose(topic, digest(seen), at)
                self._presume(at)
        return self.events[before:]

    # What the engine says.

    @property
    def state(self) -> str:
        """What is asked of it: active or stop."""
        return str(section(self.latest, "spec").get("engineState") or "active")

    @property
    def status(self) -> str:
        """initialized, completed, stopped, or nothing yet."""
        return str(section(self.latest, "status").get("engineStatus") or "")

    @property
    def over(self) -> bool:
        """Its operator will do no more for it."""
        return self.deleted or self.status in OVER

    @property
    def inert(self) -> bool:
        """Stopped before any operator had touched it: it would stay without a status for ever, and nothing starts."""
        return self.state == "stop" and not self.status

    @property
    def being_deleted(self) -> bool:
        """Somebody has asked for its deletion."""
        return self.deleted or bool(section(self.latest, "metadata").get("deletionTimestamp"))

    @property
    def live_pods(self) -> list[str]:
        """Names of its pods that may still do something."""
        ended = ("Succeeded", "Failed")
        return sorted(name for name, pod in self.pods.items() if section(pod, "status").get("phase") not in ended)

    @property
    def unreverted(self) -> list[str]:
        """Targets that Litmus itself calls injected to the last, while their helpers would say what they revert."""
        return self._injected(from_memory=False)

    @property
    def doubtful(self) -> list[str]:
        """Targets that Litmus calls injected to the last, of faults that may have reverted them after that word."""
        return self._injected(from_memory=True)

    def _injected(self, *, from_memory: bool) -> list[str]:
        return sorted(
            target
            for name, result in self.results.items()
            for target, status in last_words(result).items()
            if status == "injected" and self.fault_of(name).startswith(FROM_MEMORY) is from_memory
        )

    @property
    def related(self) -> list[Object]:
        """Kubernetes Events about the engine, its Jobs, its pods and its results."""
        return self._related.events

    @property
    def warning(self) -> str:
        """The latest Warning of Kubernetes about its Jobs and pods; empty if there is none."""
        return self._related.warning()

    # What came of it.

    def fault_of(self, result: str) -> str:
        """The experiment whose ChaosResult has this name; empty if none has."""
        return next((each.name for each in self.engine.experiments if self.engine.result_name(each) == result), "")

    def result(self, experiment: EngineExperiment) -> Object | None:
        """The ChaosResult of the experiment's latest Job; None if it is another's, a stale one, or not there."""
        result = self.results.get(self.engine.result_name(experiment))
        jobs = [name for name in self.jobs if experiment_of(name) == experiment.name]
        if result is None or (jobs and _label(result, "job-name") not in ("", jobs[-1])):
            return None
        return result

    def final(self, experiment: EngineExperiment) -> Mapping[str, Any] | None:
        """The experimentStatus with which it ended; None as long as there is none."""
        status = section(self.result(experiment), "status", "experimentStatus")
        return status if status.get("verdict") in FINAL_VERDICTS or status.get("phase") == "Error" else None

    @property
    def all_final(self) -> bool:
        """Each experiment has its verdict."""
        return all(self.final(experiment) for experiment in self.engine.experiments)

    def first(self, reason: str) -> ChaosEvent | None:
        """The earliest of the engine's Events with this reason."""
        return min((e for e in self.events if e.reason == reason), key=lambda event: event.at, default=None)

    def last(self, reason: str) -> ChaosEvent | None:
        """The latest of them."""
        return max((e for e in self.events if e.reason == reason), key=lambda event: event.at, default=None)

    # Writing down.

    def _see(self, topic: Topic, seen: Object, at: datetime, *, live: bool) -> None:
        name = str(section(seen, "metadata").get("name"))
        match topic:
            case Topic.ENGINE if section(seen, "metadata").get("uid") == self.uid:
                self.restarts.engine(self.latest, seen)
                self.latest = seen
                self.begun = self.begun or bool(section(seen, "status").get("experiments"))
                halted = self.state == "stop" or self.being_deleted or self.over
                self._halted_at = (self._halted_at or at) if halted else None
            case Topic.RESULT if _label(seen, "chaosUID") == self.uid:
                self.results[name] = seen
                self._related.own(digest(seen), name)
                self._mark(name, seen, at)
            case Topic.JOB if _label(seen, "chaosUID") == self.uid:
                self.jobs[name] = seen
                self._related.own(digest(seen), name)
                self.begun = True
                self.restarts.job(seen)
            case Topic.POD if _label(seen, "chaosUID") == self.uid:
                self.pods[name] = seen
                self._related.own(digest(seen), name)
                self.restarts.pod(seen)
            case Topic.TARGET:
                self.targets.see(seen, at, live=live)
            case Topic.EVENT:
                self._event(seen, at, live=live)

    def _mark(self, name: str, result: Object, at: datetime) -> None:
        for target, status in section(result, "metadata", "annotations").items():
            if status in ("injected", "reverted"):
                self.marks.setdefault((name, target, status), at)
        if section(result, "status", "experimentStatus").get("verdict") in FINAL_VERDICTS:
            self.settled_at.setdefault(name, at)
        else:
            self.settled_at.pop(name, None)  # it runs again

    def _event(self, event: Object, at: datetime, *, live: bool) -> None:
        self._related.hear(event, at)
        uid, count = digest(event), int(event.get("count") or 1)
        if section(event, "involvedObject").get("uid") != self.uid or count <= self._counts.get(uid, 0):
            return
        warning, first = event.get("type") == "Warning", uid not in self._counts
        if warning and not first:
            return  # the operator repeats its troubles as often as it tries again
        self._counts[uid] = count
        reason, message = str(event.get("reason")), str(event.get("message"))
        began = first_stamp(event)
        if first and count > 1 and not warning and began:  # the earlier rounds were missed; the first is still dated
            self.events.append(ChaosEvent(began, reason, message))
        when = at if live else stamp(event) or at
        self.events.append(ChaosEvent(when, reason, message, "Warning" if warning else "Normal"))
        experiment = self._sender(event)
        if reason == "PreChaosCheck" and experiment and not warning:
            self.presumption.checked(experiment, when)

    def _sender(self, event: Object) -> EngineExperiment | None:
        """The experiment that sent it, whose name is in the name of the Event."""
        experiments, name = self.engine.experiments, str(section(event, "metadata").get("name"))
        if len(experiments) == 1:
            return experiments[0]
        return next((e for e in experiments if name == f"{event.get('reason')}{e.name}{self.uid}"), None)

    def _presume(self, at: datetime) -> None:
        self.events += self.presumption.come_due(at, self._halted_at)

    def _missing(self, topic: Topic, present: set[str], at: datetime) -> None:
        """A list does not hold what was there before: it went away unseen."""
        known: Mapping[Topic, list[str]] = {
            Topic.ENGINE: [self.uid] if self.latest is not None else [],
            Topic.POD: [digest(pod) for pod in self.pods.values()],
            Topic.TARGET: list(self.targets.present),
        }
        for uid in known.get(topic, []):
            if uid not in present:
                self._lose(topic, uid, at)

    def _lose(self, topic: Topic, uid: str, at: datetime) -> None:
        match topic:
            case Topic.ENGINE if uid == self.uid:
                self.deleted = True
            case Topic.POD:
                self.pods = {name: pod for name, pod in self.pods.items() if digest(pod) != uid}
            case Topic.TARGET:
                self.targets.lose(uid, at)


def _label(found: Object, name: str) -> str:
    return str(section(found, "metadata", "labels").get(name) or "")
