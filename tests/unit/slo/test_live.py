"""The PromQL of an objective at this moment."""

from __future__ import annotations

import pytest

from aftershock.slo.live import live_query
from aftershock.slo.objective import (
    Compare,
    CompositeIndicator,
    Indicator,
    Objective,
    Op,
    Part,
    QuantileIndicator,
    RatioIndicator,
    RecoveryIndicator,
    ScalarIndicator,
    SliceIndicator,
)
from aftershock.windows import Phase

TOTAL = 'sum(increase(requests_total{phase="{{ phase }}"}[{{ window }}]))'
BAD = 'sum(increase(requests_total{phase="{{ phase }}", outcome!="ok"}[{{ window }}]))'


def objective(indicator: Indicator, compare: Compare = Compare.VALUE) -> Objective:
    return Objective("it", "It", "", Op.LTE, 1.0, indicator, compare=compare)


def test_a_plain_query_looks_back_as_far_as_it_is_told() -> None:
    it = objective(ScalarIndicator('avg_over_time(load{phase="{{ phase }}"}[{{ window }}])', samples="n"))
    assert live_query(it, lookback_s=10) == 'avg_over_time(load{phase="chaos"}[10000ms])'


def test_a_quantile_is_of_the_rates_of_all_series_in_the_unit_shown() -> None:
    it = objective(QuantileIndicator('duration_seconds{phase="{{ phase }}"}', 0.99, scale=1000))
    assert live_query(it, lookback_s=7.5) == (
        '1000 * histogram_quantile(0.99, sum by (le) (rate(duration_seconds_bucket{phase="chaos"}[7500ms])))'
    )
    plain = objective(QuantileIndicator("duration_seconds", 0.5))
    assert live_query(plain, lookback_s=1) == (
        "histogram_quantile(0.5, sum by (le) (rate(duration_seconds_bucket[1000ms])))"
    )


@pytest.mark.parametrize("role", ["good", "bad"])
def test_a_share_is_the_objectives_own_value_and_zero_where_its_part_has_no_series(role: str) -> None:
    it = objective(RatioIndicator(total=TOTAL, **{role: BAD}))
    part = 'sum(increase(requests_total{phase="chaos", outcome!="ok"}[10000ms]))'
    total = 'sum(increase(requests_total{phase="chaos"}[10000ms]))'
    assert live_query(it, lookback_s=10) == f"100 * sum(({part}) or 0 * ({total})) / sum({total})"


def test_the_phase_is_the_one_asked_for() -> None:
    it = objective(RatioIndicator(total=TOTAL, bad=BAD, scale=1))
    query = live_query(it, lookback_s=10, phase=Phase.RECOVERY)
    assert query.count('phase="recovery"') == 3
    assert "chaos" not in query


def test_what_has_no_value_at_one_moment_is_refused() -> None:
    with pytest.raises(ValueError, match="it: a drop has no value at one moment"):
        live_query(objective(RatioIndicator(total=TOTAL, good=BAD), Compare.DROP), lookback_s=10)
    with pytest.raises(ValueError, match="it: a recovery time has no value at one moment"):
        live_query(objective(RecoveryIndicator("errors", Op.LTE, 1)), lookback_s=10)


def test_changes_time_slices_and_composites_have_no_value_at_one_moment() -> None:
    plain = objective(ScalarIndicator("up"), Compare.RELATIVE)
    with pytest.raises(ValueError, match="it: a change has no value at one moment"):
        live_query(plain, lookback_s=10)
    for indicator in (SliceIndicator(ScalarIndicator("up"), 6.0), CompositeIndicator((Part(plain),))):
        with pytest.raises(ValueError, match="it: it has a value over a whole phase only"):
            live_query(objective(indicator), lookback_s=10)
