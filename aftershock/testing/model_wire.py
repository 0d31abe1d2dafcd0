"""The wire side of the fake model server: right answers with set times, and every way we know to answer wrongly."""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import re
import socket
import struct
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

Misbehaviour = Literal[
    "none",
    "hang",  # takes the request and never answers
    "stall",  # stops in mid-answer, the connection stays open
    "reset",  # resets the connection in mid-answer
    "reset-at-once",  # resets it before any answer
    "close-at-once",  # closes it before any answer
    "cut",  # closes it in mid-answer, in the middle of the HTTP body
    "truncate",  # ends the HTTP body well, but without [DONE] and finish reason
    "no-done",  # gives a finish reason but no [DONE]
    "malformed",  # an event that is not JSON
    "wrong-shape",  # an event that is JSON, but no completion
    "invalid-utf8",  # an event that is not UTF-8
    "error-event",  # an error object in mid-stream
    "not-streaming",  # a whole JSON answer where a stream was asked for
    "endless",  # tokens without end
    "endless-event",  # one event without end
    "dribble",  # a right answer, one byte a send
    "not-http",  # bytes that are no HTTP
    "redirect",  # 307 to another path
]


KeepAlive = Literal[
    "yes",
    "no",  # closes the connection after each answer, without saying so, as llama.cpp does
    "crossed",  # the same, but only when the next request is on its way: the two cross
    "crossed-in-mid-head",  # and after some bytes of an answer
]

_IN_MID_ANSWER = {"stall", "reset", "cut", "malformed", "wrong-shape", "invalid-utf8", "error-event", "endless-event"}


