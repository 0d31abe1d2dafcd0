"""One thread that keeps an eye on one kind of object: list, then watch from there, and again whenever that breaks.

It never gives up by itself: how long blindness may last is for the run to decide. Each gap is bridged by resuming from
the last resourceVersion or, where the server has lost that, by a new list.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from queue import Queue

from aftershock.chaos.litmus.clock import Clock
from aftershock.chaos.litmus.cluster import Cluster, ClusterError, GoneError
from aftershock.chaos.litmus.kinds import Kind
from aftershock.chaos.litmus.sightings import Blackout, Contact, Listing, Message, Object, Sighting, Topic
from aftershock.errors import ChaosError

FIRST_BACKOFF_S = 0.5
LONGEST_BACKOFF_S = 5.0
BETWEEN_S = 0.05
"""From the end of one watch, as the server ends each after a while, to the next."""
CATCH_UP_S = 1.0
"""What arrives so soon after a gap was passes for having happened in it."""

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class View:
    """Which objects a watcher sees."""

    topic: Topic
    kind: Kind
    namespace: str
    selectors: dict[str, str] = field(default_factory=dict)
    """labelSelector and fieldSelector."""


class Watcher:
    """Looks at a view, and puts what it sees into the inbox, until it is closed."""

    def __init__(self, cluster: Cluster, view: View, inbox: Queue[Message], clock: Clock) -> None:
        self._cluster = cluster
        self._view = view
        self._inbox = inbox
        self._clock = clock
        self._closed = threading.Event()
        self._version: str | None = None
        """resourceVersion to go on from; None: list first."""
        self._after_gap = False
        # A daemon: a watch that hangs on a dead connection must not keep the process from ending.
        self._thread = threading.Thread(target=self._look, name=f"watch {view.topic}", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """See nothing more. The thread itself ends with its present request."""
        self._closed.set()

    def _look(self) -> None:
        backoff_s = FIRST_BACKOFF_S
        while not self._closed.is_set():
            try:
                for message in self._messages():
                    backoff_s = FIRST_BACKOFF_S
                    self._tell(message)
                self._after_gap = False
                self._clock.sleep(BETWEEN_S)
                continue
            except GoneError as error:
                log.info("%s: listing again: %s", self._view.topic, error)
                self._version = None
                self._tell(Blackout(self._view.topic, str(error)))
            except ChaosError as error:
                log.info("%s: trying again: %s", self._view.topic, error)
                self._tell(Blackout(self._view.topic, str(error)))
            except Exception as error:  # a thread that dies would look like a cluster in which nothing happens
                log.warning("%s: trying again", self._view.topic, exc_info=True)
                self._tell(Blackout(self._view.topic, f"{type(error).__name__}: {error}"))
            self._after_gap = True
            self._clock.sleep(backoff_s)
            backoff_s = min(2 * backoff_s, LONGEST_BACKOFF_S)

    def _tell(self, message: Message) -> None:
        if not self._closed.is_set():
            self._inbox.put(message)

    def _messages(self) -> Iterator[Message]:
        view = self._view
        if self._version is None:
            listed = self._cluster.list(view.kind, view.namespace, **view.selectors)
            self._version = _version(listed)
            yield Listing(view.topic, tuple(listed.get("items") or ()), self._clock.now())
        path = view.kind.path(view.namespace)
        late_until = self._clock.monotonic() + (CATCH_UP_S if self._after_gap else 0.0)
        for change in self._cluster.watch(path, {**view.selectors, "resourceVersion": self._version}):
            yield Contact(view.topic)
            if "object" not in change:
                continue
            self._version = _version(change["object"])
            if change["type"] in ("ADDED", "MODIFIED", "DELETED"):  # not so a bookmark, which only moves the version
                live = self._clock.monotonic() >= late_until
                yield Sighting(view.topic, change["type"], change["object"], self._clock.now(), live)


def _version(document: Object) -> str:
    version = (document.get("metadata") or {}).get("resourceVersion")
    if not version:
        raise ClusterError("the answer of the API server has no resourceVersion")
    return str(version)
