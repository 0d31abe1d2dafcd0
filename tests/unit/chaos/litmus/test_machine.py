"""The state machine by itself: deadlines, stops that must be verified, and what no recording shows."""

from __future__ import annotations

from datetime import timedelta

import pytest

from aftershock.chaos.litmus.conclusion import conclude
from aftershock.chaos.litmus.deadlines import deadlines_of
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.machine import Decision, Ending, Machine, Stage
from aftershock.chaos.litmus.sightings import Blackout, Contact, Listing, Sighting, Topic

from .story import LIMITS, START, UID, Story, engine


def test_deadlines_follow_the_engine() -> None:
    limits = deadlines_of(engine(TOTAL_CHAOS_DURATION="30", RAMP_TIME="5", CHAOS_INTERVAL="5-10"))
    assert limits.start_s >= 60
    assert limits.run_s == 180 + 30 + 10 + 2 * 5 + 2 * 180
    assert limits.stop_s == 180 + 60


def test_the_start_deadline_is_not_counted_in_the_run_deadline() -> None:
    story = Story()
    story.at(99)
    story.running()
    assert story.machine.stage is Stage.RUNNING
    assert story.at(99 + 199) is Decision.WAIT
    assert story.at(99 + 200) is Decision.STOP
    story.engine("stopped", "stop")
    story.at(99 + 211)
    assert story.machine.ending is Ending.OVERDUE
    story.clean()
    outcome = conclude(story.machine)
    assert (outcome.verdict, outcome.error_code) == ("Error", "TIMEOUT")


def test_a_stop_is_asked_for_again_until_it_is_seen() -> None:
    story = Story()
    story.running()
    story.machine.want_stop()
    assert story.at(10) is Decision.STOP
    assert story.at(11) is Decision.WAIT
    assert story.at(13) is Decision.STOP
    assert story.engine("initialized", "stop", experiments=[]) is Decision.WAIT
    assert story.at(20) is Decision.WAIT


def test_a_stop_is_verified_only_when_pods_are_gone_and_targets_reverted() -> None:
    story = Story()
    story.running()
    story.pod("helper")
    story.result("Running", "Awaited", {"pod/x": "injected"})
    story.machine.want_stop()
    story.at(10)
    story.result("Stopped", "Stopped", {"pod/x": "injected"})
    story.engine("stopped", "stop")
    assert story.machine.stage is Stage.STOPPING
    story.pod("helper", change="DELETED")
    assert story.machine.stage is Stage.STOPPING
    story.at(14)
    assert story.result("Stopped", "Stopped", {"pod/x": "reverted"}) is Decision.DELETE
    story.clean()
    outcome = conclude(story.machine)
    assert outcome.verdict == "Stopped"
    assert "the stop was verified after 4.0 s" in outcome.evidence


def test_a_stop_that_cannot_be_verified_is_an_error_that_says_so() -> None:
    story = Story()
    story.running()
    story.pod("helper")
    story.result("Running", "Awaited", {"pod/x": "injected"})
    story.machine.want_stop()
    story.at(10)
    story.engine("initialized", "stop", experiments=[])
    assert story.at(61) is Decision.DELETE
    story.at(100)
    outcome = conclude(story.machine)
    assert (outcome.verdict, outcome.error_code) == ("Error", "STOP_NOT_VERIFIED")
    assert outcome.reason is not None
    for what in ("engine is initialized", "pod helper is there", "pod/x is still injected", "aftershock cleanup"):
        assert what in outcome.reason
    assert any("left behind: ChaosEngine e, pod helper" in sentence for sentence in outcome.evidence)


def test_blindness_stops_the_run_and_a_short_one_does_not() -> None:
    story = Story()
    story.running()
    story.machine.ledger.apply(Blackout(Topic.ENGINE, "connection refused"))
    story.at(10)
    story.machine.ledger.apply(Contact(Topic.ENGINE))
    story.at(69)
    story.machine.ledger.apply(Blackout(Topic.ENGINE, "connection refused"))
    assert story.at(70) is Decision.WAIT
    assert story.at(130) is Decision.WAIT
    assert story.at(131) is Decision.STOP
    story.at(200)
    story.at(240)
    outcome = conclude(story.machine)
    assert (outcome.verdict, outcome.error_code) == ("Error", "API_LOST")
    assert "connection refused" in str(outcome.reason)


