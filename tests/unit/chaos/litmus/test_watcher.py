"""Lists and watches over real connections that break, end and expire."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from queue import Empty, Queue

import pytest

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


def test_a_dead_server_is_unreachable(server: FakeApiServer, cluster: Cluster) -> None:
    server.kill()
    with pytest.raises(UnreachableError, match="does not answer"):
        cluster.list(ENGINES, NAMESPACE)
