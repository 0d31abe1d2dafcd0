"""What Kubernetes says about an engine's Jobs and pods reaches the user, in whatever order it comes."""

from __future__ import annotations

from typing import Any

import pytest

from aftershock.chaos.litmus.conclusion import conclude
from aftershock.chaos.litmus.sightings import Topic

from .story import LIMITS, UID, Story

JOB = "pod-network-latency-abc123"
QUOTA = "Error creating: pods is forbidden: exceeded quota: small"


def about(kind: str, name: str, reason: str, message: str, type_: str = "Warning") -> dict[str, Any]:
    """A Kubernetes Event. Objects have their name as uid here."""
    uid = f"{name}-{reason}"
    involved = {"kind": kind, "name": name, "uid": name}
    return {
        "metadata": {"name": uid, "uid": uid},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": type_,
    }


def job(story: Story) -> None:
    story.see(Topic.JOB, {"metadata": {"name": JOB, "uid": JOB, "labels": {"chaosUID": UID}}}, "ADDED")


def test_a_job_whose_pod_is_refused_says_why_the_run_is_overdue() -> None:
    story = Story()
    story.running()
    job(story)
    assert story.see(Topic.EVENT, about("Job", JOB, "FailedCreate", QUOTA)) is not None
    assert [event["reason"] for event in story.machine.ledger.related] == ["FailedCreate"]
    story.at(LIMITS.run_s)
    story.engine("stopped", "stop")
    story.at(story.now + LIMITS.settle_s)
    story.clean()
    outcome = conclude(story.machine)
    assert outcome.error_code == "TIMEOUT"
    assert f"Job {JOB}: FailedCreate: {QUOTA}" in str(outcome.reason)


def test_it_says_so_where_no_result_came() -> None:
    story = Story()
    story.running()
    job(story)
    story.see(Topic.EVENT, about("Job", JOB, "FailedCreate", QUOTA))
    story.engine("completed", "stop")
    story.at(LIMITS.settle_s)
    story.clean()
    outcome = conclude(story.machine)
    assert outcome.error_code == "NO_RESULT"
    assert QUOTA in str(outcome.reason)


def test_what_is_said_of_a_pod_before_it_is_seen_is_kept() -> None:
    story = Story()
    story.engine("initialized")
    story.see(Topic.EVENT, about("Pod", "e-runner", "FailedScheduling", "0/3 nodes are available"))
    assert story.machine.ledger.related == []
    story.at(2)
    story.pod("e-runner", "Pending")
    assert len(story.machine.ledger.related) == 1
    story.at(LIMITS.start_s)
    story.engine("stopped", "stop")
    story.pod("e-runner", change="DELETED")
    story.clean()
    outcome = conclude(story.machine)
    assert outcome.error_code == "NOT_STARTED"
    assert "Pod e-runner: FailedScheduling: 0/3 nodes are available" in str(outcome.reason)


def test_the_bare_echo_of_a_trouble_does_not_hide_it() -> None:
    story = Story()
    story.pod("e-runner", "Pending")
    story.see(Topic.EVENT, about("Pod", "e-runner", "Failed", 'Failed to pull image "nosuch": not found'))
    story.see(Topic.EVENT, about("Pod", "e-runner", "Failed", "Error: ErrImagePull"))
    assert "nosuch" in story.machine.ledger.warning


@pytest.mark.parametrize(
    ("kind", "name", "type_"),
    [("Pod", "of-somebody-else", "Warning"), ("Deployment", "e-runner", "Warning"), ("Pod", "e-runner", "Normal")],
)
def test_what_is_no_trouble_of_ours_is_no_reason(kind: str, name: str, type_: str) -> None:
    story = Story()
    story.pod("e-runner")
    story.see(Topic.EVENT, about(kind, name, "Whatever", "m", type_))
    assert story.machine.ledger.warning == ""


def test_strays_are_forgotten_after_a_minute() -> None:
    story = Story()
    story.see(Topic.EVENT, about("Pod", "late", "Failed", "m"))
    story.at(61)
    story.see(Topic.EVENT, about("Pod", "other", "Failed", "m"))
    story.pod("late")
    assert story.machine.ledger.related == []
