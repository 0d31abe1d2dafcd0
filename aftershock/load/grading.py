"""Whether an answer is the expected one. Each grader is built once an item, so that a request pays for no parsing."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal

Grade = Callable[[str], bool]
"""Of one item: whether this answer is right."""

_NUMBER = re.compile(r"(?:(?<![\w.])[-\N{MINUS SIGN}])?\d+(?:,\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?")
"""A sign only where it cannot be the operator of `3-5`; commas only between groups of three."""

_EDGES = " \t\r\n.,;:!?\"'`*()[]"
"""What may stand around a word without being part of it."""


def exact(expected: str) -> Grade:
    """The answer, without the white space around it, is the expected text to the letter."""
    wanted = expected.strip()
    return lambda answer: answer.strip() == wanted


def first_word(expected: str) -> Grade:
    """The first word of the answer is the expected one; case and punctuation around it do not matter."""
    wanted = expected.strip(_EDGES).casefold()

    def grade(answer: str) -> bool:
        words = answer.split(maxsplit=1)
        return bool(words) and words[0].strip(_EDGES).casefold() == wanted

    return grade


def contains(expected: str) -> Grade:
    """The expected text occurs in the answer as whole words; case does not matter."""
    pattern = re.compile(rf"(?<!\w){re.escape(expected.strip())}(?!\w)", re.IGNORECASE)
    return lambda answer: pattern.search(answer) is not None


def numeric(expected: str) -> Grade:
    """The last number of the answer equals the expected one: `42`, `42.0` and `4.2e1` are the same."""
    wanted = _last_number(expected)
    if wanted is None:
        raise ValueError(f"{expected!r} holds no number")
    return lambda answer: _last_number(answer) == wanted


def regex(expected: str) -> Grade:
    """The expected pattern (Python's syntax) is found somewhere in the answer."""
    try:
        pattern = re.compile(expected)
    except re.error as error:
        raise ValueError(f"{expected!r} is no regular expression ({error})") from error
    return lambda answer: pattern.search(answer) is not None


def _last_number(text: str) -> Decimal | None:
    numbers = _NUMBER.findall(text)
    return Decimal(numbers[-1].replace(",", "").replace("\N{MINUS SIGN}", "-")) if numbers else None


GRADERS: dict[str, Callable[[str], Grade]] = {
    "exact": exact,
    "first-word": first_word,
    "contains": contains,
    "numeric": numeric,
    "regex": regex,
}
