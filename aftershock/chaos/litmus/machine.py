"""From the creation of an engine to its end: a state machine that decides what to do next. Pure; it acts on nothing.

    STARTING --runner begun--> RUNNING --engine over--> SETTLING --results final, or long enough--> CLEANING --> DONE
        |                         |                        ^
        +--a wish to stop, a deadline, or somebody else's stop--> STOPPING --stop verified--+

Each way out has a name (`Ending`). A verdict is taken from a ChaosResult and from nothing else: neither `completed`
nor an Event says whether a fault ran as it should.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from aftershock.chaos.litmus.deadlines import Deadlines, serial_s
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sight import Sight
from aftershock.chaos.litmus.sightings import Topic


class Stage(StrEnum):
    """Where the run is."""

    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    SETTLING = "settling"
    CLEANING = "cleaning"
    DONE = "done"


class Decision(StrEnum):
    """What is to be done now."""

    WAIT = "wait"
    STOP = "stop"
    """Patch `engineState: stop`."""
    DELETE = "delete"
    """Delete the engine."""
    RETURN = "return"


class Ending(StrEnum):
    """How it ended. The value is the errorCode of those that Litmus has no code for."""

    PASSED = "PASSED"
    PROBE_FAILED = "PROBE_FAILED"
    STOPPED_BY_US = "STOPPED_BY_US"
    STOPPED_BY_PROBE = "STOPPED_BY_PROBE"
    """A stopOnFailure probe of the engine."""
    STOPPED_BY_OTHERS = "STOPPED_BY_OTHERS"
    DELETED_BY_OTHERS = "DELETED_BY_OTHERS"
    FAILED_IN_LITMUS = "FAILED_IN_LITMUS"
    """Litmus' own Error, with its errorCode."""
    NO_RESULT = "NO_RESULT"
    """The engine is over, and at least one experiment has no final verdict."""
    NO_EXPERIMENTS = "NO_EXPERIMENTS"
    """The operator itself stopped the engine, before any experiment: its target is incomplete."""
    NOT_STARTED = "NOT_STARTED"
    OVERDUE = "OVERDUE"
    FAULT_RESTARTED = "FAULT_RESTARTED"
    """The verdict is there, but the fault was started more than once: the window is invalid."""
    API_LOST = "API_LOST"
    STOP_NOT_VERIFIED = "STOP_NOT_VERIFIED"


