"""Kubeflow Pipelines: the only place that knows kfp. Runs a compiled package on this machine, in a process of its own.

Its own process, because kfp's local runner keeps its configuration in globals, patches `print`, and leaves the children
of its tasks behind when it is told to stop. Here the runner and all its tasks are one process group, which ends as a
whole: on `stop`, and (by the pipe on its standard input) when the process that started it dies, however it died.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

import psutil
import yaml

from aftershock.errors import PipelineError

TASK_GRACE_S = 15.0
"""How long a task may take to revert its fault and write its records after SIGTERM."""


class LocalPipeline:
    """A compiled package that runs under `kfp.local`, task after task, each in a subprocess."""

    def __init__(self, package: Path, root: Path, log: Path) -> None:
        """Start the runner, which gets ready (a second of imports) and waits for `begin`.

        `root` takes the outputs, `log` all that the runner and its tasks print.
        """
        if not package.is_file():
            raise PipelineError(f"{package}: the compiled pipeline is missing; run `make compile`")
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "aftershock.kubeflow", str(package), str(root)],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.log = log
        self._stopped = False

    def begin(self, parameters: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        """Run the package with these parameters. `environment` is for its tasks: secrets go there."""
        order = json.dumps({"parameters": dict(parameters), "environment": dict(environment)})
        try:
            os.write(self._lifeline, order.encode() + b"\n")
        except BrokenPipeError as error:
            raise PipelineError(f"the pipeline's runner ended before it began; see {self.log}") from error

    @property
    def pid(self) -> int:
        """Of the runner, and of its process group."""
        return self._process.pid

    def poll(self) -> bool | None:
        """None while it runs; then whether every task succeeded."""
        code = self._process.poll()
        return None if code is None else code == 0

    def stop(self, grace_s: float = TASK_GRACE_S) -> None:
        """End the runner and its tasks: SIGTERM, so that a fault is reverted and records are written; later SIGKILL."""
        if self._stopped:
            return  # its number may be somebody else's by now
        self._stopped = True
        self._signal(signal.SIGTERM)
        deadline = time.monotonic() + grace_s
        while self._group_lives() and time.monotonic() < deadline:
            self._process.poll()
            time.sleep(0.05)
        self._signal(signal.SIGKILL)
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        if self._process.stdin:
            self._process.stdin.close()

    @property
    def _lifeline(self) -> int:
        assert self._process.stdin is not None
        return self._process.stdin.fileno()

    def _signal(self, number: signal.Signals) -> None:
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            return

    def _group_lives(self) -> bool:
        """Whether any of its processes runs. One that ended and was not reaped (a container's init may not) is none."""
        for process in psutil.process_iter(["status"]):
            try:
                if os.getpgid(process.pid) == self.pid and process.info["status"] != psutil.STATUS_ZOMBIE:
                    return True
            except ProcessLookupError:
                continue
        return False


@dataclass(frozen=True)
class Package:
    """A compiled pipeline, as far as it can be told before it runs."""

    sdk: str
    """Version of kfp that reads it here."""
    parameters: frozenset[str]
    images: frozenset[str]

    @property
    def is_for_this_machine(self) -> bool:
        """Its images have no registry in their names, so only the local runner, which needs none, can run it."""
        return not all("/" in image for image in self.images)


def read_package(path: Path) -> Package:
    """Load a compiled package as the local runner does. Raises PipelineError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of kfp about itself
            import kfp
            from kfp import components

            components.load_component_from_file(str(path))
        spec = next(yaml.safe_load_all(path.read_text(encoding="utf-8")))  # after it: what is for Kubernetes only
        executors = spec["deploymentSpec"]["executors"].values()
        return Package(
            sdk=kfp.__version__,
            parameters=frozenset(spec["root"]["inputDefinitions"]["parameters"]),
            images=frozenset(executor["container"]["image"] for executor in executors),
        )
    except ImportError as error:
        raise PipelineError(f"kfp cannot be loaded ({error}); install aftershock again") from error
    except FileNotFoundError as error:
        raise PipelineError(f"{path}: the compiled pipeline is missing; run `make compile`") from error
    except Exception as error:  # whatever is wrong with a file, kfp has no error of its own for it
        raise PipelineError(f"{path}: kfp does not read it ({error}); run `make compile`") from error


def server_version(endpoint: str, timeout_s: float = 10.0) -> str:
    """Version of the Kubeflow Pipelines at `endpoint`; empty where it tells none. Raises PipelineError."""
    url = f"{endpoint.rstrip('/')}/apis/v2beta1/healthz"
    local = urlsplit(endpoint).hostname in ("localhost", "127.0.0.1", "::1")
    opener = build_opener(ProxyHandler({})) if local else build_opener()
    try:
        with opener.open(url, timeout=timeout_s) as answer:
            health = json.loads(answer.read())
        told = [health.get(name) for name in ("tag_name", "apiServerTagName")]  # itself, or through its UI
        if health.get("apiServerReady") is False:
            raise PipelineError(f"{url}: its UI answers, but its API server is not ready; see the pod ml-pipeline")
    except HTTPError as error:
        raise PipelineError(
            f"{url}: HTTP {error.code} {error.reason}; check --kfp-endpoint and who may ask it"
        ) from error
    except (OSError, HTTPException) as error:
        cause = getattr(error, "reason", error)
        why = getattr(cause, "strerror", None) or cause
        raise PipelineError(f"{url}: no answer ({why}); check --kfp-endpoint") from error
    except (ValueError, AttributeError) as error:
        raise PipelineError(
            f"{url}: the answer is not that of Kubeflow Pipelines (a login page?); give an address without one, "
            "such as that of a port-forward"
        ) from error
    return next((str(version) for version in told if version), "")


def _read_order() -> dict[str, Any] | None:
    """The one line on standard input; None if the parent died before it wrote one.

    Not through sys.stdin: a thread that holds its lock would abort the interpreter at its end.
    """
    line = b""
    while not line.endswith(b"\n"):
        received = os.read(0, 65_536)
        if not received:
            return None
        line += received
    order: dict[str, Any] = json.loads(line)
    return order


def _end_with_parent() -> None:
    """Wait for the end of standard input, which comes when the parent has died, then end the whole group."""
    while os.read(0, 1024):
        pass
    os.killpg(0, signal.SIGTERM)


def main() -> int:
    """Entry of the child process: PACKAGE ROOT, and one line of JSON on standard input."""
    package, root = sys.argv[1:3]
    warnings.simplefilter("ignore")  # of kfp about itself; our own code is held to none by its tests
    from kfp import components, local

    local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=root, raise_on_error=True)
    pipeline = components.load_component_from_file(package)
    order = _read_order()
    if order is None:
        return 1
    threading.Thread(target=_end_with_parent, daemon=True).start()
    os.environ.update(order["environment"])
    try:
        pipeline(**order["parameters"])
    except RuntimeError as error:
        # The runner's word for "a task failed". Which one and why is in the journal, written by the task itself.
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
