"""Windows: UTC, ordered, and the same after a round trip."""

from datetime import UTC, datetime, timedelta

import pytest

from aftershock.windows import Phase, Window

START = datetime(2026, 1, 1, tzinfo=UTC)


def window(**changes: object) -> Window:
    values = {
        "phase": Phase.CHAOS,
        "start": START,
        "end": START + timedelta(seconds=30),
        "settled_at": START + timedelta(seconds=31.5),
        "injected_at": START + timedelta(seconds=1),
        "reverted_at": None,
    }
    return Window(**(values | changes))  # type: ignore[arg-type]


def test_round_trip() -> None:
    assert Window.from_dict(window().to_dict()) == window()
    assert window().seconds == 30
    assert window().settled_seconds == 31.5


def test_disorder_is_refused() -> None:
    with pytest.raises(ValueError, match="start < end <= settled_at"):
        window(settled_at=START + timedelta(seconds=29))


def test_naive_instants_are_refused() -> None:
    with pytest.raises(ValueError, match="no time zone"):
        Window.from_dict(window().to_dict() | {"start": "2026-01-01T00:00:00"})
    with pytest.raises(ValueError, match="needs start"):
        Window.from_dict(window().to_dict() | {"end": None})
