"""JUnit XML: what CI shows must be what the table says, and nothing unproven may look as if it had passed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from aftershock.errors import StackError
from aftershock.report.junit import junit_of_failure, to_junit
from aftershock.slo.verdict import Verdict

if TYPE_CHECKING:
    from conftest import Run


def cases(text: str) -> dict[str, ElementTree.Element]:
    root = ElementTree.fromstring(text)
    return {str(case.get("name")): case for case in root.iter("testcase")}


def test_each_row_is_a_case_with_its_verdict(failed: Run) -> None:
    judgement = failed.judgement
    found = cases(to_junit(judgement, "run-1"))
    assert list(found) == [f"{row.display} {row.target}" for row in judgement.rows]
    for row, case in zip(judgement.rows, found.values(), strict=True):
        broken = {Verdict.PASS: None, Verdict.FAIL: "failure"}.get(row.verdict, "error")
        wanted = None if broken is None else broken if row.severity != "info" else "skipped"
        assert [each.tag for each in case if each.tag != "system-out"] == ([wanted] if wanted else [])
        if wanted in ("failure", "error"):
            told = case.find(wanted)
            assert told is not None and row.explanation in str(told.get("message"))
            assert told.get("type") == row.reason.value


def test_the_counts_are_those_of_the_cases(failed: Run, no_data: Run, passed: Run) -> None:
    for run in (failed, no_data, passed):
        root = ElementTree.fromstring(to_junit(run.judgement, "run-1"))
        (suite,) = root
        assert suite.get("name") == "run-1"
        for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert int(str(suite.get(attribute))) == len(list(suite.iter(tag))) == int(str(root.get(attribute)))
    assert int(str(ElementTree.fromstring(to_junit(no_data.judgement, "r")).get("errors"))) > 0
    root = ElementTree.fromstring(to_junit(passed.judgement, "r"))
    assert (root.get("failures"), root.get("errors")) == ("0", "0")


def test_any_text_is_xml(hostile: Callable[[str], Run]) -> None:
    for text in ("<b>&\"'", "]]>", "\x00\x1b[31m", "\uffff", "line\nline"):
        ElementTree.fromstring(to_junit(hostile(text).judgement, text + "\ud800").encode("utf-8"))


def test_a_run_without_a_table_is_an_error() -> None:
    (case,) = cases(junit_of_failure(StackError("no <port> is free"))).values()
    told = case.find("error")
    assert told is not None and (told.get("type"), told.get("message")) == ("StackError", "no <port> is free")
