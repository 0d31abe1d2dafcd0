"""Where a Prometheus is looked for, in which order, and what it is told to scrape."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aftershock.errors import InputError, StackError
from aftershock.stack.ports import PortPool
from aftershock.stack.prometheus import Prometheus, Target, find_binary

Program = Callable[..., Path]

APT = """#!/bin/sh
# Knows the package only where lists are: in the system's, if LISTS is set, or in its own, after an update.
echo "$@" >> "$CALLS"
case "$*" in
*update*) touch lists-are-there; exit 0;;
*download*)
  sleep 0.1
  [ -n "$LISTS" ] || [ -e lists-are-there ] || { echo 'E: Unable to locate package' >&2; exit 100; }
  touch prometheus_2.42_amd64.deb;;
esac
"""
DPKG = """#!/bin/sh
mkdir -p "$3/usr/bin" && cp "$BINARY" "$3/usr/bin/prometheus"
"""


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Write an executable script."""

    def write(name: str, text: str = "#!/bin/sh\n") -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        return path

    return write


@pytest.fixture
def debian(tmp_path: Path, program: Program, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A system whose apt-get and dpkg are stand-ins, without package lists; the file that logs apt-get's calls."""
    program("bin/apt-get", APT)
    program("bin/dpkg", DPKG)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("BINARY", str(program("real-prometheus")))
    return tmp_path / "calls"


def test_the_variable_wins_over_the_path(program: Program, tmp_path: Path) -> None:
    given, on_path = program("given/prometheus"), program("bin/prometheus")
    environment = {"PATH": str(on_path.parent), "AFTERSHOCK_CACHE": str(tmp_path)}
    assert find_binary(environment) == on_path
    assert find_binary({**environment, "AFTERSHOCK_PROMETHEUS": str(given)}) == given


@pytest.mark.parametrize("make", [lambda path: None, Path.mkdir, Path.touch], ids=["missing", "folder", "no program"])
def test_a_variable_that_names_no_program_is_bad_input(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(InputError, match="AFTERSHOCK_PROMETHEUS"):
        find_binary({"AFTERSHOCK_PROMETHEUS": str(tmp_path / "x")})


def test_elsewhere_than_debian_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match=r"install Prometheus.*or set AFTERSHOCK_PROMETHEUS"):
        find_binary({"AFTERSHOCK_CACHE": str(tmp_path)})


def test_fetched_with_the_systems_lists_once(tmp_path: Path, debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTS", "yes")
    environment = {"AFTERSHOCK_CACHE": str(tmp_path / "cache")}
    found = find_binary(environment)
    assert found == tmp_path / "cache" / "prometheus"
    assert os.access(found, os.X_OK)
    assert find_binary(environment) == found
    assert len(debian.read_text().splitlines()) == 1
    assert [path.name for path in found.parent.iterdir() if path.is_dir()] == [], "nothing half done is kept"


def test_fetched_with_lists_of_our_own_where_the_system_has_none(tmp_path: Path, debian: Path) -> None:
    assert find_binary({"AFTERSHOCK_CACHE": str(tmp_path / "cache")}).is_file()
    calls = debian.read_text().splitlines()
    assert ["update" in call for call in calls] == [False, True, False]
    for call in calls[1:]:
        assert "Dir::State::lists=" in call


def test_two_at_once_fetch_once(tmp_path: Path, debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTS", "yes")
    environment = {"AFTERSHOCK_CACHE": str(tmp_path / "cache")}
    children = []
    for _ in range(2):
        if (child := os.fork()) == 0:
            try:
                find_binary(environment)
            finally:
                os._exit(0)
        children.append(child)
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0]
    assert len(debian.read_text().splitlines()) == 1


def test_what_apt_says_reaches_the_user(tmp_path: Path, debian: Path, program: Program) -> None:
    program("bin/apt-get", "#!/bin/sh\necho 'E: no network at all' >&2; exit 100\n")
    with pytest.raises(StackError, match=r"no network at all; install Prometheus.*AFTERSHOCK_PROMETHEUS") as caught:
        find_binary({"AFTERSHOCK_CACHE": str(tmp_path / "cache")})
    assert "\n" not in str(caught.value)


def test_a_cache_that_cannot_be_written_is_said(tmp_path: Path, debian: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StackError, match="set AFTERSHOCK_CACHE to a folder you can write"):
        find_binary({"AFTERSHOCK_CACHE": str(tmp_path / "file" / "cache")})


@pytest.fixture
def pool() -> Iterator[PortPool]:
    pool = PortPool()
    yield pool
    pool.close()


def test_targets_and_interval_are_written(tmp_path: Path, pool: PortPool) -> None:
    prometheus = Prometheus(Path("/p"), tmp_path, tmp_path / "log", 0.5, pool)
    prometheus.scrape([Target(81, {"job": "model-server", "pod": "a"}), Target(82, {"job": "load"})])
    command = prometheus.command()
    configuration = json.loads((tmp_path / "prometheus.yml").read_text())
    assert configuration["global"] == {"scrape_interval": "500ms", "scrape_timeout": "500ms"}
    (job,) = configuration["scrape_configs"]
    assert json.loads(Path(job["file_sd_configs"][0]["files"][0]).read_text()) == [
        {"targets": ["127.0.0.1:81"], "labels": {"job": "model-server", "pod": "a"}},
        {"targets": ["127.0.0.1:82"], "labels": {"job": "load"}},
    ]
    assert f"--web.listen-address=127.0.0.1:{prometheus.port}" in command.argv
    before = prometheus.port
    prometheus.move()
    assert prometheus.port != before
    assert f"--web.listen-address=127.0.0.1:{prometheus.port}" in prometheus.command().argv
