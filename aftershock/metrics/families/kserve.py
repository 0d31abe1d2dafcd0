"""KServe's Python model server. Where a model is served by vLLM inside it, vLLM's metrics are on the page as well."""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Variant, exposes
from aftershock.metrics.families.measure import Metric, Rate, p99_ms
from aftershock.metrics.families.signal import Signal

_NOT_AN_ENGINE = "it is no engine of language models"

KSERVE = Family(
    title="KServe",
    verified="a page of a running server",
    variants=(
        Variant(
            "kserve",
            "",
            exposes("request_predict_seconds", "request_preprocess_seconds"),
            {
                # The predict step, without what comes before and behind it. Its last bucket is 10 s.
                Signal.LATENCY: (p99_ms("request_predict_seconds"),),
                Signal.REQUESTS: (Rate(counter=Metric("request_predict_seconds_count")),),
            },
        ),
    ),
    missing={
        Signal.TTFT: _NOT_AN_ENGINE,
        Signal.INTER_TOKEN: _NOT_AN_ENGINE,
        Signal.QUEUE_TIME: "it has no queue of its own",
        Signal.SUCCESS: "it does not count failures; the load generator, Istio and Envoy do",
        Signal.TOKENS: _NOT_AN_ENGINE,
        Signal.RUNNING: "no version has it",
        Signal.WAITING: "it has no queue of its own",
        Signal.CACHE_USAGE: _NOT_AN_ENGINE,
        Signal.CACHE_HITS: _NOT_AN_ENGINE,
        Signal.LORA: _NOT_AN_ENGINE,
        Signal.SPECULATION: _NOT_AN_ENGINE,
    },
)
