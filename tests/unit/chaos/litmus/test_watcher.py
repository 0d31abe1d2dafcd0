"""Lists and watches over real connections that break, end and expire."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from queue import Empty, Queue

import pytest

from aftershock.chaos.litmus.abort import stop_engine
from aftershock.chaos.litmus.clock import SystemClock
from aftershock.chaos.litmus.cluster import (
    Cluster,
    ConflictError,
    DeniedError,
    GoneError,
    NotFoundError,
    UnreachableError,
)
from aftershock.chaos.litmus.kinds import ENGINES, PODS
from aftershock.chaos.litmus.sightings import Blackout, Contact, Listing, Message, Sighting, Topic
from aftershock.chaos.litmus.watcher import View, Watcher
from aftershock.windows import utc_now

from .fake_api_server import NAMESPACE, FakeApiServer


@pytest.fixture
def inbox(cluster: Cluster) -> Iterator[Queue[Message]]:
    queue: Queue[Message] = Queue()
    watcher = Watcher(cluster, View(Topic.POD, PODS, NAMESPACE, {"labelSelector": "a=b"}), queue, SystemClock())
    watcher.start()
    yield queue
    watcher.close()


def upcoming(inbox: Queue[Message], wanted: Callable[[Message], bool]) -> Message:
    """The next message that is wanted; fails where none comes."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            message = inbox.get(timeout=0.1)
        except Empty:
            continue
        if wanted(message):
            return message
    raise AssertionError("it was never told")


def name_of(message: Message) -> str:
    assert isinstance(message, Sighting)
    return str(message.object["metadata"]["name"])


def test_what_is_there_is_listed_and_what_comes_is_seen(server: FakeApiServer, inbox: Queue[Message]) -> None:
    listing = upcoming(inbox, lambda message: isinstance(message, Listing))
    assert isinstance(listing, Listing)
    assert listing.objects == ()
    upcoming(inbox, lambda message: isinstance(message, Contact))
    server.add("pods", "other")
    server.add("pods", "one", metadata={"labels": {"a": "b"}})
    assert name_of(upcoming(inbox, lambda message: isinstance(message, Sighting))) == "one"


def test_a_watch_that_ends_as_it_should_is_resumed_without_a_list(server: FakeApiServer, inbox: Queue[Message]) -> None:
    upcoming(inbox, lambda message: isinstance(message, Contact))
    server.end_watches()
    server.add("pods", "one", metadata={"labels": {"a": "b"}})
    assert name_of(upcoming(inbox, lambda message: isinstance(message, Sighting))) == "one"
    assert server.lists == ["pods"]


def test_a_lost_history_is_listed_again(server: FakeApiServer, inbox: Queue[Message]) -> None:
    upcoming(inbox, lambda message: isinstance(message, Contact))
    server.add("pods", "one", metadata={"labels": {"a": "b"}})
    server.kill()
    server.add("pods", "two", metadata={"labels": {"a": "b"}})
    server.compacted = server.version
    upcoming(inbox, lambda message: isinstance(message, Blackout))
    server.down = False
    listing = upcoming(inbox, lambda message: isinstance(message, Listing) and len(message.objects) == 2)
    assert isinstance(listing, Listing)
    assert server.lists == ["pods", "pods"]


def test_an_answer_that_makes_no_sense_is_told_and_the_watch_goes_on(
    server: FakeApiServer, inbox: Queue[Message]
) -> None:
    upcoming(inbox, lambda message: isinstance(message, Contact))
    server.streams[0].changes.put({"type": "ADDED", "object": []})
    upcoming(inbox, lambda message: isinstance(message, Blackout))
    server.add("pods", "one", metadata={"labels": {"a": "b"}})
    assert name_of(upcoming(inbox, lambda message: isinstance(message, Sighting))) == "one"


@pytest.mark.parametrize("status", [401, 403, 503, 504])
def test_a_refusal_is_told_and_tried_again(server: FakeApiServer, inbox: Queue[Message], status: int) -> None:
    upcoming(inbox, lambda message: isinstance(message, Contact))
    server.refusals["GET", "pods"] = status
    server.end_watches()
    blackout = upcoming(inbox, lambda message: isinstance(message, Blackout))
    assert isinstance(blackout, Blackout)
    assert str(status) in blackout.reason
    server.refusals.clear()
    upcoming(inbox, lambda message: isinstance(message, Contact))


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (401, DeniedError),
        (403, DeniedError),
        (404, NotFoundError),
        (409, ConflictError),
        (410, GoneError),
        (500, UnreachableError),
        (504, GoneError),
    ],
)
def test_refusals_are_mapped_to_our_errors(
    server: FakeApiServer, cluster: Cluster, status: int, expected: type[Exception]
) -> None:
    server.refusals["GET", "chaosengines"] = status
    with pytest.raises(expected, match=rf"^GET /apis/\S+: {status}: refused with {status}$"):
        cluster.list(ENGINES, NAMESPACE)


