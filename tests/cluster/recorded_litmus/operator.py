"""The recorded operator: acts on live ChaosEngines as the recorded one did.

One engine is dealt with at a time, as in the real one: an abort that waits for pods holds up all others. It remembers
nothing that the objects do not say, but for the names of its own Events. Not played: the leader lease, metrics, and
what concerns helper pods (the copying of their targets' states, the revert).
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import secrets
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from tests.cluster.recorded_litmus import reconcile
from tests.cluster.recorded_litmus.api import Api, Object, path
from tests.cluster.recorded_litmus.events import Happening, record
from tests.cluster.recorded_litmus.reconcile import POD_VARIABLE, PodPieces, Step
from tests.cluster.recorded_litmus.targets import IncompleteTargetError, render_targets
from tests.cluster.recorded_litmus.timing import SPEED_VARIABLE, pause

COMPONENT = "chaos-operator"
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 0.005, 1000.0
PODS_GONE_S = 180.0
Key = tuple[str, str]
"""Namespace and name of an engine."""

log = logging.getLogger(__name__)


class NotYetError(Exception):
    """This look came to nothing; look again, later and later."""


class Queue:
    """Engines to look at, each once, when its time has come."""

    def __init__(self) -> None:
        self._due: dict[Key, float] = {}
        self._changed = threading.Condition()

    def add(self, key: Key, delay_s: float = 0.0) -> None:
        """Look at it no later than in `delay_s`."""
        with self._changed:
            due_s = time.monotonic() + delay_s
            self._due[key] = min(due_s, self._due.get(key, due_s))
            self._changed.notify_all()

    def take(self) -> Key:
        """The one that is due, as soon as one is."""
        with self._changed:
            while True:
                key = min(self._due, key=self._due.__getitem__, default=None)
                left_s = self._due[key] - time.monotonic() if key else None
                if key and left_s is not None and left_s <= 0:
                    del self._due[key]
                    return key
                self._changed.wait(left_s)


class Operator:
    """Looks at engines, one after the other, for ever."""

    def __init__(self, api: Api, pieces: PodPieces, speed: Mapping[str, str]) -> None:
        self._api, self._pieces, self._speed = api, pieces, speed
        self._queue = Queue()
        self._failures: dict[Key, int] = {}
        self._event_names: dict[tuple[str, Happening], str] = {}

    def run(self) -> None:
        """Watch and act; returns never."""
        labels = ",".join(f"{key}={value}" for key, value in reconcile.RUNNER_LABELS.items())
        self._watch(path("chaosengines"), lambda engine: engine["metadata"]["name"])
        self._watch(path("pods"), lambda pod: pod["metadata"]["labels"].get("app", ""), labelSelector=labels)
        while True:
            key = self._queue.take()
            try:
                self._look(*key)
                self._failures.pop(key, None)
            except (NotYetError, ApiException, HTTPError, OSError) as error:
                count = self._failures[key] = self._failures.get(key, 0) + 1
                log.info("%s/%s: attempt %d: %s", *key, count, " ".join(str(error).split())[:300])
                self._queue.add(key, min(FIRST_BACKOFF_S * 2 ** (count - 1), LONGEST_BACKOFF_S))

    def _watch(self, at: str, engine_name: Any, **query: str) -> None:
        def seen(_: str, item: Object) -> None:
            self._queue.add((item["metadata"]["namespace"], engine_name(item)))

        threading.Thread(target=self._api.follow, args=(at, seen, lambda: False), kwargs=query, daemon=True).start()

    def _look(self, namespace: str, name: str) -> None:
        at = path("chaosengines", namespace, name)
        engine = self._api.find(at)
        if engine is None:
            return
        step = reconcile.due(engine)
        log.info("%s/%s: %s", namespace, name, step)
        match step:
            case Step.INITIALIZE:
                reconcile.initialize(engine)
                engine = self._api.replace(at, engine)
                message = f"Identifying app under test & launching {name}-runner"
                self._tell(engine, Happening("ChaosEngineInitialized", message))
                self._drive(at, engine)
            case Step.DRIVE:
                self._drive(at, engine)
            case Step.ABORT | Step.RELEASE:
                self._abort(at, engine)
            case Step.CLEAN:
                self._clean(engine)
            case Step.RERUN:
                self._remove(engine)
                self._api.change(at, reconcile.rerun)

    def _drive(self, at: str, engine: Object) -> None:
        try:
            targets = render_targets(engine["spec"])
        except IncompleteTargetError as error:
            log.info("%s: stopped: %s", at, error)
            self._api.patch(at, {"spec": {"engineState": "stop"}})
            return
        name, namespace = engine["metadata"]["name"], engine["metadata"]["namespace"]
        runner = self._api.find(path("pods", namespace, f"{name}-runner"))
        if runner is None:
            self._launch(engine, targets)
        elif runner["metadata"].get("deletionTimestamp"):
            raise NotYetError("the runner of the last run is not gone yet")
        elif reconcile.is_completed(runner):
            self._api.patch(at, {"spec": {"engineState": "stop"}, "status": {"engineStatus": "completed"}})
            text = "ChaosEngine completed, will delete or retain the resources according to jobCleanUpPolicy"
            self._tell(engine, Happening("ChaosEngineCompleted", text))

    def _launch(self, engine: Object, targets: str) -> None:
        namespace, spec = engine["metadata"]["namespace"], engine["spec"]
        wanted = path("chaosexperiments", namespace, spec["experiments"][0]["name"])
        account = path("serviceaccounts", namespace, spec.get("chaosServiceAccount") or "default")
        try:
            for needed in (wanted, account):
                self._api.get(needed)
            pod = reconcile.runner_pod(engine, targets, self._pieces, self._speed)
            self._api.create(path("pods", namespace), pod)
        except ApiException as error:
            self._warn(engine, "(chaos start) Unable to get chaos resources")
            raise NotYetError(f"launch: {error.status} {error.body}") from error

    def _abort(self, at: str, engine: Object) -> None:
        had_pods = self._remove(engine)
        until = time.monotonic() + PODS_GONE_S
        while self._pods(engine):
            if time.monotonic() >= until:
                self._warn(engine, "(chaos stop) Unable to delete chaos resources")
                raise NotYetError("the pods of the engine do not go")
            pause(1)
        pause(1)
        try:
            self._api.change(at, reconcile.stop)
        except ApiException as error:
            if error.status != 404:
                raise
        if had_pods:
            self._tell(engine, Happening("ChaosEngineStopped", "Chaos resources deleted successfully"))

    def _clean(self, engine: Object) -> None:
        if engine["spec"].get("jobCleanUpPolicy") != "delete":
            return
        name, namespace, uid = (engine["metadata"][key] for key in ("name", "namespace", "uid"))
        selector = f"app={name},chaosUID={uid}"
        if not self._api.items(path("pods", namespace), labelSelector=selector):
            return
        self._api.delete(path("pods", namespace), labelSelector=selector)
        until = time.monotonic() + PODS_GONE_S
        while self._api.items(path("pods", namespace), labelSelector=selector) and time.monotonic() < until:
            pause(1)
        # A race of the real one, seen in the only recording with this policy.
        self._warn(engine, "(chaos completion) Unable to delete chaos pods upon chaos completion")

    def _remove(self, engine: Object) -> bool:
        """Jobs first, then pods; whether there were any pods."""
        had_pods = bool(self._pods(engine))
        namespace, selector = engine["metadata"]["namespace"], _selector(engine)
        self._api.delete(path("jobs", namespace), labelSelector=selector)
        grace_s = engine["spec"].get("terminationGracePeriodSeconds") or None
        self._api.delete(path("pods", namespace), grace_s, labelSelector=selector)
        return had_pods

    def _pods(self, engine: Object) -> list[Object]:
        return self._api.items(path("pods", engine["metadata"]["namespace"]), labelSelector=_selector(engine))

    def _warn(self, engine: Object, message: str) -> None:
        self._tell(engine, Happening("ChaosResourcesOperationFailed", message, "Warning"))

    def _tell(self, engine: Object, happening: Happening) -> None:
        """An Event, the same object for the same text; best effort, as the real one's recorder is."""
        metadata = engine["metadata"]
        fresh = f"{metadata['name']}.{secrets.token_hex(8)}"
        name = self._event_names.setdefault((metadata["uid"], happening), fresh)
        try:
            record(self._api, name, engine, happening, COMPONENT)
        except (ApiException, HTTPError, OSError) as error:
            log.warning("event %s of %s is lost: %s", happening.reason, metadata["name"], error)


def _selector(engine: Object) -> str:
    return f"chaosUID={engine['metadata']['uid']}"


def _speed_settings() -> Iterator[tuple[str, str]]:
    if given := os.environ.get(SPEED_VARIABLE):
        yield SPEED_VARIABLE, given


def main(_: Sequence[str] = ()) -> None:
    """Run until killed."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    pieces = PodPieces(**json.loads(os.environ[POD_VARIABLE]))
    for attempt in itertools.count():
        try:
            api = Api.connect()
            api.get(path("chaosengines"), limit="1")
            break
        except (ApiException, HTTPError, OSError) as error:
            log.info("attempt %d to reach the API server: %s", attempt, error)
            time.sleep(1)
    Operator(api, pieces, dict(_speed_settings())).run()