def test_blindness_is_not_a_late_start() -> None:
    story = Story()
    story.machine.ledger.apply(Blackout(Topic.ENGINE, "down"))
    story.at(80)
    story.at(101)
    assert story.machine.stage is Stage.STARTING


def test_no_operator_is_named() -> None:
    story = Story()
    assert story.engine("") is Decision.WAIT
    assert story.at(100) is Decision.STOP
    assert story.engine("", "stop") is Decision.DELETE  # nothing can come of it: no need to wait for `stopped`
    assert story.engine("", "stop", "DELETED") is Decision.RETURN
    outcome = conclude(story.machine)
    assert outcome.error_code == "NOT_STARTED"
    assert "no chaos-operator" in str(outcome.reason)


@pytest.mark.parametrize(
    ("phase", "verdict", "expected"),
    [
        ("Completed", "Pass", ("Pass", None)),
        ("Completed_With_Probe_Failure", "Fail", ("Fail", None)),
        ("Stopped", "Stopped", ("Stopped", None)),
        ("Error", "Error", ("Error", "GENERIC_ERROR")),
        ("Error", "Splendid", ("Error", "GENERIC_ERROR")),
        ("Completed_With_Error", "Splendid", ("Error", "NO_RESULT")),
        ("Running", "Awaited", ("Error", "NO_RESULT")),
    ],
)
def test_every_verdict_has_a_meaning_and_the_unknown_is_an_error(
    phase: str, verdict: str, expected: tuple[str, str | None]
) -> None:
    story = Story()
    story.running()
    story.result(phase, verdict)
    story.engine("completed", "stop")
    story.at(story.now + LIMITS.settle_s)
    story.clean()
    outcome = conclude(story.machine)
    assert (outcome.verdict, outcome.error_code) == expected


def test_a_result_that_comes_after_completed_still_counts() -> None:
    story = Story()
    story.running()
    story.engine("completed", "stop")
    story.at(9)
    assert story.result("Completed", "Pass") is Decision.DELETE
    assert story.machine.ending is Ending.PASSED


def test_an_abort_with_a_failed_probe_is_an_abort() -> None:
    story = Story()
    story.running()
    story.machine.want_stop()
    story.at(5)
    story.result("Completed_With_Probe_Failure", "Fail")
    story.engine("stopped", "stop")
    assert story.machine.ending is Ending.STOPPED_BY_US


def test_a_stop_that_comes_too_late_leaves_the_verdict() -> None:
    story = Story()
    story.running()
    story.result("Completed", "Pass")
    story.machine.want_stop()
    story.engine("completed", "stop")
    assert story.machine.ending is Ending.PASSED


def test_the_result_of_another_engine_is_none() -> None:
    story = Story()
    story.running()
    stale = {"metadata": {"name": "e-pod-network-latency", "labels": {"chaosUID": "of-an-older-one"}}}
    story.see(Topic.RESULT, {**stale, "status": {"experimentStatus": {"phase": "Completed", "verdict": "Pass"}}})
    story.engine("completed", "stop")
    story.at(LIMITS.settle_s)
    assert story.machine.ending is Ending.NO_RESULT


def test_the_result_of_an_earlier_job_is_none() -> None:
    """After a rerun, the old Pass stands for some 10 s, under the right chaosUID."""
    story = Story()
    story.running()
    for job in ("pod-network-latency-aaaaaa", "pod-network-latency-bbbbbb"):
        story.see(Topic.JOB, {"metadata": {"name": job, "uid": job, "labels": {"chaosUID": UID}}})
    labels = {"chaosUID": UID, "job-name": "pod-network-latency-aaaaaa"}
    stale = {"metadata": {"name": "e-pod-network-latency", "labels": labels}}
    story.see(Topic.RESULT, {**stale, "status": {"experimentStatus": {"phase": "Completed", "verdict": "Pass"}}})
    story.engine("completed", "stop")
    story.at(LIMITS.settle_s)
    assert story.machine.ending is Ending.NO_RESULT


