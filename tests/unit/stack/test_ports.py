"""Ports: free, outside what the system lends to clients, and kept from everybody but the server they are for."""

from __future__ import annotations

import re
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftershock.errors import InputError
from aftershock.stack.ports import HOST, LAST, PortPool, is_taken, require_free

linux = pytest.mark.skipif(sys.platform != "linux", reason="ports are only held on Linux")


@pytest.fixture
def pool() -> Iterator[PortPool]:
    pool = PortPool()
    yield pool
    pool.close()


@linux
def test_no_client_is_ever_lent_one() -> None:
    lowest = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0]
    if int(lowest) <= LAST:
        pytest.skip(f"this machine lends ports from {lowest} up")
    assert int(lowest) > LAST


def test_each_is_new(pool: PortPool) -> None:
    ports = [pool.take() for _ in range(50)]
    assert len(set(ports)) == 50


@linux
def test_a_held_port_serves_its_owner_and_nobody_else(pool: PortPool) -> None:
    port = pool.take()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind((HOST, port))
    with socket.create_server((HOST, port)), socket.create_connection((HOST, port)) as client:
        assert client.getpeername() == (HOST, port)
    assert not is_taken(port)


@linux
def test_a_port_without_its_server_refuses(pool: PortPool) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((HOST, pool.take()), timeout=1)


def test_closing_lets_go(pool: PortPool) -> None:
    port = pool.take()
    pool.close()
    with socket.socket() as other:
        other.bind((HOST, port))


def test_a_taken_port_is_refused_by_name() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        assert is_taken(port)
        with pytest.raises(InputError, match=re.escape(f"gateway_port={port}: the port is taken")):
            require_free(port, "gateway_port")
    require_free(port, "gateway_port")
    require_free(0, "gateway_port")


def test_a_connection_that_lingers_does_not_take_a_port() -> None:
    with socket.create_server((HOST, 0)) as server:
        port = server.getsockname()[1]
        client = socket.create_connection((HOST, port))
        accepted, _ = server.accept()
        accepted.close()  # this side closes first, so its port is the one that waits (TIME_WAIT)
        client.close()
    assert not is_taken(port)
