"""Where an experiment runs on this machine: with the addresses of a running embedded stack, if it asks for one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from aftershock.console import Console
from aftershock.experiment import Experiment
from aftershock.rundir import RunDirectory
from aftershock.stack.settings import StackSettings
from aftershock.stack.stack import StackState, lost, running_stack


@dataclass(frozen=True)
class Place:
    """Where an experiment runs: with addresses in place of `embedded`, and what its tasks must know in secret."""

    experiment: Experiment
    secrets: Mapping[str, str]
    stack: StackState | None

    def lost(self) -> str | None:
        """What has ended of the stack that the run cannot do without, in a sentence; None while all of it lives."""
        return lost(self.stack) if self.stack is not None else None


@contextmanager
def placed(
    experiment: Experiment, settings: StackSettings, directory: RunDirectory, console: Console
) -> Iterator[Place]:
    """Start what is asked for as `embedded`, and stop it when the block ends."""
    if not experiment.needs_stack():
        yield Place(experiment, {}, None)
        return
    began = time.monotonic()
    console.line("stack", f"starting {', '.join(wanted(settings))}")
    with running_stack(settings, directory.path, experiment.run_id) as stack:
        console.line("stack", f"{described(stack)}; ready in {time.monotonic() - began:.1f} s")
        yield Place(addressed(experiment, stack, directory), store_secrets(stack), stack)
        console.line("stack", "stopping")


def wanted(settings: StackSettings) -> list[str]:
    """The parts that are asked for, in words."""
    parts = {
        f"{settings.replicas} model servers, gateway": settings.servers,
        "Prometheus": settings.prometheus,
        "object store": settings.store,
    }
    return [part for part, asked in parts.items() if asked]


def addressed(experiment: Experiment, stack: StackState, directory: RunDirectory) -> Experiment:
    """`embedded` replaced by where the parts of the stack really are."""
    update: dict[str, Any] = {"stack": str(directory.stack_state)}
    if stack.gateway:
        update["target_url"] = stack.gateway.url
    if stack.prometheus:
        update |= {"prometheus_url": stack.prometheus.url, "metrics_port": stack.metrics_port}
    if stack.store:
        update["store_endpoint"] = stack.store.endpoint
    return experiment.model_copy(update=update)


def store_secrets(stack: StackState) -> dict[str, str]:
    """Credentials of the embedded store as variables: parameters of a pipeline are stored and shown."""
    if stack.store is None:
        return {}
    return {
        "AFTERSHOCK_STORE_ACCESS_KEY": stack.store.access_key,
        "AFTERSHOCK_STORE_SECRET_KEY": stack.store.secret_key,
    }


def described(stack: StackState) -> str:
    """`2 model servers behind http://127.0.0.1:40001, Prometheus at http://127.0.0.1:40003`."""
    parts = []
    if stack.gateway:
        parts.append(f"{len(stack.pods)} model servers behind {stack.gateway.url}")
    if stack.prometheus:
        parts.append(f"Prometheus at {stack.prometheus.url}")
    if stack.store:
        parts.append(f"object store at {stack.store.endpoint}")
    return ", ".join(parts)
