"""Intervals against published figures, against each other, and against simulated data with a known truth."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftershock.slo.statistics import (
    Bucket,
    Estimate,
    Z,
    mcnemar,
    newcombe,
    paired_drop,
    quantile_of_buckets,
    quantile_ranks,
    samples_needed,
    saturated,
    wilson,
)


def quantile_of_sorted(values: Sequence[float], quantile: float) -> Estimate:
    """What the values themselves say: nearest rank, and the order statistics around it."""
    below, above = quantile_ranks(len(values), quantile)
    low, high = (None if rank is None else values[rank - 1] for rank in (below, above))
    return Estimate(values[max(1, math.ceil(quantile * len(values) - 1e-9)) - 1], low, high, len(values))


def test_wilson_is_the_published_interval() -> None:
    # Newcombe 1998 (Stat Med 17:857), table I: 81/263, 15/148, 0/20, 1/29.
    for successes, n, low, high in [
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        assert wilson(successes, n) == pytest.approx((low, high), abs=5e-5)


@pytest.mark.parametrize(("successes", "n"), [(1, 0), (-1, 5), (6, 5)])
def test_wilson_refuses_what_is_no_share(successes: float, n: float) -> None:
    with pytest.raises(ValueError, match="no share"):
        wilson(successes, n)


def test_newcombe_is_the_published_interval() -> None:
    # Newcombe 1998 (Stat Med 17:873), table II, method 10: 56/70 - 48/80 and 9/10 - 3/10.
    assert newcombe(56, 70, 48, 80) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    assert newcombe(9, 10, 3, 10) == pytest.approx((0.1705, 0.8090), abs=5e-5)


def test_mcnemar_is_the_exact_binomial_test() -> None:
    assert mcnemar(0, 0) == 1.0
    assert mcnemar(5, 5) == 1.0
    assert mcnemar(6, 0) == pytest.approx(2 / 2**6)
    assert mcnemar(10, 2) == mcnemar(2, 10) == pytest.approx(2 * (1 + 12 + 66) / 2**12)


def test_a_paired_drop_without_discordant_pairs_has_a_width() -> None:
    estimate = paired_drop(0, 0, 1200)
    limit = Z**2 / (1200 + Z**2)  # Tango's limits in closed form
    assert estimate.value == 0
    assert (estimate.low, estimate.high) == pytest.approx((-limit, limit))


def test_a_paired_drop_is_symmetric_and_significant_where_mcnemar_is() -> None:
    lost, gained = paired_drop(30, 8, 1000), paired_drop(8, 30, 1000)
    assert (lost.low, lost.high) == pytest.approx((-(gained.high or 0), -(gained.low or 0)))
    assert (lost.low or 0) > 0 and mcnemar(30, 8) < 0.05
    weak = paired_drop(12, 8, 1000)
    assert (weak.low or 0) < 0 < (weak.high or 0) and mcnemar(12, 8) > 0.05


@pytest.mark.parametrize(("lost", "gained", "n"), [(0, 0, 0), (-1, 0, 5), (3, 3, 5)])
def test_a_paired_drop_refuses_impossible_counts(lost: int, gained: int, n: int) -> None:
    with pytest.raises(ValueError, match="no paired comparison"):
        paired_drop(lost, gained, n)


@pytest.mark.parametrize(("lost_share", "gained_share"), [(0.002, 0.002), (0.02, 0.01), (0.1, 0.02)])
def test_a_paired_drop_covers_the_truth(lost_share: float, gained_share: float) -> None:
    counts = np.random.default_rng(7).multinomial(1000, [lost_share, gained_share, 1 - lost_share - gained_share], 600)
    truth = lost_share - gained_share
    covered = [
        (found.low or 0) <= truth <= (found.high or 0)
        for found in (paired_drop(int(lost), int(gained), 1000) for lost, gained, _ in counts)
    ]
    assert np.mean(covered) >= 0.93


def test_ranks_are_those_of_the_tables() -> None:
    assert quantile_ranks(100, 0.5) == (40, 61)  # the classic: 96.5 % between the 40th and the 61st of 100
    assert quantile_ranks(6, 0.5) == (1, 6)
    assert quantile_ranks(5, 0.5) == (None, None)


@pytest.mark.parametrize(("quantile", "needed"), [(0.5, 6), (0.95, 72), (0.99, 368), (0.01, 368)])
def test_both_bounds_exist_from_the_number_needed_on(quantile: float, needed: int) -> None:
    assert samples_needed(quantile) == needed
    assert None not in quantile_ranks(needed, quantile)
    assert None in quantile_ranks(needed - 1, quantile)


def test_an_upper_bound_of_p99_is_not_invented() -> None:
    estimate = quantile_of_sorted([float(value) for value in range(300)], 0.99)
    assert estimate.high is None
    assert estimate.low is not None and estimate.low < estimate.value


@pytest.mark.parametrize("quantile", [0.5, 0.95])
def test_order_statistics_cover_the_truth(quantile: float) -> None:
    rng, truth = np.random.default_rng(11), -math.log(1 - quantile)
    covered = 0
    for _ in range(600):
        found = quantile_of_sorted(np.sort(rng.exponential(size=1000)).tolist(), quantile)
        covered += (found.low or 0) <= truth <= (found.high or math.inf)
    assert covered / 600 >= 0.93


def buckets(values: list[float], bounds: list[float]) -> list[Bucket]:
    return [Bucket(bound, sum(value <= bound for value in values)) for bound in [*bounds, math.inf]]


@given(
    st.lists(st.floats(0.001, 20), min_size=1, max_size=400),
    st.sampled_from([0.01, 0.5, 0.9, 0.99]),
    st.lists(st.floats(0.01, 30), min_size=1, max_size=12, unique=True),
)
def test_an_interval_from_buckets_holds_the_one_from_values(
    values: list[float], quantile: float, bounds: list[float]
) -> None:
    exact = quantile_of_sorted(sorted(values), quantile)
    coarse = quantile_of_buckets(buckets(values, sorted(bounds)), quantile)
    assert coarse.n == len(values)
    if coarse.low is not None:
        assert exact.low is not None and coarse.low <= exact.low
        assert coarse.low <= coarse.value
    if coarse.high is not None:
        assert exact.high is not None and coarse.high >= exact.high
        assert coarse.high >= coarse.value


@given(st.integers(0, 2000), st.integers(1, 2000), st.integers(0, 2000), st.integers(1, 2000))
def test_intervals_of_shares_hold_their_points(a: int, n_a: int, b: int, n_b: int) -> None:
    a, b = min(a, n_a), min(b, n_b)
    low, high = wilson(a, n_a)
    assert 0 <= low <= a / n_a <= high <= 1
    low, high = newcombe(a, n_a, b, n_b)
    assert low <= a / n_a - b / n_b <= high


@given(st.integers(0, 300), st.integers(0, 300), st.integers(1, 900))
def test_an_interval_of_a_paired_drop_holds_its_point(lost: int, gained: int, spare: int) -> None:
    found = paired_drop(lost, gained, lost + gained + spare)
    assert found.low is not None and found.high is not None
    assert -1 <= found.low <= found.value <= found.high <= 1
    assert found.low < found.high


def test_a_quantile_on_a_bucket_bound_is_told_from_one_above_it() -> None:
    below = quantile_of_buckets(buckets([0.7] * 1000, [0.5, 0.8, 1.0]), 0.99)
    above = quantile_of_buckets(buckets([0.9] * 1000, [0.5, 0.8, 1.0]), 0.99)
    assert below.high == 0.8  # le="0.8" holds 0.8 itself: an objective of <= 0.8 is met
    assert above.low is not None and above.low > 0.8


def test_interpolation_is_that_of_histogram_quantile() -> None:
    found = quantile_of_buckets([Bucket(1, 10), Bucket(2, 30), Bucket(4, 40), Bucket(math.inf, 40)], 0.5)
    assert found.value == pytest.approx(1.5)


def test_beyond_the_last_bucket_there_is_only_a_lower_bound() -> None:
    found = buckets([100.0] * 1000, [0.5, 60.0])
    assert saturated(found, 0.99) and not saturated(buckets([1.0] * 1000, [0.5, 60.0]), 0.99)
    estimate = quantile_of_buckets(found, 0.99)
    assert estimate.value > 60 and estimate.value == pytest.approx(60)
    assert estimate.high is None and estimate.low == estimate.value


@pytest.mark.parametrize(
    ("found", "complaint"),
    [
        ([Bucket(1, 5), Bucket(2, 5)], "needs finite buckets"),
        ([Bucket(math.inf, 5)], "needs finite buckets"),
        ([Bucket(1, 50), Bucket(2, 20), Bucket(math.inf, 50)], "counts fall at le=2"),
        ([Bucket(1, math.nan), Bucket(math.inf, 5)], "counts fall"),
        ([Bucket(1, 0), Bucket(math.inf, 0)], "no quantile of nothing"),
    ],
)
def test_what_is_no_histogram_is_refused(found: list[Bucket], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        quantile_of_buckets(found, 0.5)


def test_rounding_of_extrapolated_counts_is_taken_as_level() -> None:
    found = quantile_of_buckets([Bucket(1, 999.7), Bucket(2, 999.4), Bucket(math.inf, 1000.2)], 0.5)
    assert found.n == 1000
