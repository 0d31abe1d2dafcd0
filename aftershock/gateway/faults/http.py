"""Faults in the HTTP that a replica speaks, as Litmus makes them with a proxy (a toxiproxy) before the container."""

from __future__ import annotations

from http.client import responses
from random import Random
from typing import Literal

from pydantic import Field

from aftershock.gateway.faults.kind import Chunk, Effect, FaultSpec, Head


class ToxicSpec(FaultSpec):
    """Part of the requests of a replica; which ones is decided when a request is sent, by the seed.

    Litmus draws once a connection; here once a request, because the gateway keeps connections open. Requests that were
    under way when the fault began are left alone, those it caught stay caught until it ends.
    """

    toxicity_percent: float = Field(100, ge=0, le=100, description="Share of the requests it acts on, in percent")

    def catches(self, rng: Random) -> bool:
        """Whether the request that owns `rng` is one of them."""
        return rng.random() * 100 < self.toxicity_percent


class _HttpLatency(Effect):
    def __init__(self, delay_s: float, caught: bool) -> None:
        self._delay_s = delay_s
        self._will_catch = caught
        self._caught = False

    def on_request(self) -> None:
        self._caught = self._will_catch

    def on_response_start(self, head: Head) -> float | None:
        return self._delay_s if self._caught else None

    def on_chunk(self, chunk: Chunk) -> float | None:
        return self._delay_s if self._caught else None


class HttpLatency(ToxicSpec):
    """The answer arrives `latency_ms` later as a whole: head and chunks are shifted, their spacing stays.

    As Litmus' pod-http-latency, the request itself reaches the replica at once, and probes on the same port wait too.
    """

    kind: Literal["http-latency"] = "http-latency"
    latency_ms: float = Field(2000, ge=0, le=3_600_000, description="Delay in milliseconds")

    def begin(self, rng: Random) -> Effect:
        """Decides here, acts if the request is yet to be sent."""
        return _HttpLatency(self.latency_ms / 1000, self.catches(rng))


class _HttpStatus(Effect):
    def __init__(self, spec: HttpStatus, caught: bool) -> None:
        self._spec = spec
        self._will_catch = caught
        self._caught = False

    def on_request(self) -> None:
        self._caught = self._will_catch

    def on_response_start(self, head: Head) -> float | None:
        if not self._caught:
            return None
        head.status, head.reason = self._spec.status_code, None
        if self._spec.modify_body:
            head.body = self._spec.body()
            for name in ("Content-Encoding", "Content-Length", "Trailer"):
                head.headers.popall(name, None)
            head.headers["Content-Type"] = self._spec.content_type
        return 0.0


class HttpStatus(ToxicSpec):
    """The replica's answer gets another status and, if asked, another body.

    As with Litmus' pod-http-status-code the replica does get the request and begins to work on it; with `modify_body`
    its own body is not read and its connection is closed, so a server that notices stops. Probes get the status too:
    500 makes a replica unready.
    """

    kind: Literal["http-status"] = "http-status"
    status_code: int = Field(500, ge=200, le=599, description="Status the client gets")
    modify_body: bool = Field(True, description="Whether the body is replaced; otherwise the replica's passes")
    response_body: str = Field("", max_length=65536, description="The new body; empty: the status in words")
    content_type: str = Field("text/plain", pattern=r"^[ -~]+$", max_length=256, description="Type of the new body")

    def body(self) -> bytes:
        """The new body in bytes."""
        if self.response_body:
            return self.response_body.encode()
        return f"{self.status_code} {responses.get(self.status_code, '')}".strip().encode()

    def begin(self, rng: Random) -> Effect:
        """Decides here, acts if the request is yet to be sent."""
        return _HttpStatus(self, self.catches(rng))
