"""What is missing on a machine is said before a run, and nothing is fetched or started to find out."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftershock.checkup import Finding, Status, examine
from aftershock.errors import ExitCode
from aftershock.stack import doctor
from aftershock.stack.settings import StackSettings

PLENTY = 64 * 1024 * doctor.MIB


def examined(
    folder: Path, *, free: int = PLENTY, metrics_port: int | None = None, **settings: Any
) -> dict[str, Finding]:
    checks = doctor.checks(StackSettings(**settings), folder, lambda: free, metrics_port)
    return {finding.name: finding for finding in examine(checks)}


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that something listens on."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        yield port


@pytest.fixture
def empty_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """No program is on PATH, and the cache is empty."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setenv("AFTERSHOCK_CACHE", str(cache))
    monkeypatch.delenv("AFTERSHOCK_PROMETHEUS", raising=False)
    return cache


def test_a_runs_folder_that_does_not_exist_yet_is_fine(tmp_path: Path) -> None:
    found = examined(tmp_path / "a" / "b")["runs folder"]
    assert found.status is Status.OK
    assert not (tmp_path / "a").exists()


def test_a_runs_folder_that_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    found = examined(tmp_path / "file" / "runs")["runs folder"]
    assert (found.status, found.exit_code) == (Status.FAIL, ExitCode.INFRASTRUCTURE)
    assert "--runs" in found.text


def test_memory(tmp_path: Path) -> None:
    assert examined(tmp_path)["memory"].status is Status.OK
    found = examined(tmp_path, free=500 * doctor.MIB)["memory"]
    assert found.status is Status.FAIL and "500 MiB are free" in found.text
    parts = {"servers": False, "prometheus": False, "store": False}
    assert examined(tmp_path, free=500 * doctor.MIB, **parts)["memory"].status is Status.OK


def test_ports(tmp_path: Path, taken: int) -> None:
    found = examined(tmp_path, metrics_port=taken, gateway_port=taken)
    for name, flag in (("metrics port", "--metrics-port"), ("gateway port", "gateway_port=")):
        assert (found[name].status, found[name].exit_code) == (Status.FAIL, ExitCode.BAD_INPUT)
        assert flag in found[name].text and str(taken) in found[name].text
    assert "metrics port" not in examined(tmp_path)


def test_a_prometheus_that_would_be_fetched_is_not_fetched(tmp_path: Path, empty_path: Path) -> None:
    folder = tmp_path / "nothing"
    folder.mkdir()
    for name in ("apt-get", "dpkg"):
        (folder / name).write_text("#!/bin/sh\ntouch $0.was-called\n")
        (folder / name).chmod(0o755)
    found = examined(tmp_path)["Prometheus"]
    assert found.status is Status.OK and "the first run fetches" in found.text
    assert not list(folder.glob("*.was-called")) and not empty_path.exists()


def test_no_prometheus_and_no_way_to_one(tmp_path: Path, empty_path: Path) -> None:
    found = examined(tmp_path)["Prometheus"]
    assert found.status is Status.FAIL and "AFTERSHOCK_PROMETHEUS" in found.text


def test_a_variable_that_names_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFTERSHOCK_PROMETHEUS", str(tmp_path / "x"))
    found = examined(tmp_path)["Prometheus"]
    assert (found.status, found.exit_code) == (Status.FAIL, ExitCode.BAD_INPUT)


def test_another_model_server_must_be_a_program(tmp_path: Path, empty_path: Path) -> None:
    found = examined(tmp_path, model_server="no-such-server --fast")["model server"]
    assert (found.status, found.exit_code) == (Status.FAIL, ExitCode.BAD_INPUT)
    assert examined(tmp_path, model_server="/bin/true")["model server"].status is Status.OK
    assert examined(tmp_path)["model server"].status is Status.OK


def test_parts_that_are_not_wanted_are_not_looked_for(tmp_path: Path, empty_path: Path) -> None:
    found = examined(tmp_path, servers=False, prometheus=False, store=False)
    assert {finding.status for finding in found.values()} == {Status.OK}
