"""The Go programs of the cluster, built from the pinned sources of ../go.mod, once."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from aftershock.errors import InfrastructureError
from tests.cluster.rig.layout import REPOSITORY, cluster_cache
from tests.cluster.rig.locking import locked

MODULE = REPOSITORY / "tests" / "cluster"
MONITORS = MODULE / "monitors"
"""A program of ours with a go.mod of its own: the types of the Prometheus Operator need other versions."""
PROGRAMS = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
    MONITORS.name,
)
USUAL_GO = Path("/usr/local/go/bin/go")
"""Where Go's own archive is unpacked; often not on PATH."""
PROGRESS_S = 15.0


def ensure_programs(say: Callable[[str], None]) -> Path:
    """The folder that holds PROGRAMS, which are built if they are not there.

    Raises InfrastructureError where Go is missing or too old, or the build fails.
    """
    home = cluster_cache() / _digest()
    if not home.is_dir():
        with locked(cluster_cache() / ".programs.lock"):
            if not home.is_dir():  # somebody else may have built them while this one waited
                _build(home, say)
    return home / "bin"


def find_go() -> Path:
    """A Go that can build ../go.mod. Raises InfrastructureError where there is none: which is needed, what to do."""
    wanted = _required_go()
    on_path = shutil.which("go")
    found = Path(on_path) if on_path else USUAL_GO
    what_to_do = f"install Go {wanted} or later so that it is on PATH"
    if not os.access(found, os.X_OK):
        raise InfrastructureError(
            f"the programs of the test cluster are built with Go, and there is none; {what_to_do}"
        )
    version = subprocess.run([found, "version"], capture_output=True, text=True, env=_environment(), check=False).stdout
    if _numbers(version) < _numbers(wanted):
        raise InfrastructureError(f"{found}: {version.strip() or 'does not work'}, which is too old; {what_to_do}")
    return found


def kubernetes_version() -> str:
    """Of the pinned Kubernetes, as `1.36.3`."""
    return _in_go_mod(r"k8s\.io/kubernetes v(\S+)")


def _required_go() -> str:
    return _in_go_mod(r"^go (\S+)$")


def _in_go_mod(pattern: str) -> str:
    found = re.search(pattern, (MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise InfrastructureError(f"{MODULE / 'go.mod'}: nothing matches {pattern}; restore the file")
    return found[1]


def _numbers(text: str) -> tuple[int, ...]:
    found = re.search(r"\d+(\.\d+)+", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _flags() -> list[str]:
    """How the programs learn their own version, which clients ask for; without symbols they are half the size."""
    version = kubernetes_version()
    major, minor = version.split(".")[:2]
    stamps = {"gitVersion": f"v{version}", "gitMajor": major, "gitMinor": minor}
    linked = " ".join(f"-X k8s.io/component-base/version.{name}={value}" for name, value in stamps.items())
    return ["-trimpath", "-ldflags", f"-s -w {linked}"]


def _digest() -> str:
    digest = hashlib.sha256("\0".join(_flags()).encode())
    for path in sorted((*MODULE.glob("go.*"), *MONITORS.glob("*.go"), *MONITORS.glob("go.*"))):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _environment() -> dict[str, str]:
    return {**os.environ, "GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}


def _build(home: Path, say: Callable[[str], None]) -> None:
    go = find_go()
    say(f"programs   building Kubernetes {kubernetes_version()} and etcd; the first time takes some ten minutes")
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=f".{home.name}.") as name:
        folder = Path(name) / "cluster"
        (folder / "bin").mkdir(parents=True)
        _run_go([str(go), "build", "-v", *_flags(), "-o", f"{folder / 'bin'}/", "tool"], MODULE, say)
        _run_go([str(go), "build", "-v", *_flags(), "-o", str(folder / "bin" / MONITORS.name), "."], MONITORS, say)
        (folder / "bin" / "server").rename(folder / "bin" / "etcd")  # Go names a program after its package
        missing = [program for program in PROGRAMS if not (folder / "bin" / program).is_file()]
        if missing:
            raise InfrastructureError(f"go build made no {', '.join(missing)}; see the tools in {MODULE / 'go.mod'}")
        folder.rename(home)


def _run_go(command: list[str], module: Path, say: Callable[[str], None]) -> None:
    """Run the build, which names each package it has compiled on standard error."""
    compiled, told_at, last = 0, time.monotonic(), ""
    with subprocess.Popen(
        command, cwd=module, env=_environment(), stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as go:
        assert go.stderr is not None
        for line in go.stderr:
            compiled, last = compiled + 1, line.strip()
            if time.monotonic() - told_at > PROGRESS_S:
                say(f"programs   {compiled} packages, now {last}")
                told_at = time.monotonic()
    if go.returncode != 0:
        raise InfrastructureError(
            f"go build failed: {last or go.returncode}; see {' '.join(command[1:2] + command[-1:])} in {module}"
        )
