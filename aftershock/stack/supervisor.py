"""The one parent of the stack's processes: starts them, keeps the model servers up, says what is, ends them all.

    python -m aftershock.stack.supervisor LAUNCH.json

It lives exactly as long as the command that started it: its standard input is a pipe that only the command holds, and
the end of that pipe, however it comes about, is the order to stop. Should the supervisor itself be killed, the kernel
(Linux) kills its children.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import signal
import sys
from pathlib import Path

from pydantic import ValidationError

from aftershock.errors import AftershockError, RunDirectoryError, StackError
from aftershock.processes import Identity
from aftershock.progress import emit
from aftershock.stack.api import Api, served
from aftershock.stack.gateway import Gateway
from aftershock.stack.object_store import ObjectStore, StoreFolder, sweep_sockets
from aftershock.stack.parts import Part
from aftershock.stack.pods import Deployment
from aftershock.stack.ports import HOST, PortPool
from aftershock.stack.private import private_folder
from aftershock.stack.process import Command
from aftershock.stack.prometheus import Prometheus, Target
from aftershock.stack.settings import Launch
from aftershock.stack.state import (
    LABELS,
    NAMESPACE,
    GatewayState,
    PrometheusState,
    StackState,
    StoreState,
    SupervisorState,
    state_path,
    write_state,
)

log = logging.getLogger(__name__)


class Supervisor:
    """All parts of one stack."""

    def __init__(self, launch: Launch) -> None:
        """Choose ports and write configurations; nothing is started. Raises AftershockError."""
        self._launch = launch
        self._pool = PortPool()
        self._stopping = asyncio.Event()
        self._api_port, self._metrics_port = self._pool.take(), self._pool.take()
        self._token = secrets.token_urlsafe(32)
        self._identity = Identity.of(os.getpid())
        settings = launch.settings
        replicas = [self._pool.take() for _ in range(settings.replicas)] if settings.servers else []
        self._deployment = Deployment(replicas, self._model_server, settings.restart_delay_s, self._changed)
        self._gateway = self._make_gateway(replicas) if settings.servers else None
        self._prometheus = self._make_prometheus()
        self._store = self._make_store()
        recipes = (self._prometheus, self._store, self._gateway)  # the slowest to start, or to scrape, first
        self._parts = [Part(recipe, self._changed) for recipe in recipes if recipe is not None]

    async def run(self) -> None:
        """Start everything, and keep it until it is told to stop."""
        self._obey()
        self._scrape()
        members: list[Part | Deployment] = [*self._parts, self._deployment]
        work = [asyncio.create_task(member.run()) for member in members]
        for task in work:
            task.add_done_callback(self._stop_on_defect)
        try:
            with served(self._api(), self._api_port):
                self._changed()
                await self._stopping.wait()
        finally:
            for task in work:
                task.cancel()
            await asyncio.gather(*(member.stop() for member in members))
            self._tidy()
            ends = await asyncio.gather(*work, return_exceptions=True)
        for defect in ends:
            if isinstance(defect, Exception):
                raise defect

    def _stop_on_defect(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception():
            self._stopping.set()

    def _obey(self) -> None:
        """Stop on SIGTERM, on SIGINT, and when the lifeline is cut."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stopping.set)
        lifeline = sys.stdin.fileno()

        def read() -> None:
            if not os.read(lifeline, 1024):
                loop.remove_reader(lifeline)
                self._stopping.set()

        loop.add_reader(lifeline, read)

    def _changed(self) -> None:
        """Something is not as it was: say so in the state, and to Prometheus. A full disk must not end the stack."""
        try:
            write_state(state_path(self._launch.run_dir), self._state())
            self._scrape()
        except RunDirectoryError as error:
            log.warning("the state is out of date: %s", error)

    def _api(self) -> Api:
        return Api(self._token, lambda: self._state().to_dict(), self._deployment)

    def _state(self) -> StackState:
        gateway, store = self._gateway, self._store
        return StackState(
            run_id=self._launch.run_id,
            supervisor=SupervisorState(
                self._identity.pid, self._identity.started, f"http://{HOST}:{self._api_port}", self._token
            ),
            gateway=GatewayState(gateway.url, gateway.admin_url, gateway.token) if gateway else None,
            prometheus=PrometheusState(self._prometheus.url) if self._prometheus else None,
            store=StoreState(store.endpoint, store.access_key, store.secret_key) if store else None,
            metrics_port=self._metrics_port,
            pods=tuple(pod.state for pod in self._deployment.pods),
            parts=tuple(part.state for part in self._parts),
        )

    def _scrape(self) -> None:
        if self._prometheus is None:
            return
        pods = [
            Target(
                pod.port,
                {"job": "model-server", "namespace": NAMESPACE, "pod": pod.name, "slot": str(pod.slot), **LABELS},
            )
            for pod in self._deployment.pods
        ]
        others = {"load": self._metrics_port, "prometheus": self._prometheus.port}
        if self._gateway:
            others["gateway"] = self._gateway.port
        self._prometheus.scrape([*pods, *(Target(port, {"job": job}) for job, port in others.items())])

    def _model_server(self, slot: int, port: int) -> Command:
        settings = self._launch.settings
        ours = (sys.executable, "-m", "aftershock.stack.model_server")
        flags = {
            "--model": self._launch.model_path,
            "--port": port,
            "--slots": settings.slots,
            "--ctx": settings.context_tokens,
            "--name": settings.model,
        }
        return Command(
            name=f"model-server-{slot}",
            argv=(*(settings.model_server or ours), *(str(word) for flag in flags.items() for word in flag)),
            folder=self._launch.stack_dir,
            log=self._launch.log(f"model-server-{slot}"),
        )

    def _make_gateway(self, replicas: list[int]) -> Gateway:
        settings = self._launch.settings
        return Gateway(
            self._launch.stack_dir,
            self._launch.log("gateway"),
            port=settings.gateway_port,
            retries=settings.gateway_retries,
            replicas={str(slot): port for slot, port in enumerate(replicas)},
            pool=self._pool,
        )

    def _make_prometheus(self) -> Prometheus | None:
        if self._launch.prometheus is None:
            return None
        return Prometheus(
            self._launch.prometheus,
            private_folder(self._launch.stack_dir / "prometheus"),
            self._launch.log("prometheus"),
            self._launch.settings.scrape_interval_s,
            self._pool,
        )

    def _make_store(self) -> ObjectStore | None:
        """On the folder all runs share; if another live run has it, on one of this run's own."""
        if self._launch.weed is None:
            return None
        shared, own = self._launch.run_dir.parent / "store", self._launch.stack_dir / "store"
        folder = StoreFolder.open(shared)
        if folder is None:
            why = "is in use by another run, or another user's"
            emit("warning", message=f"{shared} {why}; this run's report goes to {own} instead")
            folder = StoreFolder.open(own)
        if folder is None:
            raise RunDirectoryError(f"{own} is in use by another program; choose another folder with --runs")
        return ObjectStore(self._launch.weed, folder, self._launch.log("store"), self._pool)

    def _tidy(self) -> None:
        if self._store:
            sweep_sockets(self._store.folder.path)
        state_path(self._launch.run_dir).unlink(missing_ok=True)
        self._pool.close()


def load_launch(arguments: list[str]) -> Launch:
    """The document that the command line names. Raises StackError: the command writes it, no user does."""
    if len(arguments) != 1:
        raise StackError("usage: python -m aftershock.stack.supervisor LAUNCH.json")
    try:
        return Launch.model_validate_json(Path(arguments[0]).read_bytes())
    except OSError as error:
        raise StackError(f"{arguments[0]}: cannot be read ({error.strerror}); `aftershock run` writes one") from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise StackError(f"{arguments[0]}: {place}: {first['msg']}; not of this version of aftershock") from error


def main(arguments: list[str]) -> int:
    """Supervise until told to stop."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        asyncio.run(Supervisor(load_launch(arguments)).run())
    except AftershockError as error:
        log.error("%s", error)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
