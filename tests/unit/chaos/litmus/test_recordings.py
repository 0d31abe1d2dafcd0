"""25 runs of real Litmus, replayed to the backend: it must conclude what the recordings' README says of each."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.engine import AppInfo, ChaosEngine, EngineExperiment, parse_engine
from aftershock.chaos.litmus.backend import LitmusBackend
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.errors import EngineError

from .fake_api_server import NAMESPACE, FakeApiServer
from .replay import RECORDINGS, Replay


@dataclass(frozen=True)
class Case:
    """A recording, how it is replayed, and what must come of it."""

    recording: str
    verdict: str
    phase: str
    code: str | None = None
    injected: float | None = None
    """Seconds after the creation."""
    reverted: float | None = None
    effects: int = 0
    says: str = ""
    """Part of the reason or of the evidence."""
    refused: str = ""
    """Part of the message with which the engine is refused before anything happens."""
    user_stops: bool = False
    foreign: frozenset[str] = frozenset()
    blackout: tuple[float, float] | None = None
    label: str = ""

    def __str__(self) -> str:
        return self.label or self.recording


PASS, FAIL = ("Pass", "Completed"), ("Fail", "Completed_With_Probe_Failure")
STOPPED, ERROR = ("Stopped", "Stopped"), ("Error", "Error")

CASES = [
    Case("pass", *PASS, injected=10.57, reverted=25.90, effects=2),
    Case("fail-probe", *FAIL, injected=14.31, reverted=14.36, effects=2, says="probe http-up: "),
    Case(
        "stop-on-failure", *STOPPED, injected=14.41, reverted=14.46, effects=2, says="stopped by the engine's own probe"
    ),
    Case("abort-by-patch", *STOPPED, injected=10.20, reverted=10.20, effects=1, user_stops=True, says="on request"),
    Case("abort-then-delete", *STOPPED, injected=10.91, reverted=10.91, effects=1, user_stops=True, says="on request"),
    Case(
        "abort-delete-race",
        *STOPPED,
        injected=10.21,
        reverted=10.21,
        effects=1,
        user_stops=True,
        foreign=frozenset({"delete"}),
        says="on request",
    ),
    Case(
        "delete-engine-mid-run",
        *STOPPED,
        injected=10.68,
        reverted=10.68,
        effects=1,
        foreign=frozenset({"delete"}),
        says="somebody else deleted the ChaosEngine",
    ),
    Case("delete-after-completed", *PASS, injected=10.5, reverted=10.5, effects=1),
    Case("no-target", *ERROR, "TARGET_SELECTION_ERROR", says="the fault never began"),
    Case("unknown-experiment", *ERROR, "NOT_STARTED", says="Unable to get chaos resources"),
    Case("missing-service-account", *ERROR, "NOT_STARTED", says="Unable to get chaos resources"),
    Case("sa-without-rights", *ERROR, "NO_RESULT", says="completed, but pod-delete left no final ChaosResult"),
    Case("bad-probe-duration", *ERROR, "NO_RESULT", says="completed, but pod-delete left no final ChaosResult"),
    Case("incomplete-appinfo", *ERROR, "NO_EXPERIMENTS", says="target is incomplete", refused="appkind"),
    Case("long-name", *ERROR, "NOT_STARTED", says="Unable to get chaos resources", refused="63"),
    Case("created-stopped", *PASS, injected=20.35, reverted=20.35, effects=1, foreign=frozenset({"patch"})),
    Case("comma-labels", *PASS, injected=11.48, reverted=11.54, effects=2, refused="OR"),
    Case("post-probe", *ERROR, "NO_RESULT", says="in a second pod", foreign=frozenset({"patch"})),
    Case(
        "experiment-pod-lost",
        *ERROR,
        "FAULT_RESTARTED",
        injected=10.46,
        reverted=51.95,
        effects=3,
        says="Litmus says Pass",
    ),
    Case(
        "rerun-same-name",
        *PASS,
        injected=10.54,
        reverted=10.54,
        effects=1,
        foreign=frozenset({"patch"}),
        label="rerun-same-name: deleted in time",
    ),
    Case(
        "rerun-same-name",
        *ERROR,
        "FAULT_RESTARTED",
        injected=10.54,
        reverted=60.95,
        effects=2,
        foreign=frozenset({"patch"}),
        blackout=(35.0, 50.0),
        says="second Job",
    ),
    Case("two-experiments", *ERROR, "NO_RESULT", injected=10.41, reverted=53.58, effects=2, refused="listed twice"),
    Case("two-experiments-distinct", *PASS, injected=10.79, reverted=50.19, effects=2),
    Case(
        "slow-target", *ERROR, "STATUS_CHECKS_ERROR", injected=10.25, reverted=10.25, effects=1, says="not in running"
    ),
    Case("operator-down", *PASS, injected=44.1, reverted=44.1, effects=1),
    Case("apiserver-restart", *PASS, injected=10.30, reverted=30.49, effects=2),
]


def engine_of(body: dict[str, Any]) -> tuple[ChaosEngine, str]:
    """The recorded engine, and the message with which it is refused; what is refused is built by hand."""
    metadata = {"namespace": NAMESPACE, **body["metadata"]}
    document = {**body, "metadata": metadata}
    try:
        return parse_engine(json.dumps(document), "recording"), ""
    except EngineError as error:
        refusal = str(error)
    info = body["spec"]["appinfo"]
    experiments = tuple(
        EngineExperiment(each["name"], {env["name"]: env["value"] for env in each["spec"]["components"]["env"]})
        for each in body["spec"]["experiments"]
    )
    label = info["applabel"].partition(",")[0]
    appinfo = AppInfo(info["appns"], label, info.get("appkind", ""))
    engine = ChaosEngine(
        metadata["name"], NAMESPACE, None, "active", appinfo, experiments, metadata["labels"], document
    )
    return engine, refusal


def test_every_recording_is_replayed() -> None:
    files = {path.name.partition(".")[0] for path in RECORDINGS.glob("*.jsonl.gz")}
    assert len(files) == 25
    assert {case.recording for case in CASES} == files


@pytest.mark.parametrize("case", CASES, ids=str)
def test_conclusion(case: Case, replay: Callable[[str], Replay], cluster: Cluster) -> None:
    played = replay(case.recording)
    played.user_stops, played.foreign, played.blackout = case.user_stops, case.foreign, case.blackout
    engine, refusal = engine_of(played.body)
    assert (case.refused in refusal) if case.refused else refusal == ""
    heard: list[ChaosEvent] = []

    outcome = LitmusBackend(cluster, clock=played.clock).run(engine, played.stop, heard.append)

    assert (outcome.verdict, outcome.phase, outcome.error_code) == (case.verdict, case.phase, case.code), outcome
    assert case.says in " ".join([outcome.reason or "", *outcome.evidence])
    assert outcome.effects == case.effects
    assert_at(outcome.injected_at, case.injected, played.clock.start)
    assert_at(outcome.reverted_at, case.reverted, played.clock.start)
    assert tuple(heard) == outcome.events
    assert_clean(played.server, outcome)


def assert_at(found: datetime | None, expected: float | None, start: datetime) -> None:
    assert (found is None) == (expected is None), found
    if found is not None and expected is not None:
        assert (found - start).total_seconds() == pytest.approx(expected, abs=0.3)


def assert_clean(server: FakeApiServer, outcome: ChaosOutcome) -> None:
    """Nothing of the engine is left: neither itself, nor a result, nor a pod that could begin the fault again."""
    assert not server.objects.get("chaosengines")
    assert not server.objects.get("chaosresults")
    uids = {item["metadata"].get("labels", {}).get("chaosUID") for item in server.objects["pods"].values()}
    assert uids <= {None}
    assert not any("left behind" in sentence for sentence in outcome.evidence), outcome.evidence
    assert replace(outcome, events=()).to_dict()["backend"] == "litmus"


def test_a_restart_of_the_api_server_makes_views_list_again(
    replay: Callable[[str], Replay], cluster: Cluster, server: FakeApiServer
) -> None:
    played = replay("apiserver-restart")
    engine, _ = engine_of(played.body)
    assert LitmusBackend(cluster, clock=played.clock).run(engine, played.stop, lambda _: None).verdict == "Pass"
    looks_for_others = 2  # before the start, and after it
    assert server.lists.count("chaosengines") - looks_for_others == server.lists.count("chaosresults") == 2
