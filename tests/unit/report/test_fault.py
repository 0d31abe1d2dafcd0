"""What the fault did, from documents of every shape that a backend may leave."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import pytest

from aftershock.report.fault import MOST, read_fault

if TYPE_CHECKING:
    from conftest import Run


def outcome_of(run: Run, **changes: Any) -> dict[str, Any]:
    return dict(run.outcome or {}) | changes


def test_kills_with_their_instants_targets_and_evidence(failed: Run) -> None:
    story = read_fault("pod-delete", failed.outcome, failed.windows)
    assert story.sentence == (
        "pod-delete acted from 05:30:29.6 to 05:30:42.4 UTC (12.8 s); effects seen: 2; verdict of the injector: Pass."
    )
    assert [strike.message.rpartition(" ")[2] for strike in story.strikes] == [
        "model-server-0-x7k2f",
        "model-server-1-p9q4d",
    ]
    assert [target.status for target in story.targets] == ["reverted", "reverted"]
    assert len(story.evidence) == 2


def test_a_single_kill_is_an_instant(failed: Run) -> None:
    outcome = outcome_of(failed, reverted_at=(failed.outcome or {})["injected_at"], effects=1)
    assert "pod-delete struck once, at 05:30:29.6 UTC" in read_fault("pod-delete", outcome, []).sentence


def test_a_fault_that_did_nothing_is_not_said_to_have_acted(failed: Run) -> None:
    windows = [window for window in failed.windows if window.injected_at is None]
    outcome = outcome_of(failed, injected_at=None, reverted_at=None, effects=0, evidence=[])
    assert read_fault("pod-delete", outcome, windows).sentence.startswith("pod-delete was never seen to act")


def test_an_error_of_the_injector_is_told(failed: Run) -> None:
    outcome = outcome_of(failed, verdict="Error", reason="CHAOS_INJECT_ERROR: no pods")
    assert "verdict of the injector: Error (CHAOS_INJECT_ERROR: no pods)." in read_fault("x", outcome, []).sentence


@pytest.mark.parametrize(
    ("stop", "told"),
    [
        ({"message": "x 63 % is beyond 50 % since 5 s", "seconds_to_stop": 4.21}, ", verified 4.2 s after that began."),
        ({"message": "x 63 % is beyond 50 % since 5 s", "seconds_to_stop": None}, ", not verified."),
    ],
)
def test_a_stop_by_the_slo_watch_is_part_of_the_story(failed: Run, stop: dict[str, Any], told: str) -> None:
    sentence = read_fault("x", outcome_of(failed, verdict="Stopped", stop=stop), []).sentence
    assert sentence.endswith(f"; stopped by the SLO watch (x 63 % is beyond 50 % since 5 s){told}")
    assert "SLO watch" not in read_fault("x", outcome_of(failed, verdict="Stopped", stop=None), []).sentence


def test_several_results_are_one_list_of_targets(failed: Run) -> None:
    result = (failed.outcome or {})["result"]
    story = read_fault("pod-delete", outcome_of(failed, result={"kind": "List", "items": [result, result]}), [])
    assert len(story.targets) == 4


def test_what_is_left_out_is_counted(failed: Run) -> None:
    story = read_fault("pod-delete", outcome_of(failed, evidence=["killed"] * (MOST + 5)), [])
    assert (len(story.evidence), story.left_out) == (MOST, 5)


@pytest.mark.parametrize("outcome", [None, {}])
def test_no_outcome(failed: Run, outcome: dict[str, Any] | None) -> None:
    assert read_fault("none", outcome, failed.windows).sentence == "This was a control run: no fault was injected."
    assert "was not recorded" in read_fault("pod-delete", outcome, failed.windows).sentence


def test_instants_are_told_in_utc(failed: Run) -> None:
    east = timezone(timedelta(hours=5))
    outcome = outcome_of(failed)
    for name in ("injected_at", "reverted_at"):
        outcome[name] = datetime.fromisoformat(outcome[name]).astimezone(east).isoformat()
    assert "acted from 05:30:29.6 to 05:30:42.4 UTC" in read_fault("pod-delete", outcome, []).sentence


def test_a_document_with_holes_is_read_as_far_as_it_goes(failed: Run) -> None:
    outcome = {"verdict": None, "events": [{"at": "yesterday"}, {"at": None}, {}], "evidence": None, "result": None}
    story = read_fault("pod-delete", outcome, failed.windows)
    assert story.events == ()
    assert story.injected_at == failed.windows[1].injected_at
    assert story.reverted_at == (story.injected_at or failed.windows[0].start) + timedelta(seconds=12.8)
