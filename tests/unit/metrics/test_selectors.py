"""The vector selectors of a query, whatever else is in it."""

from __future__ import annotations

import pytest

from aftershock.metrics.selectors import is_of_the_load, selectors


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("up", ["up"]),
        ('up{job="a"}[5m] offset 5m', ['up{job="a"}']),
        ("sum by (le, pod) (rate(vllm:e2e_bucket[5m]))", ["vllm:e2e_bucket"]),
        ("sum(rate(a_bucket[1m])) by (le)", ["a_bucket"]),
        ("quantile without(a)(0.9, foo) and by_x", ["foo", "by_x"]),
        ("a / on(job, x) group_left(pod) b", ["a", "b"]),
        ("a * on(job) group_left b", ["a", "b"]),
        ("count(x) > bool 1e+3 + 0x1F or -y @ end()", ["x", "y"]),
        ('{__name__=~"llm_.*", a="}{"} unless z', ['{__name__=~"llm_.*", a="}{"}', "z"]),
        ('label_replace(up{}, "by", "$1", "sum", "(.*)") # and not_me', ["up{}"]),
        ("rate(x[5m:30s]) + rate(x[1m])", ["x"]),
        ("vector(1) + time() * NaN + Inf", []),
        ("x {a='b'} @ 1609746000", ["x{a='b'}"]),
        ("SUM BY (le) (x)", ["x"]),
    ],
)
def test_selectors(query: str, found: list[str]) -> None:
    assert selectors(query) == found


def test_what_our_load_generator_counts_is_told_apart() -> None:
    assert is_of_the_load('aftershock_requests_total{phase="chaos"}')
    assert is_of_the_load('{__name__=~"aftershock_.*"}')
    assert not is_of_the_load('vllm:requests_total{model="aftershock_x"}')
