"""The history against a real S3 server (SeaweedFS) on loopback."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from aftershock.errors import StoreError
from aftershock.report.history import Store
from aftershock.stack.object_store import ObjectStore, StoreFolder, find_weed, sweep_sockets
from aftershock.stack.ports import PortPool

pytestmark = pytest.mark.integration

ACCESS_KEY, SECRET_KEY = "history", "history-secret"
START_TIMEOUT_S = 60.0
RIGHTS = {"history": ["Admin", "Read", "Write", "List", "Tagging"], "guest": ["Read:elsewhere"]}


def open_folder(path: Path) -> StoreFolder:
    """A folder of objects to which two users have keys."""
    path.mkdir()
    identities = [
        {"name": name, "credentials": [{"accessKey": name, "secretKey": f"{name}-secret"}], "actions": actions}
        for name, actions in RIGHTS.items()
    ]
    (path / "s3.json").write_text(json.dumps({"identities": identities}))
    folder = StoreFolder.open(path)
    assert folder is not None
    return folder


@contextmanager
def running(server: ObjectStore) -> Iterator[subprocess.Popen[bytes]]:
    """The process of the server; its end is sudden, since SeaweedFS takes half a minute for any other."""
    command = server.command()
    with command.log.open("wb") as out:
        process = subprocess.Popen(
            command.argv,
            cwd=command.folder,
            env=command.environment,
            pass_fds=command.descriptors,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        os.close(server.folder.lock)
        sweep_sockets(server.folder.path)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    base, pool = tmp_path_factory.mktemp("store"), PortPool()
    server = ObjectStore(find_weed(), open_folder(base / "folder"), base / "weed.log", pool)
    with closing(pool), running(server) as process:
        store = Store(server.endpoint, ACCESS_KEY, SECRET_KEY)
        deadline = time.monotonic() + START_TIMEOUT_S
        while not store.ready():
            assert process.poll() is None, (base / "weed.log").read_text()[-2000:]
            assert time.monotonic() < deadline, (base / "weed.log").read_text()[-2000:]
            time.sleep(0.1)
        yield server.endpoint


@pytest.fixture
def store(endpoint: str) -> Store:
    """A store with a bucket of its own, which does not exist yet."""
    return Store(endpoint, ACCESS_KEY, SECRET_KEY, f"test-{secrets.token_hex(4)}")


def test_a_run_comes_back_as_it_went_in(store: Store) -> None:
    files = {"report.html": b"<!doctype html>", "verdict.json": b'{"verdict": "PASS"}', "empty": b""}
    store.publish("run-1", files)
    assert {name: store.fetch("run-1", name) for name in files} == files


def test_no_bucket_means_no_runs(store: Store) -> None:
    assert store.list_runs() == []


def test_runs_are_listed_sorted(store: Store) -> None:
    for run_id in ("20261202-1", "20261201-1", "20261201-2"):
        store.publish(run_id, {"verdict.json": b"{}"})
    assert store.list_runs() == ["20261201-1", "20261201-2", "20261202-1"]


def test_a_run_that_was_not_published_whole_is_not_listed(store: Store) -> None:
    store.publish("whole", {"verdict.json": b"{}"})
    store._create("runs/torn/verdict.json", b"{}")
    assert store.list_runs() == ["whole"]
    store.publish("torn", {"verdict.json": b"{}", "report.md": b"# x"})
    assert store.list_runs() == ["torn", "whole"]


def test_publishing_the_same_again_is_fine(store: Store) -> None:
    for _ in range(2):
        store.publish("again", {"verdict.json": b"{}"})
    assert store.list_runs() == ["again"]


def test_a_kept_run_is_not_overwritten(store: Store) -> None:
    store.publish("taken", {"verdict.json": b'{"verdict": "FAIL"}'})
    with pytest.raises(StoreError, match="is kept already, with other contents"):
        store.publish("taken", {"verdict.json": b'{"verdict": "PASS"}'})
    assert store.fetch("taken", "verdict.json") == b'{"verdict": "FAIL"}'


def test_two_writers_of_one_run_leave_one_whole_version(endpoint: str) -> None:
    bucket = f"race-{secrets.token_hex(4)}"
    refused: list[StoreError] = []
    barrier = threading.Barrier(4)

    def write(content: bytes) -> None:
        barrier.wait()
        try:
            Store(endpoint, ACCESS_KEY, SECRET_KEY, bucket).publish("race", {"verdict.json": content})
        except StoreError as error:
            refused.append(error)

    threads = [threading.Thread(target=write, args=(b"%d" % number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(refused) == 3
    assert Store(endpoint, ACCESS_KEY, SECRET_KEY, bucket).fetch("race", "verdict.json") in (b"0", b"1", b"2", b"3")


def test_what_is_not_kept_is_an_error_that_says_so(store: Store) -> None:
    store.publish("run-1", {"verdict.json": b"{}"})
    for run_id, name in (("run-1", "report.html"), ("run-2", "verdict.json")):
        with pytest.raises(StoreError) as caught:
            store.fetch(run_id, name)
        assert f"read runs/{run_id}/{name}: NoSuchKey" in one_line(caught.value)


def test_a_name_cannot_reach_into_another_run(store: Store) -> None:
    store.publish("run-1", {"verdict.json": b"{}"})
    with pytest.raises(StoreError):
        store.fetch("run-2", "../run-1/verdict.json")


def test_a_wrong_key_is_refused_in_one_line(endpoint: str) -> None:
    stranger = Store(endpoint, "nobody", "guess", "bucket-of-nobody")
    for attempt in (stranger.ready, stranger.list_runs, lambda: stranger.publish("run", {"x": b"y"})):
        with pytest.raises(StoreError) as caught:
            attempt()
        assert endpoint in one_line(caught.value)
        assert "AFTERSHOCK_STORE_ACCESS_KEY" in str(caught.value)


def test_a_key_without_rights_is_refused_in_one_line(endpoint: str) -> None:
    guest = Store(endpoint, "guest", "guest-secret", "not-for-guests")
    with pytest.raises(StoreError) as caught:
        guest.publish("run", {"x": b"y"})
    assert "AccessDenied" in one_line(caught.value)


def one_line(error: StoreError) -> str:
    """The message, once it is known to be one line that does not show the secret key."""
    text = str(error)
    assert "\n" not in text
    assert len(text) < 300
    assert SECRET_KEY not in text
    return text
