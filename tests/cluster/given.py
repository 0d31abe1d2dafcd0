"""A cluster of the user's own instead of the rig's: with real Litmus, deploy/ applied, and pod-delete where chaos is.

Nothing in it is killed or restarted but the target that the tests make; tests that need more skip there and say so.
"""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from aftershock.errors import InfrastructureError
from tests.cluster.rig.images import IMAGE

KUBECONFIG_VARIABLE = "TEST_CLUSTER_KUBECONFIG"
"""Names the kubeconfig; never KUBECONFIG itself, which may well lead to production."""
IMAGE_VARIABLE = "TEST_CLUSTER_IMAGE"
"""A busybox that the cluster can pull."""


@dataclass(frozen=True)
class GivenCluster:
    """What the tests of the backend need of a cluster."""

    kubeconfig: Path

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """What `kubectl ARGUMENTS` prints. Raises InfrastructureError with its own words if it fails."""
        command = ["kubectl", f"--kubeconfig={self.kubeconfig}", *arguments]
        try:
            done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
        except FileNotFoundError as error:
            raise InfrastructureError("there is no kubectl on PATH; install one") from error
        if done.returncode != 0:
            raise InfrastructureError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
        return done.stdout


def given_cluster() -> GivenCluster | None:
    """The cluster that the environment names."""
    named = os.environ.get(KUBECONFIG_VARIABLE)
    return GivenCluster(Path(named).absolute()) if named else None


def target_image() -> str:
    """Of the target's pods."""
    return os.environ.get(IMAGE_VARIABLE) or IMAGE