def test_an_engine_that_is_set_to_active_again_before_it_is_deleted_has_no_valid_window() -> None:
    story = Story()
    story.running()
    story.result("Completed", "Pass")
    assert story.engine("completed", "stop") is Decision.DELETE
    story.engine("initialized", "active")
    story.engine("initialized", "active", "DELETED")
    outcome = conclude(story.machine)
    assert (outcome.verdict, outcome.error_code) == ("Error", "FAULT_RESTARTED")


def test_an_engine_that_was_deleted_before_the_first_look_is_gone() -> None:
    created = {"metadata": {"name": "e", "uid": UID}, "spec": {}}
    machine = Machine(Ledger(engine(), UID, created), LIMITS, 0.0)
    machine.ledger.apply(Listing(Topic.ENGINE, (), START))
    assert machine.decide(1) is Decision.RETURN
    assert machine.ending is Ending.DELETED_BY_OTHERS


def test_annotations_date_the_fault_of_a_helper() -> None:
    story = Story()
    story.running()
    story.at(10)
    story.event("ChaosInject")
    story.at(13)
    story.result("Running", "Awaited", {"pod/x": "injected"})
    story.at(43)
    story.result("Running", "Awaited", {"pod/x": "reverted"})
    story.at(50)
    story.result("Completed", "Pass", {"pod/x": "reverted"})
    story.engine("completed", "stop")
    story.clean()
    outcome = conclude(story.machine)
    assert outcome.injected_at == START + timedelta(seconds=13)
    assert outcome.reverted_at == START + timedelta(seconds=43)
    assert outcome.effects == 1


def test_a_fault_that_marks_no_target_had_no_effect() -> None:
    story = Story()
    story.running()
    story.at(10)
    story.event("ChaosInject")
    story.at(40)
    story.event("PostChaosCheck")
    targets = [{"kind": "pod", "name": "x", "chaosStatus": "targeted"}]
    story.result("Completed", "Pass", history={"targets": targets})
    story.engine("completed", "stop")
    story.clean()
    outcome = conclude(story.machine)
    assert (outcome.verdict, outcome.effects) == ("Pass", 0)
    assert outcome.reverted_at == START + timedelta(seconds=40)


def test_a_container_kill_is_seen_as_a_restart() -> None:
    story = Story("container-kill")

    def target(restarts: int) -> None:
        metadata = {"name": "x", "uid": "x"}
        story.see(Topic.TARGET, {"metadata": metadata, "status": {"containerStatuses": [{"restartCount": restarts}]}})

    story.running()
    target(3)
    story.at(10)
    story.event("ChaosInject")
    story.at(11)
    target(4)
    story.at(21)
    target(5)
    story.result("Completed", "Pass")
    story.engine("completed", "stop")
    story.clean()
    outcome = conclude(story.machine)
    assert outcome.effects == 2
    assert outcome.injected_at == START + timedelta(seconds=11)
    assert outcome.reverted_at == START + timedelta(seconds=21)


def test_a_deletion_before_the_fault_is_not_the_faults() -> None:
    story = Story("pod-delete")
    story.running()
    story.target("x", "DELETED", deletionTimestamp="2026-12-01T00:00:00Z")
    story.at(10)
    story.event("ChaosInject")
    story.result("Completed", "Pass")
    story.engine("completed", "stop")
    story.clean()
    assert conclude(story.machine).effects == 0


