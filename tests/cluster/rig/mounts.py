"""Programs of this machine in pods: mounted, not copied into images.

The mounts are read-only and at the same paths as outside, so that `PYTHON -m ANYTHING` of this repository runs in a pod
of images.IMAGE just as it does here.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tests.cluster.rig.images import IMAGE
from tests.cluster.rig.layout import REPOSITORY

LIBRARIES = (Path("/usr"), Path("/lib"), Path("/lib64"))
PYTHON = str(Path(sys.prefix) / "bin" / "python")

Document = dict[str, Any]


def host_mounts(*more: Path) -> tuple[list[Document], list[Document]]:
    """`volumes` of a pod and `volumeMounts` of a container: Python, what is installed for it, this repository, `more`.

    Names of the volumes begin with `host-`.
    """
    python = (Path(sys.base_prefix), Path(sys.prefix), REPOSITORY)
    volumes, mounts = [], []
    for number, path in enumerate(_outermost([*LIBRARIES, *python, *more])):
        name = f"host-{number}"
        kind = "Directory" if path.is_dir() else "File"
        volumes.append({"name": name, "hostPath": {"path": str(path), "type": kind}})
        mounts.append({"name": name, "mountPath": str(path), "readOnly": True})
    return volumes, mounts


def host_pod(command: list[str], *more: Path, name: str = "main", **container: Any) -> Document:
    """The `spec` of a pod with one container that runs `command` of this machine in the repository's root.

    `container` adds to the container's fields, such as `ports` and `readinessProbe`. The grace period is 1 s.
    """
    volumes, mounts = host_mounts(*more)
    return {
        "terminationGracePeriodSeconds": 1,
        "dnsPolicy": "Default",  # nobody answers names here
        "containers": [
            {
                "name": name,
                "image": IMAGE,
                "imagePullPolicy": "Never",
                "command": command,
                "workingDir": str(REPOSITORY),
                "volumeMounts": mounts,
                **container,
            }
        ],
        "volumes": volumes,
    }


def _outermost(paths: list[Path]) -> list[Path]:
    """Those that are there and not below another one of them."""
    there = {path for path in paths if path.exists()}
    return sorted(path for path in there if not there.intersection(path.parents))
