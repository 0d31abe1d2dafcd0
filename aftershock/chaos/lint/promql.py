"""Just enough of PromQL to say how many samples a query may return.

Litmus' promProbe takes exactly one. A query that this reader does not understand is left to Prometheus: None.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)
    |(?P<range>\[[^\]]*\])
    |(?P<number>(?:0x[0-9a-fA-F]+|[0-9]+\.?[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+)(?:(?:ms|[smhdwy])(?:[0-9]+(?:ms|[smhdwy]))*)?)
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<sign>==|!=|<=|>=|=~|!~|[-+*/%^<>=@(){},])""",
    re.VERBOSE | re.DOTALL,
)
_AGGREGATORS = frozenset(
    [
        "sum",
        "min",
        "max",
        "avg",
        "count",
        "stddev",
        "stdvar",
        "group",
        "quantile",
        "topk",
        "bottomk",
        "count_values",
        "limitk",
        "limit_ratio",
    ]
)
_SEVERAL = frozenset({"count_values", "limitk", "limit_ratio"})
_ONE = frozenset(["scalar", "vector", "time", "pi", "absent", "absent_over_time"])
_OPERATORS = frozenset(["+", "-", "*", "/", "%", "^", "==", "!=", "<", ">", "<=", ">=", "and", "or", "unless", "atan2"])
_DEEPEST = 100

T = TypeVar("T")


@dataclass(frozen=True)
class Samples:
    """What a query returns: one sample at most, or one for each value of some labels."""

    many: bool
    by: frozenset[str] | None = None
    """The labels, where they are known."""


@dataclass(frozen=True)
class Token:
    """One word of a query."""

    kind: str
    text: str


class _UnclearError(Exception):
    """The query is not understood."""


def tokens(query: str) -> list[Token] | None:
    """The words of a query; None if it is none."""
    found: list[Token] = []
    at = 0
    while at < len(query):
        match = _TOKEN.match(query, at)
        if not match:
            return None
        if match.lastgroup:
            found.append(Token(match.lastgroup, match[0]))
        at = match.end()
    return found


def samples(query: str) -> Samples | None:
    """How many samples the query may return; None if it is not understood."""
    words = tokens(query)
    if not words:
        return None
    reader = _Reader(words)
    try:
        found = reader.expression()
    except _UnclearError:
        return None
    return found if reader.is_done else None


def may_be_nan(query: str) -> bool:
    """The query divides or takes a quantile, and nothing replaces the NaN that comes of it without traffic."""
    found = tokens(query) or []
    words = [token.text for token in found]
    replaced = "or" in words and any(sign in words for sign in (">", ">=", "<", "<=", "=="))
    divided = any(word in ("/", "%") and not _is_above_zero(found[at + 1 :]) for at, word in enumerate(words))
    return not replaced and (divided or "histogram_quantile" in words)


def _is_above_zero(words: list[Token]) -> bool:
    """What begins with these words is a number above 0, or is held above one by clamp_min."""
    if words and words[0].text == "clamp_min":
        depth = 0
        for at, word in enumerate(words):
            depth += (word.text == "(") - (word.text == ")")
            if depth == 0 and at > 0:
                return words[at - 2].text == "," and _is_above_zero(words[at - 1 : at])
        return False
    while words and words[0].text in ("(", "-", "+"):
        words = words[1:]
    try:
        return bool(words) and words[0].kind == "number" and float(words[0].text) > 0
    except ValueError:  # hexadecimal, or a time
        return False


