"""Measures as OpenSLO documents: one `kind: SLI` a signal, by the names that `slo_specs/servers` refers to. No I/O."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

import yaml

from aftershock.errors import InputError
from aftershock.matchers import checked_matchers
from aftershock.metrics.families.family import Family, Variant
from aftershock.metrics.families.measure import Measure
from aftershock.metrics.families.signal import Signal

PLACE = "{{ selector }}"
"""Where the matchers of a run go."""


def checked_selector(text: str) -> str:
    """Label matchers as PromQL has them between braces; the braces themselves may be left out.

    Raises InputError for anything else.
    """
    try:
        return checked_matchers(text)
    except ValueError as error:
        raise InputError(f"--selector {text!r}: {error}") from error


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
    return f"{comment}\n{indicators(variant.current, PLACE)}"


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
