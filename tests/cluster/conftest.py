"""The cluster that the tests of this folder run in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cluster.rig import workload as rig_workload
from tests.cluster.rig.cluster import DIRECTORY_VARIABLE, Cluster
from tests.cluster.rig.layout import Layout

WHAT_TO_DO = (
    "start it with `python -m tests.cluster.rig up`, then run "
    "`python -m tests.cluster.rig exec -- .venv/bin/pytest tests/cluster`"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need the cluster."""
    for item in items:
        if isinstance(item, pytest.Function) and "cluster" in item.fixturenames:
            item.add_marker("cluster")


@pytest.fixture(scope="session")
def cluster() -> Cluster:
    """The cluster in whose network the tests run; all of them share it."""
    directory = os.environ.get(DIRECTORY_VARIABLE)
    if not directory:
        pytest.fail(f"these tests run inside the test cluster; {WHAT_TO_DO}", pytrace=False)
    found = Cluster(Layout.of(Path(directory)))
    if not found.runs():
        ended = "; ".join(str(daemon) for daemon in found.status() if not daemon.alive) or "it was never started"
        pytest.fail(f"the cluster in {directory} does not run: {ended}; {WHAT_TO_DO}", pytrace=False)
    return found


@pytest.fixture(scope="session")
def workload(cluster: Cluster) -> Cluster:
    """The cluster with two ready replicas of the canary model and a Prometheus in it."""
    rig_workload.install(cluster)
    return cluster
