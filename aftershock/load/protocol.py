"""The OpenAI endpoints that take the load: what is asked, and what one event of the answer says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from aftershock.errors import InputError

DONE = b"[DONE]"
"""Data of the event that ends a stream."""


class MalformedEventError(ValueError):
    """An event that is not what the protocol says."""


class StreamedError(Exception):
    """The service reported an error in mid-stream, where the HTTP status had long been sent."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Delta(NamedTuple):
    """What one event adds to the answer."""

    text: str
    finished: bool
    """Whether it carries a finish reason."""
    output_tokens: int | None
    """The service's own count of all tokens, where the event tells usage."""


@dataclass(frozen=True)
class Protocol:
    """One endpoint. `prompt_fields` is the part of a body that holds the prompt, `text_of` the text of one choice."""

    name: str
    path: str
    prompt_fields: Callable[[str], dict[str, Any]]
    text_of: Callable[[dict[str, Any]], str | None]

    def body(self, prompt: str, **parameters: Any) -> bytes:
        """A request that asks for a streamed answer with usage at its end; `parameters` are sent as they are."""
        fields = self.prompt_fields(prompt) | parameters
        return json.dumps(fields | {"stream": True, "stream_options": {"include_usage": True}}).encode()

    def read(self, data: bytes) -> Delta:
        """What an event says. Raises MalformedEventError, and StreamedError where the event is an error."""
        try:
            event = json.loads(data.decode())
            if event.get("error"):
                raise _streamed_error(event["error"])
            usage = event.get("usage")
            tokens = _count(usage.get("completion_tokens")) if usage else None
            choices = event["choices"]
            if not choices:
                return Delta("", False, tokens)
            choice = choices[0]
            return Delta(_text(self.text_of(choice)), bool(choice.get("finish_reason")), tokens)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
            raise MalformedEventError(f"not an event of {self.path}: {data[:120]!r}") from error


def _text(value: str | None) -> str:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"text is a {type(value).__name__}")
    return value or ""


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and value >= 0 else None


def _streamed_error(error: Any) -> StreamedError:
    """OpenAI puts strings into `code`, vLLM and llama.cpp the HTTP status that it would have been."""
    if not isinstance(error, dict):
        return StreamedError(500, str(error))
    code = str(error.get("code") or "")
    return StreamedError(int(code) if code.isdecimal() and len(code) == 3 else 500, str(error.get("message") or error))


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol("completions", "/v1/completions", lambda prompt: {"prompt": prompt}, lambda choice: choice["text"]),
        Protocol(
            "chat",
            "/v1/chat/completions",
            lambda prompt: {"messages": [{"role": "user", "content": prompt}]},
            lambda choice: choice["delta"].get("content"),
        ),
    )
}


def get_protocol(name: str) -> Protocol:
    """The protocol of that name. Raises InputError listing the known ones."""
    if name not in PROTOCOLS:
        raise InputError(f"protocol={name!r}: unknown; known are {', '.join(PROTOCOLS)}")
    return PROTOCOLS[name]
