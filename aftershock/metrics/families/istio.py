"""Istio's standard metrics. Each request is told by the proxies of both its ends: only one of them may be counted."""

from __future__ import annotations

from aftershock.metrics.families.family import Family, Measures, Variant, begins
from aftershock.metrics.families.measure import Metric, Rate, good_of, p99_ms
from aftershock.metrics.families.page import Page
from aftershock.metrics.families.signal import Signal

_ANSWERED = 'response_code!~"5..|0"'
"""0: the connection ended before there was a status."""
_REQUESTS = "istio_requests_total"
_OF_THE_SERVER = "a proxy does not know it; the server behind it may"


def _reported_by(reporter: str) -> Measures:
    end = f'reporter="{reporter}"'
    return {
        Signal.LATENCY: (p99_ms("istio_request_duration_milliseconds", end, unit_ms=1),),
        Signal.SUCCESS: (good_of(_REQUESTS, _ANSWERED, end),),
        Signal.REQUESTS: (Rate(counter=Metric(_REQUESTS, end)),),
    }


def _by_source(page: Page) -> bool:
    """Whether only the callers' ends are on it."""
    ends = {end for end in ("source", "destination") if page.labelled(_REQUESTS, {"reporter": end})}
    return ends == {"source"}


ISTIO = Family(
    title="Istio",
    verified="documentation (no page of a running proxy)",
    variants=(
        Variant("istio-source", "told by the proxy of the caller, or a gateway", _by_source, _reported_by("source")),
        Variant("istio", "told by the proxy of the server", begins("istio_request"), _reported_by("destination")),
    ),
    missing={
        signal: _OF_THE_SERVER for signal in Signal if signal not in (Signal.LATENCY, Signal.SUCCESS, Signal.REQUESTS)
    },
    late=True,
)
