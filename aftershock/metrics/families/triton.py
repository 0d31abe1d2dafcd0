"""NVIDIA Triton. By default its latencies are sums and counts, which give a mean and no P99."""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Measures, Variant, begins, exposes
from aftershock.metrics.families.measure import Level, Mean, Metric, Rate, Share, p99_ms
from aftershock.metrics.families.signal import Signal

_P99 = 'quantile="0.99"'
_US = 0.001
_ANSWERED = Metric("nv_inference_request_success")
_SUMMARIES = "start it with --metrics-config summary_latencies=true"

_ALWAYS: Measures = {
    Signal.LATENCY_MEAN: (Mean(total=Metric("nv_inference_request_duration_us"), count=_ANSWERED, scale=_US),),
    Signal.QUEUE_TIME_MEAN: (Mean(total=Metric("nv_inference_queue_duration_us"), count=_ANSWERED, scale=_US),),
    Signal.SUCCESS: (Share(good=_ANSWERED, total=(_ANSWERED, Metric("nv_inference_request_failure"))),),
    Signal.REQUESTS: (Rate(counter=_ANSWERED),),
    Signal.WAITING: (Level(gauge=Metric("nv_inference_pending_request_count"), of="mean"),),
}

_SWITCHED_ON: Measures = {
    # Triton's own quantile over its sliding window, the worst of all servers and models.
    Signal.LATENCY: (Level(gauge=Metric("nv_inference_request_summary_us", _P99), of="peak", scale=_US),),
    Signal.QUEUE_TIME: (Level(gauge=Metric("nv_inference_queue_summary_us", _P99), of="peak", scale=_US),),
    # Of decoupled models, which are those that stream; in milliseconds.
    Signal.TTFT: (p99_ms("nv_inference_first_response_histogram_ms", unit_ms=1),),
    Signal.RUNNING: (Level(gauge=Metric("nv_trt_llm_request_metrics", 'request_type="active"'), of="mean"),),
    Signal.CACHE_USAGE: (
        Level(
            gauge=Metric("nv_trt_llm_kv_cache_block_metrics", 'kv_cache_block_type="fraction"'), of="peak", scale=100
        ),
    ),
}

TRITON = Family(
    title="Triton",
    verified="documentation and source (no page of a running server)",
    variants=(
        Variant(
            "triton-llm",
            "with summaries, histograms or the TensorRT-LLM backend",
            exposes(*(metric.name for ways in _SWITCHED_ON.values() for way in ways for metric in way.metrics())),
            {**_ALWAYS, **_SWITCHED_ON},
        ),
        Variant("triton", "as it starts by itself", begins("nv_inference_"), _ALWAYS),
    ),
    missing={
        Signal.LATENCY: _SUMMARIES,
        Signal.TTFT: "start it with --metrics-config histogram_latencies=true; only decoupled models have it",
        Signal.INTER_TOKEN: "no version has it; the load generator measures it",
        Signal.QUEUE_TIME: _SUMMARIES,
        Signal.TOKENS: "Triton knows no tokens",
        Signal.RUNNING: "only the TensorRT-LLM backend has it",
        Signal.CACHE_USAGE: "only the TensorRT-LLM backend has it, of late versions",
        Signal.CACHE_HITS: "nv_cache_* are of the response cache, which is another thing",
        Signal.LORA: "no version has it",
        Signal.SPECULATION: "no version has it",
    },
)
