"""The Markdown report."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from aftershock.slo.verdict import Verdict, number

if TYPE_CHECKING:
    from conftest import Run


def table(markdown: str) -> list[list[str]]:
    """Cells of the table, head and rule left out."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def test_the_table_has_the_numbers_of_the_judgement(failed: Run) -> None:
    rows = table(failed.markdown())
    assert len(rows) == len(failed.judgement.rows)
    for cells, row in zip(rows, failed.judgement.rows, strict=True):
        assert cells[0] == f"{row.display} ({row.unit})"
        for cell, value in zip(
            cells[1:4], (row.phases.get(phase) for phase in ("baseline", "chaos", "recovery")), strict=True
        ):
            if value is None:
                assert cell == ""
            else:
                assert value.value is not None
                assert cell.replace("*", "").split()[0] == number(value.value)
        assert cells[6].endswith(f"**{row.verdict}**")


def test_the_verdict_and_why_come_first(failed: Run) -> None:
    lines = failed.markdown().splitlines()
    assert lines[0] == "# ✗ FAIL: 1 of 4 objectives broke under pod-delete; 1 could not be decided."
    assert lines[2].startswith("- P99 latency was")


def test_what_is_not_known_is_said(no_data: Run) -> None:
    cells = table(no_data.markdown())
    assert cells[0][1:4] == ["- (unreachable)"] * 3
    assert cells[3][1:4] == ["", "", "- (unreachable)"]


@pytest.mark.parametrize(
    "text", ["a | b", "<script>alert(1)</script>", "![x](http://evil/x)", "# x\n\n| y |", "`code`", "**bold**", "a\\|b"]
)
def test_what_comes_from_outside_stays_text(hostile: Callable[[str], Run], text: str) -> None:
    markdown = hostile(text).markdown()
    assert {len(cells) for cells in table(markdown)} == {7}
    assert not re.search(r"(?<!\\)<[a-z/!]", markdown)
    assert not re.search(r"(?<!\\)\]\(", markdown)
    assert len([line for line in markdown.splitlines() if line.startswith("#")]) == 4


def test_a_run_that_was_cut_off_renders(failed: Run) -> None:
    judgement = replace(failed.judgement, rows=(), verdict=Verdict.ERROR)
    markdown = failed.but(judgement=judgement, windows=[], outcome=None, experiment={}).markdown()
    assert "What the fault did was not recorded" in markdown
