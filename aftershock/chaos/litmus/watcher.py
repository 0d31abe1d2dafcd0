"""One thread that keeps an eye on one kind of object: list, then watch from there, and again whenever that breaks.

It never gives up by itself: how long blindness may last is for the run to decide. Each gap is bridged by resuming from
the last resourceVersion or, where the server has lost that, by a new list.
"""

from __future__ import annotations

import logging
import math
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
LEAST_WATCH_S = 1.0
"""From the beginning of one watch to that of the next, should something end each at once."""
HEALTHY_S = 5.0
"""A watch that lasts so long, or brings a change, ends a series of failures; an answer to a list does not."""
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
        self._opened_s = math.inf
        """When the present watch was opened, if it was."""
        self._brought = False
        """Whether it has brought a change."""
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
            began_s, self._opened_s, self._brought = self._clock.monotonic(), math.inf, False
            trouble = self._look_once()
            now_s = self._clock.monotonic()
            if self._brought or now_s - self._opened_s >= HEALTHY_S:
                backoff_s = FIRST_BACKOFF_S
            self._after_gap = bool(trouble)
            if trouble:
                self._tell(Blackout(self._view.topic, trouble))
                self._clock.sleep(backoff_s)
                backoff_s = min(2 * backoff_s, LONGEST_BACKOFF_S)
            elif now_s - began_s < LEAST_WATCH_S:
                self._clock.sleep(LEAST_WATCH_S - (now_s - began_s))

    def _look_once(self) -> str:
        """Tell what there is until the watch ends: why, if that was not as it should."""
        try:
            for message in self._messages():
                self._tell(message)
            return ""
        except GoneError as error:
            log.info("%s: listing again: %s", self._view.topic, error)
            self._version = None
            return str(error)
        except ChaosError as error:
            log.info("%s: trying again: %s", self._view.topic, error)
            return str(error)
        except Exception as error:  # a thread that dies would look like a cluster in which nothing happens
            log.warning("%s: trying again", self._view.topic, exc_info=True)
            return f"{type(error).__name__}: {error}"

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
        late_until_s = 0.0
        for change in self._cluster.watch(path, {**view.selectors, "resourceVersion": self._version}):
            yield Contact(view.topic)
            now_s = self._clock.monotonic()
            if "object" not in change:  # it is open, which may have taken seconds
                self._opened_s = now_s
                late_until_s = now_s + (CATCH_UP_S if self._after_gap else 0.0)
                continue
            self._version = _version(change["object"])
            if change["type"] in ("ADDED", "MODIFIED", "DELETED"):  # not so a bookmark, which only moves the version
                self._brought = True
                live = now_s >= late_until_s
                yield Sighting(view.topic, change["type"], change["object"], self._clock.now(), live)


def _version(document: Object) -> str:
    version = (document.get("metadata") or {}).get("resourceVersion")
    if not version:
        raise ClusterError("the answer of the API server has no resourceVersion")
    return str(version)
