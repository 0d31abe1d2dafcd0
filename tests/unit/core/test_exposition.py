"""Buckets, quantiles, and Prometheus' text format as prometheus_client reads it."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from aftershock.exposition import BOUNDS, Histogram, HistogramSeries, family, page, sample
from aftershock.gateway.faults.board import FaultBoard
from aftershock.gateway.metrics import GatewayMetrics
from aftershock.gateway.replicas import Replica
from aftershock.load.metrics import PhaseMetrics
from aftershock.windows import Phase


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


def test_buckets_are_cumulative() -> None:
    histogram = HistogramSeries("h", {}, (1.0, 2.0))
    for value in (0.5, 1.0, 1.5, 3.0):
        histogram.observe(value)
    assert histogram.lines() == [
        'h_bucket{le="1.0"} 2',
        'h_bucket{le="2.0"} 3',
        'h_bucket{le="+Inf"} 4',
        "h_sum 6.0",
        "h_count 4",
    ]


def test_strange_words_do_not_break_the_page() -> None:
    strange = 'a"\\\n'
    histogram = HistogramSeries("h", {"name": strange}, (1.0,))
    text = page([*family("h", "histogram", strange), *histogram.lines(), sample("g", {"name": strange}, 0.5)]).decode()
    found = {family.name: family for family in text_string_to_metric_families(text)}
    assert (found["h"].type, found["h"].documentation) == ("histogram", strange)
    assert {sample.labels["name"] for family in found.values() for sample in family.samples} == {strange}
    assert found["g"].samples[0].value == 0.5


def test_load_and_gateway_share_their_buckets() -> None:
    """A request's time at the gateway can be held against that at the load generator, bucket by bucket."""
    gateway = GatewayMetrics([Replica("0", "http://h:1")], FaultBoard(["0"])).page()
    load = PhaseMetrics(Phase.CHAOS).page()
    seen = [
        [sample.labels["le"] for sample in family.samples if sample.name == name]
        for text, name in (
            (gateway, "aftershock_gateway_request_duration_seconds_bucket"),
            (gateway, "aftershock_gateway_ttft_seconds_bucket"),
            (load, "aftershock_request_duration_seconds_bucket"),
            (load, "aftershock_inter_token_seconds_bucket"),
        )
        for family in text_string_to_metric_families(text.decode())
        if f"{family.name}_bucket" == name
    ]
    assert len(seen) == 4
    assert seen == [[*map(repr, BOUNDS), "+Inf"]] * 4
