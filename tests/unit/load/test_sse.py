"""Server-sent events, split anywhere, give the same events."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aftershock.load.sse import MAX_EVENT_BYTES, EventStream, EventTooLongError

STREAM = (
    b'\xef\xbb\xbf: a comment\r\n\r\ndata: {"text": "Gr\xc3\xbc\xc3\x9fe"}\r\n\r\n'
    b"event: delta\nid: 7\nretry: 10\ndata:no space\n\n"
    b"data: first line\rdata:  second, with a space\r\rdata\n\n"
    b"dat: unknown field\n\n:\n\n\n\ndata: [DONE]\n\n"
)
EVENTS = [
    '{"text": "Grüße"}'.encode(),
    b"no space",
    b"first line\n second, with a space",
    b"",
    b"[DONE]",
]


def feed(chunks: list[bytes]) -> list[bytes]:
    stream = EventStream()
    return [event for chunk in chunks for event in stream.feed(chunk)]


def test_the_whole_stream_at_once() -> None:
    assert feed([STREAM]) == EVENTS


def test_byte_by_byte() -> None:
    assert feed([STREAM[i : i + 1] for i in range(len(STREAM))]) == EVENTS


@settings(deadline=None)
@given(st.lists(st.integers(0, len(STREAM)), max_size=30))
def test_split_anywhere(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    assert feed([STREAM[a:b] for a, b in pairwise(edges)]) == EVENTS


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=40).filter(lambda data: b"\n" not in data and b"\r" not in data), max_size=8),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
    st.integers(1, 7),
)
def test_what_is_written_is_read(events: list[bytes], end: bytes, size: int) -> None:
    wire = b"".join(b"data: " + event + end + end for event in events)
    assert feed([wire[i : i + size] for i in range(0, len(wire), size)]) == events


def test_an_event_without_its_end_is_no_event() -> None:
    assert feed([b"data: [DONE]\n"]) == []
    assert feed([b"data: [DONE]"]) == []


def test_an_event_is_there_as_soon_as_its_last_byte_is() -> None:
    stream = EventStream()
    assert stream.feed(b"data: x\r\n\r") == [b"x"]
    assert stream.feed(b"\ndata: y\r\n\r\n") == [b"y"]


@pytest.mark.parametrize("line", [b"x" * 70_000, b"data: " + b"x" * 70_000, b"data: x\n" * 9_000])
def test_an_event_without_end_is_not_kept(line: bytes) -> None:
    stream = EventStream()
    with pytest.raises(EventTooLongError):
        for _ in range(MAX_EVENT_BYTES // 9_000 + 2):
            stream.feed(line)


def test_many_events_in_one_chunk_are_no_long_event() -> None:
    assert len(feed([b"data: x\n\n" * MAX_EVENT_BYTES])) == MAX_EVENT_BYTES
