"""Probes beside a fault: good ones land in every experiment as they were given, the others are named with a line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aftershock.chaos.adopt import adopt
from aftershock.chaos.lint.crd import schemas
from aftershock.chaos.lint.linter import lint
from aftershock.chaos.probes import read_probes_text
from aftershock.chaos.render import render, render_fault
from aftershock.errors import EngineError, InputError
from aftershock.experiment import Experiment, validate

HTTP = """\
- name: health
  type: httpProbe
  mode: Continuous
  httpProbe/inputs:
    url: http://model.inference.svc:8000/health
    method:
      get: {criteria: ==, responseCode: "200"}
  runProperties: {probeTimeout: 2s, interval: 1s, attempt: 3, probePollingInterval: 2s, stopOnFailure: true}
"""
INPUTS = "type: httpProbe\n  mode: Continuous\n  httpProbe/inputs:"
CMD = """\
- name: answers
  type: cmdProbe
  mode: Edge
  cmdProbe/inputs:
    command: curl -s --data '{"model":"m"}' http://model/v1/completions | head -c 20 ${MORE}
    comparator: {type: string, criteria: contains, value: choices}
    source: {image: curlimages/curl:8.9.1}
  runProperties: {probeTimeout: 5s, interval: 1s, attempt: 1}
"""
K8S = """\
- name: pods-there
  type: k8sProbe
  mode: EOT
  k8sProbe/inputs:
    {group: "", version: v1, resource: pods, namespace: inference, labelSelector: app=model-server, operation: present}
  runProperties: {probeTimeout: 2s, interval: 1s, attempt: 3}
"""
PROM = """\
- name: errors
  type: promProbe
  mode: Continuous
  promProbe/inputs:
    endpoint: http://prometheus.monitoring:9090
    query: sum(rate(http_requests_total{code='500'}[1m])) or vector(0)
    comparator: {criteria: "<=", value: "0.1"}
  runProperties: {probeTimeout: 2s, interval: 1s, attempt: 3}
