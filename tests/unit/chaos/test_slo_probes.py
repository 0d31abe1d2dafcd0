"""Stop conditions as promProbes: what Prometheus is asked in the end is what was meant, and the answer one number."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aftershock.chaos.lint.promql import may_be_nan, samples, tokens
from aftershock.chaos.lint.rules.probes import seconds
from aftershock.chaos.slo_probes import shell_query, slo_probes
from aftershock.errors import InputError
from aftershock.experiment import Experiment, validate
from aftershock.files import data_folder
from aftershock.slo.live import live_query
from aftershock.slo.openslo import load_slos

SLO = """\
apiVersion: openslo/v1
kind: Service
metadata: {name: shop}
spec: {description: A service.}
---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: errors
  annotations: {aftershock.io/stop: "50", aftershock.io/stop-for: 10s}
spec:
  service: shop
  budgetingMethod: Occurrences
  indicator:
    metadata: {name: errors}
    spec:
      ratioMetric:
        counter: true
        bad: {metricSource: {type: Prometheus, spec: {query: 'requests_total{phase="{{ phase }}", outcome!="ok"}'}}}
        total: {metricSource: {type: Prometheus, spec: {query: 'requests_total{phase="{{ phase }}"}'}}}
  objectives: [{targetPercent: 99}]
---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: ready
  annotations: {aftershock.io/stop: "1"}
spec:
  service: shop
  budgetingMethod: Occurrences
  indicator:
    metadata: {name: ready}
    spec: {thresholdMetric: {metricSource: {type: Prometheus, spec: {query: 'READY'}}}}
  objectives: [{op: gte, value: 2, target: 0.99}]
"""
READY = 'sum(up{job="model"})'


def experiment(slo: str = SLO, ready: str = READY, **fields: Any) -> Experiment:
    given = {"backend": "litmus", "target_url": "http://model", "slo_probes": "http://prometheus.monitoring:9090"}
    return validate({**given, "slo": slo.replace("READY", ready.replace("'", "''")), **fields}, "test")


def refused(**fields: Any) -> str:
    with pytest.raises(InputError) as caught:
        slo_probes(experiment(**fields))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def asked(query: str) -> str:
    """What a program gets that Litmus' shell is told to start with the query."""
    command = f'printf %s "{query}" --output csv'.replace(" --output csv", "")
    return subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, check=True).stdout


def test_a_probe_says_what_has_to_hold_and_how_long_a_breach_lasts() -> None:
    errors, ready = slo_probes(experiment())
    assert (errors["name"], errors["type"], errors["mode"]) == ("slo-errors", "promProbe", "Continuous")
    assert errors["promProbe/inputs"]["comparator"] == {"criteria": "<=", "value": "50"}
    assert ready["promProbe/inputs"]["comparator"] == {"criteria": ">=", "value": "1"}
    for probe, lasts_s in ((errors, 10), (ready, 5)):
        properties = probe["runProperties"]
        assert properties["stopOnFailure"] is True
        assert (properties["attempt"] - 1) * (seconds(properties["interval"]) or 0) == lasts_s
        assert seconds(properties["initialDelay"]) == 2
    slow = slo_probes(experiment(scrape_interval_s=4))[0]["runProperties"]
    assert (slow["interval"], slow["attempt"], slow["initialDelay"]) == ("4s", 4, "8s")
    odd = slo_probes(experiment(scrape_interval_s=1.5))[0]["runProperties"]
    assert (odd["interval"], odd["attempt"]) == ("1500ms", 8)


def test_the_query_is_the_live_one_and_is_one_number_whatever_there_is() -> None:
    for probe, objective in zip(slo_probes(experiment()), load_slos(experiment().slo), strict=True):
        query = probe["promProbe/inputs"]["query"]
        inner = live_query(objective, lookback_s=10)
        assert (
            asked(query) == query == f"max(({inner.replace(chr(34), chr(39))}) >= -Inf) or vector({objective.value:g})"
        )
        found = samples(query)
        assert found and not found.many
        assert not may_be_nan(query)
        assert objective.stop and objective.op.holds(objective.value, objective.stop.bound), "no data is no breach"


def test_the_look_back_is_long_enough_for_a_rate_and_for_a_share() -> None:
    assert "[10000ms]" in str(slo_probes(experiment()))
    assert "[60000ms]" in str(slo_probes(experiment(scrape_interval_s=15)))
    assert "[20000ms]" in str(slo_probes(experiment(rate=0.5)))


