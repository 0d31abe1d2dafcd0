"""Quantiles and means of series, and what dependence between neighbours costs."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftershock.slo.dependence import dependence
from aftershock.slo.resampling import limits, mean_of_series, quantile_of_series
from aftershock.slo.statistics import TAIL, quantile_ranks, samples_needed

RNG = np.random.default_rng(3)


def test_independent_observations_are_worth_about_as_many() -> None:
    worth = dependence(RNG.exponential(size=20_000))
    assert 0.85 * 20_000 < worth.effective_n <= 20_000


def test_observations_in_runs_are_worth_as_many_as_there_are_runs() -> None:
    runs = np.repeat(RNG.exponential(size=2000), 10)
    assert 0.8 * 2000 < dependence(runs).effective_n < 1.1 * 2000
    assert dependence(runs).block >= 100  # what belongs together is not cut


def test_one_burst_is_worth_little() -> None:
    slow = np.zeros(2000, dtype=bool)
    slow[1000:1020] = True
    assert dependence(slow).effective_n < 200


def test_what_alternates_is_not_worth_more_than_there_is() -> None:
    assert dependence(np.tile([0.0, 1.0], 500)).effective_n == 1000


@pytest.mark.parametrize("series", [np.zeros(1000), np.ones(0), np.ones(1), RNG.normal(size=39)])
def test_where_nothing_can_be_seen_observations_count_as_independent(series: np.ndarray) -> None:
    assert dependence(series).design_effect == 1.0


@pytest.mark.parametrize("quantile", [0.5, 0.95, 0.99])
def test_fractional_limits_lie_within_those_of_whole_ranks(quantile: float) -> None:
    for n in (samples_needed(quantile), 500, 1000, 3000):
        (low, high), (below, above) = limits(n, quantile), quantile_ranks(n, quantile)
        assert low is not None and high is not None and below is not None and above is not None
        assert below <= low * (n + 1) <= below + 1
        assert above - 1 <= high * (n + 1) <= above
    assert None in limits(samples_needed(quantile) - 1, quantile)


def test_the_limits_meet_their_tails() -> None:
    low, high = limits(1000, 0.99)
    uniform = np.sort(RNG.random((20_000, 1000)), axis=1)

    def at(share: float) -> np.ndarray:
        rank = share * 1001
        index = math.floor(rank) - 1
        return uniform[:, index] + (rank - math.floor(rank)) * (uniform[:, index + 1] - uniform[:, index])

    assert low is not None and high is not None
    assert np.mean(at(low) > 0.99) == pytest.approx(TAIL, abs=0.004)
    assert np.mean(at(high) < 0.99) == pytest.approx(TAIL, abs=0.004)


@given(st.lists(st.floats(0.001, 60), min_size=1, max_size=500), st.sampled_from([0.01, 0.5, 0.95, 0.99]))
def test_an_interval_holds_its_point(values: list[float], quantile: float) -> None:
    found = quantile_of_series(np.array(values), quantile)
    assert found.value in values and found.n == len(values)
    assert (found.low is None or found.low <= found.value) and (found.high is None or found.value <= found.high)


def test_the_order_of_the_values_decides_what_they_are_worth_and_stays_as_it_was() -> None:
    shuffled = RNG.exponential(size=2000)
    in_order = np.sort(shuffled)
    before = shuffled.copy()
    mixed, grouped = quantile_of_series(shuffled, 0.5), quantile_of_series(in_order, 0.5)
    assert (shuffled == before).all()
    assert mixed.value == grouped.value
    assert grouped.dependence.effective_n < mixed.dependence.effective_n / 10


def test_requests_without_an_answer_are_beyond_all_others() -> None:
    values = np.full(2000, 0.1)
    values[::50] = math.inf  # 2 %
    p99, p95 = quantile_of_series(values, 0.99), quantile_of_series(values, 0.95)
    assert (p99.value, p99.high) == (math.inf, math.inf)
    assert (p95.value, p95.low, p95.high) == (0.1, 0.1, 0.1)


def test_nothing_has_no_quantile_and_no_mean() -> None:
    for attempt in (lambda: quantile_of_series(np.empty(0), 0.5), lambda: mean_of_series(np.empty(0))):
        with pytest.raises(ValueError, match="of nothing"):
            attempt()


def test_the_mean_of_one_value_is_that() -> None:
    found = mean_of_series(np.array([7.0]))
    assert (found.value, found.low, found.high) == (7.0, 7.0, 7.0)
