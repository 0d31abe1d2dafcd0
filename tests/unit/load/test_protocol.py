"""What is asked of OpenAI's endpoints, and what an event of the answer says."""

from __future__ import annotations

import json

import pytest

from aftershock.errors import InputError
from aftershock.load.protocol import Delta, MalformedEventError, StreamedError, get_protocol

COMPLETIONS, CHAT = get_protocol("completions"), get_protocol("chat")


def test_a_body_asks_for_a_stream_with_usage() -> None:
    body = json.loads(COMPLETIONS.body("Grüße?", model="m", max_tokens=4))
    assert body == {
        "prompt": "Grüße?",
        "model": "m",
        "max_tokens": 4,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert json.loads(CHAT.body("hi"))["messages"] == [{"role": "user", "content": "hi"}]


@pytest.mark.parametrize(
    ("event", "delta"),
    [
        ({"choices": [{"text": "a", "finish_reason": None}]}, Delta("a", False, None)),
        ({"choices": [{"text": "", "finish_reason": "length"}]}, Delta("", True, None)),
        ({"choices": [{"text": "a"}], "usage": None}, Delta("a", False, None)),
        ({"choices": [], "usage": {"completion_tokens": 9}}, Delta("", False, 9)),
        ({"choices": None, "usage": {"completion_tokens": 9}}, Delta("", False, 9)),
        ({"choices": [{"text": "a"}], "usage": {"completion_tokens": 1}}, Delta("a", False, 1)),
        ({"choices": [{"text": "a"}], "usage": {"completion_tokens": "many"}}, Delta("a", False, None)),
        ({"choices": [{"text": "a"}], "error": None}, Delta("a", False, None)),
    ],
)
def test_events_of_completions(event: dict[str, object], delta: Delta) -> None:
    assert COMPLETIONS.read(json.dumps(event).encode()) == delta


@pytest.mark.parametrize(
    ("delta", "text"),
    [({"role": "assistant"}, ""), ({"role": "assistant", "content": None}, ""), ({"content": "a"}, "a"), ({}, "")],
)
def test_events_of_chat(delta: dict[str, object], text: str) -> None:
    event = {"choices": [{"delta": delta, "finish_reason": None}]}
    assert CHAT.read(json.dumps(event).encode()) == Delta(text, False, None)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"[]",
        b"7",
        b"null",
        b"{}",
        b'{"choices": [{}]}',
        b'{"choices": [{"text": 5}]}',
        b'{"choices": {"text": "a"}}',
        b'{"choices": [{"text": "\xff"}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_event(data: bytes) -> None:
    with pytest.raises(MalformedEventError, match="not an event of /v1/completions"):
        COMPLETIONS.read(data)


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        ({"code": 503, "message": "no slot"}, 503, "no slot"),
        ({"code": "429", "message": "slow down"}, 429, "slow down"),
        ({"code": "rate_limit_exceeded", "message": "slow down"}, 500, "slow down"),
        ({"code": None, "message": "broken"}, 500, "broken"),
        ("broken", 500, "broken"),
        ({"type": "odd"}, 500, "odd"),
    ],
)
def test_an_error_in_the_stream(error: object, status: int, words: str) -> None:
    with pytest.raises(StreamedError, match=words) as caught:
        CHAT.read(json.dumps({"error": error}).encode())
    assert caught.value.status == status


def test_an_unknown_protocol_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="known are completions, chat"):
        get_protocol("smoke-signals")
