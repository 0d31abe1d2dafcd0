"""All families, and what a page is one of."""

from __future__ import annotations

from aftershock.errors import InputError
from aftershock.metrics.families.envoy import ENVOY
from aftershock.metrics.families.family import Detected, Family
from aftershock.metrics.families.inference_gateway import INFERENCE_GATEWAY
from aftershock.metrics.families.istio import ISTIO
from aftershock.metrics.families.kserve import KSERVE
from aftershock.metrics.families.llamacpp import LLAMACPP
from aftershock.metrics.families.mlserver import MLSERVER
from aftershock.metrics.families.page import read_page
from aftershock.metrics.families.ray_serve import RAY_SERVE
from aftershock.metrics.families.sglang import SGLANG
from aftershock.metrics.families.tgi import TGI
from aftershock.metrics.families.triton import TRITON
from aftershock.metrics.families.vllm import VLLM

FAMILIES: tuple[Family, ...] = (
    VLLM,
    SGLANG,
    TGI,
    LLAMACPP,
    TRITON,
    KSERVE,
    MLSERVER,
    RAY_SERVE,
    ISTIO,
    ENVOY,
    INFERENCE_GATEWAY,
)
"""Engines first: where a proxy tells its own view on the same page, the engine's is the closer one."""


def detect(text: str, source: str) -> list[Detected]:
    """The families on the page `text`; several where a proxy or a platform is around an engine.

    Raises InputError, which names `source`, if it is no page of metrics or of no known family.
    """
    page = read_page(text, source)
    found = [detected for family in FAMILIES if (detected := family.detect(page))]
    if not found:
        known = ", ".join(family.title for family in FAMILIES)
        raise InputError(f"{source}: shows metrics of no known server; known are {known}")
    return found
