"""What HTTP faults do to a head, and to which requests."""

from __future__ import annotations

from random import Random

import pytest
from multidict import CIMultiDict

from aftershock.gateway.faults.http import HttpLatency, HttpStatus
from aftershock.gateway.faults.kind import Chunk, Head


def head() -> Head:
    """The head of a compressed answer."""
    headers = {"Content-Length": "99", "Content-Encoding": "gzip", "X-Other": "kept"}
    return Head(200, "OK", CIMultiDict(headers))


@pytest.mark.parametrize("toxicity", [0, 30, 100])
def test_toxicity_is_the_share_of_requests_caught(toxicity: float) -> None:
    spec = HttpLatency(duration_s=1, latency_ms=100, toxicity_percent=toxicity)
    caught = 0
    for seed in range(2000):
        effect = spec.begin(Random(seed))
        effect.on_request()
        caught += effect.on_response_start(head()) is not None
    assert caught / 2000 == pytest.approx(toxicity / 100, abs=0.03)


def test_a_caught_answer_is_delayed_as_a_whole() -> None:
    effect = HttpLatency(duration_s=1, latency_ms=100).begin(Random(0))
    assert effect.on_connect() is None
    assert effect.on_request() is None
    assert effect.on_response_start(head()) == effect.on_chunk(Chunk(b"", last=True)) == 0.1


def test_an_answer_whose_request_was_sent_before_is_left_alone() -> None:
    delay, status = HttpLatency(duration_s=1).begin(Random(0)), HttpStatus(duration_s=1).begin(Random(0))
    answer = head()
    assert delay.on_response_start(answer) is status.on_response_start(answer) is None
    assert answer == head()


def test_the_status_changes_and_headers_of_the_old_body_go() -> None:
    effect = HttpStatus(duration_s=1, status_code=503, content_type="application/json", response_body="{}").begin(
        Random(0)
    )
    effect.on_request()
    answer = head()
    assert effect.on_response_start(answer) == 0.0  # touched, not delayed
    assert (answer.status, answer.reason, answer.body) == (503, None, b"{}")
    assert dict(answer.headers) == {"X-Other": "kept", "Content-Type": "application/json"}


def test_without_modify_body_only_the_status_changes() -> None:
    effect = HttpStatus(duration_s=1, status_code=404, modify_body=False).begin(Random(0))
    effect.on_request()
    answer = head()
    effect.on_response_start(answer)
    assert (answer.status, answer.body, answer.headers) == (404, None, head().headers)


@pytest.mark.parametrize(("code", "body"), [(500, b"500 Internal Server Error"), (599, b"599")])
def test_the_default_body_says_the_status(code: int, body: bytes) -> None:
    assert HttpStatus(duration_s=1, status_code=code).body() == body