def test_what_happened_in_a_gap_is_dated_by_the_cluster() -> None:
    story = Story("pod-delete")
    story.running()
    story.at(10)
    story.event("ChaosInject")
    metadata = {"name": "x", "uid": "x", "deletionTimestamp": "2026-12-01T00:00:42Z", "deletionGracePeriodSeconds": 30}
    late = Sighting(Topic.TARGET, "MODIFIED", {"metadata": metadata}, START + timedelta(seconds=25), live=False)
    story.machine.ledger.apply(late)
    story.result("Completed", "Pass")
    story.at(30)
    story.result("Completed", "Pass")
    assert story.machine.ledger.targets.deletions["x"].at == START + timedelta(seconds=12)


def test_a_list_shows_what_vanished_unseen() -> None:
    story = Story()
    story.running()
    story.pod("helper")
    story.machine.ledger.apply(Listing(Topic.POD, (), START))
    assert story.machine.ledger.live_pods == []
    story.machine.ledger.apply(Listing(Topic.ENGINE, (), START))
    assert story.machine.ledger.deleted


def injected(story: Story) -> None:
    """A helper acts, and says so."""
    story.at(1)
    story.running()
    story.at(10)
    story.event("ChaosInject")
    story.pod("helper")
    story.at(12)
    story.result("Running", "Awaited", {"pod/x": "injected"})


def targets(kind: str, name: str, status: str) -> dict[str, list[dict[str, str]]]:
    """status.history of a ChaosResult."""
    return {"targets": [{"kind": kind, "name": name, "chaosStatus": status}]}


def test_a_target_whose_mark_has_moved_into_the_history_is_still_injected() -> None:
    """With its last write the experiment moves the marks there; a helper that was killed never marks the revert."""
    story = Story()
    injected(story)
    story.at(20)
    story.machine.want_stop()
    story.at(20)
    story.result("Stopped", "Stopped", {}, history=targets("pod", "x", "injected"))
    story.pod("helper", change="DELETED")
    story.engine("stopped", "stop")
    assert story.machine.stage is Stage.STOPPING
    assert story.at(69) is Decision.WAIT
    assert story.at(70) is Decision.DELETE
    assert story.machine.ending is Ending.STOP_NOT_VERIFIED
    outcome = conclude(story.machine)
    assert "pod/x is still injected" in str(outcome.reason)
    assert outcome.reverted_at is None


def test_a_mark_is_younger_than_the_history() -> None:
    """A healthy helper reverts some seconds after the signal, and the result may have been written before."""
    story = Story()
    injected(story)
    story.machine.want_stop()
    story.at(20)
    story.result("Stopped", "Stopped", {}, history=targets("pod", "x", "injected"))
    story.pod("helper", change="DELETED")
    story.engine("stopped", "stop")
    story.at(23)
    story.result("Stopped", "Stopped", {"pod/x": "reverted"}, history=targets("pod", "x", "injected"))
    assert story.machine.ending is Ending.STOPPED_BY_US


def test_an_error_names_the_target_that_was_not_reverted() -> None:
    story = Story()
    injected(story)
    story.pod("helper", change="DELETED")
    story.at(40)
    story.end("Error", "Error", history=targets("pod", "x", "injected"))
    outcome = conclude(story.machine)
    assert outcome.error_code == "GENERIC_ERROR"
    assert "pod/x was not reverted" in str(outcome.reason)
    assert "pod/x was never reported as reverted" in outcome.evidence
    assert outcome.reverted_at is None


@pytest.mark.parametrize("fault", ["node-drain", "node-taint", "pod-network-partition", "pod-autoscaler"])
def test_a_stop_does_not_wait_for_a_word_that_may_never_come(fault: str) -> None:
    """They write their result from memory, which on an abort may be before their own revert."""
    story = Story(fault)
    story.at(1)
    story.running()
    story.machine.want_stop()
    story.at(20)
    story.event("PostChaosCheck")
    story.result("Stopped", "Stopped", history=targets("node", "w", "injected"))
    assert story.engine("stopped", "stop") is Decision.DELETE
    story.clean()
    outcome = conclude(story.machine)
    assert outcome.verdict == "Stopped"
    assert any("node/w is not known to be reverted" in sentence for sentence in outcome.evidence)
    assert outcome.reverted_at is None


