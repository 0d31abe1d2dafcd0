"""Right answers are found right and wrong ones wrong."""

from __future__ import annotations

import pytest

from aftershock.load.grading import GRADERS


@pytest.mark.parametrize(
    ("grader", "expected", "right", "wrong"),
    [
        ("exact", "Paris", ["Paris", " Paris\n"], ["paris", "Paris.", "", "It is Paris"]),
        (
            "first-word",
            "Paris",
            ["Paris", "paris, of course", ' "Paris" ', "**Paris**."],
            ["", "Is it Paris", "Parish"],
        ),
        ("contains", "new york", ["It is New York.", "NEW YORK"], ["New Yorker", "york new", ""]),
        ("contains", "c++", ["use C++!", "C++"], ["use C", "xC++"]),
        (
            "numeric",
            "42",
            ["42", "42.0", "6 * 7 = 42.", "4.2e1", "first 7, then 42"],
            ["", "none", "42 or 43", "-42", "142"],
        ),
        ("numeric", "-1", ["2 - 3 = -1", "\N{MINUS SIGN}1"], ["3-1", "1"]),
        ("numeric", "1234.5", ["1,234.5", "1234.50"], ["1,234", "234.5"]),
        ("regex", r"^\s*(yes|no)\b", ["yes", "  no, never"], ["maybe yes", "yesterday"]),
    ],
)
def test_graders(grader: str, expected: str, right: list[str], wrong: list[str]) -> None:
    grade = GRADERS[grader](expected)
    assert [answer for answer in right if not grade(answer)] == []
    assert [answer for answer in wrong if grade(answer)] == []


def test_numbers_too_large_to_be_floats_are_still_told_apart() -> None:
    grade = GRADERS["numeric"]("9007199254740993")
    assert grade("9007199254740993")
    assert not grade("9007199254740992")
