"""How the report says things: one wording for the terminal, Markdown and the page, so that they never disagree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime

from aftershock.experiment import NO_FAULT
from aftershock.slo.objective import target_text
from aftershock.slo.verdict import Delta, Judgement, PhaseValue, Reason, Verdict, VerdictRow, number

SYMBOLS = {
    Verdict.PASS: "✓",
    Verdict.FAIL: "✗",
    Verdict.INCONCLUSIVE: "?",
    Verdict.NO_DATA: "∅",
    Verdict.ERROR: "!",
}
"""Beside the word, never instead of it, and never colour alone."""

_MEANINGS = {
    Verdict.PASS: "held",
    Verdict.FAIL: "broke",
    Verdict.INCONCLUSIVE: "could not be decided",
    Verdict.NO_DATA: "had no data",
    Verdict.ERROR: "could not be judged",
}

_CIRCUMSTANCES = (
    Reason.FAULT_ERROR,
    Reason.LOAD_FELL_BEHIND,
    Reason.LAST_SCRAPE_MISSED,
    Reason.COUNTS_DISAGREE,
    Reason.BASELINE_NOT_STEADY,
    Reason.NO_EFFECT,
    Reason.STOPPED,
    Reason.UNREACHABLE,
)
"""Reasons that lie with the run and not with one row."""
_MANY = 3


def headline(judgement: Judgement) -> str:
    """The verdict of the run in one sentence a manager understands."""
    rows = counted(judgement)
    under = "without a fault (control run)" if judgement.fault == NO_FAULT else f"under {judgement.fault}"
    if not rows:
        return f"No objective was judged {under}."
    deciding = [row for row in rows if row.verdict is judgement.verdict]
    if judgement.verdict is Verdict.PASS and len(deciding) == len(rows):
        return f"{'All' if len(rows) > 1 else 'The'} {_objectives(len(rows))} held {under}."
    if not deciding:
        return judgement.notes[0] if judgement.notes else f"The run {under} ended with {judgement.verdict}."
    rest = [
        f"{count} {_MEANINGS[verdict]}"
        for verdict in (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.NO_DATA, Verdict.ERROR)
        if verdict is not judgement.verdict and (count := sum(row.verdict is verdict for row in rows))
    ]
    more = f"; {listed(rest)}" if rest else ""
    return f"{len(deciding)} of {_objectives(len(rows))} {_MEANINGS[judgement.verdict]} {under}{more}."


def deciding_rows(judgement: Judgement) -> list[VerdictRow]:
    """The rows to which a run that did not pass owes its verdict."""
    if judgement.verdict is Verdict.PASS:
        return []
    return [row for row in counted(judgement) if row.verdict is judgement.verdict]


def paragraphs(rows: Sequence[VerdictRow], *, brief: bool = False) -> list[str]:
    """Why rows have their verdicts: one explanation each, but one for all whose circumstances are the same.

    `brief` also lets one row speak for all where more than three share any reason.
    """
    alike: dict[Reason, list[VerdictRow]] = {}
    for row in rows:
        alike.setdefault(row.reason, []).append(row)
    told = []
    for reason, group in alike.items():
        if reason in _CIRCUMSTANCES or (brief and len(group) > _MANY):
            first, *others = group
            more = f" The same holds for {listed([row.display for row in others])}." if others else ""
            told.append(first.explanation + more)
        else:
            told += [row.explanation for row in group]
    return told


def counted(judgement: Judgement) -> list[VerdictRow]:
    """Rows that count for the verdict of the run: all but those of severity `info`."""
    return [row for row in judgement.rows if row.severity != "info"]


def compliant(verdict: Verdict) -> str:
    """The answer that the table's last column gives: only a proof is a yes or a no."""
    return {Verdict.PASS: "yes", Verdict.FAIL: "no"}.get(verdict, "unknown")


def metric(row: VerdictRow) -> str:
    """`P99 latency (ms)`"""
    return f"{row.display} ({row.unit})" if row.unit else row.display


def target_without_unit(row: VerdictRow) -> str:
    """`<= 800`"""
    return target_text(row.op, row.bound, "")


def typeset(target: str) -> str:
    """A target as it is printed, not typed: `≤ 800 ms`."""
    return target.replace("<=", "≤").replace(">=", "≥")


def interval(value: PhaseValue) -> str:
    """`812 to 1043`, with an open side said in words; empty where no interval is known."""
    if value.low is not None and value.high is not None:
        return f"{number(value.low)} to {number(value.high)}"
    if value.low is not None:
        return f"at least {number(value.low)}"
    return f"at most {number(value.high)}" if value.high is not None else ""


def signed(delta: Delta | None) -> str:
    """`+220`, `-3`, `0`; `-` where it is not known."""
    if delta is None:
        return "-"
    text = number(delta.value)
    return f"+{text}" if delta.value > 0 and text != "0" else text


def percent(delta: Delta | None) -> str:
    """`+31 %`, `14 times`, or nothing: of a baseline of zero there is no share."""
    if delta is None or delta.percent is None or not math.isfinite(delta.percent):
        return ""
    if abs(delta.percent) >= 1000:
        return f"{1 + delta.percent / 100:.0f} times"
    return f"{delta.percent:+.0f} %" if abs(delta.percent) >= 10 else f"{delta.percent:+.2g} %"


def clock(instant: datetime, *, tenths: bool = False) -> str:
    """Time of day in UTC: `05:30:24`, or `05:30:24.3`."""
    text = f"{instant:%H:%M:%S}"
    return f"{text}.{instant.microsecond // 100_000}" if tenths else text


def elapsed(seconds: float, span_s: float) -> str:
    """An instant of a span as its axis shows it: `25`, `1:30` (minutes) or `2:05` (hours)."""
    if span_s <= 300:
        return f"{seconds:g}"
    whole = round(seconds)
    if span_s <= 7200:
        return f"{whole // 60}:{whole % 60:02d}"
    return f"{whole // 3600}:{whole % 3600 // 60:02d}"


def duration(seconds: float) -> str:
    """`26.3 s`, `4 min 10 s`, `2 h 5 min`"""
    if seconds < 120:
        return f"{number(round(seconds, 1))} s"
    whole = round(seconds)
    if whole < 7200:
        return f"{whole // 60} min" + (f" {whole % 60} s" if whole % 60 else "")
    return f"{whole // 3600} h" + (f" {whole % 3600 // 60} min" if whole % 3600 // 60 else "")


def listed(words: Sequence[str]) -> str:
    """`a, b and c`"""
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def _objectives(count: int) -> str:
    return f"{count} objective{'' if count == 1 else 's'}"
