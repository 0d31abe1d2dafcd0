"""Litmus, the rights of deploy/ and a target: once for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.backend.scene import Scene, make_target, token_kubeconfig
from tests.cluster.furnish import CHAOS, deploy
from tests.cluster.given import GivenCluster, given_cluster
from tests.cluster.rig.cluster import Cluster

SPEED = 4.0
"""By how much the recorded Litmus' own waits are shortened here; test_recorded_litmus.py has them as recorded."""


@pytest.fixture(scope="session")
def deployed(request: pytest.FixtureRequest) -> Cluster | GivenCluster:
    """The cluster with Litmus, what deploy/ holds, and the target."""
    cluster = given_cluster()
    if cluster is None:
        rig: Cluster = request.getfixturevalue("cluster")
        deploy(rig, litmus_speed=SPEED)
        make_target(rig)
        return rig
    cluster.kubectl("get", "chaosexperiments/pod-delete", "serviceaccounts/aftershock", f"--namespace={CHAOS}")
    make_target(cluster)
    return cluster


@pytest.fixture(scope="session")
def orchestrator(deployed: Cluster | GivenCluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Kubeconfig of the orchestrator's service account."""
    token = deployed.kubectl("create", "token", "aftershock", f"--namespace={CHAOS}", "--duration=2h").strip()
    return token_kubeconfig(deployed, tmp_path_factory.mktemp("orchestrator") / "kubeconfig", token)


@pytest.fixture
def scene(deployed: Cluster | GivenCluster, orchestrator: Path, tmp_path: Path) -> Iterator[Scene]:
    """A whole target and no chaos, before the test and after it."""
    found = Scene(deployed, orchestrator, tmp_path / "archive")
    found.wait_whole()
    found.assert_clean()
    yield found
    for name in found.names("chaosengines"):  # a test that failed must not fail the next ones
        deployed.kubectl("delete", "chaosengine", name, f"--namespace={CHAOS}", "--timeout=60s")
    for name in found.names("chaosresults"):
        deployed.kubectl("delete", "chaosresult", name, f"--namespace={CHAOS}", "--timeout=60s")
