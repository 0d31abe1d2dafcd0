"""The words of the report."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from aftershock.report.wording import SYMBOLS, duration, elapsed, headline, interval, paragraphs, percent, signed
from aftershock.slo.verdict import Delta, Judgement, PhaseValue, Reason, Verdict, VerdictRow

if TYPE_CHECKING:
    from conftest import Run


def judged(run: Run, *verdicts: Verdict, fault: str = "pod-delete") -> Judgement:
    """A judgement of rows with these verdicts, the worst of them its own."""
    row = run.judgement.rows[0]
    rows = tuple(replace(row, verdict=verdict) for verdict in verdicts)
    return Judgement(rows, max(verdicts, key=lambda verdict: verdict.rank), "strict", fault)


@pytest.mark.parametrize(
    ("verdicts", "sentence"),
    [
        ([Verdict.PASS], "The 1 objective held under pod-delete."),
        ([Verdict.PASS] * 3, "All 3 objectives held under pod-delete."),
        ([Verdict.PASS, Verdict.FAIL], "1 of 2 objectives broke under pod-delete."),
        ([Verdict.INCONCLUSIVE] * 2, "2 of 2 objectives could not be decided under pod-delete."),
        ([Verdict.NO_DATA, Verdict.PASS], "1 of 2 objectives had no data under pod-delete."),
        (
            [Verdict.FAIL, Verdict.ERROR, Verdict.NO_DATA],
            "1 of 3 objectives could not be judged under pod-delete; 1 broke and 1 had no data.",
        ),
    ],
)
def test_the_headline_is_one_sentence(failed: Run, verdicts: list[Verdict], sentence: str) -> None:
    assert headline(judged(failed, *verdicts)) == sentence


def test_the_headline_of_a_control_run_names_no_fault(failed: Run) -> None:
    text = headline(judged(failed, Verdict.PASS, Verdict.PASS, fault="none"))
    assert text == "All 2 objectives held without a fault (control run)."


def test_rows_for_information_do_not_count(failed: Run) -> None:
    judgement = judged(failed, Verdict.PASS, Verdict.PASS)
    extra = replace(judgement.rows[0], verdict=Verdict.FAIL, severity="info")
    assert headline(replace(judgement, rows=(*judgement.rows, extra))) == "All 2 objectives held under pod-delete."


def test_a_verdict_that_no_row_explains_is_explained_by_a_note(failed: Run) -> None:
    judgement = replace(judged(failed, Verdict.PASS), verdict=Verdict.ERROR, notes=("The fault was not reverted.",))
    assert headline(judgement) == "The fault was not reverted."
    assert headline(replace(judgement, notes=())) == "The run under pod-delete ended with ERROR."


def test_every_verdict_has_a_symbol_of_its_own() -> None:
    assert len({SYMBOLS[verdict] for verdict in Verdict}) == len(Verdict)


def named(run: Run, reason: Reason, *names: str) -> list[VerdictRow]:
    row = run.judgement.rows[0]
    return [replace(row, display=name, reason=reason, explanation=f"{name} was 5 (why).") for name in names]


def test_circumstances_are_told_once_for_all_rows(failed: Run) -> None:
    late = named(failed, Reason.LOAD_FELL_BEHIND, "A", "B", "C")
    rows = [late[0], *named(failed, Reason.STRADDLES, "D", "E"), *late[1:]]
    assert paragraphs(rows) == ["A was 5 (why). The same holds for B and C.", "D was 5 (why).", "E was 5 (why)."]
    assert paragraphs(late[:1]) == ["A was 5 (why)."]


def test_a_brief_account_repeats_no_reason_more_than_three_times(failed: Run) -> None:
    four = named(failed, Reason.BREACHES, "A", "B", "C", "D")
    assert len(paragraphs(four)) == 4
    assert len(paragraphs(four[:3], brief=True)) == 3
    assert paragraphs(four, brief=True) == ["A was 5 (why). The same holds for B, C and D."]


@pytest.mark.parametrize(
    ("delta", "text", "share"),
    [
        (None, "-", ""),
        (Delta(0.0), "0", ""),
        (Delta(95.77, percent=412.0), "+95.77", "+412 %"),
        (Delta(-3.0, percent=-0.25), "-3", "-0.25 %"),
        (Delta(100.0, percent=1500.0), "+100", "16 times"),
    ],
)
def test_deltas_have_their_sign(delta: Delta | None, text: str, share: str) -> None:
    assert (signed(delta), percent(delta)) == (text, share)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (PhaseValue(5, 4, 6), "4 to 6"),
        (PhaseValue(5, 4, None), "at least 4"),
        (PhaseValue(5, None, 6), "at most 6"),
        (PhaseValue(5), ""),
    ],
)
def test_an_open_interval_is_said_in_words(value: PhaseValue, text: str) -> None:
    assert interval(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.04, "0 s"), (12.8, "12.8 s"), (120, "2 min"), (250, "4 min 10 s"), (7500, "2 h 5 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(("span_s", "text"), [(100, "90"), (1000, "1:30"), (10_000, "0:01")])
def test_ticks_of_a_time_axis(span_s: float, text: str) -> None:
    assert elapsed(90.0, span_s) == text
