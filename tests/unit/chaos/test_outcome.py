"""The outcome is in its file, whole."""

from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime

import pytest

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome

AT = datetime(2026, 12, 1, 10, 0, 0, 123456, UTC)


def outcome(**changes: object) -> ChaosOutcome:
    """One with everything in it."""
    values: dict[str, object] = {
        "verdict": "Pass",
        "phase": "Completed",
        "error_code": None,
        "reason": None,
        "injected_at": AT,
        "reverted_at": AT,
        "effects": 3,
        "evidence": ("a", "b"),
        "result": {"kind": "ChaosResult"},
        "events": (ChaosEvent(AT, "ChaosInject", "Injecting", "Normal"),),
        "backend": "local",
    }
    return ChaosOutcome(**(values | changes))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, {"verdict": "Pass", "injected_at": "2026-12-01T10:00:00.123456+00:00", "evidence": ["a", "b"]}),
        ({"verdict": "Error", "error_code": "GENERIC_ERROR", "reason": "why"}, {"reason": "why"}),
        ({"injected_at": None, "effects": 0, "events": ()}, {"injected_at": None, "effects": 0, "events": []}),
    ],
)
def test_it_is_written_whole(changes: dict[str, object], expected: dict[str, object]) -> None:
    before = outcome(**changes)
    document = json.loads(json.dumps(before.to_dict()))
    assert set(document) == {field.name for field in fields(before)}
    assert {name: document[name] for name in expected} == expected


def test_events_are_written_whole() -> None:
    (event,) = outcome().to_dict()["events"]
    assert event == {"at": AT.isoformat(), "reason": "ChaosInject", "message": "Injecting", "type": "Normal"}
