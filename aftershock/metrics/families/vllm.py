"""vLLM: the V1 engine, its names under Ray, and the V0 engine of older versions.

`request_success_total` is named so, but counts each request that the engine ended, by reason; what was turned away
before it got there is in none of vLLM's own metrics.
"""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Measures, Variant, begins, exposes
from aftershock.metrics.families.measure import Active, Average, Level, Metric, Rate, Share, good_of, p99_ms
from aftershock.metrics.families.signal import Signal

_BOTH: Measures = {
    Signal.LATENCY: (p99_ms("vllm:e2e_request_latency_seconds"),),
    Signal.TTFT: (p99_ms("vllm:time_to_first_token_seconds"),),
    Signal.SUCCESS: (good_of("vllm:request_success_total", 'finished_reason!~"abort|error"'),),
    Signal.REQUESTS: (Rate(counter=Metric("vllm:request_success_total")),),
    Signal.TOKENS: (Rate(counter=Metric("vllm:generation_tokens_total")),),
    Signal.RUNNING: (Level(gauge=Metric("vllm:num_requests_running"), of="mean"),),
    Signal.WAITING: (Level(gauge=Metric("vllm:num_requests_waiting"), of="mean"),),
    Signal.LORA: (Active(info=Metric("vllm:lora_requests_info"), label="running_lora_adapters"),),
    Signal.SPECULATION: (
        Share(
            good=Metric("vllm:spec_decode_num_accepted_tokens_total"),
            total=(Metric("vllm:spec_decode_num_draft_tokens_total"),),
        ),
    ),
}

V1: Measures = {
    **_BOTH,
    # The second name of each is that of the first V1 versions, up to 0.10.
    Signal.INTER_TOKEN: (p99_ms("vllm:inter_token_latency_seconds"), p99_ms("vllm:time_per_output_token_seconds")),
    Signal.QUEUE_TIME: (p99_ms("vllm:request_queue_time_seconds"),),
    Signal.CACHE_USAGE: (
        Level(gauge=Metric("vllm:kv_cache_usage_perc"), of="peak", scale=100),
        Level(gauge=Metric("vllm:gpu_cache_usage_perc"), of="peak", scale=100),
    ),
    Signal.CACHE_HITS: (
        Share(good=Metric("vllm:prefix_cache_hits_total"), total=(Metric("vllm:prefix_cache_queries_total"),)),
        Share(good=Metric("vllm:gpu_prefix_cache_hits_total"), total=(Metric("vllm:gpu_prefix_cache_queries_total"),)),
    ),
}

V0: Measures = {
    **_BOTH,
    Signal.INTER_TOKEN: (p99_ms("vllm:time_per_output_token_seconds"),),
    # The second name is that of 0.6.
    Signal.QUEUE_TIME: (p99_ms("vllm:request_queue_time_seconds"), p99_ms("vllm:time_in_queue_requests")),
    Signal.CACHE_USAGE: (Level(gauge=Metric("vllm:gpu_cache_usage_perc"), of="peak", scale=100),),
    Signal.CACHE_HITS: (Average(gauge=Metric("vllm:gpu_prefix_cache_hit_rate")),),
}

# Ray puts its own word in front, and of late makes an underscore of the colon.
RAY: Measures = {
    signal: tuple(way.renamed("vllm:", prefix) for prefix in ("ray_vllm_", "ray_vllm:") for way in ways)
    for signal, ways in V1.items()
}

VLLM = Family(
    title="vLLM",
    verified="pages of vLLM 0.32, dense with LoRA and MoE; V0, Ray and speculative decoding: source and documentation",
    variants=(
        Variant("vllm-ray", "V1 engine under Ray", begins("ray_vllm_", "ray_vllm:"), RAY),
        Variant("vllm-v0", "V0 engine", exposes("vllm:num_requests_swapped", "vllm:cpu_cache_usage_perc"), V0),
        Variant("vllm", "V1 engine", begins("vllm:"), V1),
    ),
    missing={
        Signal.SPECULATION: "shown only by a server that was started with speculative decoding",
        Signal.LORA: "shown only by a server that was started with --enable-lora",
    },
)
