"""ServiceMonitor, PodMonitor and PrometheusRule of deploy/ hold no field that the Prometheus Operator does not know.

The test cluster lacks its kinds, so its own types read them, strictly: main.go, which is built with the cluster.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from tests.cluster.rig.cluster import Cluster
from tests.cluster.rig.layout import REPOSITORY

MONITORING = REPOSITORY / "deploy" / "monitoring"


@pytest.fixture(scope="module")
def reader(cluster: Cluster) -> Path:
    """The program beside this file, which knows the operator's types."""
    return cluster.layout.programs / "monitors"


def read(reader: Path, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([reader], input=text, capture_output=True, text=True, check=False)


def manifests() -> list[str]:
    names = yaml.safe_load((MONITORING / "kustomization.yaml").read_text())["resources"]
    return [(MONITORING / name).read_text() for name in names]


def test_the_operator_knows_every_field(reader: Path) -> None:
    done = read(reader, "---\n".join(manifests()))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [line.rpartition(" ")[2] for line in done.stdout.splitlines()] == [
        "ServiceMonitor",
        "PodMonitor",
        "PrometheusRule",
    ]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("scrapeTimeout:", "scrape_timeout:"),
        ("sourceLabels:", "source_labels:"),
        ("annotations:", "annotation:"),
        ("interval: 1s", "interval: [1s]"),
        ("monitoring.coreos.com/v1", "monitoring.coreos.com/v2"),
        ("kind: PodMonitor", "kind: PodMonitors"),
    ],
)
def test_the_reader_refuses_what_the_operator_would(right: str, wrong: str, reader: Path) -> None:
    """Else the test above could not fail."""
    text = "---\n".join(manifests())
    assert right in text
    assert read(reader, text.replace(right, wrong)).returncode == 1
