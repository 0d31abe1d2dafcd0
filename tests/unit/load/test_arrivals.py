"""A schedule is fixed by kind, rate and seed, and is what its name says."""

from __future__ import annotations

import statistics
from itertools import islice, pairwise

import pytest

from aftershock.errors import InputError
from aftershock.load.arrivals import schedule


def gaps(kind: str, rate: float, seed: int, n: int) -> list[float]:
    return [after - before for before, after in pairwise(islice(schedule(kind, rate, seed), n + 1))]


def test_constant_arrivals_are_really_constant() -> None:
    assert list(islice(schedule("constant", 4, 1), 5)) == [0, 0.25, 0.5, 0.75, 1.0]


def test_constant_arrivals_do_not_drift() -> None:
    # 1/3 s summed 30,000 times would be off; counted, it is not.
    assert next(islice(schedule("constant", 3, 1), 30_000, None)) == 10_000


def test_poisson_gaps_are_exponential_with_the_mean_of_the_rate() -> None:
    found = gaps("poisson", 50, 1, 20_000)
    assert statistics.fmean(found) == pytest.approx(1 / 50, rel=0.03)
    assert statistics.stdev(found) == pytest.approx(1 / 50, rel=0.05)  # of an exponential: the mean
    assert sum(gap < 0.02 * 0.1 for gap in found) / len(found) == pytest.approx(0.0952, abs=0.01)


def test_the_first_poisson_arrival_is_not_always_at_zero() -> None:
    assert next(schedule("poisson", 1, 1)) > 0


def test_a_seed_gives_the_same_arrivals_and_another_seed_others() -> None:
    first, again, other = (list(islice(schedule("poisson", 60, seed), 100)) for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_arrivals_ascend() -> None:
    assert min(gaps("poisson", 1e5, 3, 5_000)) >= 0


def test_an_unknown_kind_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"arrivals='bursty': unknown; known are poisson, constant"):
        schedule("bursty", 1, 1)