class _Reader:
    def __init__(self, words: list[Token]) -> None:
        self._words = words
        self._at = 0
        self._depth = 0

    @property
    def is_done(self) -> bool:
        return self._at == len(self._words)

    def expression(self) -> Samples:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _UnclearError
        left = self._operand()
        while self._peek() in _OPERATORS:
            operator = self._take()
            matching = self._matching()
            left = _combined(operator, left, self._operand(), matching)
        self._depth -= 1
        return left

    def _operand(self) -> Samples:
        while self._peek() in ("-", "+"):
            self._take()
        found = self._within(self.expression) if self._peek() == "(" else self._primary()
        self._modifiers()
        return found

    def _primary(self) -> Samples:
        if self._peek() == "{":
            self._matchers()
            return Samples(many=True)
        token = self._words[self._at] if not self.is_done else Token("", "")
        self._at += 1
        if token.kind == "number":
            return Samples(many=False)
        if token.kind != "name":
            raise _UnclearError
        name = token.text
        if name.lower() in _AGGREGATORS and self._peek() in ("(", "by", "without"):
            return self._aggregation(name.lower())
        if self._peek() == "(":
            return self._call(name)
        if self._peek() == "{":
            self._matchers()
        return Samples(many=name.lower() not in ("inf", "nan"))

    def _aggregation(self, name: str) -> Samples:
        grouping = self._grouping()
        first = self._peek(1)
        arguments = self._within(self._arguments)
        grouping = grouping or self._grouping()
        if name in _SEVERAL or not arguments:
            return Samples(many=True)
        if grouping is None or grouping == ("by", frozenset()):
            return Samples(many=name in ("topk", "bottomk") and first != "1")
        return Samples(many=True, by=grouping[1] if grouping[0] == "by" else None)

    def _call(self, name: str) -> Samples:
        arguments = self._within(self._arguments)
        if name in _ONE:
            return Samples(many=False)
        if name == "histogram_quantile" and len(arguments) == 2:
            source = arguments[1]
            return Samples(many=source.many and source.by != frozenset({"le"}))
        return next((each for each in arguments if each and each.many), Samples(many=False))

    def _arguments(self) -> list[Samples]:
        found: list[Samples] = []
        while self._peek() != ")":
            if not self.is_done and self._words[self._at].kind == "string":
                self._at += 1
            else:
                found.append(self.expression())
            if self._peek() == ",":
                self._take()
        return found

    def _grouping(self) -> tuple[str, frozenset[str]] | None:
        if self._peek() not in ("by", "without"):
            return None
        word = self._take()
        return word, self._within(self._labels)

    def _labels(self) -> frozenset[str]:
        found: set[str] = set()
        while self._peek() != ")":
            word = self._take()
            if word != ",":
                found.add(word)
        return frozenset(found)

    def _matching(self) -> bool:
        """The labels on which two sides are matched; whether there are any words about it."""
        if self._peek() == "bool":
            self._take()
        given = False
        while self._peek() in ("on", "ignoring", "group_left", "group_right"):
            given = True
            self._take()
            if self._peek() == "(":
                self._within(self._labels)
        return given

    def _modifiers(self) -> None:
        while not self.is_done:
            token = self._words[self._at]
            if token.kind == "range":
                self._at += 1
            elif token.text in ("offset", "@"):
                self._at += 2 if self._peek(1) != "-" else 3
                if self._peek() == "(":
                    self._within(self._labels)
            else:
                return

    def _matchers(self) -> None:
        while self._take() != "}":
            pass

    def _within(self, inner: Callable[[], T]) -> T:
        self._expect("(")
        found = inner()
        self._expect(")")
        return found

    def _expect(self, text: str) -> None:
        if self._take() != text:
            raise _UnclearError

    def _take(self) -> str:
        if self.is_done:
            raise _UnclearError
        self._at += 1
        return self._words[self._at - 1].text

    def _peek(self, ahead: int = 0) -> str:
        at = self._at + ahead
        return self._words[at].text if at < len(self._words) else ""


def _combined(operator: str, left: Samples, right: Samples, matching: bool) -> Samples:
    if operator in ("and", "unless"):
        return left
    if operator == "or":
        return left if left.many else right if right.many else Samples(many=False)
    if matching and (left.many or right.many):
        return Samples(many=True)
    return left if left.many else right
