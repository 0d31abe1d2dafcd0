"""The promises of `benchmarks/coverage.py` in a few seconds: fewer repetitions, and so much slack as these need.

The bounds are those that a coverage of 95 % misses once in some ten thousand times. Intervals that are 30 % narrower
cover 83 %, and fail each of these tests; one says so.
"""

import math

import numpy as np
import pytest

from aftershock.slo.resampling import mean_of_series
from aftershock.slo.verdict import Reason, Verdict
from benchmarks.coverage import FromScores, coverage, exponential, failed, lognormal, main, scores, two_humps, verdict

REPEATS = 400
LEAST, MOST = 0.905, 0.99
Z = {0.5: 0.0, 0.95: 1.6448536269514722, 0.99: 2.3263478740408408}


def truth(draw: FromScores, quantile: float) -> float:
    return float(draw(np.array([Z[quantile]]))[0])


@pytest.mark.parametrize("draw", [lognormal(0.5), two_humps])
@pytest.mark.parametrize(("n", "quantile"), [(300, 0.5), (300, 0.95), (1000, 0.5), (1000, 0.95), (1000, 0.99)])
def test_independent_requests(n: int, quantile: float, draw: FromScores) -> None:
    series = draw(scores(np.random.default_rng(5), REPEATS, n, 0.0))
    assert LEAST <= coverage(series, quantile, truth(draw, quantile)).share <= MOST


@pytest.mark.parametrize(("n", "quantile"), [(1000, 0.5), (1000, 0.95), (5000, 0.99)])
def test_requests_that_depend_on_their_neighbours(n: int, quantile: float) -> None:
    draw = lognormal(0.5)
    series = draw(scores(np.random.default_rng(6), REPEATS, n, 0.6))
    found = coverage(series, quantile, truth(draw, quantile))
    assert found.share >= LEAST
    assert found.effective_n < 0.75 * n


@pytest.mark.parametrize(("rho", "quantile"), [(0.0, 0.5), (0.0, 0.95), (0.0, 0.99), (0.6, 0.5), (0.6, 0.95)])
def test_intervals_a_third_narrower_would_be_noticed(rho: float, quantile: float) -> None:
    draw = lognormal(0.5)
    series = draw(scores(np.random.default_rng(7), REPEATS, 1000, rho))
    assert coverage(series, quantile, truth(draw, quantile), narrowed=0.7).share < LEAST


def test_the_mean_of_dependent_requests() -> None:
    series = exponential(scores(np.random.default_rng(8), REPEATS, 1000, 0.6))
    found = [mean_of_series(row) for row in series]
    assert np.mean([(one.low or 0) <= 0.1 <= (one.high or math.inf) for one in found]) >= LEAST


def test_the_mean_has_the_same_interval_each_time() -> None:
    row = exponential(scores(np.random.default_rng(8), 1, 1000, 0.6))[0]
    assert mean_of_series(row) == mean_of_series(row.copy())


def test_a_p99_of_300_is_not_judged() -> None:
    rows = lognormal(0.5)(scores(np.random.default_rng(9), 20, 300, 0.0))
    assert {verdict(row, 0.99, 50.0) for row in rows} == {(Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES)}


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_without_an_effect_hardly_anything_fails(rho: float) -> None:
    rng = np.random.default_rng(10)
    assert failed(rng, lognormal(0.5), 0.95, scores(rng, REPEATS, 1000, rho), 1.0) <= 0.06


def test_a_shift_of_15_percent_is_found() -> None:
    rng = np.random.default_rng(11)
    assert failed(rng, exponential, 0.99, scores(rng, 200, 3000, 0.0), 1.15) >= 0.85


def test_the_command_says_what_was_reached(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["--share", "0.01"])
    *rows, last = capsys.readouterr().out.splitlines()
    missed = sum(row.endswith("NO") for row in rows)
    assert code == (1 if missed else 0)
    reached = sum(row.endswith("yes") for row in rows)
    assert last.startswith(f"{reached} of {reached + missed} targets reached, coverage independent ")
