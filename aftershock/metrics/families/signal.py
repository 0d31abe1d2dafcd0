"""What can be measured at a server, whoever made it, and in which unit it is shown."""

from __future__ import annotations

from enum import StrEnum


class Signal(StrEnum):
    """One thing to know about a server. The value is its name in output and in SLO documents."""

    LATENCY = "latency-p99"
    LATENCY_MEAN = "latency-mean"
    TTFT = "ttft-p99"
    INTER_TOKEN = "inter-token-p99"
    QUEUE_TIME = "queue-time-p99"
    QUEUE_TIME_MEAN = "queue-time-mean"
    SUCCESS = "success-rate"
    REQUESTS = "requests-per-second"
    TOKENS = "tokens-per-second"
    RUNNING = "running-requests"
    WAITING = "waiting-requests"
    CACHE_USAGE = "kv-cache-usage"
    CACHE_HITS = "cache-hit-rate"
    LORA = "lora-adapters"
    SPECULATION = "speculation-accepted"

    @property
    def display(self) -> str:
        """As a table shows it."""
        return _ABOUT[self][0]

    @property
    def unit(self) -> str:
        """Of its value; empty for a plain count."""
        return _ABOUT[self][1]


_ABOUT = {
    Signal.LATENCY: ("P99 latency", "ms"),
    Signal.LATENCY_MEAN: ("Mean latency", "ms"),
    Signal.TTFT: ("P99 time to first token", "ms"),
    Signal.INTER_TOKEN: ("P99 time between tokens", "ms"),
    Signal.QUEUE_TIME: ("P99 time in the queue", "ms"),
    Signal.QUEUE_TIME_MEAN: ("Mean time in the queue", "ms"),
    Signal.SUCCESS: ("Success rate", "%"),
    Signal.REQUESTS: ("Requests per second", "1/s"),
    Signal.TOKENS: ("Output tokens per second", "1/s"),
    Signal.RUNNING: ("Requests in work, mean", ""),
    Signal.WAITING: ("Requests waiting, mean", ""),
    Signal.CACHE_USAGE: ("KV cache in use", "%"),
    Signal.CACHE_HITS: ("Prefix cache hit rate", "%"),
    Signal.LORA: ("LoRA adapters at work", ""),
    Signal.SPECULATION: ("Drafted tokens accepted", "%"),
}

INSTEAD = {Signal.LATENCY_MEAN: Signal.LATENCY, Signal.QUEUE_TIME_MEAN: Signal.QUEUE_TIME}
"""What is of use only where the better one (the value) is not there."""


INSIDE_THE_ENGINE = (
    Signal.TTFT,
    Signal.INTER_TOKEN,
    Signal.QUEUE_TIME,
    Signal.TOKENS,
    Signal.CACHE_USAGE,
    Signal.CACHE_HITS,
    Signal.LORA,
    Signal.SPECULATION,
)
"""What whoever passes requests on cannot see: only the engine that computes the answers can tell."""
