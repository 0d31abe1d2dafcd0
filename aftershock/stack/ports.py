"""Loopback ports of the stack: chosen where nobody else looks for one, and held while their owner is down."""

from __future__ import annotations

import random
import socket
import sys

from aftershock.errors import InputError, StackError

HOST = "127.0.0.1"

FIRST, LAST = 12_000, 29_999
"""Below the ports that systems lend to outgoing connections (32768 up on Linux) and below Kubernetes' node ports.
A replica's port lent to a client while the replica is down would keep it from coming back, and a client that connects
to a dead port may be lent that very port, and then talks to itself."""

TRIES = 200


class PortPool:
    """The ports of one stack.

    Each port stays bound, without listening, until the pool is closed: on Linux the process it was taken for may
    still listen on it (both sides allow reuse of the address), but nobody else who looks for a free port gets it.
    Elsewhere a port is only known to have been free, and a part that loses the race asks for another.
    """

    def __init__(self) -> None:
        self._held: dict[int, socket.socket] = {}

    def take(self) -> int:
        """A free port. Raises StackError if there is none."""
        for port in random.sample(range(FIRST, LAST + 1), TRIES):
            if self._bind(port):
                return port
        raise StackError(f"no free port from {FIRST} to {LAST} on {HOST}; end programs that hold them")

    def close(self) -> None:
        """Let go of every port."""
        while self._held:
            self._held.popitem()[1].close()

    def _bind(self, port: int) -> bool:
        holder = socket.socket()
        try:
            holder.bind((HOST, port))  # without reuse: refused if anybody holds it, listening or not
        except OSError:
            holder.close()
            return False
        if sys.platform == "linux":
            holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._held[port] = holder
        else:
            holder.close()
        return True


def is_taken(port: int) -> bool:
    """Whether a server could not listen on `port` now. Connections of an earlier one that linger do not count."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen(1)
        except OSError:
            return True
    return False


def require_free(port: int, setting: str) -> None:
    """Raise InputError, naming the setting, if the port the user chose is taken; 0 is always free."""
    if port and is_taken(port):
        raise InputError(f"{setting}={port}: the port is taken on {HOST}; choose another, or 0 for any free one")