def test_a_verdict_is_waited_for_while_results_are_out_of_sight() -> None:
    story = Story()
    story.at(1)
    story.running()
    story.machine.ledger.apply(Blackout(Topic.RESULT, "503"))
    story.at(50)
    story.engine("completed", "stop")
    story.at(65)
    assert story.machine.stage is Stage.SETTLING
    story.machine.ledger.apply(Contact(Topic.RESULT))
    story.at(66)
    story.at(75)
    assert story.machine.stage is Stage.SETTLING, "settle_s begins again with the first look"
    story.result("Completed", "Pass")
    assert story.machine.ending is Ending.PASSED


def test_results_are_not_waited_for_for_ever() -> None:
    story = Story()
    story.at(1)
    story.running()
    story.machine.ledger.apply(Blackout(Topic.RESULT, "503"))
    story.at(50)
    story.engine("completed", "stop")
    story.at(119)
    assert story.machine.stage is Stage.SETTLING
    assert story.at(120) is Decision.DELETE
    story.clean()
    outcome = conclude(story.machine)
    assert (outcome.verdict, outcome.error_code) == ("Error", "NO_RESULT")
    assert "results were out of sight (503)" in str(outcome.reason)


@pytest.mark.parametrize(
    ("phase", "verdict", "expected"),
    [
        ("Completed", "Pass", Ending.PASSED),
        ("Error", "Error", Ending.FAILED_IN_LITMUS),
        ("Stopped", "Stopped", Ending.NO_RESULT),  # that is what our deletion has made of a second experiment pod
    ],
)
def test_a_verdict_that_comes_late_counts(phase: str, verdict: str, expected: Ending) -> None:
    story = Story()
    story.running()
    story.engine("completed", "stop")
    assert story.at(LIMITS.settle_s) is Decision.DELETE
    assert story.machine.ending is Ending.NO_RESULT
    story.result(phase, verdict)
    story.clean()
    assert story.machine.ending is expected
    assert ", but  left" not in str(conclude(story.machine).reason)


@pytest.mark.parametrize("topic", [Topic.POD, Topic.RESULT])
def test_a_stop_is_not_verified_by_a_view_that_is_blind(topic: Topic) -> None:
    story = Story()
    story.at(1)
    story.running()
    story.machine.ledger.apply(Blackout(topic, "403"))
    story.machine.want_stop()
    story.at(20)
    story.result("Stopped", "Stopped")
    story.engine("stopped", "stop")
    assert story.machine.stage is Stage.STOPPING
    story.at(70)
    assert story.machine.ending is Ending.STOP_NOT_VERIFIED
    story.at(110)
    assert f"{topic} are out of sight (403)" in str(conclude(story.machine).reason)


def test_a_stop_is_verified_once_the_view_is_back() -> None:
    story = Story()
    story.at(1)
    story.running()
    story.machine.ledger.apply(Blackout(Topic.POD, "503"))
    story.machine.want_stop()
    story.at(20)
    story.result("Stopped", "Stopped")
    story.engine("stopped", "stop")
    story.machine.ledger.apply(Listing(Topic.POD, (), START))
    assert story.at(25) is Decision.DELETE
    assert story.machine.ending is Ending.STOPPED_BY_US


def test_pods_that_are_hit_one_after_the_other_may_take_longer() -> None:
    story = Story(SEQUENCE="serial", PODS_AFFECTED_PERC="100", TOTAL_CHAOS_DURATION="300")
    for name in ("a", "b", "c", "d"):
        story.target(name, "ADDED")
    story.running()
    assert story.at(LIMITS.run_s + 3 * 300) is Decision.WAIT
    assert story.at(LIMITS.run_s + 3 * (300 + 180)) is Decision.STOP
    story.engine("stopped", "stop")
    story.at(story.now + LIMITS.settle_s)
    story.clean()
    assert "not over 1640 s after its start" in str(conclude(story.machine).reason)
