"""The stack's Prometheus: where its binary comes from, what it scrapes, how it is started."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftershock.errors import InputError, StackError
from aftershock.files import write_json
from aftershock.stack import debian
from aftershock.stack.ports import HOST, PortPool
from aftershock.stack.probe import get_status
from aftershock.stack.process import Command

BINARY_VARIABLE = "AFTERSHOCK_PROMETHEUS"
CACHE_VARIABLE = "AFTERSHOCK_CACHE"
MAX_SCRAPE_TIMEOUT_S = 10.0


def find_binary(environment: Mapping[str, str] = os.environ) -> Path:
    """A Prometheus: the one AFTERSHOCK_PROMETHEUS names, else one on PATH, else the one in the cache folder, to which
    Debian's is fetched if it is not there yet.

    Raises InputError if the variable names no program, StackError if there is none and none can be fetched.
    """
    if found := present_binary(environment):
        return found
    cached = cache_folder(environment) / "prometheus"
    _fetch(cached)
    return cached


def present_binary(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The same, where it is here already; None where it would have to be fetched. Raises as `find_binary` does."""
    if given := environment.get(BINARY_VARIABLE):
        if not os.access(given, os.X_OK) or not Path(given).is_file():
            raise InputError(f"{BINARY_VARIABLE}={given!r}: is no program; give the path of a Prometheus binary")
        return Path(given).absolute()
    if found := shutil.which("prometheus", path=environment.get("PATH")):
        return Path(found).absolute()
    cached = cache_folder(environment) / "prometheus"
    return cached if cached.exists() else None


def require_fetchable() -> None:
    """Raise StackError where this system has no way to fetch one."""
    if not debian.available():
        raise StackError(f"there is no Prometheus, and this system is no Debian to fetch it from; {_WHAT_TO_DO}")


_WHAT_TO_DO = f"install Prometheus (2.42 or later) so that it is on PATH, or set {BINARY_VARIABLE} to its binary"


def cache_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """Where downloads are kept: AFTERSHOCK_CACHE, else ~/.cache/aftershock. Raises StackError if there is no home."""
    if given := environment.get(CACHE_VARIABLE):
        return Path(given).absolute()
    try:
        return Path.home() / ".cache" / "aftershock"
    except RuntimeError as error:
        raise StackError(f"there is no home folder; set {CACHE_VARIABLE} to a folder you can write") from error


def _fetch(cached: Path) -> None:
    require_fetchable()
    try:
        debian.fetch_program("prometheus", "usr/bin/prometheus", cached)
    except StackError as error:
        raise StackError(f"there is no Prometheus, and {error}; {_WHAT_TO_DO}") from error


@dataclass(frozen=True)
class Target:
    """One address to scrape, and the labels all its series get. `job` is one of them."""

    port: int
    labels: Mapping[str, str]


class Prometheus:
    """Recipe of the process."""

    name = "prometheus"
    vital = False

    def __init__(self, binary: Path, folder: Path, log: Path, scrape_interval_s: float, pool: PortPool) -> None:
        self._binary, self._folder, self._log = binary, folder, log
        self._scrape_interval_s = scrape_interval_s
        self._pool = pool
        self._written: list[dict[str, Any]] = []
        self.port = pool.take()

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://{HOST}:{self.port}"

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports it listens on."""
        return (self.port,)

    def move(self) -> None:
        """Choose another port."""
        self.port = self._pool.take()

    def scrape(self, targets: Sequence[Target]) -> None:
        """Have it scrape these. It watches the file, but acts on changes only every five seconds, the first time too.

        Raises RunDirectoryError.
        """
        groups = [{"targets": [f"{HOST}:{target.port}"], "labels": dict(target.labels)} for target in targets]
        if groups != self._written:
            write_json(self._folder / "targets.json", groups)
            self._written = groups

    def command(self) -> Command:
        """Write the configuration; how to start it. Raises RunDirectoryError."""
        configuration = self._folder / "prometheus.yml"
        write_json(configuration, self._configuration())  # JSON is YAML
        return Command(
            name=self.name,
            argv=(
                str(self._binary),
                f"--config.file={configuration}",
                f"--storage.tsdb.path={self._folder / 'data'}",
                f"--web.listen-address={HOST}:{self.port}",
            ),
            folder=self._folder,
            log=self._log,
        )

    async def ready(self) -> bool:
        """Whether it answers queries. Its first scrape comes later, see `scrape`."""
        return await get_status(self.port, "/-/ready") == 200

    def _configuration(self) -> dict[str, Any]:
        return {
            "global": {
                "scrape_interval": _duration(self._scrape_interval_s),
                "scrape_timeout": _duration(min(self._scrape_interval_s, MAX_SCRAPE_TIMEOUT_S)),
            },
            "scrape_configs": [
                {
                    "job_name": "aftershock",  # each target says its own job
                    "file_sd_configs": [{"files": [str(self._folder / "targets.json")], "refresh_interval": "30s"}],
                }
            ],
        }


def _duration(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
