"""llama.cpp's server, which shows metrics where it was started with `--metrics`."""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Measures, Variant, begins, exposes
from aftershock.metrics.families.measure import Level, Metric, Rate, Share
from aftershock.metrics.families.signal import Signal

_NO_HISTOGRAMS = "it has no histograms; the load generator measures it"

_ALWAYS: Measures = {
    Signal.TOKENS: (Rate(counter=Metric("llamacpp:tokens_predicted_total")),),
    Signal.RUNNING: (Level(gauge=Metric("llamacpp:requests_processing"), of="mean"),),
    Signal.WAITING: (Level(gauge=Metric("llamacpp:requests_deferred"), of="mean"),),
}
_CACHED = Metric("llamacpp:prompt_tokens_cached_total")
_FILLED = "llamacpp:kv_cache_usage_ratio"

LLAMACPP = Family(
    title="llama.cpp",
    verified="a page of the embedded stack's server; before May 2025: documentation",
    variants=(
        Variant(
            "llamacpp-2024",
            "before May 2025",
            exposes(_FILLED),
            {**_ALWAYS, Signal.CACHE_USAGE: (Level(gauge=Metric(_FILLED), of="peak", scale=100),)},
        ),
        Variant(
            "llamacpp",
            "",
            begins("llamacpp:"),
            {
                **_ALWAYS,
                # prompt_tokens_total leaves out what came from the cache.
                Signal.CACHE_HITS: (Share(good=_CACHED, total=(Metric("llamacpp:prompt_tokens_total"), _CACHED)),),
                Signal.SPECULATION: (
                    Share(
                        good=Metric("llamacpp:spec_decode_num_accepted_tokens_total"),
                        total=(Metric("llamacpp:spec_decode_num_draft_tokens_total"),),
                    ),
                ),
            },
        ),
    ),
    missing={
        Signal.LATENCY: _NO_HISTOGRAMS,
        Signal.TTFT: _NO_HISTOGRAMS,
        Signal.INTER_TOKEN: _NO_HISTOGRAMS,
        Signal.QUEUE_TIME: _NO_HISTOGRAMS,
        Signal.SUCCESS: "it counts no requests; the load generator does",
        Signal.REQUESTS: "it counts no requests; the load generator does",
        Signal.CACHE_USAGE: "removed in May 2025 (kv_cache_usage_ratio)",
        Signal.LORA: "no version has it",
    },
)
