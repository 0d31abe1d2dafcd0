"""The store's folder: one at a time, one key for good, and nothing left in /tmp."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aftershock.errors import StackError
from aftershock.files import write_json
from aftershock.stack import object_store
from aftershock.stack.object_store import ObjectStore, StoreFolder, find_weed
from aftershock.stack.ports import PortPool


@pytest.fixture
def pool() -> Iterator[PortPool]:
    pool = PortPool()
    yield pool
    pool.close()


def opened(path: Path) -> StoreFolder:
    folder = StoreFolder.open(path)
    assert folder is not None
    return folder


def test_without_seaweedfs_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sysconfig.get_path", lambda name: str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match="--store-endpoint none"):
        find_weed()


def test_a_folder_has_one_user_at_a_time(tmp_path: Path) -> None:
    folder = opened(tmp_path / "store")
    assert StoreFolder.open(tmp_path / "store") is None
    os.close(folder.lock)
    os.close(opened(tmp_path / "store").lock)


def test_the_lock_lives_as_long_as_the_process_that_inherits_it(tmp_path: Path) -> None:
    folder = opened(tmp_path)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(folder.lock,)) as server:
        os.close(folder.lock)
        assert StoreFolder.open(tmp_path) is None
        server.communicate(b"\n")
    os.close(opened(tmp_path).lock)


def test_the_key_is_random_kept_and_private(tmp_path: Path) -> None:
    one, other = opened(tmp_path / "a"), opened(tmp_path / "b")
    assert one.keys() == one.keys() != other.keys()
    assert stat.S_IMODE((tmp_path / "a" / "s3.json").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700
    os.close(one.lock)
    os.close(other.lock)


@pytest.mark.parametrize("text", ["", "[]", '{"identities": []}'])
def test_a_broken_key_file_is_named(tmp_path: Path, text: str) -> None:
    folder = opened(tmp_path)
    (tmp_path / "s3.json").write_text(text)
    with pytest.raises(StackError, match=r"s3\.json: holds no S3 key.*remove it"):
        folder.keys()
    os.close(folder.lock)


def test_every_port_is_said_and_telemetry_is_off(tmp_path: Path, pool: PortPool) -> None:
    folder = opened(tmp_path)
    store = ObjectStore(Path("/weed"), folder, tmp_path / "log", pool)
    argv = store.command().argv
    assert "-master.telemetry=false" in argv
    assert len(set(store.ports)) == 10
    for port in store.ports:
        assert any(word.endswith(f"={port}") for word in argv)
    assert f"-s3.port={store.endpoint.removeprefix('127.0.0.1:')}" in argv
    os.close(folder.lock)


def test_settings_of_others_do_not_reach_it(tmp_path: Path, pool: PortPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "theirs")
    monkeypatch.setenv("WEED_MASTER_TELEMETRY", "true")
    folder = opened(tmp_path)
    environment = ObjectStore(Path("/weed"), folder, tmp_path / "log", pool).command().environment
    assert environment is not None
    assert not {"AWS_ACCESS_KEY_ID", "WEED_MASTER_TELEMETRY"} & set(environment)
    assert environment["PATH"] == os.environ["PATH"]
    os.close(folder.lock)


def test_what_an_earlier_process_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sockets = tmp_path / "sockets"
    sockets.mkdir()
    monkeypatch.setattr(object_store, "SOCKETS", sockets)
    for name in ("seaweedfs-s3-20001.sock", "seaweedfs-filer-grpc-20002.sock", "seaweedfs-s3-20003.sock"):
        (sockets / name).touch()
    folder = opened(tmp_path / "store")
    write_json(folder.path / "ports.json", [20001, 20002])
    for name in ("m20001", "metadata"):
        (folder.path / "data" / name).mkdir()
    folder.clear()
    assert [path.name for path in sockets.iterdir()] == ["seaweedfs-s3-20003.sock"]
    assert [path.name for path in (folder.path / "data").iterdir()] == ["metadata"]
    os.close(folder.lock)
