"""Where there can be no cluster, the suite says so: it never passes in silence, and never by itself."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from aftershock.errors import ExitCode
from tests.cluster.rig import debian, programs, suite
from tests.cluster.rig.__main__ import main


@pytest.fixture
def without_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine that has everything but Go, and no programs from earlier."""
    monkeypatch.setenv("AFTERSHOCK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "USUAL_GO", tmp_path / "go")
    monkeypatch.setattr(debian, "missing_packages", list)


@pytest.mark.usefixtures("without_go")
def test_without_go_it_is_told_that_the_suite_did_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--if-possible"]) == ExitCode.PASS
    told = capsys.readouterr().out
    assert "the cluster suite (tests/cluster) did NOT run" in told
    assert "Go" in told and "install" in told


@pytest.mark.usefixtures("without_go")
def test_who_asks_for_the_suite_gets_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with tempfile.TemporaryDirectory() as short:  # a cluster's sockets bear no long path
        assert main(["--directory", f"{short}/c", "test"]) == ExitCode.INFRASTRUCTURE
    assert "there is none; install Go" in capsys.readouterr().err


def test_a_go_that_is_too_old_is_no_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go version go1.19.8 linux/amd64\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    monkeypatch.setattr(debian, "missing_packages", list)

    assert "go1.19.8 linux/amd64, which is too old" in str(suite.obstacle())
