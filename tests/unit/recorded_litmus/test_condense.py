"""What is left of a run when times and made-up names are taken out."""

from __future__ import annotations

import copy

import pytest

from tests.cluster.recorded_litmus.condense import condense, reached
from tests.cluster.recorded_litmus.play import RECORDINGS, read_recording

NAMES = sorted(path.name.removesuffix(".jsonl.gz") for path in RECORDINGS.glob("*.gz"))


@pytest.mark.parametrize("name", NAMES)
def test_every_recording_can_be_condensed(name: str) -> None:
    seen = condense(read_recording(name))
    assert seen["ChaosEngine"][0].startswith("no status ")
    assert reached(seen, seen)


def test_a_pass_reads_like_this() -> None:
    seen = condense(read_recording("pass"))
    assert seen["ChaosEngine"][-1] == "completed stop held: pod-delete Completed/Pass (experiment pod 1)"
    assert seen["ChaosResult pass-pod-delete"] == [
        "Running/Awaited Awaited, 0/0/0, job 1",
        "Completed/Pass 100, 1/0/0, deployment inference targeted, job 1",
    ]
    assert seen["target pods"] == ["deleted, grace 0"]
    assert seen["job 1"] == ["created", "active", "succeeded"]


def test_a_missing_or_different_state_shows() -> None:
    lines = read_recording("pass")
    whole = condense(lines)
    without_result = condense(line for line in lines if line["kind"] != "ChaosResult")
    assert not reached(without_result, whole)
    changed = copy.deepcopy(lines)
    for line in changed:
        if line["kind"] == "ChaosEngine" and line["object"].get("status"):
            line["object"]["status"]["engineStatus"] = "stopped"
    assert condense(changed) != whole
