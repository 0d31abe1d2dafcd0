"""Measures as OpenSLO documents: one `kind: SLI` a signal, by the names that `slo_specs/servers` refers to. No I/O."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import Any

import yaml

from aftershock.errors import InputError
from aftershock.metrics.families.family import Family, Variant
from aftershock.metrics.families.measure import Measure
from aftershock.metrics.families.signal import Signal

_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_SELECTOR = re.compile(
    rf"\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*{_TEXT}\s*(?:,\s*[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*{_TEXT}\s*)*"
)


def checked_selector(text: str) -> str:
    """Label matchers as PromQL has them between braces; the braces themselves may be left out.

    Raises InputError for anything else.
    """
    matchers = text.strip().removeprefix("{").removesuffix("}").strip()
    if matchers and (not _SELECTOR.fullmatch(matchers) or "{{" in matchers or "{%" in matchers):
        raise InputError(f'--selector {text!r}: must be label matchers, such as \'job="vllm",namespace="llm"\'')
    return matchers


def indicators(measures: Mapping[Signal, Measure], selector: str = "") -> str:
    """The measures as SLI documents, separated by `---`."""
    return "---\n".join(_indicator(signal, measure, selector) for signal, measure in measures.items())


def file_text(family: Family, variant: Variant) -> str:
    """The file of a variant in `slo_specs/servers`: all that its current versions can tell."""
    who = f"{family.title}, {variant.title}" if variant.title else family.title
    head = (
        f"{who}: what it tells, and how it is asked. Names held against: {family.verified}. "
        "Written by tests/unit/metrics/write_specs.py; change aftershock/metrics/families instead."
    )
    comment = textwrap.fill(head, 120, initial_indent="# ", subsequent_indent="# ")
    return f"{comment}\n{indicators(variant.current)}"


def _indicator(signal: Signal, measure: Measure, selector: str) -> str:
    metadata: dict[str, Any] = {"name": f"server-{signal}", "displayName": f"{signal.display} (server)"}
    if signal.unit:
        metadata["annotations"] = {"aftershock.io/unit": signal.unit}
    source = {"type": "Prometheus", "spec": measure.source(selector)}
    document = {
        "apiVersion": "openslo/v1",
        "kind": "SLI",
        "metadata": metadata,
        "spec": {"thresholdMetric": {"metricSource": source}},
    }
    return yaml.safe_dump(document, sort_keys=False, width=1000, allow_unicode=True)