@dataclass
class Machine:
    """Asked again after each message, and after `patience` seconds without one."""

    ledger: Ledger
    deadlines: Deadlines
    since_s: float
    """When the present stage began, on the monotonic clock; at first: when the engine was created."""
    stage: Stage = Stage.STARTING
    ending: Ending | None = None
    cause: Ending | None = None
    """Why it is being stopped by us, if it is."""
    stop_seconds: float | None = None
    """From the wish to stop until the stop was verified."""
    stop_verified_s: float | None = None
    """When that was, on the monotonic clock."""
    left: list[str] = field(default_factory=list)
    """What was still there when the deadline of the clean-up had passed."""
    sight: Sight = field(default_factory=Sight)
    _wanted: bool = False
    _asked_s: float | None = None

    @property
    def run_limit_s(self) -> float:
        """How long the engine may run: longer where the pods that were seen are hit one after the other."""
        return self.deadlines.run_s + serial_s(self.ledger.engine, self.ledger.targets.most)

    @property
    def unseen(self) -> list[Topic]:
        """Views out of sight without which no stop can be verified."""
        return [topic for topic in (Topic.POD, Topic.RESULT) if topic in self.ledger.blind]

    def want_stop(self) -> None:
        """The caller wants it to stop; asking again changes nothing."""
        self._wanted = True

    def decide(self, now_s: float) -> Decision:
        """What to do at `now_s`, given all that the ledger holds."""
        self.sight.note(self.ledger.blind, now_s)
        while True:
            before = self.stage
            decision = self._step(now_s)
            if self.stage is before:
                return decision

    def _step(self, now_s: float) -> Decision:
        match self.stage:
            case Stage.STARTING | Stage.RUNNING:
                return self._under_way(now_s)
            case Stage.STOPPING:
                return self._stopping(now_s)
            case Stage.SETTLING:
                if self._settled(now_s):
                    self._end(self._ending(), now_s)
                return Decision.WAIT
            case Stage.CLEANING:
                return self._cleaning(now_s)
            case Stage.DONE:
                return Decision.RETURN

    def _under_way(self, now_s: float) -> Decision:
        ledger = self.ledger
        if ledger.over:
            # `stopped`, or gone, is verified only once its pods are gone too; `completed` has ended by itself.
            self._enter(Stage.SETTLING if ledger.status == "completed" else Stage.STOPPING, now_s)
        elif ledger.state == "stop" or ledger.being_deleted:
            self._enter(Stage.STOPPING, now_s)
        elif self._wanted:
            self._stop(Ending.STOPPED_BY_US, now_s)
        elif self.sight.lost_for(Topic.ENGINE, now_s) > self.deadlines.blind_s:
            self._stop(Ending.API_LOST, now_s)
        elif self.stage is Stage.STARTING and ledger.begun:
            self._enter(Stage.RUNNING, now_s)
        elif self.stage is Stage.STARTING and self._longer_than(self.deadlines.start_s, now_s):
            if Topic.ENGINE not in ledger.blind:
                self._stop(Ending.NOT_STARTED, now_s)
        elif self.stage is Stage.RUNNING and self._longer_than(self.run_limit_s, now_s):
            self._stop(Ending.OVERDUE, now_s)
        return Decision.WAIT

    def _stopping(self, now_s: float) -> Decision:
        ledger = self.ledger
        over = ledger.over or (self.cause is not None and ledger.inert)
        if over and not ledger.live_pods and not ledger.unreverted and not self.unseen:
            self.stop_seconds, self.stop_verified_s = now_s - self.since_s, now_s
            self._enter(Stage.SETTLING, now_s)
        elif self._longer_than(self.deadlines.stop_s, now_s):
            self._end(self.cause if self.cause is Ending.API_LOST else Ending.STOP_NOT_VERIFIED, now_s)
        elif not (ledger.over or ledger.state == "stop" or ledger.being_deleted):
            if self.cause:
                return self._ask(Decision.STOP, now_s)
            self._enter(Stage.RUNNING if ledger.begun else Stage.STARTING, now_s)  # whoever stopped it took that back
        return Decision.WAIT

    def _settled(self, now_s: float) -> bool:
        """Each verdict is there, or none is to be expected any more.

        The runner writes the engine after the result; so where results can be seen, those that are missing do not come.
        """
        if self.ledger.all_final or not self.ledger.begun:
            return True
        looked_s = min(now_s - self.since_s, self.sight.seen_for(Topic.RESULT, now_s))
        limits = self.deadlines
        return looked_s >= limits.settle_s or self._longer_than(limits.settle_s + limits.blind_s, now_s)

    def _cleaning(self, now_s: float) -> Decision:
        ledger = self.ledger
        if self.ending is Ending.NO_RESULT and ledger.all_final:
            self.ending = self._late_ending()
        if ledger.restarts.signs and self.ending in (Ending.PASSED, Ending.PROBE_FAILED):
            self.ending = Ending.FAULT_RESTARTED  # until it is gone, somebody may have set it to active again
        if ledger.deleted and not ledger.live_pods:
            self._enter(Stage.DONE, now_s)
        elif self._longer_than(self.deadlines.clean_s, now_s):
            engine = [] if ledger.deleted else [f"ChaosEngine {ledger.engine.name}"]
            self.left = engine + [f"pod {pod}" for pod in ledger.live_pods]
            self._enter(Stage.DONE, now_s)
        elif not ledger.being_deleted:
            return self._ask(Decision.DELETE, now_s)
        return Decision.WAIT

    def _ending(self) -> Ending:
        """From the results; where they are missing, from why it is over."""
        statuses = [self.ledger.final(experiment) for experiment in self.ledger.engine.experiments]
        verdicts = {str(status.get("verdict")) if status else "" for status in statuses}
        if self.cause not in (None, Ending.STOPPED_BY_US):
            return self.cause
        if "Error" in verdicts or not verdicts <= {"", "Pass", "Fail", "Stopped"}:
            return Ending.FAILED_IN_LITMUS
        if "Stopped" in verdicts or (self.ledger.status != "completed" and verdicts != {"Pass"}):
            return self._stopped_by()
        if "" in verdicts:
            return Ending.NO_RESULT
        return Ending.PROBE_FAILED if "Fail" in verdicts else Ending.PASSED

    def _late_ending(self) -> Ending:
        """Of results that came late, except for a stop: that may be what our own deletion has made of them."""
        late = self._ending()
        return late if late in (Ending.PASSED, Ending.PROBE_FAILED, Ending.FAILED_IN_LITMUS) else Ending.NO_RESULT

    def _stopped_by(self) -> Ending:
        if self.cause:
            return self.cause
        if failed_probes(self.ledger):
            return Ending.STOPPED_BY_PROBE
        if self.ledger.being_deleted:
            return Ending.DELETED_BY_OTHERS
        return Ending.STOPPED_BY_OTHERS if self.ledger.begun else Ending.NO_EXPERIMENTS

    def _stop(self, cause: Ending, now_s: float) -> None:
        self.cause = cause
        self._enter(Stage.STOPPING, now_s)

    def _end(self, ending: Ending, now_s: float) -> None:
        self.ending = ending
        self._enter(Stage.CLEANING, now_s)

    def _enter(self, stage: Stage, now_s: float) -> None:
        self.stage, self.since_s, self._asked_s = stage, now_s, None

    def _ask(self, decision: Decision, now_s: float) -> Decision:
        """Once, and again where nothing has come of it for a while."""
        if self._asked_s is not None and now_s - self._asked_s < self.deadlines.retry_s:
            return Decision.WAIT
        self._asked_s = now_s
        return decision

    def _longer_than(self, limit_s: float, now_s: float) -> bool:
        return now_s - self.since_s >= limit_s


def failed_probes(ledger: Ledger) -> list[str]:
    """Each failed probe with what it says."""
    found = []
    for result in ledger.results.values():
        for probe in section(result, "status").get("probeStatuses") or []:
            status = section(probe, "status")
            if status.get("verdict") == "Failed":
                found.append(f"probe {probe.get('name')}: {status.get('description') or 'failed'}")
    return found