@pytest.mark.parametrize("write", ["create", "merge_patch"])
def test_a_write_that_timed_out_in_the_server_is_unanswered(
    server: FakeApiServer, cluster: Cluster, write: str
) -> None:
    server.on_request = lambda *_: 504
    with pytest.raises(UnreachableError, match="504"):
        getattr(cluster, write)(ENGINES.path(NAMESPACE, "e"), {"metadata": {"name": "e"}})


def test_an_error_body_that_is_a_proxys_is_mapped_by_its_status(server: FakeApiServer, cluster: Cluster) -> None:
    server.error = lambda code: {"type": "error", "status": str(code), "code": "ClusterUnavailable", "message": "gone"}
    server.on_request = lambda *_: 503
    with pytest.raises(UnreachableError, match=r"503: gone$"):
        cluster.list(ENGINES, NAMESPACE)
    assert not stop_engine(cluster, NAMESPACE, "e", "u")


def test_whatever_else_fails_in_the_client_is_an_error_of_ours(cluster: Cluster) -> None:
    def forgets_how_to_log_in(_: object) -> None:
        raise KeyError("user")

    settings = cluster._credentials.api.configuration
    settings.api_key["authorization"], settings.refresh_api_key_hook = "Bearer t", forgets_how_to_log_in
    with pytest.raises(UnreachableError, match="KeyError: 'user'"):
        cluster.list(ENGINES, NAMESPACE)
    assert not stop_engine(cluster, NAMESPACE, "e", "u")


class Impatient:
    """A clock on which sleeping takes no time, and is written down."""

    def __init__(self, closes_after: int) -> None:
        self.slept: list[float] = []
        self.watcher: Watcher | None = None
        self._closes_after = closes_after

    def now(self) -> datetime:
        return utc_now()

    def monotonic(self) -> float:
        return sum(self.slept)

    def receive(self, inbox: Queue[Message], timeout_s: float) -> Message | None:
        raise NotImplementedError

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) >= self._closes_after:
            assert self.watcher
            self.watcher.close()


def look(cluster: Cluster, clock: Impatient) -> list[Message]:
    """All that a watcher told until its clock has closed it."""
    inbox: Queue[Message] = Queue()
    clock.watcher = Watcher(cluster, View(Topic.POD, PODS, NAMESPACE), inbox, clock)
    clock.watcher._look()
    return list(inbox.queue)


def test_lists_that_succeed_do_not_make_watches_that_fail_come_faster(server: FakeApiServer, cluster: Cluster) -> None:
    server.compacted = server.version + 1  # each watch gets 410, right after its list
    clock = Impatient(closes_after=6)
    look(cluster, clock)
    assert clock.slept == [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]
    assert len(server.lists) == 6


def test_a_change_ends_a_series_of_failures(server: FakeApiServer, cluster: Cluster) -> None:
    tries: list[str] = []

    def fails_at_first(method: str, plural: str, _: str) -> int | None:
        tries.append(plural)
        return 503 if len(tries) <= 3 else None

    def then_breaks_after_a_change() -> None:
        while len(server.streams) == 0:
            time.sleep(0.001)
        server.add("pods", "one")
        server.streams[0].changes.put(None)

    server.on_request = fails_at_first
    breaking = threading.Thread(target=then_breaks_after_a_change)
    breaking.start()
    clock = Impatient(closes_after=4)
    look(cluster, clock)
    breaking.join()
    assert clock.slept == [0.5, 1.0, 2.0, 0.5]


def test_watches_that_something_ends_at_once_are_a_second_apart(server: FakeApiServer, cluster: Cluster) -> None:
    done = threading.Event()

    def ends_them() -> None:
        while not done.wait(0.001):
            server.end_watches()

    ending = threading.Thread(target=ends_them)
    ending.start()
    clock = Impatient(closes_after=5)
    look(cluster, clock)
    done.set()
    ending.join()
    assert clock.slept == [1.0] * 5


def test_what_happened_in_a_gap_is_no_live_sight_however_long_the_watch_took_to_open(
    server: FakeApiServer, cluster: Cluster
) -> None:
    clock = Impatient(closes_after=2)
    tries: list[str] = []

    def slow_after_a_gap(method: str, plural: str, _: str) -> int | None:
        tries.append(plural)
        if len(tries) == 2:
            return 503
        if len(tries) == 3:
            server.add("pods", "in-the-gap")
            clock.slept.append(9.0)  # so long the answer takes
            threading.Timer(0.2, lambda: server.streams[0].changes.put(None)).start()
        return None

    server.on_request = slow_after_a_gap
    sightings = [message for message in look(cluster, clock) if isinstance(message, Sighting)]
    assert [name_of(sighting) for sighting in sightings] == ["in-the-gap"]
    assert not sightings[0].live


def test_a_dead_server_is_unreachable(server: FakeApiServer, cluster: Cluster) -> None:
    server.kill()
    with pytest.raises(UnreachableError, match="does not answer"):
        cluster.list(ENGINES, NAMESPACE)
