"""Container runtime and network tools: the packages of Debian that the cluster runs on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable

from aftershock.errors import InfrastructureError

PACKAGES = ("busybox-static", "containerd", "containernetworking-plugins", "iproute2", "iptables", "runc")
TIMEOUT_S = 600.0


def ensure_packages(say: Callable[[str], None]) -> None:
    """Install what is missing. Raises InfrastructureError where that cannot be done here."""
    missing = missing_packages()
    if not missing:
        return
    say(f"packages   installing {' '.join(missing)}")
    for command in (["update"], ["install", "-y", "--no-install-recommends", *missing]):
        _apt_get(command)


def missing_packages() -> list[str]:
    """Those of PACKAGES that are not installed. Raises InfrastructureError where this is not root on Debian."""
    if os.geteuid() != 0:
        raise InfrastructureError("the test cluster makes namespaces, mounts and cgroups; run it as root")
    if shutil.which("dpkg-query") is None or shutil.which("apt-get") is None:
        raise InfrastructureError(f"the test cluster needs Debian or one of its kin: it installs {', '.join(PACKAGES)}")
    return [package for package in PACKAGES if not _installed(package)]


def _installed(package: str) -> bool:
    asked = ["dpkg-query", "--show", "--showformat=${db:Status-Status}", package]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout == "installed"


def _apt_get(arguments: list[str]) -> None:
    try:
        done = subprocess.run(
            ["apt-get", "-q", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise InfrastructureError(
            f"apt-get {arguments[0]} took over {TIMEOUT_S:g} s; is the network reachable?"
        ) from error
    if done.returncode != 0:
        words = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise InfrastructureError(f"apt-get {' '.join(arguments)} failed: {words[-1] if words else done.returncode}")
