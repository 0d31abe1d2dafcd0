"""The table in its plain forms: the same numbers everywhere, and no number where none is known."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from aftershock.report.table import COLUMNS, to_csv, to_kfp_metrics, to_text
from aftershock.slo.verdict import Judgement, PhaseValue, Status, Verdict, number
from aftershock.windows import Phase

if TYPE_CHECKING:
    from conftest import Run

PREVIEW_BYTES = 255
"""Of a CSV, in the KFP UI."""


def rows_of(judgement: Judgement) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(to_csv(judgement))))


def test_csv_has_the_numbers_of_the_judgement(failed: Run) -> None:
    rows = rows_of(failed.judgement)
    assert len(rows) == len(failed.judgement.rows)
    for cells, row in zip(rows, failed.judgement.rows, strict=True):
        for column, phase in (("pre_chaos", Phase.BASELINE), ("chaos", Phase.CHAOS), ("recovery", Phase.RECOVERY)):
            known = row.phases.get(phase)
            assert (
                cells[column] == "" if known is None else float(cells[column]) == pytest.approx(known.value, rel=1e-8)
            )
        judged = row.phases[row.decided_by]
        assert cells["n"] == ("" if judged.n is None else str(judged.n))
        assert f"{cells['slo']} {cells['unit']}" == row.target
        assert (cells["verdict"], cells["reason"], cells["objective"]) == (row.verdict, row.reason, row.objective)


def test_csv_has_the_interval_of_the_phase_that_decided(failed: Run) -> None:
    errors = failed.judgement.rows[1]
    row = replace(errors, judged=(Phase.CHAOS, Phase.RECOVERY), decided_by=Phase.RECOVERY)
    (cells,) = rows_of(replace(failed.judgement, rows=(row,)))
    assert (cells["high"], cells["n"]) == ("0.3", str(row.phases[Phase.RECOVERY].n))


def test_csv_says_yes_or_no_only_where_it_is_proven(failed: Run, no_data: Run) -> None:
    assert [row["compliant"] for row in rows_of(failed.judgement)] == ["no", "unknown", "yes", "yes"]
    assert {row["compliant"] for row in rows_of(no_data.judgement)} == {"unknown"}


def test_csv_leaves_unknown_values_empty(no_data: Run) -> None:
    for row in rows_of(no_data.judgement):
        assert [row[name] for name in ("pre_chaos", "chaos", "recovery", "delta", "low", "high", "n")] == [""] * 7


def test_the_preview_of_the_csv_shows_a_verdict(failed: Run) -> None:
    preview = to_csv(failed.judgement).encode()[:PREVIEW_BYTES].decode()
    assert preview.splitlines()[0] == ",".join(COLUMNS)
    assert "P99 latency," in preview
    assert ",no,FAIL,BREACHES" in preview


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", "+cmd", "-2", '=HYPERLINK("http://evil")'])
def test_csv_holds_no_formula(failed: Run, hostile: Callable[[str], Run], text: str) -> None:
    rows = rows_of(hostile(text).judgement)
    assert {row["metric"] for row in rows} == {f"'{text}"}


def test_csv_stays_one_line_a_row(hostile: Callable[[str], Run]) -> None:
    text = to_csv(hostile('a\nb\r\n"c",d').judgement)
    assert len(text.splitlines()) == 1 + 4


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_text_fits_the_terminal(failed: Run, no_data: Run, width: int) -> None:
    for run in (failed, no_data):
        table = to_text(run.judgement, width)
        assert max(map(len, table.splitlines())) <= max(width, 60)
        assert table.isascii()


def test_text_has_values_verdicts_and_reasons(failed: Run) -> None:
    text = to_text(failed.judgement, 120)
    lines = text.splitlines()
    for row, line in zip(failed.judgement.rows, lines[2:], strict=False):
        assert line.startswith(row.display)
        assert line.endswith(row.verdict)
        for value in row.phases.values():
            assert value.value is not None
            assert number(value.value) in line.split()
    assert lines[-1] == "Verdict: FAIL. 1 of 4 objectives broke under pod-delete; 1 could not be decided."
    words = " ".join(text.split())
    for row in failed.judgement.rows:
        assert (row.explanation in words) == (row.verdict is not Verdict.PASS)


def test_text_says_circumstances_once(no_data: Run) -> None:
    words = " ".join(to_text(no_data.judgement, 120).split())
    assert words.count("Prometheus did not answer") == 1
    assert "The same holds for Error rate, Accuracy drop and Recovery time." in words


def test_text_of_a_narrow_terminal_keeps_chaos_recovery_and_verdict(failed: Run) -> None:
    head = to_text(failed.judgement, 60).splitlines()[0].split()
    assert head == ["Metric", "Chaos", "Recovery", "SLO", "Verdict"]


def test_text_of_no_rows(failed: Run) -> None:
    nothing = replace(failed.judgement, rows=(), verdict=Verdict.ERROR, notes=("Nothing was asked.",))
    assert to_text(nothing) == "Note: Nothing was asked.\n\nVerdict: ERROR. No objective was judged under pod-delete.\n"


def test_metrics_are_the_numbers_of_the_judgement(failed: Run) -> None:
    metrics = to_kfp_metrics(failed.judgement)
    assert metrics["slo.pass"] == 0
    assert (metrics["slo.passed"], metrics["slo.failed"], metrics["slo.undecided"]) == (2, 1, 1)
    for row in failed.judgement.rows:
        assert metrics[f"{row.objective}.compliant"] == (row.verdict is Verdict.PASS)
        for phase, value in row.phases.items():
            assert metrics[f"{row.objective}.{phase}"] == value.value


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, None])
def test_metrics_are_finite_or_left_out(failed: Run, value: float | None) -> None:
    broken = PhaseValue(value, value, value, status=Status.OK)
    rows = tuple(replace(row, phases=dict.fromkeys(Phase, broken), delta=None) for row in failed.judgement.rows)
    metrics = to_kfp_metrics(replace(failed.judgement, rows=rows))
    assert all(isinstance(number, float) and math.isfinite(number) for number in metrics.values())
    assert not [name for name in metrics if name.endswith((".chaos", ".baseline", ".recovery", ".delta"))]
    assert to_csv(replace(failed.judgement, rows=rows)).count("nan") == 0


def test_counts_and_compliance_have_the_same_keys_in_every_run(failed: Run, no_data: Run) -> None:
    def stable(run: Run) -> list[str]:
        return [
            name for name in to_kfp_metrics(run.judgement) if name.startswith("slo.") or name.endswith(".compliant")
        ]

    assert stable(failed) == stable(no_data)
