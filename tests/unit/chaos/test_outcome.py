"""The outcome survives its file."""

from __future__ import annotations

import json
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
    "changes",
    [
        {},
        {"verdict": "Error", "phase": "Error", "error_code": "GENERIC_ERROR", "reason": "why"},
        {"injected_at": None, "reverted_at": None, "effects": 0, "evidence": (), "events": ()},
    ],
)
def test_round_trip_through_json(changes: dict[str, object]) -> None:
    before = outcome(**changes)
    assert ChaosOutcome.from_dict(json.loads(json.dumps(before.to_dict()))) == before


def test_a_naive_instant_is_refused() -> None:
    document = outcome().to_dict()
    document["injected_at"] = "2026-12-01T10:00:00"
    with pytest.raises(ValueError, match="time zone"):
        ChaosOutcome.from_dict(document)
