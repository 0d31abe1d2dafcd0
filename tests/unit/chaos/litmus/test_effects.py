"""What a fault is said to have done, where it does not announce itself, or where nobody could look."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.litmus.conclusion import conclude
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.machine import Machine
from aftershock.chaos.litmus.sightings import Blackout, Listing, Sighting, Topic

from .story import LIMITS, UID, Story, engine, instant


def history(kind: str, name: str, status: str) -> dict[str, Any]:
    return {"targets": [{"kind": kind, "name": name, "chaosStatus": status}]}


def begin(story: Story) -> None:
    story.at(1)
    story.running()


def end(story: Story, seconds: float = 60, **more: Any) -> ChaosOutcome:
    story.at(seconds)
    story.end(**more)
    return conclude(story.machine)


def injections(story: Story) -> list[ChaosEvent]:
    return [event for event in story.heard if event.reason == "ChaosInject"]


@pytest.mark.parametrize(("fault", "kind"), [("pod-network-partition", "pod"), ("pod-autoscaler", "deployment")])
def test_a_fault_that_sends_no_chaosinject_is_presumed_to_begin_after_its_check(fault: str, kind: str) -> None:
    story = Story(fault)
    begin(story)
    story.at(8)
    story.event("PreChaosCheck")
    presumed = injections(story)
    assert [event.at for event in presumed] == [instant(8)]
    assert "presumed" in presumed[0].message
    story.at(70)
    story.event("PostChaosCheck")
    outcome = end(story, 75, history=history(kind, "x", "reverted"))
    assert (outcome.verdict, outcome.effects) == ("Pass", 1)
    assert (outcome.injected_at, outcome.reverted_at) == (instant(8), instant(70))
    assert any("presumed" in sentence for sentence in outcome.evidence)


def test_a_presumption_waits_for_the_ramp() -> None:
    story = Story("pod-network-partition", RAMP_TIME="20")
    begin(story)
    story.at(8)
    story.event("PreChaosCheck")
    story.at(27)
    story.running()  # the runner's heartbeat
    assert injections(story) == []
    story.at(33)
    story.running()
    assert [event.at for event in injections(story)] == [instant(28)]


def test_a_stop_during_the_ramp_leaves_nothing_to_presume() -> None:
    story = Story("pod-network-partition", RAMP_TIME="20")
    begin(story)
    story.at(8)
    story.event("PreChaosCheck")
    story.at(20)
    story.engine("initialized", "stop", experiments=[{"name": story.fault}])
    story.at(40)
    story.engine("stopped", "stop")
    assert injections(story) == []


def test_a_check_that_failed_presumes_nothing() -> None:
    story = Story("pod-network-partition")
    begin(story)
    about = {"uid": UID, "kind": "ChaosEngine"}
    check = {"metadata": {"name": "c", "uid": "c"}, "involvedObject": about, "reason": "PreChaosCheck"}
    story.see(Topic.EVENT, {**check, "message": "AUT: Not Running", "type": "Warning"})
    assert injections(story) == []


def test_a_presumption_that_nothing_confirms_is_no_effect() -> None:
    """PreChaosCheck is sent before the targets are looked for."""
    story = Story("pod-network-partition")
    begin(story)
    story.event("PreChaosCheck")
    outcome = end(story, phase="Error", verdict="Error")
    assert (outcome.effects, outcome.injected_at) == (0, None)


def test_other_faults_are_not_presumed_to_begin() -> None:
    story = Story("pod-delete")
    begin(story)
    story.event("PreChaosCheck")
    assert injections(story) == []


def test_of_several_experiments_the_one_that_sent_the_check_is_presumed_to_begin() -> None:
    partition, kill = engine("pod-network-partition"), engine("pod-delete")
    both = replace(partition, experiments=(*partition.experiments, *kill.experiments))
    ledger = Ledger(both, UID)
    about = {"uid": UID, "kind": "ChaosEngine"}

    def check(experiment: str) -> list[ChaosEvent]:
        name = f"PreChaosCheck{experiment}{UID}"
        item = {"metadata": {"name": name, "uid": name}, "involvedObject": about, "type": "Normal", "message": "m"}
        return ledger.apply(Sighting(Topic.EVENT, "ADDED", {**item, "reason": "PreChaosCheck"}, instant(8)))

    assert [event.reason for event in check("pod-delete")] == ["PreChaosCheck"]
    assert [event.reason for event in check("pod-network-partition")] == ["PreChaosCheck", "ChaosInject"]


def test_what_litmus_says_of_targets_counts_without_a_chaosinject() -> None:
    story = Story()
    begin(story)
    story.machine.ledger.apply(Blackout(Topic.EVENT, "403"))
    story.at(13)
    story.result("Running", "Awaited", {"pod/x": "injected"})
    outcome = end(story, history=history("pod", "x", "reverted"))
    assert (outcome.effects, outcome.injected_at) == (1, instant(13))


def test_events_that_were_out_of_sight_prove_no_absence() -> None:
    story = Story()
    begin(story)
    story.machine.ledger.apply(Blackout(Topic.EVENT, "403"))
    story.at(20)
    outcome = end(story)
    assert outcome.effects == 0
    assert any("not known" in sentence for sentence in outcome.evidence)
    assert not any("never began" in sentence for sentence in outcome.evidence)


@pytest.mark.parametrize("fault", ["node-cpu-hog", "node-memory-hog", "node-io-stress", "kubelet-service-kill"])
def test_a_targeted_node_is_hit_where_litmus_has_no_other_word(fault: str) -> None:
    story = Story(fault)
    begin(story)
    story.at(10)
    story.event("ChaosInject")
    story.at(50)
    story.event("PostChaosCheck")
    outcome = end(story, history=history("node", "worker-0", "targeted"))
    assert outcome.effects == 1
    assert (outcome.injected_at, outcome.reverted_at) == (instant(10), instant(50))
    assert any("node/worker-0 as targeted" in sentence for sentence in outcome.evidence)


def test_a_targeted_workload_is_not_hit_for_that() -> None:
    """pod-delete says so before it kills."""
    story = Story("pod-delete")
    begin(story)
    story.event("ChaosInject")
    assert end(story, history=history("deployment", "inference", "targeted")).effects == 0


def test_rounds_that_were_missed_are_dated_by_the_cluster() -> None:
    story = Story("pod-delete")
    begin(story)
    story.target("a", "ADDED")
    story.target("b", "ADDED")
    story.at(10.5)
    story.target("a", deletionTimestamp="2026-12-01T00:00:10Z")
    told = {
        "metadata": {"name": "ChaosInject", "uid": "ci"},
        "involvedObject": {"uid": UID},
        "reason": "ChaosInject",
        "type": "Normal",
        "message": "m",
        "count": 2,
        "firstTimestamp": "2026-12-01T00:00:10Z",
        "lastTimestamp": "2026-12-01T00:00:25Z",
    }
    heard = story.machine.ledger.apply(Listing(Topic.EVENT, (told,), instant(26)))
    assert [event.at for event in heard] == [instant(10), instant(25)]
    assert story.machine.ledger.apply(Listing(Topic.EVENT, (told,), instant(27))) == []
    story.at(26)
    story.target("b", deletionTimestamp="2026-12-01T00:00:25Z")
    outcome = end(story)
    assert (outcome.effects, outcome.injected_at) == (2, instant(10.5))


def test_kills_that_nobody_could_see_are_those_that_litmus_reports() -> None:
    story = Story("pod-delete")
    begin(story)
    story.machine.ledger.apply(Blackout(Topic.TARGET, "403"))
    story.at(10)
    story.event("ChaosInject")
    story.at(25)
    story.event("ChaosInject", count=2)
    outcome = end(story)
    assert (outcome.effects, outcome.injected_at, outcome.reverted_at) == (2, instant(10), instant(25))
    assert any("out of sight" in sentence and "2 rounds" in sentence for sentence in outcome.evidence)


def test_kills_that_anybody_could_see_are_not_taken_on_trust() -> None:
    story = Story("pod-delete")
    begin(story)
    story.machine.ledger.apply(Blackout(Topic.TARGET, "reset"))
    story.at(2)
    story.machine.ledger.apply(Listing(Topic.TARGET, (), instant(3)))
    story.at(3)
    story.at(10)
    story.event("ChaosInject")
    assert end(story).effects == 0


def test_a_gap_is_told_even_if_it_is_over() -> None:
    story = Story()
    begin(story)
    story.machine.ledger.apply(Blackout(Topic.TARGET, "503"))
    story.at(10)
    story.machine.ledger.apply(Listing(Topic.TARGET, (), instant(40)))
    story.at(40)
    assert "target pods were out of sight for 30 s" in end(story).evidence


@pytest.mark.parametrize(("gone", "effects"), [({}, 0), ({"deletionTimestamp": "2026-12-01T00:00:12Z"}, 1)])
def test_a_pod_that_only_left_the_label_was_not_killed(gone: dict[str, str], effects: int) -> None:
    story = Story("pod-delete")
    begin(story)
    story.target("a", "ADDED")
    story.at(10)
    story.event("ChaosInject")
    story.at(12)
    story.target("a", "DELETED", **gone)
    assert end(story).effects == effects


def test_a_pod_that_vanished_in_a_gap_was_killed() -> None:
    story = Story("pod-delete")
    begin(story)
    story.target("a", "ADDED")
    story.at(10)
    story.event("ChaosInject")
    story.machine.ledger.apply(Listing(Topic.TARGET, (), instant(12)))
    assert end(story).effects == 1


def test_an_engine_without_a_story_has_no_effects() -> None:
    """The ledger of an engine that was deleted before anything was seen."""
    machine = Machine(Ledger(engine(), UID, {"metadata": {"uid": UID}}), LIMITS, 0.0)
    machine.ledger.apply(Listing(Topic.ENGINE, (), instant(0)))
    machine.decide(1)
    assert conclude(machine).effects == 0
