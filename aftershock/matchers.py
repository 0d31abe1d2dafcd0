"""Label matchers, as PromQL has them between braces: `job="vllm",namespace="llm"`. No I/O."""

from __future__ import annotations

import re

_TEXT = r'"(?:[^"\\\n]|\\.)*"'
_MATCHER = rf"[a-zA-Z_]\w*\s*(?:=~|!~|!=|=)\s*{_TEXT}"
_MATCHERS = re.compile(rf"{_MATCHER}(?:\s*,\s*{_MATCHER})*\s*,?", re.ASCII)


def checked_matchers(text: str) -> str:
    """The matchers of `text` without braces around them; empty where there are none.

    Raises ValueError for anything else: it goes into queries, so it must be matchers and nothing more.
    """
    matchers = text.strip()
    if matchers.startswith("{") and matchers.endswith("}"):
        matchers = matchers[1:-1].strip()
    if matchers and (not _MATCHERS.fullmatch(matchers) or "{{" in matchers or "{%" in matchers or "{#" in matchers):
        raise ValueError('must be label matchers in double quotes, such as job="vllm",namespace="llm"')
    return matchers.removesuffix(",").rstrip()
