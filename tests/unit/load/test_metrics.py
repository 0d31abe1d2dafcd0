"""The page as prometheus_client reads it."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from aftershock.exposition import BOUNDS
from aftershock.load.metrics import PhaseMetrics
from aftershock.load.outcome import Outcome
from aftershock.windows import Phase


def samples(metrics: PhaseMetrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.page().decode())
        for sample in family.samples
    }


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
