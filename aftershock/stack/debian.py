"""One program out of a Debian package, without installing it: no root, no service, no change to the system.

`apt-get` checks the archive's signatures. The system's own package lists are used where there are some; a fresh
container has none, and only root may fetch them, so then lists of our own are kept beside the download for as long
as it takes.
"""

from __future__ import annotations

import fcntl
import logging
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aftershock.errors import StackError

TIMEOUT_S = 240.0

log = logging.getLogger(__name__)


def available() -> bool:
    """Whether this system has Debian's tools."""
    return shutil.which("apt-get") is not None and shutil.which("dpkg") is not None


def fetch_program(package: str, program: str, target: Path) -> None:
    """Put `program` (its path inside the package) at `target`, unless it is there; safe when two do it at once.

    Raises StackError with apt's last words if it cannot be had.
    """
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_name(f".{target.name}.lock")):
            if not target.exists():
                _fetch(package, program, target)
    except OSError as error:
        raise StackError(
            f"cannot keep {package} in {target.parent} ({error.strerror or error}); "
            "set AFTERSHOCK_CACHE to a folder you can write"
        ) from error


def _fetch(package: str, program: str, target: Path) -> None:
    log.info("fetching %s from Debian's archive into %s", package, target.parent)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as name:
        folder = Path(name)
        archive = _download(package, folder)
        _run(["dpkg", "-x", str(archive), str(folder / "unpacked")], folder)
        unpacked = folder / "unpacked" / program
        if not unpacked.is_file():
            raise StackError(f"Debian's package {package} holds no {program}; install {package} yourself")
        unpacked.replace(target)


def _download(package: str, folder: Path) -> Path:
    command = ["apt-get", "-o", "APT::Sandbox::User=root"]
    try:
        _run([*command, "download", package], folder)
    except StackError:  # no lists here, or they are older than the archive
        own = folder / "apt"
        (own / "lists" / "partial").mkdir(parents=True)
        (own / "cache" / "archives" / "partial").mkdir(parents=True)
        for option in (f"Dir::State={own}", f"Dir::State::lists={own}/lists", f"Dir::Cache={own}/cache"):
            command += ["-o", option]
        _run([*command, "update"], folder)
        _run([*command, "download", package], folder)
    return next(folder.glob("*.deb"))


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise StackError(f"{command[0]} did not end within {TIMEOUT_S:g} s; is the network reachable?") from error
    if done.returncode != 0:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        raise StackError(f"{command[0]} failed: {said[-1] if said else f'exit code {done.returncode}'}")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
