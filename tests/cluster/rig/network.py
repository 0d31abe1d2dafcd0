"""The cluster's own network: a namespace without a way out, so that clusters live side by side on the same addresses.

Whoever talks to pods, Services or the API server does so from inside, entered by `nsenter --net`: `ip netns exec` would
remount /sys, which hides the cgroups.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from aftershock.errors import InfrastructureError

NODE_ADDRESS = "10.99.0.1"
POD_RANGE = "10.88.0.0/24"
SERVICE_RANGE = "10.96.0.0/16"
API_PORT = 6443
API_URL = f"https://{NODE_ADDRESS}:{API_PORT}"


def namespace_path(name: str) -> Path:
    """The file that stands for the network namespace `name`."""
    return Path("/run/netns") / name


def inside(name: str, argv: Sequence[str]) -> list[str]:
    """The command that runs `argv` inside the namespace, as the same process."""
    return ["nsenter", f"--net={namespace_path(name)}", "--", *argv]


def create(name: str) -> None:
    """Make the namespace: the node's address on the loopback device, and a way for the Services' addresses.

    The kernel asks for a way before kube-proxy's rules replace a Service's address with a pod's; any will do.

    Raises InfrastructureError.
    """
    _run("ip", "netns", "add", name)
    for arguments in (
        ("link", "set", "lo", "up"),
        ("address", "add", f"{NODE_ADDRESS}/32", "dev", "lo"),
        ("route", "add", SERVICE_RANGE, "dev", "lo", "src", NODE_ADDRESS),
    ):
        _run("ip", "-netns", name, *arguments)
    _run(*inside(name, ["sh", "-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]))


def delete(name: str) -> None:
    """Take the namespace away, with all devices and rules in it; nothing if there is none."""
    if namespace_path(name).exists():
        _run("ip", "netns", "delete", name)


def _run(*command: str) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise InfrastructureError(f"{' '.join(command)} failed: {done.stderr.strip() or done.returncode}")
