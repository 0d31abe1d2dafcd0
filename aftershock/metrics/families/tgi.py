"""Hugging Face Text Generation Inference. Its histograms are in seconds, although their names do not say so."""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Variant, begins
from aftershock.metrics.families.measure import Level, Metric, Rate, Share, p99_ms
from aftershock.metrics.families.signal import Signal

TGI = Family(
    title="Text Generation Inference",
    verified="documentation and source of TGI 3.3 (no page of a running server)",
    variants=(
        Variant(
            "tgi",
            "",
            begins("tgi_"),
            {
                Signal.LATENCY: (p99_ms("tgi_request_duration"),),
                # The mean of a request over its tokens: a gap within one request does not show in it.
                Signal.INTER_TOKEN: (p99_ms("tgi_request_mean_time_per_token_duration"),),
                Signal.QUEUE_TIME: (p99_ms("tgi_request_queue_duration"),),
                Signal.SUCCESS: (Share(good=Metric("tgi_request_success"), total=(Metric("tgi_request_count"),)),),
                Signal.REQUESTS: (Rate(counter=Metric("tgi_request_success")),),
                Signal.TOKENS: (Rate(counter=Metric("tgi_request_generated_tokens_sum")),),
                Signal.RUNNING: (Level(gauge=Metric("tgi_batch_current_size"), of="mean"),),
                Signal.WAITING: (Level(gauge=Metric("tgi_queue_size"), of="mean"),),
            },
        ),
    ),
    missing={
        Signal.TTFT: "no version has it; the load generator measures it",
        Signal.CACHE_USAGE: "no version has it",
        Signal.CACHE_HITS: "no version has it",
        Signal.LORA: "no version has it",
        Signal.SPECULATION: "tgi_request_skipped_tokens counts accepted tokens, but nothing counts drafted ones",
    },
    late=True,
)
