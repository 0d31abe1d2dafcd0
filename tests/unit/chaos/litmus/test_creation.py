"""How an engine comes into being: inert, once, whatever becomes of the answers; and not beside other chaos."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from aftershock.chaos.backend import ChaosOutcome
from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.litmus import creation
from aftershock.chaos.litmus.backend import LitmusBackend
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.litmus.creation import create_engine, start_engine
from aftershock.chaos.litmus.rivals import RivalError, check_others, check_still_alone
from aftershock.chaos.render import render_fault
from aftershock.errors import ChaosError

from .fake_api_server import NAMESPACE, FakeApiServer
from .replay import ReplayClock

Object = dict[str, Any]


def rendered() -> ChaosEngine:
    return parse_engine(render_fault("pod-delete", {}, namespace=NAMESPACE, label="app=inference"), "test")


NAME = rendered().name


class Storing:
    """Keeps what is created, as an API server does, and what is started."""

    def __init__(self, server: FakeApiServer) -> None:
        self.server = server
        self.activations = 0
        server.on_create, server.on_start = self.create, self.start

    def create(self, body: Object) -> Object:
        stamp = "2026-12-01T00:00:10Z"
        metadata = {**body["metadata"], "uid": f"uid-of-{body['metadata']['name']}", "creationTimestamp": stamp}
        self.server.change("ADDED", "chaosengines", {**body, "metadata": metadata})
        return self.found(body["metadata"]["name"])

    def start(self, engine: Object) -> None:
        self.activations += 1
        spec = {**engine["spec"], "engineState": "active"}
        self.server.change("MODIFIED", "chaosengines", {**engine, "spec": spec})

    def found(self, name: str) -> Object:
        found = self.server.find("chaosengines", name)
        assert found is not None
        return found


@pytest.fixture
def stored(server: FakeApiServer) -> Storing:
    return Storing(server)


def run(cluster: Cluster, clock: ReplayClock) -> ChaosOutcome:
    return LitmusBackend(cluster, clock=clock).run(rendered(), threading.Event(), lambda _: None)


def create(cluster: Cluster, clock: ReplayClock) -> Object:
    return create_engine(cluster, rendered(), clock, threading.Event())


def test_it_is_created_stopped_and_started_by_a_patch(
    stored: Storing, server: FakeApiServer, cluster: Cluster, clock: ReplayClock
) -> None:
    created = create(cluster, clock)
    assert server.requests[0][2]["spec"]["engineState"] == "stop"
    assert start_engine(cluster, created, clock, threading.Event())["spec"]["engineState"] == "active"
    patch = server.requests[1][2]
    assert patch["metadata"] == {"uid": created["metadata"]["uid"], "resourceVersion": "1001"}


def test_a_creation_that_times_out_in_the_server_is_followed(
    stored: Storing, server: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    """504: the API server itself does not know what became of it."""

    def commits(body: Object) -> int:
        stored.create(body)
        return 504

    server.on_create = commits
    assert create(cluster, flowing)["metadata"]["uid"] == f"uid-of-{NAME}"


def test_a_server_that_dies_after_the_creation_is_waited_for(
    stored: Storing, server: FakeApiServer, cluster: Cluster, clock: ReplayClock
) -> None:
    def dies(body: Object) -> Object:
        stored.create(body)
        server.down = True
        raise ConnectionAbortedError

    server.on_create = dies
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        server.down = len(slept) < 4

    clock.sleep = sleep  # type: ignore[method-assign]
    assert create(cluster, clock)["metadata"]["uid"] == f"uid-of-{NAME}"
    assert len(slept) == 4


def test_a_creation_that_a_webhook_held_up_is_found_when_it_appears(
    stored: Storing, server: FakeApiServer, cluster: Cluster, clock: ReplayClock
) -> None:
    bodies: list[Object] = []

    def slow(body: Object) -> int:
        bodies.append(body)
        return 504

    def appears(_: float) -> None:
        stored.create(bodies[0])

    server.on_create = slow
    clock.sleep = appears  # type: ignore[method-assign]
    assert create(cluster, clock)["metadata"]["annotations"] == bodies[0]["metadata"]["annotations"]


def test_a_busy_server_is_asked_again(
    stored: Storing, server: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    tries: list[str] = []

    def busy(method: str, plural: str, _: str) -> int | None:
        tries.append(method)
        return 503 if (method, plural) == ("POST", "chaosengines") and tries.count("POST") < 3 else None

    server.on_request = busy
    assert create(cluster, flowing)["metadata"]["uid"] == f"uid-of-{NAME}"


def test_the_engine_of_somebody_else_is_not_taken_for_ours(
    stored: Storing, server: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    server.add("chaosengines", NAME)
    server.on_request = lambda method, plural, _: 503 if (method, plural) == ("POST", "chaosengines") else None
    with pytest.raises(ChaosError, match="exists already"):
        create(cluster, flowing)


def test_without_any_clear_answer_the_run_says_what_may_be_there(
    server: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    server.down = True
    outcome = run(cluster, flowing)
    assert (outcome.verdict, outcome.error_code) == ("Error", "ENGINE_NOT_CREATED")
    assert "it is stopped and does nothing, and `aftershock cleanup` removes it" in str(outcome.reason)
    assert flowing.seconds >= creation.ANSWER_S


def test_a_wish_to_stop_ends_the_wait_for_an_answer(
    server: FakeApiServer, cluster: Cluster, clock: ReplayClock
) -> None:
    server.down = True
    stop = threading.Event()
    stop.set()
    with pytest.raises(ChaosError, match="no clear answer"):
        create_engine(cluster, rendered(), clock, stop)


def test_a_start_without_an_answer_is_not_repeated(
    stored: Storing, server: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    created = create(cluster, flowing)

    def loses_its_answer(engine: Object) -> None:
        stored.start(engine)
        raise ConnectionAbortedError

    server.on_start = loses_its_answer
    assert start_engine(cluster, created, flowing, threading.Event())["spec"]["engineState"] == "active"
    assert stored.activations == 1


def test_a_start_that_did_not_arrive_is_repeated(
    stored: Storing, server: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    created = create(cluster, flowing)
    tries: list[str] = []

    def busy(method: str, _: str, __: str) -> int | None:
        tries.append(method)
        return 503 if method == "PATCH" and tries.count("PATCH") < 3 else None

    server.on_request = busy
    start_engine(cluster, created, flowing, threading.Event())
    assert (stored.activations, tries.count("PATCH")) == (1, 3)


def test_a_wish_to_stop_in_the_meantime_starts_nothing_and_leaves_nothing(
    stored: Storing, server: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    stop = threading.Event()

    def stopped_meanwhile(body: Object) -> Object:
        stop.set()
        return stored.create(body)

    server.on_create = stopped_meanwhile
    outcome = LitmusBackend(cluster, clock=flowing).run(rendered(), stop, lambda _: None)
    assert (outcome.verdict, outcome.reason) == ("Stopped", "stopped before the fault was started")
    assert stored.activations == 0
    assert not server.objects["chaosengines"]


def test_a_refused_start_leaves_nothing(
    stored: Storing, server: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    server.on_request = lambda method, _, __: 403 if method == "PATCH" else None
    outcome = run(cluster, flowing)
    assert (outcome.verdict, outcome.error_code) == ("Error", "NOT_STARTED")
    assert "403" in str(outcome.reason)
    assert not server.objects["chaosengines"]


# --- other chaos ------------------------------------------------------------------------------------------------------


def add_other(
    server: FakeApiServer, state: str, status: str = "", *, at: str = "2026-12-01T00:00:00Z", uid: str = "uid-0"
) -> None:
    metadata = {"labels": {creation.MANAGED_BY: creation.OWNER}, "uid": uid, "creationTimestamp": at}
    spec = {"engineState": state, "appinfo": rendered().document["spec"]["appinfo"]}
    statuses = {"status": {"engineStatus": status}} if status else {}
    server.add("chaosengines", "other", metadata=metadata, spec=spec, **statuses)


LATER = "2026-12-01T00:00:20Z"


@pytest.mark.parametrize(
    ("state", "status", "at", "started", "refused"),
    [
        ("active", "initialized", "", False, "is active"),
        ("active", "initialized", LATER, False, "is active"),
        ("active", "initialized", "", True, "is active"),
        ("active", "", LATER, True, ""),
        ("stop", "", "", False, "is about to start"),
        ("stop", "", "", True, "is about to start"),
        ("stop", "", LATER, False, ""),
        ("stop", "initialized", "", False, "is active"),
        ("stop", "stopped", "", False, ""),
        ("stop", "completed", "", False, ""),
    ],
)
def test_of_two_engines_on_one_target_the_younger_gives_way(
    stored: Storing,
    server: FakeApiServer,
    cluster: Cluster,
    clock: ReplayClock,
    state: str,
    status: str,
    at: str,
    started: bool,
    refused: str,
) -> None:
    add_other(server, state, status, at=at or "2026-12-01T00:00:00Z")
    created = create(cluster, clock)
    if refused:
        with pytest.raises(RivalError, match=refused):
            check_others(cluster, rendered(), created, started=started)
    else:
        check_others(cluster, rendered(), created, started=started)


def test_of_two_of_the_same_second_exactly_one_gives_way(
    stored: Storing, server: FakeApiServer, cluster: Cluster, clock: ReplayClock
) -> None:
    created = create(cluster, clock)
    for uid, gives_way in (("uid-a", True), ("uid-z", False)):
        server.objects["chaosengines"] = {created["metadata"]["uid"]: created}
        add_other(server, "stop", at=created["metadata"]["creationTimestamp"], uid=uid)
        assert raises(lambda: check_others(cluster, rendered(), created)) is gives_way


def raises(call: Callable[[], object]) -> bool:
    try:
        call()
    except RivalError:
        return True
    return False


@pytest.mark.parametrize("when", ["before the start", "after the start"])
def test_chaos_that_came_since_the_preflight_is_seen_and_nothing_is_left(
    stored: Storing, server: FakeApiServer, cluster: Cluster, flowing: ReplayClock, when: str
) -> None:
    def create_beside_another(body: Object) -> Object:
        created = stored.create(body)
        if when == "before the start":
            add_other(server, "active", "initialized")
        return created

    def start_beside_another(engine: Object) -> None:
        stored.start(engine)
        add_other(server, "stop")

    def stopped() -> None:
        engine = stored.found(NAME)
        server.change("MODIFIED", "chaosengines", {**engine, "status": {"engineStatus": "stopped"}})

    server.on_create, server.on_start, server.on_stop = create_beside_another, start_beside_another, stopped
    outcome = run(cluster, flowing)
    assert (outcome.verdict, outcome.error_code) == ("Error", "NOT_STARTED")
    assert "chaos-test/other is" in str(outcome.reason)
    assert server.find("chaosengines", NAME) is None
    assert server.find("chaosengines", "other")
    patched = [body["spec"]["engineState"] for method, _, body in server.requests if method == "PATCH"]
    assert patched == ([] if when == "before the start" else ["active", "stop"])


def test_an_older_one_that_gives_way_to_ours_is_waited_for(
    stored: Storing, server: FakeApiServer, cluster: Cluster, clock: ReplayClock
) -> None:
    """Of the same second: it has seen ours active, while we saw it about to start."""
    created = create(cluster, clock)
    add_other(server, "stop")
    slept: list[float] = []

    def gives_way(seconds: float) -> None:
        slept.append(seconds)
        other = server.find("chaosengines", "other")
        if len(slept) == 3 and other:
            server.change("DELETED", "chaosengines", other)

    clock.sleep = gives_way  # type: ignore[method-assign]
    check_still_alone(cluster, rendered(), created, clock)
    assert len(slept) == 3
    add_other(server, "active")
    with pytest.raises(RivalError, match="is active"):
        check_still_alone(cluster, rendered(), created, clock)
    assert len(slept) == 3, "one that has started is not waited for"


def test_an_engine_that_cannot_be_removed_is_named(
    stored: Storing, server: FakeApiServer, cluster: Cluster, flowing: ReplayClock
) -> None:
    server.on_request = lambda method, _, __: 403 if method in ("PATCH", "DELETE") else None
    outcome = run(cluster, flowing)
    assert f"ChaosEngine {NAME} is still there" in str(outcome.reason)
    assert "run `aftershock cleanup`" in str(outcome.reason)
