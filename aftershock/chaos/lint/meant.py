"""Comments that say that a hazard is meant: `# aftershock: ignore RULE[, RULE]`, on its line or on the line above."""

from __future__ import annotations

import re

_COMMENT = re.compile(r"^(?P<before>.*?)#[ \t]*aftershock:[ \t]*ignore[ \t]+(?P<rules>[\w-]+(?:[ \t]*,[ \t]*[\w-]+)*)")


class Meant:
    """Which rules are passed over in which lines of a file."""

    def __init__(self, characters: str) -> None:
        self._rules: dict[int, set[str]] = {}
        if "aftershock:" not in characters:
            return
        for number, line in enumerate(characters.split("\n"), 1):
            match = _COMMENT.match(line)
            if match:
                rules = set(re.split(r"[ \t]*,[ \t]*", match["rules"]))
                self._rules.setdefault(number, set()).update(rules)
                if not match["before"].strip():  # a line of its own is about the next one
                    self._rules.setdefault(number + 1, set()).update(rules)

    def covers(self, line: int, rule: str) -> bool:
        """Whether a comment says so of this rule in this line, counted from 1."""
        return rule in self._rules.get(line, ())
