"""The rules and the scraping of deploy/, in the hands of Prometheus itself: its own checker, and a server."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml

from aftershock.stack.debian import fetch_program
from aftershock.stack.ports import HOST, PortPool
from aftershock.stack.prometheus import cache_folder, find_binary

pytestmark = pytest.mark.integration

PROMETHEUS = Path(__file__).parents[3] / "deploy" / "prometheus"
NODE_NAME = "__meta_kubernetes_pod_annotation_workflows_argoproj_io_node_name"


@pytest.fixture(scope="module")
def promtool() -> Path:
    """Prometheus' checker, which comes in the same package as the server."""
    if found := shutil.which("promtool"):
        return Path(found)
    cached = cache_folder() / "promtool"
    fetch_program("prometheus", "usr/bin/promtool", cached)
    return cached


def test_the_rules_are_rules(promtool: Path) -> None:
    done = subprocess.run([promtool, "check", "rules", PROMETHEUS / "rules.yaml"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_fires_when_it_must_and_only_then(promtool: Path, tmp_path: Path) -> None:
    shutil.copy(PROMETHEUS / "rules.yaml", tmp_path)
    played = Path(shutil.copy(Path(__file__).with_name("alerts.yaml"), tmp_path))
    done = subprocess.run([promtool, "test", "rules", played], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    rules = _rules(yaml.safe_load((PROMETHEUS / "rules.yaml").read_text()))
    fired = {
        check["alertname"]
        for test in yaml.safe_load(played.read_text())["tests"]
        for check in test.get("alert_rule_test", [])
        if check["exp_alerts"]
    }
    assert fired == {rule["alert"] for rule in rules if "alert" in rule}


def _rules(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for group in document["groups"]:
        yield from group["rules"]


def pod(name: str, ip: str, node: str = "", phase: str = "Running", port: str = "", **labels: str) -> Iterator[Any]:
    """The targets that Prometheus' discovery makes of a pod: one a container, with the declared port or without."""
    for container in ("init", "wait", "main"):
        yield {
            "targets": [f"{ip}:{port}" if port else ip],
            "labels": {
                "__meta_kubernetes_namespace": "kubeflow",
                "__meta_kubernetes_pod_name": name,
                "__meta_kubernetes_pod_ip": ip,
                "__meta_kubernetes_pod_phase": phase,
                "__meta_kubernetes_pod_container_name": container,
                "__meta_kubernetes_pod_container_port_name": "http" if port and container == "main" else "",
                NODE_NAME: node,
                **labels,
            },
        }


@pytest.fixture(scope="module")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[dict[str, Any]]]:
    """What a real Prometheus makes of these pods by deploy/'s relabelling. Their addresses lead nowhere (RFC 5737).

    The pods are listed by hand: Debian's Prometheus is built without Kubernetes' discovery.
    """
    pods = {
        "model-server": [*pod("model-server-0", "192.0.2.10", port="8000")],
        "aftershock-load": [
            *pod("baseline", "192.0.2.1", "slo-chaos-x7k2p.root.load.executor"),
            *pod("recovery", "192.0.2.2", "slo-chaos-x7k2p.root.load-2.executor"),
            *pod("chaos", "192.0.2.3", "slo-chaos-x7k2p.root.chaos.executor(0)"),
            *pod("over", "192.0.2.4", "slo-chaos-w9q1z.root.load.executor", phase="Succeeded"),
            *pod("driver", "192.0.2.5", "slo-chaos-x7k2p.root.load-driver"),
            *pod("report", "192.0.2.6", "slo-chaos-x7k2p.root.report.executor"),
            *pod("other", "192.0.2.7", "etl-b1c2d.root.download.executor"),
        ],
    }
    folder = tmp_path_factory.mktemp("prometheus")
    document = yaml.safe_load((PROMETHEUS / "scrape.yaml").read_text())
    for config in document["scrape_configs"]:
        del config["kubernetes_sd_configs"]
        config["static_configs"] = pods[config["job_name"]]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(document))
    pool = PortPool()
    address = f"{HOST}:{pool.take()}"
    arguments = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen([find_binary(), *arguments, f"--web.listen-address={address}"], stderr=log)
    try:
        yield _targets(address, server, folder / "log")
    finally:
        server.kill()
        server.wait()
        pool.close()


def _targets(address: str, server: subprocess.Popen[bytes], log: Path) -> list[dict[str, Any]]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        assert server.poll() is None, log.read_text()
        try:
            with urlopen(f"http://{address}/api/v1/targets?state=active", timeout=5) as answer:
                found: list[dict[str, Any]] = json.load(answer)["data"]["activeTargets"]
        except (URLError, ConnectionError):
            found = []
        if len({target["labels"]["job"] for target in found}) == 2:
            return found
        time.sleep(0.05)
    pytest.fail(f"the targets of both jobs did not come within 30 s: {log.read_text()}")


def test_each_load_is_scraped_once_at_its_undeclared_port(targets: list[dict[str, Any]]) -> None:
    """Once, whatever its pod's number of containers: twice would count every request twice."""
    loads = [target for target in targets if target["labels"]["job"] == "aftershock-load"]
    assert sorted((target["labels"]["pod"], target["scrapeUrl"]) for target in loads) == [
        ("baseline", "http://192.0.2.1:9464/metrics"),
        ("chaos", "http://192.0.2.3:9464/metrics"),
        ("recovery", "http://192.0.2.2:9464/metrics"),
    ]
    assert all(target["labels"]["namespace"] == "kubeflow" for target in loads)


def test_model_servers_are_scraped_at_their_port(targets: list[dict[str, Any]]) -> None:
    (server,) = [target for target in targets if target["labels"]["job"] == "model-server"]
    assert server["scrapeUrl"] == "http://192.0.2.10:8000/metrics"
    assert server["labels"]["pod"] == "model-server-0"
