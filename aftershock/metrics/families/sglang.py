"""SGLang, which shows metrics where it was started with `--enable-metrics`.

Success is what its HTTP server answered. `num_aborted_requests_total` is no counterpart: it counts requests to abort,
most of them from clients that hung up.
"""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Variant, begins
from aftershock.metrics.families.measure import Average, Level, Metric, Rate, Share, good_of, p99_ms
from aftershock.metrics.families.signal import Signal

_MADE_BY_A_MODEL = 'endpoint=~"/generate|/v1/.+"'

SGLANG = Family(
    title="SGLang",
    verified="source of SGLang 0.5 (no page of a running server)",
    variants=(
        Variant(
            "sglang",
            "",
            begins("sglang:"),
            {
                Signal.LATENCY: (p99_ms("sglang:e2e_request_latency_seconds"),),
                Signal.TTFT: (p99_ms("sglang:time_to_first_token_seconds"),),
                # The second name is that of versions before 0.4.6.
                Signal.INTER_TOKEN: (
                    p99_ms("sglang:inter_token_latency_seconds"),
                    p99_ms("sglang:time_per_output_token_seconds"),
                ),
                Signal.QUEUE_TIME: (p99_ms("sglang:queue_time_seconds"),),
                Signal.SUCCESS: (good_of("sglang:http_responses_total", 'status_code!~"5.."', _MADE_BY_A_MODEL),),
                Signal.REQUESTS: (Rate(counter=Metric("sglang:num_requests_total")),),
                Signal.TOKENS: (Rate(counter=Metric("sglang:generation_tokens_total")),),
                Signal.RUNNING: (Level(gauge=Metric("sglang:num_running_reqs"), of="mean"),),
                Signal.WAITING: (Level(gauge=Metric("sglang:num_queue_reqs"), of="mean"),),
                Signal.CACHE_USAGE: (Level(gauge=Metric("sglang:token_usage"), of="peak", scale=100),),
                Signal.CACHE_HITS: (
                    Share(good=Metric("sglang:cached_tokens_total"), total=(Metric("sglang:prompt_tokens_total"),)),
                    Average(gauge=Metric("sglang:cache_hit_rate")),
                ),
                Signal.LORA: (Level(gauge=Metric("sglang:lora_pool_slots_used"), of="mean"),),
                Signal.SPECULATION: (Average(gauge=Metric("sglang:spec_accept_rate")),),
            },
        ),
    ),
    missing={Signal.LORA: "shown only by a server that was started with --enable-lora"},
    late=True,
)
