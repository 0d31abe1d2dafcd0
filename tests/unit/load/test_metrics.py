"""Buckets, live quantiles, and the page as prometheus_client reads it."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from aftershock.load.histogram import BOUNDS, Histogram
from aftershock.load.metrics import PhaseMetrics
from aftershock.load.outcome import Outcome
from aftershock.windows import Phase


def samples(metrics: PhaseMetrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.page().decode())
        for sample in family.samples
    }


def test_bounds_grow_by_a_tenth_from_half_a_millisecond_to_a_minute() -> None:
    assert BOUNDS[0] == 0.0005
    assert BOUNDS[-2] < 60 <= BOUNDS[-1]
    assert all(after / before == pytest.approx(1.1, rel=2e-3) for before, after in pairwise(BOUNDS))


@settings(deadline=None)
@given(st.lists(st.floats(0, 100), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.99]))
def test_a_quantile_is_never_too_low_and_at_most_a_bucket_too_high(values: list[float], q: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.observe(value)
    exact = sorted(values)[max(1, math.ceil(q * len(values))) - 1]
    found = histogram.quantile(q)
    assert found is not None
    assert found >= exact
    assert found == math.inf if exact > BOUNDS[-1] else found <= max(BOUNDS[0], exact * 1.103)


def test_a_value_on_a_bound_belongs_below_it() -> None:
    histogram = Histogram((1.0, 2.0))
    for value in (1.0, 1.5, 2.0, 2.5):
        histogram.observe(value)
    assert histogram.counts == [1, 2, 1]


def test_a_live_quantile_forgets_what_came_before() -> None:
    histogram = Histogram()
    histogram.observe(10.0)
    before = histogram.counts.copy()
    assert histogram.quantile(0.99, since=before) is None
    histogram.observe(0.001)
    live = histogram.quantile(0.99, since=before)
    assert live is not None
    assert live < 0.0012


def test_every_series_is_on_the_page_at_zero_before_the_first_request() -> None:
    page = samples(PhaseMetrics(Phase.CHAOS))
    assert set(page.values()) == {0.0}
    assert {frozenset({("phase", "chaos"), ("outcome", str(outcome))}) for outcome in Outcome} == {
        labels for name, labels in page if name == "aftershock_requests_total"
    }
    assert len(page) == 4 * (len(BOUNDS) + 3) + len(Outcome) + 4
    assert all(("phase", "chaos") in labels for _, labels in page)


def test_the_page_holds_what_was_counted() -> None:
    metrics = PhaseMetrics(Phase.BASELINE)
    metrics.duration.observe(0.0005)
    metrics.duration.observe(0.02)
    metrics.duration.observe(1e9)
    metrics.requests[Outcome.RATE_LIMITED] += 2
    metrics.graded[True] += 5
    metrics.in_flight = 3
    page, phase = samples(metrics), ("phase", "baseline")
    name = "aftershock_request_duration_seconds"
    assert page[f"{name}_count", frozenset({phase})] == 3
    assert page[f"{name}_sum", frozenset({phase})] == pytest.approx(1e9 + 0.0205)
    assert page[f"{name}_bucket", frozenset({phase, ("le", "0.0005")})] == 1
    assert page[f"{name}_bucket", frozenset({phase, ("le", repr(BOUNDS[-1]))})] == 2
    assert page[f"{name}_bucket", frozenset({phase, ("le", "+Inf")})] == 3
    assert page["aftershock_requests_total", frozenset({phase, ("outcome", "rate_limited")})] == 2
    assert page["aftershock_eval_total", frozenset({phase, ("result", "correct")})] == 5
    assert page["aftershock_requests_in_flight", frozenset({phase})] == 3


def test_families_have_the_types_that_prometheus_expects() -> None:
    page = PhaseMetrics(Phase.BASELINE).page().decode()
    assert {family.name: family.type for family in text_string_to_metric_families(page)} == {
        "aftershock_request_duration_seconds": "histogram",
        "aftershock_ttft_seconds": "histogram",
        "aftershock_inter_token_seconds": "histogram",
        "aftershock_send_lag_seconds": "histogram",
        "aftershock_requests": "counter",
        "aftershock_eval": "counter",
        "aftershock_output_tokens": "counter",
        "aftershock_requests_in_flight": "gauge",
    }
