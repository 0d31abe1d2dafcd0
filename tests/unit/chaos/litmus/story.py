"""Tells a machine, without a cluster, what the API server would show of an engine, and at which second."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from aftershock.chaos.backend import ChaosEvent
from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.litmus.deadlines import Deadlines
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.machine import Decision, Machine, Stage
from aftershock.chaos.litmus.sightings import Sighting, Topic

UID = "7d0e"
LIMITS = Deadlines(start_s=100, run_s=200, stop_s=50, settle_s=10, clean_s=30, blind_s=60, retry_s=3)
START = datetime(2026, 12, 1, tzinfo=UTC)


def engine(fault: str = "pod-network-latency", **env: str) -> ChaosEngine:
    variables = [{"name": name, "value": value} for name, value in env.items()]
    document = {
        "apiVersion": "litmuschaos.io/v1alpha1",
        "kind": "ChaosEngine",
        "metadata": {"name": "e", "namespace": "n"},
        "spec": {
            "appinfo": {"appns": "n", "applabel": "app=x", "appkind": "deployment"},
            "terminationGracePeriodSeconds": 60,
            "experiments": [{"name": fault, "spec": {"components": {"env": variables}}}],
        },
    }
    return parse_engine(json.dumps(document), "test")


def instant(seconds: float) -> datetime:
    """Of a second of the story."""
    return START + timedelta(seconds=seconds)


class Story:
    """Of one engine with one experiment."""

    def __init__(self, fault: str = "pod-network-latency", **env: str) -> None:
        self.fault = fault
        self.machine = Machine(Ledger(engine(fault, **env), UID), LIMITS, 0.0)
        self.now = 0.0
        self.heard: list[ChaosEvent] = []
        """What a listener of the backend would have been told."""

    def at(self, seconds: float) -> Decision:
        self.now = seconds
        return self.machine.decide(seconds)

    def see(self, topic: Topic, item: dict[str, Any], change: Any = "MODIFIED") -> Decision:
        self.heard += self.machine.ledger.apply(Sighting(topic, change, item, instant(self.now)))
        return self.at(self.now)

    def engine(self, status: str, state: str = "active", change: str = "MODIFIED", **more: Any) -> Decision:
        status_ = {"engineStatus": status, **more} if status else {}
        item = {"metadata": {"name": "e", "uid": UID}, "spec": {"engineState": state}, "status": status_}
        return self.see(Topic.ENGINE, item, change)

    def running(self) -> None:
        self.engine("initialized", experiments=[{"name": self.fault, "experimentPod": "p"}])

    def pod(self, name: str, phase: str = "Running", change: str = "MODIFIED") -> Decision:
        labels = {"chaosUID": UID}
        item = {"metadata": {"name": name, "uid": name, "labels": labels}, "status": {"phase": phase}}
        return self.see(Topic.POD, item, change)

    def result(self, phase: str, verdict: str, annotations: dict[str, str] | None = None, **status: Any) -> Decision:
        metadata = {"name": f"e-{self.fault}", "uid": "r", "labels": {"chaosUID": UID}, "annotations": annotations}
        outcome = {"phase": phase, "verdict": verdict}
        return self.see(Topic.RESULT, {"metadata": metadata, "status": {"experimentStatus": outcome, **status}})

    def event(self, reason: str, count: int = 1) -> Decision:
        stamp = (START + timedelta(seconds=int(self.now))).isoformat()
        about = {"uid": UID, "kind": "ChaosEngine"}
        metadata = {"name": reason, "uid": reason}
        item = {"metadata": metadata, "involvedObject": about, "reason": reason, "message": reason, "type": "Normal"}
        return self.see(Topic.EVENT, {**item, "count": count, "lastTimestamp": stamp})

    def target(self, name: str, change: str = "MODIFIED", **metadata: Any) -> Decision:
        """A pod under the target's label."""
        return self.see(Topic.TARGET, {"metadata": {"name": name, "uid": name, **metadata}}, change)

    def end(self, phase: str = "Completed", verdict: str = "Pass", **more: Any) -> None:
        """The result, the engine's completion and its deletion, all at once."""
        self.result(phase, verdict, **more)
        self.engine("completed", "stop")
        self.clean()

    def clean(self) -> None:
        """The deletion works at once."""
        assert self.machine.stage is Stage.CLEANING
        self.engine("completed", "stop", "DELETED")
        assert self.machine.stage is Stage.DONE
