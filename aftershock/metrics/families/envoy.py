"""Envoy by itself, as a sidecar or a gateway: its view of the clusters that it sends requests to.

Name the cluster with a selector, such as `envoy_cluster_name="llm"`: Envoy has clusters of its own too.
"""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Variant, begins
from aftershock.metrics.families.measure import Level, Metric, Rate, good_of, p99_ms
from aftershock.metrics.families.signal import INSIDE_THE_ENGINE, Signal

_ANSWERS = "envoy_cluster_upstream_rq_xx"
_OF_THE_SERVER = "a proxy does not know it; the server behind it may"

ENVOY = Family(
    title="Envoy",
    verified="documentation and public dashboards (no page of a running proxy)",
    variants=(
        Variant(
            "envoy",
            "",
            begins("envoy_cluster_"),
            {
                Signal.LATENCY: (p99_ms("envoy_cluster_upstream_rq_time", unit_ms=1),),
                Signal.SUCCESS: (good_of(_ANSWERS, 'envoy_response_code_class!="5"'),),
                Signal.REQUESTS: (Rate(counter=Metric(_ANSWERS)),),
                Signal.RUNNING: (Level(gauge=Metric("envoy_cluster_upstream_rq_active"), of="mean"),),
                Signal.WAITING: (Level(gauge=Metric("envoy_cluster_upstream_rq_pending_active"), of="mean"),),
            },
        ),
    ),
    missing=dict.fromkeys(INSIDE_THE_ENGINE, _OF_THE_SERVER),
    late=True,
)
