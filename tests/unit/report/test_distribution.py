"""Latency distributions: a request that failed was never answered."""

from __future__ import annotations

import pandas as pd
import pytest

from aftershock.report.distribution import distribution_picture, read_distributions


def records(outcomes: list[str], phase: str = "chaos") -> pd.DataFrame:
    """Requests that took 1, 2, 3 ... ms."""
    rows = [
        {"phase": phase, "outcome": outcome, "latency_s": (index + 1) / 1000} for index, outcome in enumerate(outcomes)
    ]
    return pd.DataFrame(rows)


def test_quantiles_are_of_all_requests() -> None:
    (chaos,) = read_distributions(records(["ok"] * 98 + ["reset"] * 2))
    assert (chaos.requests, chaos.answered) == (100, 98)
    assert chaos.quantile(0.5) == pytest.approx(50)
    assert chaos.quantile(0.98) == pytest.approx(98)
    assert chaos.quantile(0.99) is None


def test_a_quick_failure_is_not_a_quick_answer() -> None:
    (chaos,) = read_distributions(records(["refused"] * 50 + ["ok"] * 50))
    assert chaos.quantile(0.01) == pytest.approx(51)
    assert chaos.quantile(0.51) is None


def test_requests_that_the_run_gave_up_say_nothing() -> None:
    (chaos,) = read_distributions(records(["ok"] * 10 + ["cancelled"] * 10))
    assert (chaos.requests, chaos.answered) == (10, 10)


def test_phases_come_in_their_order_and_absent_ones_not_at_all() -> None:
    both = pd.concat([records(["ok"], "recovery"), records(["ok"], "baseline")])
    assert [one.phase for one in read_distributions(both)] == ["baseline", "recovery"]


@pytest.mark.parametrize("nothing", [None, pd.DataFrame()])
def test_no_records(nothing: pd.DataFrame | None) -> None:
    assert read_distributions(nothing) == []


def test_a_phase_in_which_nothing_was_answered_is_told_but_not_drawn() -> None:
    (chaos,) = read_distributions(records(["timeout"] * 5))
    assert (chaos.requests, chaos.answered, chaos.quantile(0.5)) == (5, 0, None)


@pytest.mark.parametrize("count", [1, 2, 100, 5000])
def test_a_curve_ends_at_the_share_that_was_answered(count: int) -> None:
    drawn = read_distributions(records(["ok"] * count + ["reset"] * count))
    svg = str(distribution_picture(drawn, None, 1000.0, "half"))
    last = svg.split('class="ecdf chaos"')[0].rpartition("V")[2].rstrip('" ')
    half = svg.split(">50 %<")[0].rpartition(' y="')[2].split('"')[0]
    assert float(last) == pytest.approx(float(half) - 4, abs=0.11)
