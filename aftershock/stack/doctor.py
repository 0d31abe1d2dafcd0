"""What this machine needs for the parts that an experiment asks for as embedded. Looks; starts and fetches nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

from aftershock.checkup import Check
from aftershock.errors import InputError, RunDirectoryError, StackError
from aftershock.stack.models import model_path
from aftershock.stack.object_store import find_weed
from aftershock.stack.ports import HOST, is_taken, require_free
from aftershock.stack.prometheus import present_binary, require_fetchable
from aftershock.stack.settings import StackSettings

GROUP = "this machine"
MIB = 1024 * 1024

RUN_MIB = 300
"""Of the command, the pipeline's runner, one of its steps and the supervisor. All as measured, rounded up."""
REPLICA_MIB = 60
"""Of a model server besides its model."""
GATEWAY_MIB, PROMETHEUS_MIB, STORE_MIB = 50, 120, 150
DISK_MIB = 200
"""Records, samples and logs of an ordinary run, with room to spare."""


def checks(
    settings: StackSettings, runs: Path, available_memory: Callable[[], int], metrics_port: int | None
) -> list[Check]:
    """All checks of this machine for the parts that `settings` asks for.

    `metrics_port`: where the load generator will listen; None where the stack chooses a port for it.
    """
    wanted: dict[str, Callable[[], str] | None] = {
        "runs folder": lambda: _folder(runs),
        "memory": lambda: _memory(settings, available_memory()),
        "metrics port": (lambda: _metrics_port(metrics_port)) if metrics_port is not None else None,
        "model server": (lambda: _model_server(settings)) if settings.servers else None,
        "gateway port": (lambda: _gateway_port(settings)) if settings.servers and settings.gateway_port else None,
        "Prometheus": _prometheus if settings.prometheus else None,
        "object store": (lambda: f"SeaweedFS at {find_weed()}") if settings.store else None,
    }
    return [Check(GROUP, name, look) for name, look in wanted.items() if look is not None]


def _folder(runs: Path) -> str:
    existing = next(path for path in (runs.absolute(), *runs.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise RunDirectoryError(f"{existing} cannot be written; choose another folder with --runs")
    free_mib = shutil.disk_usage(existing).free // MIB
    if free_mib < DISK_MIB:
        raise RunDirectoryError(
            f"{existing} has {free_mib} MiB free, a run needs about {DISK_MIB}; choose another folder with --runs"
        )
    return f"{runs}, {free_mib / 1024:.1f} GiB free"


def _memory(settings: StackSettings, free: int) -> str:
    needed_mib = RUN_MIB
    if settings.servers:
        model_mib = model_path(settings.model).stat().st_size // MIB
        needed_mib += GATEWAY_MIB + settings.replicas * (REPLICA_MIB + model_mib)
    needed_mib += PROMETHEUS_MIB * settings.prometheus + STORE_MIB * settings.store
    if free < needed_mib * MIB:
        raise StackError(
            f"{free // MIB} MiB are free, the run needs about {needed_mib}; end other programs, "
            "or ask for less with --replicas"
        )
    return f"{free / 1024 / MIB:.1f} GiB free, about {needed_mib / 1024:.1f} needed"


def _metrics_port(port: int) -> str:
    if is_taken(port):
        raise InputError(
            f"metrics_port={port}: the port is taken on {HOST}, by another run perhaps; choose another with "
            "--metrics-port, and have Prometheus scrape that"
        )
    return f"{port} is free for the load generator"


def _model_server(settings: StackSettings) -> str:
    path = model_path(settings.model)
    if not path.is_file():
        raise StackError(f"{path}: the model file is missing; install aftershock again")
    if settings.model_server:
        program = settings.model_server[0]
        if shutil.which(program) is None:
            raise InputError(f"model_server={program!r}: is no program; give the command of a model server")
        return f"{program}, with model {settings.model}"
    if find_spec("xllamacpp") is None:
        raise StackError("llama.cpp is not installed; pip install 'aftershock[stack]'")
    return f"llama.cpp, {settings.replicas} times, with model {settings.model}"


def _gateway_port(settings: StackSettings) -> str:
    require_free(settings.gateway_port, "gateway_port")
    return f"{settings.gateway_port} is free"


def _prometheus() -> str:
    if found := present_binary():
        return str(found)
    require_fetchable()
    return "not here yet; the first run fetches Debian's, for which it needs the network"
