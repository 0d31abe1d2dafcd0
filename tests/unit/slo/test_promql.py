"""What the ranges of a query are, and how long a duration is."""

from __future__ import annotations

import pytest

from aftershock.slo.promql import longest_range_s, parse_duration, ranges_s


@pytest.mark.parametrize(
    ("text", "seconds"), [("1500ms", 1.5), ("1m30s", 90), ("1h", 3600), ("15s", 15), ("", 0), ("soon", 0)]
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


def test_ranges() -> None:
    query = 'rate(x{a="[9h]"}[1m]) / max_over_time(y[ 5m : 30s ]) + z'
    assert ranges_s(query) == [60, 300]
    assert longest_range_s(query) == 300
    assert longest_range_s("rate(x[{{ window }}])") == 0
