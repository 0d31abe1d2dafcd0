"""What `aftershock metrics` prints: the server, what it tells with the PromQL for it, and what it does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aftershock.metrics.families.family import Detected
from aftershock.metrics.families.fetch import read_metrics
from aftershock.metrics.families.openslo import checked_selector, indicators
from aftershock.metrics.families.registry import detect
from aftershock.metrics.families.signal import Signal
from aftershock.metrics.prometheus import without_password
from aftershock.slo.catalog import join


def examine(source: str, selector: str = "", slo: str | None = None) -> str:
    """What the page at `source`, a URL or a file, is told to be of; or the SLO document `slo` joined with its server.

    Of several servers on the page, the document is joined with the first: the engine. Raises InputError for a page of
    no known server, a wrong selector or a name that is no document, TargetError where nobody answers.
    """
    matchers = checked_selector(selector)
    found = detect(read_metrics(source), without_password(source) if "://" in source else source)
    return join(slo, indicators(found[0].measures, matchers)) if slo else describe(found, matchers)


def describe(found: Sequence[Detected], selector: str) -> str:
    """The families of a page, one after the other."""
    return "\n\n".join("\n".join(_lines(detected, selector)) for detected in found)


def _lines(detected: Detected, selector: str) -> Iterator[str]:
    family, variant = detected.family, detected.variant
    yield f"{family.title}{f', {variant.title}' if variant.title else ''} (--slo NAME-{variant.name})"
    yield f"Names held against: {family.verified}"
    for signal, measure in detected.measures.items():
        yield f"  {signal}{f' ({signal.unit})' if signal.unit else ''}"
        yield f"    {measure.promql(selector)}"
    if detected.missing:
        yield "Not told by this server:"
    width = max(map(len, detected.missing), default=0)
    for signal in detected.missing:
        yield f"  {signal:{width}}  {_why(detected, signal)}".rstrip()
    if family.late and detected.missing:
        yield f"{family.title} may show a metric only after its first use: send a request, and look again."


def _why(detected: Detected, signal: Signal) -> str:
    others = any(signal in variant.measures for variant in detected.family.variants)
    return detected.family.missing.get(signal) or ("not shown by this version" if others else "no version has it")
