"""How many samples a query may return, as far as its text tells."""

from __future__ import annotations

import pytest

from aftershock.chaos.lint.promql import may_be_nan, samples

ONE = [
    "sum(rate(a[1m]))",
    "sum by () (a)",
    "(max(a))",
    "-sum(a)",
    "scalar(a)",
    "1 + 2 * 3.5e3",
    "sum(a) / sum(b)",
    "sum(rate(a{x='1'}[5m])) or vector(0)",
    "100 * (1 - sum(a) / sum(b))",
    "histogram_quantile(0.99, sum by (le) (rate(a_bucket[1m])))",
    "histogram_quantile(0.99, sum(rate(a_bucket[1m])) by (le))",
    "histogram_quantile(0.99, sum(rate(a[1m])))",
    "topk(1, a)",
    "round(max(a offset 5m), 0.1)",
    "count(up == 1) > bool 0",
    "sum(max_over_time(a[5m:30s] @ end()))",
    "absent(a)",
    "sum(a) # a comment (\n",
    "sum({__name__=~'a|b'})",
    "time() - max(start)",
]
MANY = [
    "a",
    "a{b='c'}",
    "rate(a[1m])",
    "sum by (pod) (a)",
    "sum(a) by (pod, node)",
    "sum without (pod) (a)",
    "topk(3, a)",
    "a / sum(b)",
    "sum(a) / on() group_left b",
    "histogram_quantile(0.99, rate(a_bucket[1m]))",
    "histogram_quantile(0.99, sum by (le, pod) (rate(a_bucket[1m])))",
    "label_replace(a, 'x', '$1', 'y', '(.*)')",
    "sum(a) or b",
    "count_values('version', build)",
    "{__name__='a'}",
    "a > 5",
]
UNCLEAR = ["", "sum(", "sum(a))", "a b", "'text'", "sum(a) /", "[5m]", "a{", "sum by (a", "?", "(" * 5000 + ")" * 5000]


@pytest.mark.parametrize("query", ONE)
def test_one_sample(query: str) -> None:
    found = samples(query)
    assert found is not None
    assert not found.many


@pytest.mark.parametrize("query", MANY)
def test_several_samples(query: str) -> None:
    found = samples(query)
    assert found is not None
    assert found.many


@pytest.mark.parametrize("query", UNCLEAR)
def test_what_is_not_understood_is_left_to_prometheus(query: str) -> None:
    assert samples(query) is None


def test_labels_of_an_aggregation_are_named() -> None:
    found = samples("sum by (pod, node) (a)")
    assert found is not None
    assert found.by == {"pod", "node"}


@pytest.mark.parametrize("query", ["sum(a) / sum(b)", "histogram_quantile(0.9, sum by (le) (a))", "sum(a) % sum(b)"])
def test_a_quotient_or_quantile_of_nothing_is_nan(query: str) -> None:
    assert may_be_nan(query)
    assert not may_be_nan(f"({query}) >= 0 or vector(0)")


BY_ZERO = [
    "sum(a) / 0",
    "sum(a) / clamp_min(sum(b), 0)",
    "sum(a) / clamp_min(sum(b), c)",
    "sum(a) / 60 / sum(b)",
    "sum(a) / clamp_max(sum(b), 1)",
    "sum(a) / (sum(b) + 1)",
    "sum(a) / clamp_min",
]
NEVER_NAN = [
    "sum(container_memory_bytes) / 1024",
    "sum(rate(a[1m])) / 60 * 100",
    "sum(a) / (60 * 60)",
    "sum(a) / clamp_min(sum(rate(b[1m])), 1)",
    "sum(a) % 60",
]


@pytest.mark.parametrize("query", BY_ZERO)
def test_a_quotient_by_what_may_be_zero_is_nan(query: str) -> None:
    assert may_be_nan(query)


@pytest.mark.parametrize("query", NEVER_NAN)
def test_a_quotient_by_a_number_is_not(query: str) -> None:
    assert not may_be_nan(query)


@pytest.mark.parametrize("query", ["sum(a)", "sum(a{path='/v1'})", "max(a) - min(a)"])
def test_sums_and_slashes_in_labels_are_not(query: str) -> None:
    assert not may_be_nan(query)
