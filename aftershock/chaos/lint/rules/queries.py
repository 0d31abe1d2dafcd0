"""Queries of a promProbe: they go through a shell, and have to come back with exactly one number."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aftershock.chaos.lint.finding import shown
from aftershock.chaos.lint.item import Item
from aftershock.chaos.lint.promql import may_be_nan, samples, tokens
from aftershock.chaos.lint.registry import ERROR, WARNING, Hit, Probe, probe_rule

_GO = "litmus-go 3.31.0, pkg/probe/promprobe.go"
_SHELL = {"$": re.compile(r"\$[A-Za-z0-9_{(@*#?!$-]"), "`": re.compile("`"), "\\": re.compile(r"\\")}
_PLACEHOLDER = re.compile(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}")
"""What envsubst and Kustomize fill in before Litmus sees it."""


@probe_rule("query-missing", ERROR, "A promProbe without a query", _GO)
def query_missing(probe: Probe) -> Iterator[Hit]:
    """One of query and queryPath."""
    inputs = probe.item.get("promProbe/inputs")
    if inputs and not inputs.string("query").strip() and not inputs.string("queryPath"):
        place = inputs.get("query") or inputs
        yield Hit(place, f"{inputs.path} has neither query nor queryPath", "add query")


@probe_rule("query-quotes", ERROR, "Double quotes in a query", f"{_GO}: sh -c 'promql ... \"QUERY\"'; tried with sh")
def query_quotes(probe: Probe) -> Iterator[Hit]:
    """The shell takes them away, and Prometheus refuses what is left."""
    for query in _queries(probe, of_template=True):
        if '"' in query.value:
            words = tokens(query.value) or []
            unsafe = [
                word for word in words if word.kind == "string" and any(sign in word.text[1:-1] for sign in "'\"\\`")
            ]
            yield Hit(
                query,
                f"{query.path}={shown(query.value)}: Litmus' shell takes the double quotes away",
                "quote label values with '",
                query.replace_quotes() if words and not unsafe else (),
            )


@probe_rule("query-shell", ERROR, "Signs in a query that the shell interprets", _GO)
def query_shell(probe: Probe) -> Iterator[Hit]:
    """$, ` and \\ mean something within double quotes; a $ does not where no name can follow, as at the end."""
    for query in _queries(probe, of_template=True):
        text = _PLACEHOLDER.sub("", query.value)
        found = [sign for sign, pattern in _SHELL.items() if pattern.search(text)]
        if found:
            yield Hit(
                query,
                f"{query.path} holds {' and '.join(found)}, which Litmus' shell interprets",
                "do without (regular expressions are anchored anyway), or put the query in a file and give queryPath",
            )


@probe_rule("query-endpoint", ERROR, "Signs in an endpoint that the shell interprets", _GO)
def query_endpoint(probe: Probe) -> Iterator[Hit]:
    """It stands in the shell's command without any quotes."""
    endpoint = probe.item.get("promProbe/inputs", "endpoint")
    if endpoint and not endpoint.is_open and not re.fullmatch(r"[A-Za-z0-9._~:/%@,+=-]+", endpoint.value):
        yield Hit(
            endpoint,
            f"{endpoint.path}={shown(endpoint.value)}: stands without quotes in a shell's command",
            "give the plain URL of Prometheus, as http://prometheus.monitoring:9090",
        )


@probe_rule("query-many", WARNING, "A query that may return several samples", f"{_GO}: exactly one sample")
def query_many(probe: Probe) -> Iterator[Hit]:
    """More than one, or none, is an error of the probe, and before the fault that ends the experiment."""
    for query in _queries(probe):
        found = samples(query.value)
        if found and found.many:
            by = f" (one for each {', '.join(sorted(found.by))})" if found.by else ""
            yield Hit(
                query,
                f"{query.path}={shown(query.value)}: may return several samples{by}; Litmus takes exactly one",
                "wrap it in sum() or max()",
            )


@probe_rule("query-nan", WARNING, "A query that is NaN without traffic", f"{_GO}: every comparison with NaN is false")
def query_nan(probe: Probe) -> Iterator[Hit]:
    """A quantile or a ratio of nothing: the probe fails, although nothing is too slow."""
    for query in _queries(probe):
        if may_be_nan(query.value):
            yield Hit(
                query,
                f"{query.path}={shown(query.value)}: NaN without traffic, and then the probe fails",
                "make sure that there is load, or append `>= 0 or vector(0)`",
            )


def _queries(probe: Probe, of_template: bool = False) -> Iterator[Item]:
    """Its query; one with expressions in it only `of_template`: what is around them is certain all the same."""
    query = probe.item.get("promProbe/inputs", "query")
    if query and query.value and (of_template or not query.is_open):
        yield query
