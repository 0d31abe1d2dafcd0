"""Which series a query looks at: just enough of PromQL to find its vector selectors. No I/O."""

from __future__ import annotations

import re

LOAD_PREFIX = "aftershock_"
"""Of everything that our own load generator and gateway expose."""

_STRING = r'"(?:[^"\\]|\\.)*"' r"|'(?:[^'\\]|\\.)*'" r"|`[^`]*`"
_TOKEN = re.compile(
    rf"""\s+|\#[^\n]*
    |(?P<string>{_STRING})
    |(?P<braces>\{{(?:{_STRING}|[^{{}}"'`])*\}})
    |(?P<range>\[[^\]]*\])
    |(?P<number>(?:0x[0-9a-fA-F]+|[0-9.][0-9a-zA-Z.]*(?:(?<=[eE])[+-][0-9]+)?))
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<sign>.)""",
    re.VERBOSE | re.DOTALL,
)
_LABEL_LISTS = frozenset({"by", "without", "on", "ignoring", "group_left", "group_right"})
_WORDS = _LABEL_LISTS | {"and", "or", "unless", "atan2", "offset", "bool", "inf", "nan"}


def selectors(query: str) -> list[str]:
    """The vector selectors of `query`, a valid one, as they are written; each once, in their order."""
    words = [(str(match.lastgroup), match[0]) for match in _TOKEN.finditer(query) if match.lastgroup]
    words.append(("end", ""))
    found: dict[str, None] = {}
    at = 0
    while at < len(words) - 1:
        (kind, text), (next_kind, following) = words[at], words[at + 1]
        at += 1
        if kind == "name" and text.lower() in _LABEL_LISTS and following == "(":
            at = _after(words, at)
        elif kind == "name" and not _is_no_metric(text, following):
            found[text + following if next_kind == "braces" else text] = None
            at += next_kind == "braces"
        elif kind == "braces":
            found[text] = None
    return list(found)


def is_of_the_load(selector: str) -> bool:
    """Whether it asks for what our load generator counts, not for anything of the target's."""
    return selector.startswith(LOAD_PREFIX) or re.search(rf'__name__\s*=~?\s*["\'`]{LOAD_PREFIX}', selector) is not None


def _is_no_metric(name: str, following: str) -> bool:
    """A function, an operator, or an aggregation whose labels come first."""
    return following == "(" or name.lower() in _WORDS or following.lower() in ("by", "without")


def _after(words: list[tuple[str, str]], at: int) -> int:
    """The index after the list of labels that opens at `at`."""
    while at < len(words) - 1 and words[at][1] != ")":
        at += 1
    return at + 1
