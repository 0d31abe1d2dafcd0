"""The one image of the cluster, made here: Debian's static busybox. It sleeps, unless it is told otherwise.

It is the pause container of every pod, and what pods are made of that bring their programs as mounts, see mounts.py.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import subprocess
import tarfile
from pathlib import Path

from aftershock.errors import InfrastructureError

IMAGE = "docker.io/local/busybox:1"
BUSYBOX = Path("/bin/busybox")
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PATH = "/usr/local/bin:/usr/bin:/usr/sbin:/bin"
"""The machine's programs first, where they are mounted: beside its libraries, busybox' own cannot look up names."""
USERS = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n"
GROUPS = "root:x:0:\nnogroup:x:65534:\n"


def write_image(path: Path) -> None:
    """Write the image as an archive that `ctr images import` reads. Raises InfrastructureError without busybox."""
    layer = _layer()
    layer_digest = hashlib.sha256(layer).hexdigest()
    configuration = json.dumps(
        {
            "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
            "os": "linux",
            "config": {"Cmd": ["sleep", "2147483647"], "Env": [f"PATH={PATH}"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer_digest}"]},
        }
    ).encode()
    files = {"configuration.json": configuration, "layer.tar": layer}
    manifest = [{"Config": "configuration.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    with tarfile.open(path, "w") as archive:
        for name, data in {**files, "manifest.json": json.dumps(manifest).encode()}.items():
            _add_file(archive, name, data)


def _layer() -> bytes:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, mode in (("bin", 0o755), ("etc", 0o755), ("root", 0o700), ("tmp", 0o1777)):
            _add(archive, name, tarfile.DIRTYPE, mode)
        _add_file(archive, "etc/passwd", USERS.encode())
        _add_file(archive, "etc/group", GROUPS.encode())
        _add_file(archive, "bin/busybox", BUSYBOX.read_bytes(), 0o755)
        for applet in _applets():
            link = tarfile.TarInfo(f"bin/{applet}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return content.getvalue()


def _applets() -> list[str]:
    try:
        listed = subprocess.run([BUSYBOX, "--list"], capture_output=True, text=True, check=True).stdout.split()
    except (OSError, subprocess.CalledProcessError) as error:
        raise InfrastructureError(f"{BUSYBOX} does not run ({error}); install busybox-static") from error
    return [applet for applet in listed if applet != "busybox"]


def _add(archive: tarfile.TarFile, name: str, kind: bytes, mode: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode = kind, mode
    archive.addfile(entry)


def _add_file(archive: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    archive.addfile(entry, io.BytesIO(data))
