"""The stack's gateway: its configuration and how it is started. What it does is in `aftershock.gateway`."""

from __future__ import annotations

import json
import secrets
import sys
from pathlib import Path

from aftershock.stack.ports import HOST, PortPool
from aftershock.stack.private import write_private
from aftershock.stack.probe import get_status
from aftershock.stack.process import Command

DRAIN_S = 0.5
"""It is told to end only when the whole stack is, and then nobody waits for answers."""


class Gateway:
    """Recipe of the process."""

    name = "gateway"
    vital = True

    def __init__(
        self, folder: Path, log: Path, *, port: int, retries: int, replicas: dict[str, int], pool: PortPool
    ) -> None:
        """`port` 0 takes a free one. `replicas`: name (label of metrics, target of faults) -> port."""
        self._folder, self._log, self._pool = folder, log, pool
        self._wanted, self._retries, self._replicas = port, retries, replicas
        self.token = secrets.token_urlsafe(32)
        self.port = self.admin_port = 0
        self.move()

    @property
    def url(self) -> str:
        """The service address."""
        return f"http://{HOST}:{self.port}"

    @property
    def admin_url(self) -> str:
        """Where faults are set."""
        return f"http://{HOST}:{self.admin_port}"

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports it listens on."""
        return (self.port, self.admin_port)

    def move(self) -> None:
        """Choose other ports, but for one that the user chose."""
        self.port = self._wanted or self._pool.take()
        self.admin_port = self._pool.take()

    def command(self) -> Command:
        """Write the configuration; how to start it. Raises RunDirectoryError."""
        configuration = self._folder / "gateway.json"
        settings = {  # checked by the gateway: importing its model here would hold up the start of everything
            "host": HOST,
            "port": self.port,
            "admin_port": self.admin_port,
            "token": self.token,
            "replicas": [{"name": name, "url": f"http://{HOST}:{port}"} for name, port in self._replicas.items()],
            "retries": self._retries,
            "drain_timeout_s": DRAIN_S,
            "idle_timeout_s": 0,  # llama.cpp closes after a streamed answer without saying so beforehand
        }
        write_private(configuration, json.dumps(settings, indent=2))
        return Command(
            name=self.name,
            argv=(sys.executable, "-m", "aftershock.gateway", str(configuration)),
            folder=self._folder,
            log=self._log,
        )

    async def ready(self) -> bool:
        """Whether it listens and sees a ready replica."""
        return await get_status(self.port, "/healthz") == 200
