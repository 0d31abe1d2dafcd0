"""One replica of the embedded model server: llama.cpp's own HTTP server in a process of its own.

    python -m aftershock.stack.model_server --model FILE --port 0 --slots 4 --ctx 512

A separate process, because a fault has to be able to kill, stop and starve it. Once it serves it says so in one JSON
line on standard output, `{"url": "http://127.0.0.1:36829"}`; if it cannot, in one line on standard error, and exits
with 4. SIGTERM and SIGINT end it at once, and so does the death of the thread that started it (Linux).

It closes a connection after each streamed answer without having said so, and any after 5 s of idleness: a client that
pools connections sends its next request into the closing one now and then, and sees a failure that is none. Ask it
with `Connection: close`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from aftershock.errors import ExitCode, StackError
from aftershock.lifeline import die_with_parent

HOST = "127.0.0.1"
THREADS = 1
HTTP_THREADS = 128
"""Each open connection, idle ones too, holds a thread of llama.cpp's HTTP server. The default (slots + 4) lets a
gateway's pooled connections starve the health probe, so that a busy replica looks like a dead one."""

OPENMP = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
"""OpenMP's threads spin while they wait. On a machine with other work, which is what a CPU fault makes of it, that
slows inference more than thirty times: the fault would measure OpenMP. Read when OpenMP is loaded, once."""


@dataclass(frozen=True)
class ServerOptions:
    """What the command line gives."""

    model: Path
    host: str = HOST
    port: int = 0
    slots: int = 4
    ctx: int = 512
    name: str = ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until a signal ends the process. Returns the exit code where it cannot serve."""
    options = parse(arguments)
    end_with_signals()
    die_with_parent()
    os.environ.update(OPENMP)
    try:
        server = serve(options)
    except StackError as error:
        sys.stderr.write(f"model server: {error}\n")
        return ExitCode.INFRASTRUCTURE
    sys.stdout.write(json.dumps({"url": server.listening_address}) + "\n")
    sys.stdout.flush()
    while True:
        signal.pause()


def parse(arguments: Sequence[str] | None = None) -> ServerOptions:
    """The options on the command line; argparse exits with 2 where they are wrong."""
    parser = argparse.ArgumentParser(prog="python -m aftershock.stack.model_server", description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="GGUF file")
    parser.add_argument("--host", default=HOST, help="address to listen on; 0.0.0.0 in a pod")
    parser.add_argument("--port", type=_bounded(0, 65_535), default=0, help="port on it; 0: any free one")
    parser.add_argument("--slots", type=_bounded(1, 256), default=4, help="requests computed at once; more wait")
    parser.add_argument("--ctx", type=_bounded(16, 131_072), default=512, help="tokens of prompt and answer per slot")
    parser.add_argument("--name", default="", help="model name in /v1/models; default: the file's")
    return ServerOptions(**vars(parser.parse_args(arguments)))


def end_with_signals() -> None:
    """Leave SIGTERM and SIGINT to the kernel: no Python handler has to get its turn first."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_DFL)


def serve(options: ServerOptions) -> Any:
    """Start the server in threads of this process; it answers when this returns.

    Raises StackError with the cause as far as it can be told.
    """
    if obstacle := _obstacle(options):
        raise StackError(obstacle)
    try:
        import xllamacpp  # loads OpenMP: the environment has to be set by now
    except ImportError as error:
        raise StackError(f"xllamacpp cannot be loaded ({error}); install aftershock[stack]") from error
    try:
        return xllamacpp.Server(_parameters(options, xllamacpp.CommonParams()))
    except RuntimeError as error:
        raise StackError(
            _obstacle(options) or f"llama.cpp does not serve {options.model}; the lines around this one say why"
        ) from error


def _parameters(options: ServerOptions, parameters: Any) -> Any:
    parameters.model.path = str(options.model)
    parameters.model_alias = {options.name or options.model.stem}
    parameters.hostnames = [options.host]
    parameters.port = options.port
    parameters.n_parallel = options.slots
    parameters.n_ctx = options.slots * options.ctx
    parameters.n_gpu_layers = 0
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = THREADS
    parameters.n_threads_http = HTTP_THREADS
    parameters.endpoint_metrics = True
    # Every request costs the same and gets the same answer, whatever was asked before it.
    parameters.cache_prompt = False
    parameters.cache_ram_mib = 0
    parameters.cache_idle_slots = False
    parameters.fit_params = False
    parameters.offline = True
    parameters.ui = False
    parameters.cors_origins = f"http://{HOST}"  # by default any web page in the user's browser may ask
    parameters.verbosity = 2  # warnings; 3 writes several lines a request
    return parameters


def _obstacle(options: ServerOptions) -> str | None:
    """What llama.cpp will fail on, if anything: it says so in its log only, in several lines."""
    try:
        with options.model.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        return f"cannot read {options.model}: {error.strerror}; give a GGUF file with --model"
    if magic != b"GGUF":
        return f"{options.model} is not a GGUF file; give one with --model"
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((options.host, options.port))
        except OSError as error:
            where = f"{options.host}:{options.port}"
            return f"cannot listen on {where}: {error.strerror}; choose another --port, or 0 for a free one"
    return None


def _bounded(low: int, high: int) -> Any:
    def convert(text: str) -> int:
        value = int(text)
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"{value} is not within {low} to {high}")
        return value

    return convert


if __name__ == "__main__":
    sys.exit(main())
