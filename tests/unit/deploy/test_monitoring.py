"""Monitoring speaks of metrics, ports, tasks and bounds that there are, and says the same in both of its forms."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from aftershock.chaos.template import list_faults
from aftershock.experiment import Experiment
from aftershock.files import data_folder
from aftershock.load.metrics import PhaseMetrics
from aftershock.load.plan import KEEPING_UP_LAG_S
from aftershock.windows import Phase

Object = dict[str, Any]
Build = Callable[[str], list[Object]]

VLLM_AND_LLAMACPP = {
    "vllm:request_success_total",
    "vllm:e2e_request_latency_seconds_bucket",
    "vllm:time_to_first_token_seconds_bucket",
    "vllm:inter_token_latency_seconds_bucket",
    "vllm:num_requests_waiting",
    "llamacpp:tokens_predicted_total",
    "llamacpp:tokens_predicted_seconds_total",
    "llamacpp:requests_deferred",
}
"""As scraped from vLLM 0.32 and llama.cpp of 2026-10. vLLM renames metrics now and then: look before adding one."""
KUBE_STATE_METRICS = {"kube_job_status_start_time", "kube_job_status_active"}
DEFAULT = Experiment()


@pytest.fixture(scope="module")
def monitors(build: Build) -> dict[str, Object]:
    return {item["kind"]: item["spec"] for item in build("monitoring")}


@pytest.fixture(scope="module")
def rules(deploy: Path) -> dict[str, Object]:
    return {rule.get("record") or rule["alert"]: rule for rule in _rules(deploy)}


def _rules(deploy: Path) -> Iterator[Object]:
    for group in yaml.safe_load((deploy / "prometheus" / "rules.yaml").read_text())["groups"]:
        yield from group["rules"]


def test_the_operator_gets_the_same_rules(deploy: Path, monitors: dict[str, Object]) -> None:
    plain = yaml.safe_load((deploy / "prometheus" / "rules.yaml").read_text())
    assert monitors["PrometheusRule"] == plain


def test_rules_ask_for_metrics_that_there_are(rules: dict[str, Object]) -> None:
    page = PhaseMetrics(Phase.CHAOS).page().decode()
    ours = set(re.findall(r"^(aftershock_\w+)", page, re.MULTILINE))
    known = ours | VLLM_AND_LLAMACPP | KUBE_STATE_METRICS | rules.keys() | {"up"}
    for name, rule in rules.items():
        expression = re.sub(r'"[^"]*"', "", rule["expr"])
        asked = set(re.findall(r"\b(?:\w+:\w+(?::\w+)?|aftershock_\w+|kube_\w+|up)\b", expression))
        assert asked, name
        assert asked <= known, name


def test_alerts_have_the_bounds_that_aftershock_judges_by(rules: dict[str, Object]) -> None:
    documents = yaml.safe_load_all((data_folder("slo_specs") / "llm-inference.yaml").read_text())
    (errors,) = [each for each in documents if each["metadata"]["name"] == "error-rate"]
    budget = 1 - errors["spec"]["objectives"][0]["targetPercent"] / 100
    burn = float(rules["AftershockErrorBudgetBurn"]["expr"].rpartition("*")[2])
    assert burn == pytest.approx(budget)
    assert rules["AftershockLoadBehindSchedule"]["expr"].endswith(f"> {KEEPING_UP_LAG_S}")


def test_the_job_of_every_fault_is_known(rules: dict[str, Object]) -> None:
    patterns = re.findall(r'job_name=~"([^"]*)"', rules["AftershockFaultRunsLong"]["expr"])
    for fault in list_faults():
        matching = [pattern for pattern in patterns if re.fullmatch(pattern, f"{fault.name}-a1b2c3")]
        assert len(matching) == 1, fault.name  # a series that two branches match would be asked for twice
    for stranger in ("model-server-a1b2c3", "pod-delete", "pod-backup-a1b2c3", "slo-chaos-a1b2c3"):
        assert not any(re.fullmatch(pattern, stranger) for pattern in patterns)


def test_alerts_say_what_to_do(rules: dict[str, Object]) -> None:
    alerts = [rule for rule in rules.values() if "alert" in rule]
    assert len(alerts) == 5
    for alert in alerts:
        assert alert["labels"]["severity"] in ("warning", "critical")
        assert alert["annotations"].keys() == {"summary", "action"}


def test_scrapes_are_as_an_experiment_takes_them_for_granted(monitors: dict[str, Object]) -> None:
    for endpoint in (*monitors["PodMonitor"]["podMetricsEndpoints"], *monitors["ServiceMonitor"]["endpoints"]):
        assert endpoint["interval"] == endpoint["scrapeTimeout"] == f"{DEFAULT.scrape_interval_s:g}s"
    (load,) = monitors["PodMonitor"]["podMetricsEndpoints"]
    (address,) = [rule for rule in load["relabelings"] if rule.get("targetLabel") == "__address__"]
    assert address["replacement"] == f"$1:{DEFAULT.metrics_port}"
    assert monitors["ServiceMonitor"]["namespaceSelector"]["matchNames"] == [DEFAULT.namespace]
    assert monitors["ServiceMonitor"]["selector"]["matchLabels"] == dict([DEFAULT.label.split("=")])


def test_prometheus_may_reach_the_load(build: Build) -> None:
    (policy,) = [item["spec"] for item in build("kubeflow") if item["kind"] == "NetworkPolicy"]
    (ingress,) = policy["ingress"]
    assert ingress["ports"] == [{"port": DEFAULT.metrics_port, "protocol": "TCP"}]


def test_the_pod_monitor_keeps_exactly_the_tasks_that_load(monitors: dict[str, Object]) -> None:
    """Of the compiled pipeline, as Argo names their pods' nodes: `executor` below the task is what KFP 2 makes."""
    (load,) = monitors["PodMonitor"]["podMetricsEndpoints"]
    keep = next(rule["regex"] for rule in load["relabelings"] if "node_name" in rule["sourceLabels"][0])
    package = (data_folder("pipelines") / "slo_chaos" / "pipeline.yaml").read_text()
    tasks = next(yaml.safe_load_all(package))["root"]["dag"]["tasks"]
    component = re.compile(r"comp-(load|chaos)(-\d+)?")
    loading = {name for name, task in tasks.items() if component.fullmatch(task["componentRef"]["name"])}
    assert {"load", "load-2", "chaos"} <= loading
    for task in tasks:
        for retry in ("", "(0)"):
            node = f"slo-chaos-x7k2p.root.{task}.executor{retry}"
            assert bool(re.fullmatch(keep, node)) == (task in loading), node
        assert not re.fullmatch(keep, f"slo-chaos-x7k2p.root.{task}-driver")


def test_a_prometheus_without_operator_scrapes_the_same(deploy: Path, monitors: dict[str, Object]) -> None:
    configs = yaml.safe_load((deploy / "prometheus" / "scrape.yaml").read_text())["scrape_configs"]
    plain = {config["job_name"]: config for config in configs}
    (load,) = monitors["PodMonitor"]["podMetricsEndpoints"]
    snake = {"sourceLabels": "source_labels", "targetLabel": "target_label"}
    relabelings = [{snake.get(key, key): value for key, value in rule.items()} for rule in load["relabelings"]]
    assert plain["aftershock-load"]["relabel_configs"][-len(relabelings) :] == relabelings
    (discovery,) = plain["aftershock-load"]["kubernetes_sd_configs"]
    ((label, value),) = monitors["PodMonitor"]["selector"]["matchLabels"].items()
    assert discovery["selectors"] == [{"role": "pod", "label": f"{label}={value}"}]
    assert discovery["namespaces"]["names"] == monitors["PodMonitor"]["namespaceSelector"]["matchNames"]
    assert {config["scrape_interval"] for config in configs} == {load["interval"]}
