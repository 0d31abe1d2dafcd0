"""The endpoint picker of the Gateway API inference extension, which sees a pool of servers from above.

Its successor in llm-d has names that begin with `llm_d_epp_`; those could not be verified, so they are not in here.
"""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Measures, Variant, begins
from aftershock.metrics.families.measure import Average, Level, Mean, Metric, Rate, Share, p99_ms
from aftershock.metrics.families.signal import Signal


def _of(requests: str) -> Measures:
    """`requests` is what the names of its request metrics begin with."""
    total = Metric(f"{requests}_request_total")
    return {
        Signal.LATENCY: (p99_ms(f"{requests}_request_duration_seconds"),),
        Signal.SUCCESS: (Share(total=(total,), bad=Metric(f"{requests}_request_error_total")),),
        Signal.REQUESTS: (Rate(counter=total),),
        Signal.TOKENS: (Rate(counter=Metric(f"{requests}_output_tokens_sum")),),
        Signal.RUNNING: (Level(gauge=Metric(f"{requests}_running_requests"), of="mean"),),
        # Its own means over the servers of the pool.
        Signal.WAITING: (Level(gauge=Metric("inference_pool_average_queue_size"), of="mean"),),
        Signal.CACHE_USAGE: (Average(gauge=Metric("inference_pool_average_kv_cache_utilization")),),
        # What its own index of prefixes expects the servers to have.
        Signal.CACHE_HITS: (
            Mean(
                total=Metric("inference_extension_prefix_indexer_hit_ratio_sum"),
                count=Metric("inference_extension_prefix_indexer_hit_ratio_count"),
                scale=100,
            ),
        ),
    }


INFERENCE_GATEWAY = Family(
    title="Gateway API inference extension",
    verified="source and documentation (no page of a running picker)",
    variants=(
        Variant(
            "inference-gateway-v0",
            "before version 1, by inference model",
            begins("inference_model_"),
            _of("inference_model"),
        ),
        Variant(
            "inference-gateway",
            "by inference objective",
            begins("inference_objective_", "inference_pool_", "inference_extension_"),
            _of("inference_objective"),
        ),
    ),
    missing={
        Signal.TTFT: "no released version has it; the servers behind it may",
        Signal.INTER_TOKEN: "its normalized time per output token holds the whole latency, so it is another thing",
        Signal.QUEUE_TIME: "the servers behind it may have it",
        Signal.LORA: "the servers behind it may have it",
        Signal.SPECULATION: "the servers behind it may have it",
    },
    late=True,
)
