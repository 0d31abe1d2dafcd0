"""The compliance table as JUnit XML, which every CI system can show. No I/O.

One test case a row. A row that is neither PASS nor FAIL is an error there: what was not proven must not look as if it
had passed. Rows that only inform are skipped where they do not pass, since they decide nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from aftershock.slo.verdict import Judgement, Verdict, VerdictRow

NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 has no way to write."""


def to_junit(judgement: Judgement, run_id: str) -> str:
    """A `testsuites` document with one suite, named after the run."""
    cases = [_case(row, judgement.fault) for row in judgement.rows]
    properties = {"verdict": judgement.verdict.value, "policy": judgement.policy, "fault": judgement.fault}
    return _document(run_id, cases, properties, "\n".join(judgement.notes))


def junit_of_failure(error: Exception) -> str:
    """The same for a run that came to no table: one case, which is an error."""
    case = ElementTree.Element("testcase", {"classname": "run", "name": "the run itself"})
    ElementTree.SubElement(case, "error", {"type": type(error).__name__, "message": _text(str(error))})
    return _document("run", [case], {}, "")


def _document(suite_name: str, cases: list[ElementTree.Element], properties: Mapping[str, str], told: str) -> str:
    counted = {tag: str(sum(case.find(tag) is not None for case in cases)) for tag in ("failure", "error", "skipped")}
    counts = {"tests": str(len(cases)), "failures": counted["failure"], "errors": counted["error"]}
    root = ElementTree.Element("testsuites", {"name": "aftershock", **counts})
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": _text(suite_name), **counts, "skipped": counted["skipped"]}
    )
    if properties:
        listed = ElementTree.SubElement(suite, "properties")
        for name, value in properties.items():
            ElementTree.SubElement(listed, "property", {"name": name, "value": _text(value)})
    suite.extend(cases)
    if told:
        ElementTree.SubElement(suite, "system-out").text = _text(told)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(row: VerdictRow, fault: str) -> ElementTree.Element:
    name = f"{row.display} {row.target}"
    case = ElementTree.Element("testcase", {"classname": _text(f"slo.{fault}"), "name": _text(name)})
    if row.verdict is Verdict.PASS:
        ElementTree.SubElement(case, "system-out").text = _text(row.explanation)
    elif row.severity == "info":
        ElementTree.SubElement(case, "skipped", {"message": _text(f"only informs: {row.explanation}")})
    else:
        tag = "failure" if row.verdict is Verdict.FAIL else "error"
        what = {"type": row.reason.value, "message": _text(f"{row.verdict.value}: {row.explanation}")}
        ElementTree.SubElement(case, tag, what)
    return case


def _text(text: str) -> str:
    return NOT_XML.sub("\ufffd", text)
