"""Furnish the test cluster for use by hand: the recorded Litmus, the rights of deploy/, model servers, Prometheus.

python -m tests.cluster.rig exec -- .venv/bin/python -m tests.cluster.furnish
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from aftershock.errors import AftershockError
from tests.cluster.recorded_litmus.install import experiment_document, host_pieces, install
from tests.cluster.rig import workload
from tests.cluster.rig.cluster import DIRECTORY_VARIABLE, Cluster
from tests.cluster.rig.layout import REPOSITORY, Layout, default_directory
from tests.cluster.rig.manifests import apply, namespace

CHAOS = "aftershock-chaos"
"""Namespace of the chaos in deploy/."""
TARGET = "inference"
"""Namespace of the target in deploy/."""


def deploy(cluster: Cluster, *, litmus_speed: float = 1.0) -> None:
    """Litmus' kinds and the recorded operator, deploy/ as it is, and the ChaosExperiment pod-delete.

    `litmus_speed` divides the recorded Litmus' own waits. Raises InfrastructureError with kubectl's words.
    """
    install(cluster, factor=litmus_speed)
    apply(cluster, [namespace(TARGET)])
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--kustomize", str(REPOSITORY / "deploy"))
    apply(cluster, [experiment_document(CHAOS, host_pieces())])


def main() -> int:
    """Furnish the cluster that this runs in, and say how to use it."""
    cluster = Cluster(Layout.of(Path(os.environ.get(DIRECTORY_VARIABLE) or default_directory())))
    try:
        deploy(cluster)
        workload.install(cluster)
    except AftershockError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    run = (
        f"aftershock run --backend litmus --target-url {workload.MODEL_URL} --prometheus-url {workload.PROMETHEUS_URL} "
        f"--store-endpoint none --chaos-namespace {CHAOS}"
    )
    sys.stdout.write(f"chaos      python -m tests.cluster.rig exec -- .venv/bin/{run}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