"""
ALL = HTTP + CMD + K8S + PROM
LITMUS = {"backend": "litmus", "target_url": "http://model", "prometheus_url": "http://prometheus:9090"}


def experiment(probes: str = ALL, **fields: Any) -> Experiment:
    return validate({"run_id": "r-1", **LITMUS, "probes": probes, **fields}, "test")


def refused(probes: str, **fields: Any) -> str:
    with pytest.raises(InputError) as caught:
        render(experiment(probes, **fields))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return str(caught.value)


def probes_of(text: str) -> list[list[dict[str, Any]]]:
    return [item["spec"]["probe"] for item in yaml.safe_load(text)["spec"]["experiments"]]


def assert_accepted(text: str) -> None:
    """By the published CRDs, pruning nothing, and by our own linter."""
    document = yaml.safe_load(text)
    for name, schema in schemas().items():
        assert [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(document)] == [], name
    assert lint(text, "rendered") == []


@pytest.mark.parametrize("probes", [HTTP, CMD, K8S, PROM, ALL])
def test_probes_of_every_type_land_as_they_are(probes: str) -> None:
    text = render(experiment(probes))
    assert_accepted(text)
    assert probes_of(text) == [yaml.safe_load(probes)]
    without = yaml.safe_load(text)
    del without["spec"]["experiments"][0]["spec"]["probe"]
    assert without == yaml.safe_load(render(experiment("none")))


def test_they_go_into_every_experiment() -> None:
    fields = {"fault": "pod-delete,pod-network-latency", "fault_parameters": {"pod-network-latency.SOURCE_PORTS": "80"}}
    text = render(experiment(**fields))
    assert_accepted(text)
    assert probes_of(text) == [yaml.safe_load(ALL)] * 2


def test_probes_are_a_file_or_the_yaml_itself(tmp_path: Path) -> None:
    (tmp_path / "probes.yaml").write_text(ALL)
    file = str(tmp_path / "probes.yaml")
    assert render(experiment(file)) == render(experiment(ALL)) == render(experiment(read_probes_text(file)))
    assert read_probes_text("none") == "none"
    with pytest.raises(EngineError, match=r"probes=nowhere\.yaml: there is no such file"):
        read_probes_text("nowhere.yaml")


def test_those_of_the_slo_come_beside_them() -> None:
    slo = {"slo": "llm-inference", "slo_probes": "auto"}
    text = render(experiment(**slo))
    assert_accepted(text)
    assert [probe["name"] for probe in probes_of(text)[0]][-2:] == ["errors", "slo-error-rate"]
    assert_accepted(render(experiment("none", **slo)))
    assert "two probes are called slo-error-rate" in refused(
        HTTP.replace("name: health", "name: slo-error-rate"), **slo
    )


def test_they_go_beside_those_of_an_engine_of_ones_own() -> None:
    own = render(experiment(HTTP))
    text = adopt(experiment(CMD, engine=own))
    assert_accepted(text)
    assert probes_of(text) == [yaml.safe_load(HTTP + CMD)]
    assert text.startswith("# The ChaosEngine pod-delete-r-1 as it was given")
    with pytest.raises(InputError, match="experiment pod-delete: two probes are called health"):
        adopt(experiment(HTTP, engine=own))


@pytest.mark.parametrize(
    ("good", "old", "new", "said"),
    [
        (HTTP, "type: httpProbe", "type: HTTPProbe", "probes:2: probe-type: probe[0].type='HTTPProbe'"),
        (HTTP, "mode: Continuous", "mode: continuous", "probes:3: probe-mode: "),
        (HTTP, "mode: Continuous", "mode: EoT", "probes:3: probe-mode: "),
        (HTTP, "  mode: Continuous\n", "", "probes:1: probe-mode: probe[0] has no mode"),
        (HTTP, "probeTimeout: 2s", "probeTimeout: 2", "probes:8: probe-duration: "),
        (HTTP, "interval: 1s", "interval: '1'", "probes:8: probe-duration: "),
        (HTTP, "interval: 1s, ", "", "probes:8: probe-run-properties: "),
        (HTTP, "attempt: 3", "attempt: '3'", "probes:8: probe-count: "),
        (HTTP, "attempt: 3", "tries: 3", "probes:8: probe-property-unknown: probe[0].runProperties.tries is unknown"),
        (HTTP, "attempt: 3", "initialDelaySeconds: 3", "probe-initial-delay-seconds: "),
        (HTTP, "attempt: 3", "verbosity: debug", "field-partly: "),
        (HTTP, "get: {", "post: {body: x, ", "probes:7: probe-post: "),
        (HTTP, "    method:", "    headers: x\n    method:", "field-pruned: probe[0].httpProbe/inputs.headers"),
        (HTTP, "  type: httpProbe", "  timeout: 5s\n  type: httpProbe", "field-pruned: probe[0].timeout"),
        (HTTP, 'responseCode: "200"', "responseCode: 200", "field-type: "),
        (HTTP, "httpProbe/inputs", "cmdProbe/inputs", "probe-inputs: "),
        (HTTP, "probeTimeout: 2s", "probeTimeout: 40s", "probe-timeout-long: "),
        (HTTP, "attempt: 3", "initialDelay: 40s", "probes:8: probe-too-late: "),
        (HTTP, "name: health", "name: My health", "probes:1: name='My health': must be 1 to 63"),
        (HTTP, "name: health", f"name: {'x' * 64}", "must be 1 to 63"),
        (HTTP, INPUTS, INPUTS.replace("http", "slo"), "probes:2: probe-slo: "),
        (CMD, "type: string, ", "", "comparator-type: "),
        (CMD, "source: {image: curlimages/curl:8.9.1}", "source: inline", "probe-source-text: "),
        (CMD, "criteria: contains", "criteria: has", "comparator: "),
        (K8S, "version: v1, ", "", "field-missing: "),
        (PROM, "code='500'", 'code="500"', "query-quotes: "),
        (PROM, "code='500'", "code=~'5$code'", "query-shell: "),
        (PROM, "'500'", "'${CODE}'", "is for a workflow engine to fill in"),
        (PROM, "'500'", "'{{code}}'", "is for a workflow engine to fill in"),
        (PROM, "sum(rate(http_requests_total{code='500'}[1m])) or vector(0)", "http_requests_total", "query-many: "),
        (PROM, "sum(rate(http_requests_total{code='500'}[1m])) or vector(0)", "sum(a) / sum(b)", "query-nan: "),
        (PROM, ":9090", ":9090/$(id)", "query-endpoint: "),
        (PROM, 'value: "0.1"', 'value: "0.1s"', "no number, so Litmus takes it for 0"),
        (PROM, 'value: "0.1"', "value: 0.1", "comparator: "),
        (PROM, "criteria: ", "type: float, criteria: ", "comparator-type: "),
        (PROM, "mode: Continuous", "mode: OnChaos", "OK"),
        (PROM.replace("Continuous", "OnChaos"), "attempt: 3", "initialDelay: 2s", "probe-initial-delay: "),
    ],
)  # fmt: skip
def test_what_litmus_would_refuse_misread_or_pass_over_is_named(good: str, old: str, new: str, said: str) -> None:
    assert old in good
    assert_accepted(render(experiment(good)))
    if said == "OK":
        assert_accepted(render(experiment(good.replace(old, new, 1))))
        return
    message = refused(good.replace(old, new, 1))
    assert message.startswith("probes:")
    assert said in message
    assert "spec.experiments" not in message, "its author wrote a list of probes"


def test_the_line_is_that_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(ALL.replace("mode: Edge", "mode: edge"))
    fields = {"fault": "pod-delete,pod-network-latency", "fault_parameters": {"pod-network-latency.SOURCE_PORTS": "80"}}
    said = refused(str(tmp_path / "mine.yaml"), **fields)
    assert said.startswith(f"{tmp_path}/mine.yaml:11: probe-mode: probe[1].mode='edge'")
    assert "more after it" not in said, "the same probe in two experiments is one mistake"
    (tmp_path / "mine.yaml").write_text(ALL.replace("mode: E", "mode: e"))
    assert "; 1 more after it" in refused(str(tmp_path / "mine.yaml"))


@pytest.mark.parametrize(
    ("probes", "said"),
    [
        ("a:\n  b", "must be one list of probes"),
        ("{}", "must be one list of probes"),
        ("[]", "must be one list of probes"),
        ("# nothing\n", "must be one list of probes"),
        (HTTP + "---\n" + CMD, "must be one list of probes, as in spec.experiments[].spec.probe, is 2 documents"),
        ("- a\n- b\n", "[0]: must be a mapping, is str"),
        ("- {name: a\n", "not YAML"),
        (HTTP + HTTP, "'health' is the name of two probes"),
        ("[" * 3000, "not YAML"),
        ("- &a [*a]\n", "nested too deeply"),
        (HTTP + "- &a {name: x, b: *a}\n", "nested too deeply"),
    ],
)
def test_what_is_no_list_of_probes_is_refused_in_one_line(probes: str, said: str) -> None:
    assert said in refused(probes)


@pytest.mark.parametrize("name", ["probes", "slo_probes"])
def test_without_litmus_nobody_would_run_them(name: str) -> None:
    local = {"backend": "local", "target_url": "embedded", "probes": "none"}
    value = {"probes": ALL, "slo_probes": "http://prometheus:9090"}[name]
    said = refused(**{**local, name: value})
    assert said.startswith(f"{name}: the local backend runs no probes")


def test_the_command_line_renders_for_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "probes.yaml").write_text(ALL)
    assert_accepted(render_fault("pod-delete", {}, cluster=True, probes=str(tmp_path / "probes.yaml")))


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=60), st.sampled_from(["query", "endpoint", "value", "criteria", "name", "mode", "interval"]))
def test_any_text_lands_as_one_scalar_or_is_refused(text: str, where: str) -> None:
    probe = yaml.safe_load(PROM)[0]
    inputs = probe["promProbe/inputs"]
    places = {"query": inputs, "endpoint": inputs, "value": inputs["comparator"], "criteria": inputs["comparator"]}
    places.get(where, probe["runProperties"] if where == "interval" else probe)[where] = text
    try:
        rendered = render(experiment(yaml.safe_dump([probe])))
    except InputError as error:
        assert "\n" not in str(error)
        return
    assert_accepted(rendered)
    assert probes_of(rendered) == [[probe]]