class ModelServerSettings(BaseModel):
    """What the server is told. Times in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field("fake", description="Name of the only model; another name is answered with 404")
    ttft_s: float = Field(0.01, ge=0, description="From the request to the first token")
    inter_token_s: float = Field(0.002, ge=0, description="Between tokens")
    tokens: int = Field(10, ge=0, description="Tokens of an answer that `answers` does not set")
    answers: Mapping[str, str] = Field({}, description="Prompt to answer; its words are its tokens")
    error_rate: float = Field(0.0, ge=0, le=1, description="Share of requests answered with error_status")
    error_status: int = Field(500, ge=300, le=599, description="HTTP status of an error")
    misbehaviour: Misbehaviour = Field("none", description="What is done wrong")
    misbehaviour_rate: float = Field(1.0, ge=0, le=1, description="Share of requests it is done to")
    usage: bool = Field(True, description="Whether usage is told where it is asked for")
    keep_alive: KeepAlive = Field("yes", description="What becomes of a connection after an answer")
    ready: bool = Field(True, description="Whether /health says 200; if not, requests get 503 too")
    seed: int = Field(0, description="Decides which requests the two rates hit")
    port: int = Field(0, ge=0, le=65_535, description="Port on the loopback; 0: any")


@dataclass
class Served:
    """One request, as the server knows it; instants by the monotonic clock, those of tokens just before their write."""

    prompt: str
    received_s: float
    client_port: int
    """The same for requests that shared a connection."""
    status: int | None = None
    first_token_s: float | None = None
    finished_s: float | None = None
    tokens: int = 0
    misbehaviour: str = "none"


class Server:
    """The server itself, on the running loop."""

    def __init__(self, settings: ModelServerSettings) -> None:
        self._settings = settings
        self._served: list[Served] = []
        self._dice = random.Random(settings.seed)
        self._connections: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._connection, "127.0.0.1", self._settings.port, backlog=1024)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while await self._request(reader, writer) and self._settings.keep_alive == "yes":
                    pass
                if self._settings.keep_alive.startswith("crossed"):
                    await reader.readuntil(b"\r\n\r\n")
                if self._settings.keep_alive == "crossed-in-mid-head":
                    writer.write(b"HTTP/1.1 200 OK\r\nContent-")
            writer.close()
        except asyncio.CancelledError:
            writer.transport.abort()
        finally:
            self._connections.discard(task)

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request. False where the connection is not to be used again."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        received_s = time.monotonic()
        method, path, _ = head.split("\r\n", 1)[0].split(" ", 2)
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        body = await reader.readexactly(int(fields.get("content-length", 0)))
        if method == "POST" and path in ("/v1/completions", "/v1/chat/completions"):
            return await self._complete(reader, writer, path, json.loads(body), received_s)
        _respond(writer, *self._page(path, body))
        return True

    def _page(self, path: str, body: bytes) -> tuple[int, Any]:
        """The small pages: health, models, and our own two."""
        match path:
            case "/health":
                return (200, {"status": "ok"}) if self._settings.ready else (503, _error(503, "Loading model"))
            case "/v1/models":
                return 200, {"object": "list", "data": [{"id": self._settings.model, "object": "model"}]}
            case "/fake/settings":
                try:
                    self._settings = ModelServerSettings.model_validate(self._settings.model_dump() | json.loads(body))
                except ValueError as error:
                    return 400, _error(400, str(error))
                return 200, {}
            case "/fake/served":
                return 200, [asdict(entry) for entry in self._served]
            case _:
                return 404, _error(404, f"no such path: {path}")

    async def _complete(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        path: str,
        asked: dict[str, Any],
        received_s: float,
    ) -> bool:
        settings = self._settings
        prompt = asked["prompt"] if path == "/v1/completions" else asked["messages"][-1]["content"]
        served = Served(prompt, received_s, writer.get_extra_info("peername")[1])
        self._served.append(served)
        fails = self._dice.random() < settings.error_rate
        if settings.misbehaviour != "none" and self._dice.random() < settings.misbehaviour_rate:
            served.misbehaviour = settings.misbehaviour
        if asked["model"] != settings.model:
            return self._refuse(writer, served, 404, f"The model `{asked['model']}` does not exist.")
        if not settings.ready:
            return self._refuse(writer, served, 503, "Loading model")
        if fails:
            return self._refuse(writer, served, settings.error_status, "set to fail")
        return await _Answer(settings, served, reader, writer, asked).give()

    def _refuse(self, writer: asyncio.StreamWriter, served: Served, status: int, message: str) -> bool:
        served.status = status
        _respond(writer, status, _error(status, message))
        served.finished_s = time.monotonic()
        return True


class _Answer:
    """One streamed answer, right or wrong."""

    def __init__(
        self,
        settings: ModelServerSettings,
        served: Served,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        asked: dict[str, Any],
    ) -> None:
        self._settings = settings
        self._served = served
        self._reader = reader
        self._writer = writer
        self._chat = "messages" in asked
        text = settings.answers.get(served.prompt)
        self._words = ["word "] * settings.tokens if text is None else re.findall(r"\s*\S+", text)
        self._usage = settings.usage and asked.get("stream_options", {}).get("include_usage", False)

    async def give(self) -> bool:
        """Write it. False where the connection is not to be used again."""
        match self._served.misbehaviour:
            case "hang":
                return await self._wait_for_client()
            case "reset-at-once":
                return self._reset()
            case "close-at-once":
                return False
            case "not-http":
                self._writer.write(b"SSH-2.0-OpenSSH_9.2\r\n")
                return False
            case "redirect":
                self._writer.write(_head(307, "text/plain", "Location: /elsewhere", "Content-Length: 0"))
                return True
            case "not-streaming":
                _respond(self._writer, 200, self._choice("".join(self._words), "stop"))
                return True
        return await self._stream()

    async def _stream(self) -> bool:
        served, wrong = self._served, self._served.misbehaviour
        served.status = 200
        self._writer.write(_head(200, "text/event-stream", "Transfer-Encoding: chunked"))
        if self._chat:
            await self._send(_event(self._choice("", None)))  # the role comes first, without a token
        breaks_at = len(self._words) // 2 if wrong in _IN_MID_ANSWER else None
        for index, word in enumerate(itertools.repeat("word ") if wrong == "endless" else self._words):
            await self._sleep_until(served.received_s + self._settings.ttft_s + index * self._settings.inter_token_s)
            if index == breaks_at:
                return await self._break(wrong)
            if index == 0:
                served.first_token_s = time.monotonic()
            served.tokens += 1
            await self._send(_event(self._choice(word, None)))
        return await self._finish(wrong)

    async def _finish(self, wrong: str) -> bool:
        """The end of a whole answer, with what `wrong` leaves out."""
        end = b""
        if wrong != "truncate":
            end += _event(self._choice("", "stop"))
        if self._usage:
            usage = {"prompt_tokens": 1, "completion_tokens": self._served.tokens}
            end += _event({"choices": [], "usage": usage})
        if wrong not in ("truncate", "no-done"):
            end += b"data: [DONE]\n\n"
        self._served.finished_s = time.monotonic()  # before the write, as for the first token: no client can be earlier
        await self._send(end)
        self._writer.write(b"0\r\n\r\n")
        await self._writer.drain()
        return True

    async def _break(self, wrong: str) -> bool:
        """Go wrong in mid-answer."""
        match wrong:
            case "stall":
                return await self._wait_for_client()
            case "reset":
                return self._reset()
            case "endless-event":
                while True:
                    await self._send(b"data: " + b"x" * 65_536)
            case "malformed":
                await self._send(b'data: {"choices": [\n\n')
            case "wrong-shape":
                await self._send(_event({"choices": [{"text": 1, "delta": {"content": 1}}]}))
            case "invalid-utf8":
                await self._send(b'data: {"choices": [{"text": "\xff\xfe"}]}\n\n')
            case "error-event":
                await self._send(_event(_error(500, "set to fail")))
        return False

    async def _send(self, data: bytes) -> None:
        chunk = b"%x\r\n%b\r\n" % (len(data), data)
        if self._served.misbehaviour != "dribble":
            self._writer.write(chunk)
            await self._writer.drain()
            return
        for byte in chunk:
            self._writer.write(bytes([byte]))
            await asyncio.sleep(0)

    async def _sleep_until(self, instant: float) -> None:
        await asyncio.sleep(max(0.0, instant - time.monotonic()))

    async def _wait_for_client(self) -> bool:
        await self._reader.read(1)
        return False

    def _reset(self) -> bool:
        linger = struct.pack("ii", 1, 0)  # close with RST instead of FIN
        self._writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self._writer.transport.abort()
        return False

    def _choice(self, text: str, finish_reason: str | None) -> dict[str, Any]:
        content = {"delta": {"role": "assistant", "content": text}} if self._chat else {"text": text}
        choice = {"index": 0, **content, "finish_reason": finish_reason}
        return {"id": "fake", "object": "completion", "model": self._settings.model, "choices": [choice]}


def _event(document: Any) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def _error(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "type": HTTPStatus(status).name.lower()}}


def _head(status: int, content_type: str, *fields: str) -> bytes:
    lines = [f"HTTP/1.1 {status} {HTTPStatus(status).phrase}", f"Content-Type: {content_type}", *fields, "", ""]
    return "\r\n".join(lines).encode()


def _respond(writer: asyncio.StreamWriter, status: int, document: Any) -> None:
    body = json.dumps(document).encode()
    writer.write(_head(status, "application/json", f"Content-Length: {len(body)}") + body)
