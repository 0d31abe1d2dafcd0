"""Before a run, the target is asked once; what is wrong is said in one line."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from aftershock.errors import TargetError
from aftershock.load.plan import LoadPlan
from aftershock.load.preflight import check_target
from aftershock.testing.model_server import FakeModelServer

pytestmark = pytest.mark.integration

MakePlan = Callable[..., LoadPlan]


def complaint(plan: LoadPlan, patience_s: float = 0.5) -> str:
    with pytest.raises(TargetError) as caught:
        asyncio.run(check_target(plan, patience_s))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_good_target_is_asked_once(make_plan: MakePlan) -> None:
    with FakeModelServer() as server:
        asyncio.run(check_target(make_plan(server.url)))
        assert [entry.prompt for entry in server.served()] == ["question 0"]


def test_refused(make_plan: MakePlan, free_port: int) -> None:
    url = f"http://127.0.0.1:{free_port}"
    assert complaint(make_plan(url)) == (
        f"{url}/v1/completions: no connection (Connection refused); is the service running there? check --target-url"
    )


def test_no_such_host_is_not_waited_for(make_plan: MakePlan) -> None:
    plan = make_plan("http://no-such-host.invalid", request_timeout_s=30)
    assert "no such host" in complaint(plan, patience_s=3600)


def test_a_status_with_the_words_of_the_server(make_plan: MakePlan) -> None:
    with FakeModelServer(error_rate=1, error_status=401) as server:
        assert "HTTP 401: set to fail; check --target-url" in complaint(make_plan(server.url), patience_s=3600)


def test_an_unknown_model_is_told_with_those_that_are_served(make_plan: MakePlan) -> None:
    with FakeModelServer(model="canary") as server:
        text = complaint(make_plan(server.url, model="gpt-9"))
    assert "HTTP 404: The model `gpt-9` does not exist.; it does not know the model 'gpt-9', it serves canary;" in text


def test_an_answer_that_is_no_stream(make_plan: MakePlan) -> None:
    with FakeModelServer(misbehaviour="not-streaming") as server:
        assert "not a stream: the answer is application/json; it must answer as a stream" in complaint(
            make_plan(server.url)
        )


def test_no_answer_at_all(make_plan: MakePlan) -> None:
    with FakeModelServer(misbehaviour="hang") as server:
        assert "no full answer within 0.3 s" in complaint(make_plan(server.url, request_timeout_s=0.3))


def test_a_model_that_never_finishes_loading(make_plan: MakePlan) -> None:
    with FakeModelServer(ready=False) as server:
        assert "HTTP 503: Loading model" in complaint(make_plan(server.url))
        assert len(server.served()) > 1


def test_a_model_that_is_still_loading_is_waited_for(make_plan: MakePlan) -> None:
    with FakeModelServer(ready=False) as server:
        asked = threading.Thread(target=lambda: asyncio.run(check_target(make_plan(server.url), 30)))
        asked.start()
        deadline = time.monotonic() + 20
        while not server.served() and time.monotonic() < deadline:
            time.sleep(0.02)
        assert server.served()[0].status == 503
        server.set(ready=True)
        asked.join(20)
        assert not asked.is_alive()
        assert server.served()[-1].status == 200
