"""Seldon MLServer. Its own durations are a summary without quantiles; those of its REST server have buckets."""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Variant, exposes
from aftershock.metrics.families.measure import Level, Mean, Metric, Rate, Share, p99_ms
from aftershock.metrics.families.signal import Signal

_INFERENCE = 'path=~".*/(infer|generate)(_stream)?"'
_ANSWERED = Metric("model_infer_request_success_total")
_NOT_AN_ENGINE = "it is no engine of language models"

MLSERVER = Family(
    title="MLServer",
    verified="a page of a running server",
    variants=(
        Variant(
            "mlserver",
            "",
            exposes(_ANSWERED.name, "rest_server_requests_total"),
            {
                # Of the REST server. Who asks by gRPC finds his mean in model_infer_request_duration.
                Signal.LATENCY: (p99_ms("rest_server_request_duration_seconds", _INFERENCE),),
                Signal.LATENCY_MEAN: (
                    Mean(
                        total=Metric("model_infer_request_duration_sum"),
                        count=Metric("model_infer_request_duration_count"),
                        scale=1000,
                    ),
                ),
                Signal.SUCCESS: (
                    Share(good=_ANSWERED, total=(_ANSWERED, Metric("model_infer_request_failure_total"))),
                ),
                Signal.REQUESTS: (Rate(counter=_ANSWERED),),
                Signal.RUNNING: (Level(gauge=Metric("rest_server_requests_in_progress", 'method="POST"'), of="mean"),),
            },
        ),
    ),
    missing={
        Signal.TTFT: _NOT_AN_ENGINE,
        Signal.INTER_TOKEN: _NOT_AN_ENGINE,
        Signal.QUEUE_TIME: "no version has it",
        Signal.TOKENS: _NOT_AN_ENGINE,
        Signal.WAITING: "its queue metrics were not on the page that this was held against",
        Signal.CACHE_USAGE: _NOT_AN_ENGINE,
        Signal.CACHE_HITS: _NOT_AN_ENGINE,
        Signal.LORA: _NOT_AN_ENGINE,
        Signal.SPECULATION: _NOT_AN_ENGINE,
    },
    late=True,
)