def test_the_shipped_specification_can_be_watched_by_litmus() -> None:
    (probe,) = slo_probes(experiment((data_folder("slo_specs") / "llm-inference.yaml").read_text()))
    assert probe["name"] == "slo-error-rate"


def test_names_are_labels_and_differ() -> None:
    slo = SLO.replace("name: ready\n", f"name: {'a' * 60}\n").replace("name: errors\n", f"name: {'a' * 61}\n")
    names = [probe["name"] for probe in slo_probes(experiment(slo))]
    assert len(set(names)) == 2
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names)


def test_without_a_stop_condition_it_says_how_to_mark_one() -> None:
    assert "annotation aftershock.io/stop" in refused(slo="canary")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"slo_probes": "auto"}, "prometheus_url=embedded: the pods of a cluster cannot reach it"),
        ({"slo_probes": "auto", "prometheus_url": "http://localhost:9090"}, "prometheus_url=http://localhost:9090"),
        ({"slo_probes": "http://127.0.0.2:9090"}, "slo_probes=http://127.0.0.2:9090"),
        ({"slo_probes": "http://[::1]:9090"}, "cannot reach it"),
        ({"slo_probes": "http://0.0.0.0"}, "cannot reach it"),
        ({"slo_probes": "http://x.localhost/prometheus"}, "cannot reach it"),
    ],
)
def test_a_prometheus_that_pods_cannot_reach_is_refused(fields: dict[str, str], said: str) -> None:
    assert said in refused(**fields)


def test_auto_is_the_prometheus_of_the_run() -> None:
    probe = slo_probes(experiment(slo_probes="auto", prometheus_url="http://prometheus:9090"))[0]
    assert probe["promProbe/inputs"]["endpoint"] == "http://prometheus:9090"


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sum(up{job=~\"a\\\\.b\"})", "holds '\\\\', which does not get through the shell that Litmus"),
        ("sum(up{job=~\"a$\"})", "objective ready: the label value 'a$' holds '$'"),
        ("sum(up{job=\"it's\"})", "holds \"'\""),
        ("sum(up{job=`a\"b`})", "holds '\"'"),
        ("up", "may return several samples"),
        ("sum by (pod) (up)", "may return several samples"),
    ],
)  # fmt: skip
def test_a_query_that_cannot_be_asked_through_a_shell_is_refused(query: str, said: str) -> None:
    assert said in refused(ready=query)


@pytest.mark.parametrize(
    ("query", "meant"),
    [
        ('up{a="b"}', "up{a='b'}"),
        ("up{a=`b`, c='d'}", "up{a='b', c='d'}"),
        ("sum(\n  up  # don't\n)", "sum( up )"),
        ('up{a="# no remark"}', "up{a='# no remark'}"),
        ('up{a="ü 🌍 %d !x ~ *"}', "up{a='ü 🌍 %d !x ~ *'}"),
    ],
)
def test_a_query_is_written_so_that_the_shell_leaves_it_alone(query: str, meant: str) -> None:
    assert shell_query(query) == meant == asked(meant)


@pytest.mark.parametrize("query", ['up{a="b}', "$(id)", "`id", "up{a='b}", "a\\b", 'a"b', "a\x00b", "up{a='x\x07'}"])
def test_what_is_no_promql_is_refused_too(query: str) -> None:
    with pytest.raises(ValueError, match="does not get through the shell"):
        shell_query(query)


QUOTES: list[Callable[[str], str]] = [
    lambda value: '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"',
    lambda value: "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'",
]


@settings(max_examples=150, deadline=None)
@given(st.text(min_size=1, max_size=30), st.sampled_from(QUOTES))
def test_any_label_value_reaches_prometheus_as_it_is_or_is_refused(value: str, quoted: Callable[[str], str]) -> None:
    assume("{{" not in value and "{%" not in value and "{#" not in value)  # those are the SLO's own
    query = f"sum(up{{job={quoted(value)}}})"
    try:
        written = shell_query(query)
    except ValueError as error:
        assert "\n" not in str(error)
        assert set(value) & set("\"'$`\\") or not value.isprintable()
        return
    received = asked(written)
    assert received == written
    words = [token.text for token in tokens(received) or []]
    assert words == ["sum", "(", "up", "{", "job", "=", f"'{value}'", "}", ")"]


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60))
def test_any_text_gets_through_the_shell_unchanged_or_is_refused(text: str) -> None:
    try:
        written = shell_query(text)
    except ValueError:
        return
    assert asked(written) == written
    assert yaml.safe_load(yaml.safe_dump(written)) == written
