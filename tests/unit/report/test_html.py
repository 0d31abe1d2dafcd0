"""The page: that it is whole, says what the judgement says, and cannot be made to do anything else."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pandas as pd
import pytest

from aftershock.slo.verdict import Verdict, number

if TYPE_CHECKING:
    from conftest import Run

VOID = {"meta", "br", "link", "img", "input", "hr"}
LIMIT_BYTES = 1_000_000
ATTACK = "\"><script>alert(1)</script><img src=http://evil/x onerror=alert(1)><style>*{display:none}</style>' {{ 7*7 }}"


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    text: str = ""
    path: tuple[str, ...] = ()


@dataclass
class Page(HTMLParser):
    """All elements of a page, each with its text; fails where tags are not closed in order."""

    elements: list[Element] = field(default_factory=list)

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements, self._open = [], []
        self.feed(html)
        self.close()
        assert not self._open, [element.tag for element in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs), path=tuple(parent.tag for parent in self._open))
        self.elements.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.text += data

    def all(self, tag: str, class_: str = "") -> list[Element]:
        wanted = set(class_.split())
        return [
            element
            for element in self.elements
            if element.tag == tag and wanted <= set((element.attributes.get("class") or "").split())
        ]

    @property
    def text(self) -> str:
        return " ".join(self.all("body")[0].text.split())


@pytest.fixture(scope="module", params=["failed", "passed", "no_data"])
def run(request: pytest.FixtureRequest) -> Run:
    made: Run = request.getfixturevalue(request.param)
    return made


def test_the_page_has_its_parts_in_order(run: Run) -> None:
    page = Page(run.html())
    assert len(page.all("h1")) == 1
    assert [heading.text for heading in page.all("h2")] == [
        "Compliance",
        "Time line",
        "What the fault did",
        "Latency distribution",
        "How it was measured",
    ]
    assert len(page.all("tbody", "")) >= len(run.judgement.rows)


def test_the_headline_is_the_verdict_in_a_word_with_a_symbol(run: Run) -> None:
    badge = Page(run.html()).all("h1")[0].text.split()
    symbol = {Verdict.PASS: "✓", Verdict.FAIL: "✗", Verdict.NO_DATA: "∅"}[run.judgement.verdict]
    assert badge[0] == symbol
    assert " ".join(badge[1:]).startswith(run.judgement.verdict.replace("_", " "))


def test_every_number_of_the_judgement_is_in_its_cell(failed: Run) -> None:
    page = Page(failed.html())
    columns = page.all("td")
    for row in failed.judgement.rows:
        for phase, value in row.phases.items():
            shown = [cell.text for cell in columns if cell.attributes.get("data-label") == phase.capitalize()]
            text = shown[failed.judgement.rows.index(row)]
            assert value.value is not None
            assert text.startswith(number(value.value))
            if value.low is not None and value.high is not None:
                assert f"{number(value.low)} to {number(value.high)}" in text
            assert (f"n {value.n}" in text) == (value.n is not None)
        assert row.explanation in page.text
        assert row.reason in page.text


def test_what_has_no_value_shows_why_and_no_number(no_data: Run) -> None:
    page = Page(no_data.html())
    measured = [
        cell.text.strip()
        for cell in page.all("td", "num")
        if cell.attributes.get("data-label") in ("Baseline", "Chaos", "Recovery")
    ]
    assert set(measured) == {"unreachable", "·"}
    assert "There is no time line: unreachable: 127.0.0.1:9090: connection refused." in page.text
    assert "There are no request records." in page.text
    assert not page.all("svg")


def test_the_page_fetches_nothing_and_runs_nothing(run: Run) -> None:
    html = run.html()
    page = Page(html)
    assert {element.tag for element in page.elements} & {"script", "link", "img", "iframe", "object", "base"} == set()
    for element in page.elements:
        assert not {name for name in element.attributes if name.startswith("on")}
        assert not {"src", "href", "xlink:href", "srcset", "action", "data"} & set(element.attributes)
        assert not element.attributes.get("style")
    style = page.all("style")[0].text
    assert "@import" not in style
    assert "url(" not in style
    policy = next(meta for meta in page.all("meta") if meta.attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy.attributes["content"] == "default-src 'none'; style-src 'unsafe-inline'"


def test_what_comes_from_outside_stays_text(hostile: Callable[[str], Run], failed: Run) -> None:
    page = Page(hostile(ATTACK).html())
    harmless = Page(hostile("harmless").html())
    assert [element.tag for element in page.elements] == [element.tag for element in harmless.elements]
    assert not [name for element in page.elements for name in element.attributes if name.startswith("on")]
    assert "".join(ATTACK.split()) in "".join(page.text.split())
    assert "49" not in "".join(element.text for element in page.all("h1"))


def test_marks_and_names_in_the_picture_stay_text(failed: Run) -> None:
    outcome = dict(failed.outcome or {})
    outcome["events"] = [event | {"message": ATTACK} for event in outcome["events"]]
    judgement = replace(
        failed.judgement,
        fault=ATTACK,
        rows=tuple(replace(row, display=f"p99 {ATTACK}") for row in failed.judgement.rows),
    )
    page = Page(failed.but(outcome=outcome, judgement=judgement).html())
    assert page.all("svg", "plot")
    assert not page.all("script")
    assert not page.all("img")
    assert len(page.all("style")) == 1


@pytest.mark.parametrize("text", ["x" * 5000, "\N{FIRE}" * 3000, "&<>\"'" * 2000], ids=["long", "wide", "escaped"])
def test_the_page_stays_small_whatever_it_is_given(hostile: Callable[[str], Run], text: str) -> None:
    assert len(hostile(text).html().encode()) < LIMIT_BYTES


def test_a_page_of_hours_stays_small(failed: Run) -> None:
    line = failed.metrics[failed.metrics["objective"] == "_timeline"]
    length = pd.Timedelta(seconds=100)
    long = pd.concat([line.assign(at=line["at"] + index * length) for index in range(100)], ignore_index=True)
    html = failed.but(metrics=long).html()
    assert len(html.encode()) < LIMIT_BYTES
    assert "Each point is the worst of" in html


def test_every_picture_has_words(failed: Run) -> None:
    page = Page(failed.html())
    pictures = page.all("svg")
    assert len([one for one in pictures if "plot" in (one.attributes.get("class") or "")]) == 6
    assert all(one.attributes.get("role") == "img" and one.attributes.get("aria-label") for one in pictures)
    time_line = page.all("svg", "plot wide")[0].attributes["aria-label"] or ""
    assert re.search(r"Highest P99 latency: baseline [\d.]+ ms, chaos [\d.]+ ms, recovery [\d.]+ ms", time_line)


def test_the_picture_shows_phases_fault_and_kills(failed: Run) -> None:
    page = Page(failed.html())
    bands = {name: len(page.all("rect", f"band {name}")) for name in ("baseline", "chaos", "recovery")}
    assert set(bands.values()) == {3}  # one in each width
    assert len(page.all("rect", "fault-bar")) == 3
    assert len(page.all("path", "strike")) == 2 * 3


def test_a_control_run_has_no_fault_in_its_picture(passed: Run) -> None:
    page = Page(passed.html())
    assert not page.all("rect", "fault-bar")
    assert "This was a control run: no fault was injected." in page.text


def test_an_end_of_the_fault_that_was_not_seen_is_said(failed: Run) -> None:
    outcome = dict(failed.outcome or {}) | {"reverted_at": None}
    windows = [replace(window, reverted_at=None) for window in failed.windows]
    page = Page(failed.but(outcome=outcome, windows=windows).html())
    assert "its end was not seen" in page.text
    assert "pod-delete, end not seen" in page.text


@pytest.mark.parametrize(
    "missing",
    [
        {"metrics": pd.DataFrame()},
        {"outcome": None},
        {"outcome": {}},
        {"records": None},
        {"windows": []},
        {"experiment": {}},
        {"metrics": pd.DataFrame(), "outcome": None, "records": None, "windows": [], "experiment": {}},
    ],
    ids=lambda missing: "-".join(missing),
)
def test_whatever_is_missing_the_page_renders_and_says_so(failed: Run, missing: dict[str, Any]) -> None:
    page = Page(failed.but(**missing).html())
    assert len(page.all("h2")) == 5
    if "metrics" in missing:
        assert "There is no time line" in page.text
        assert "Prometheus was not asked." in page.text
    if "outcome" in missing:
        assert "What the fault did was not recorded" in page.text
    if "windows" in missing:
        assert "No phase of the run has ended." in page.text


def test_a_judgement_without_rows_renders(failed: Run) -> None:
    page = Page(failed.but(judgement=replace(failed.judgement, rows=(), verdict=Verdict.ERROR)).html())
    assert "No objective was judged." in page.text


def test_the_headline_says_circumstances_once(no_data: Run) -> None:
    because = Page(no_data.html()).all("p", "because")
    assert len(because) == 1
    assert because[0].text.endswith("The same holds for Error rate, Accuracy drop and Recovery time.")
    assert no_data.markdown().partition("## Why")[0].count("Prometheus did not answer") == 1


def test_notes_are_shown_once(failed: Run) -> None:
    note = "The baseline was not steady."
    page = Page(failed.but(judgement=replace(failed.judgement, rows=(), notes=(note,), verdict=Verdict.ERROR)).html())
    assert page.text.count(note) == 1


def test_queries_are_told_with_their_window(failed: Run) -> None:
    page = Page(failed.html())
    queries = page.all("ul", "queries")
    assert len(queries) == len(failed.judgement.rows) + 1
    assert "bucket · chaos · over 31.4 s" in queries[0].text
    assert 'aftershock_request_duration_seconds_bucket{phase="chaos"}' in queries[0].text


def test_the_same_run_gives_the_same_page(failed: Run) -> None:
    assert failed.html() == failed.html()
