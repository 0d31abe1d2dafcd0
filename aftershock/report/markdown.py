"""The report as Markdown: what the KFP UI, a pull request or a chat shows. GFM tables, no HTML."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from aftershock.report.fault import read_fault
from aftershock.report.wording import (
    SYMBOLS,
    deciding_rows,
    duration,
    headline,
    interval,
    metric,
    paragraphs,
    signed,
    target_without_unit,
)
from aftershock.slo.verdict import Judgement, PhaseValue, VerdictRow
from aftershock.windows import Phase, Window

_SPECIAL = re.compile(r"[\\`*_\[\]|~]|<(?=[A-Za-z/!?])|^[#>+=-]")
_HEAD = ("Metric", "Baseline", "Chaos", "Recovery", "Delta", "SLO", "Verdict")


def render_markdown(
    judgement: Judgement, windows: Sequence[Window], outcome: Mapping[str, Any] | None, experiment: Mapping[str, Any]
) -> str:
    """The verdict, the compliance table, why, and what the fault did. Arguments as those of `render_html`."""
    lines = [
        f"# {SYMBOLS[judgement.verdict]} {judgement.verdict}: {_text(headline(judgement))}",
        "",
        *(f"- {_text(text)}" for text in paragraphs(deciding_rows(judgement), brief=True)),
        *(f"- Note: {_text(note)}" for note in judgement.notes),
        "",
        *_table(judgement.rows),
        "",
        "Values with their 95 % interval and number of observations (n). Verdicts are by the "
        f"policy `{_text(judgement.policy)}`.",
        "",
        "## Why",
        "",
        *(f"- {SYMBOLS[row.verdict]} {_text(row.explanation)} `{row.reason}`" for row in judgement.rows),
        "",
        "## The fault",
        "",
        *_fault(judgement, windows, outcome),
        "",
        "## The run",
        "",
        *_run(windows, experiment),
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"


def _table(rows: Sequence[VerdictRow]) -> Iterator[str]:
    yield f"| {' | '.join(_HEAD)} |"
    yield "|:--|--:|--:|--:|--:|:--|:--|"
    for row in rows:
        values = [_value(row.phases[phase], phase in row.judged) if phase in row.phases else "" for phase in Phase]
        verdict = f"{SYMBOLS[row.verdict]} **{row.verdict}**"
        cells = [_text(metric(row)), *values, signed(row.delta), _text(target_without_unit(row)), verdict]
        yield f"| {' | '.join(cells)} |"


def _value(value: PhaseValue, judged: bool) -> str:
    """The judged phase is bold; only there do interval and n stand too, so that the table stays readable."""
    if value.value is None:
        return f"- ({_text(value.status.value)})"
    if not judged:
        return value.text
    known = [part for part in (interval(value), f"n {value.n}" if value.n is not None else "") if part]
    return f"**{value.text}**" + (f" ({', '.join(known)})" if known else "")


def _fault(judgement: Judgement, windows: Sequence[Window], outcome: Mapping[str, Any] | None) -> Iterator[str]:
    story = read_fault(judgement.fault, outcome, windows)
    yield _text(story.sentence)
    yield ""
    for sentence in story.evidence[:20]:
        yield f"- {_text(sentence)}"


def _run(windows: Sequence[Window], experiment: Mapping[str, Any]) -> Iterator[str]:
    for window in windows:
        yield f"- {window.phase}: {window.start:%Y-%m-%d %H:%M:%S} UTC, {duration(window.seconds)}"
    shown = ("run_id", "target_url", "model", "rate", "arrivals", "slo", "seed")
    for name in shown:
        value = str(experiment.get(name, ""))
        if value and "\n" not in value.strip():
            yield f"- {name}: {_text(value)}"


def _text(text: str) -> str:
    """`text` in one line, without any meaning to Markdown."""
    return _SPECIAL.sub(lambda match: f"\\{match[0]}", " ".join(str(text).split()))
