"""The report as one page that needs nothing else: no script, no fetch, no same origin. It is what a run is shown with.

The page is put together from `report.html.j2` and `report.css`. Everything that came from outside (names, answers of
servers, messages of faults) goes through Jinja's autoescape or `svg.element`; a Content-Security-Policy that allows
nothing but the inline style is the second lock.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape

from aftershock import __version__
from aftershock.experiment import NO_FAULT
from aftershock.report.distribution import Distribution, read_distributions
from aftershock.report.fault import read_fault
from aftershock.report.figures import distribution_figure, timeline_figure
from aftershock.report.queries import read_queries
from aftershock.report.series import Timeline, read_timeline
from aftershock.report.strip import interval_strip
from aftershock.report.wording import (
    SYMBOLS,
    clock,
    counted,
    deciding_rows,
    duration,
    headline,
    interval,
    paragraphs,
    percent,
    signed,
    target_without_unit,
    typeset,
)
from aftershock.slo.verdict import Judgement, PhaseValue, VerdictRow, number
from aftershock.windows import Phase, Window, from_timestamp

if TYPE_CHECKING:
    from pandas import DataFrame

MOST_EXPLAINED = 3
"""Explanations that stand beside the headline; the table has all."""
LONGEST = 1000
"""Characters of any one text on the page, so that its size has a bound."""
LONGEST_DOCUMENT = 20_000
"""Characters of the SLO document, where it was given as text."""


@dataclass(frozen=True)
class Cell:
    """A phase's value in the table."""

    text: str
    interval: str
    n: int | None
    judged: bool
    problem: str
    """Why there is no value."""


@dataclass(frozen=True)
class TableRow:
    """One objective of the table."""

    row: VerdictRow
    cells: tuple[tuple[str, Cell | None], ...]
    delta: str
    percent: str
    target: str
    symbol: str
    strip: Markup


def render_html(
    judgement: Judgement,
    metrics: DataFrame,
    windows: Sequence[Window],
    outcome: Mapping[str, Any] | None,
    experiment: Mapping[str, Any],
    records: DataFrame | None,
) -> str:
    """The page. `outcome` is `chaos_result.json`, `experiment` the experiment's fields, `records` those of all phases.

    Whatever is missing (no metrics, no records, a run that was cut off) leaves its section with the reason why.
    """
    windows = sorted(windows, key=lambda window: window.start)
    story = read_fault(judgement.fault, outcome, windows)
    timeline = _timeline(metrics, windows)
    distributions = read_distributions(records)
    explained = paragraphs(deciding_rows(judgement), brief=True)
    return _template().render(
        judgement=judgement,
        symbol=SYMBOLS[judgement.verdict],
        headline=headline(judgement),
        explained=explained[:MOST_EXPLAINED],
        left_out=len(explained[MOST_EXPLAINED:]),
        notes=[note for note in judgement.notes if note != headline(judgement)],
        facts=_facts(judgement, windows, experiment),
        rows=[_table_row(row) for row in judgement.rows],
        informative=len(judgement.rows) - len(counted(judgement)),
        timeline=timeline,
        timeline_figure=timeline_figure(judgement, timeline, windows, story),
        distributions=[_distribution_row(one) for one in distributions],
        distribution_figure=distribution_figure(judgement, distributions),
        story=story,
        queries=read_queries(metrics),
        windows=windows,
        parameters={name: _parameter(name, value) for name, value in experiment.items()},
        origin=windows[0].start if windows else None,
        version=__version__,
    )


@cache
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("aftershock.report", "."),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_bounded,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"clock": clock, "duration": duration, "number": number, "offset": _offset}
    return environment.get_template("report.html.j2")


def _timeline(metrics: DataFrame, windows: Sequence[Window]) -> Timeline:
    if not windows:
        return Timeline(from_timestamp(0), problem="no phase of the run has ended")
    return read_timeline(metrics, windows[0].start)


def _table_row(row: VerdictRow) -> TableRow:
    cells = ((phase.value, _cell(row.phases.get(phase), phase in row.judged)) for phase in Phase)
    return TableRow(
        row,
        tuple(cells),
        signed(row.delta),
        percent(row.delta),
        typeset(target_without_unit(row)),
        SYMBOLS[row.verdict],
        interval_strip(row),
    )


def _cell(value: PhaseValue | None, judged: bool) -> Cell | None:
    if value is None:
        return None
    problem = "" if value.value is not None else value.status.value.replace("_", " ")
    return Cell(value.text, interval(value), value.n, judged, problem)


def _distribution_row(one: Distribution) -> dict[str, Any]:
    """Quantiles of all requests, those that failed counted as never answered."""
    quantiles = [one.quantile(share) for share in (0.5, 0.9, 0.99)]
    return {
        "phase": one.phase.value,
        "requests": one.requests,
        "failed": one.requests - one.answered,
        "quantiles": ["not reached" if value is None else number(value) for value in quantiles],
    }


def _facts(judgement: Judgement, windows: Sequence[Window], experiment: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a reader wants to know of the run before anything else."""
    fault = judgement.fault if judgement.fault != NO_FAULT else "none (control run)"
    parameters = experiment.get("fault_parameters") or {}
    if parameters:
        fault += f" ({', '.join(f'{name}={value}' for name, value in parameters.items())})"
    facts = [("Run", str(experiment.get("run_id", ""))), ("Fault", fault), ("Service", _service(experiment))]
    if windows:
        phases = ", ".join(_unbroken(f"{duration(window.seconds)} {window.phase}") for window in windows)
        facts += [("Started", f"{windows[0].start:%Y-%m-%d %H:%M:%S} UTC"), ("Phases", phases)]
    if "rate" in experiment:
        load = f"{number(float(experiment['rate']))} requests/s, {experiment.get('arrivals', '')} arrivals"
        facts.append(("Load", load))
    slo = str(experiment.get("slo", ""))
    name = "given as text (see below)" if "\n" in slo.strip() else slo
    facts += [("SLO", name), ("Policy", judgement.policy)]
    return [(name, value[:200]) for name, value in facts if value]


def _service(experiment: Mapping[str, Any]) -> str:
    words = [str(experiment.get(name, "")) for name in ("model", "target_url")]
    return " at ".join(word for word in words if word)


def _bounded(value: Any) -> Any:
    """What Jinja is about to escape and write. Markup is ours, and bounded where it is made."""
    return _cut(value, LONGEST) if isinstance(value, str) and not isinstance(value, Markup) else value


def _parameter(name: str, value: Any) -> Markup:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return escape(_cut(text, LONGEST_DOCUMENT if name == "slo" else LONGEST))


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


def _unbroken(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _offset(instant: datetime, origin: datetime) -> str:
    """`+25.3 s` of the run."""
    return f"{(instant - origin).total_seconds():+.1f} s"
