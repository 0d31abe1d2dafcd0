"""The tests of this folder on a cluster: one that runs, one that is started for them, or none, which is said."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from aftershock.errors import ExitCode, InfrastructureError
from tests.cluster.given import KUBECONFIG_VARIABLE
from tests.cluster.rig import debian, programs
from tests.cluster.rig.cluster import Cluster
from tests.cluster.rig.layout import REPOSITORY, Layout

TESTS = (REPOSITORY / "tests" / "cluster", REPOSITORY / "tests" / "unit" / "deploy")
"""The second has tests that need kubectl, which is here."""
ON_GIVEN = TESTS[0] / "backend" / "test_backend.py"


def obstacle() -> str | None:
    """Why there can be no cluster on this machine; None where there can be one."""
    try:
        debian.missing_packages()
        programs.find_go()
    except InfrastructureError as error:
        return str(error)
    return None


def run_on_given(kubeconfig: Path, arguments: Sequence[str]) -> int:
    """Run what is about the backend on a cluster of the user's own; see tests/cluster/given.py."""
    command = [sys.executable, "-m", "pytest", *(arguments or [str(ON_GIVEN)])]
    environment = {**os.environ, KUBECONFIG_VARIABLE: str(kubeconfig.absolute())}
    return subprocess.run(command, cwd=REPOSITORY, env=environment, check=False).returncode


def run(directory: Path, arguments: Sequence[str], say: Callable[[str], None]) -> int:
    """Run the suite, or the part of it that `arguments`, which are pytest's, choose. The exit code is pytest's.

    A cluster that runs in `directory` is used and left running, otherwise one is started and ended.
    Raises InfrastructureError where there can be none.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(ExitCode.TERMINATED))  # else the cluster would live on
    started = not Cluster(Layout.of(directory)).runs()
    cluster = Cluster.start(directory, say)
    try:
        command = cluster.command([sys.executable, "-m", "pytest", *(arguments or map(str, TESTS))])
        return subprocess.run(command, cwd=REPOSITORY, env=cluster.environment(), check=False).returncode
    finally:
        if started:
            cluster.stop()
