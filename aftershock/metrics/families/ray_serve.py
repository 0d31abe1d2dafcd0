"""Ray Serve: what its HTTP proxy and its deployments count. vLLM inside it has metrics of its own, see vllm.py."""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Variant, begins
from aftershock.metrics.families.measure import Level, Metric, Rate, good_of, p99_ms
from aftershock.metrics.families.signal import INSIDE_THE_ENGINE, Signal

_NOT_ITS_OWN = 'route!~"/-/.*"'
"""Without the health checks and the list of routes."""
_OF_THE_ENGINE = "the engine inside it may have it, see vllm-ray"

RAY_SERVE = Family(
    title="Ray Serve",
    verified="source and documentation of Ray 2 (no page of a running server)",
    variants=(
        Variant(
            "ray-serve",
            "",
            begins("ray_serve_"),
            {
                Signal.LATENCY: (
                    p99_ms("ray_serve_http_request_latency_ms", _NOT_ITS_OWN, unit_ms=1),
                    p99_ms("ray_serve_deployment_processing_latency_ms", unit_ms=1),
                ),
                Signal.SUCCESS: (good_of("ray_serve_num_http_requests_total", 'status_code!~"5.."', _NOT_ITS_OWN),),
                Signal.REQUESTS: (
                    Rate(counter=Metric("ray_serve_num_http_requests_total", _NOT_ITS_OWN)),
                    Rate(counter=Metric("ray_serve_deployment_request_counter_total")),
                ),
                Signal.RUNNING: (Level(gauge=Metric("ray_serve_replica_processing_queries"), of="mean"),),
                Signal.WAITING: (Level(gauge=Metric("ray_serve_deployment_queued_queries"), of="mean"),),
            },
        ),
    ),
    missing=dict.fromkeys(INSIDE_THE_ENGINE, _OF_THE_ENGINE),
    late=True,
)
