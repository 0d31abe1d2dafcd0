"""`python -m aftershock.gateway CONFIG.json`: one gateway, until SIGTERM or SIGINT.

Prints `{"url": ..., "admin_url": ...}` on standard output once it listens; logs go to standard error.
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import signal
import sys
from dataclasses import asdict
from pathlib import Path

from aftershock.errors import AftershockError, InputError
from aftershock.gateway.server import gateway
from aftershock.gateway.settings import GatewaySettings, load_settings


def main(arguments: list[str]) -> int:
    """Run until told to stop; returns the exit code."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    try:
        if len(arguments) != 1:
            raise InputError("usage: python -m aftershock.gateway CONFIG.json")
        settings = load_settings(Path(arguments[0]))
        asyncio.run(serve(settings))
    except AftershockError as error:
        sys.stderr.write(f"error: {error}\n")
        return int(error.exit_code)
    return 0


async def serve(settings: GatewaySettings) -> None:
    """Listen, say where, and wait for a signal."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    async with gateway(settings) as addresses:
        sys.stdout.write(json.dumps(asdict(addresses)) + "\n")
        sys.stdout.flush()
        gc.collect()
        gc.freeze()  # what is here now stays: full collections need not look at it while requests wait
        await stopped.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
