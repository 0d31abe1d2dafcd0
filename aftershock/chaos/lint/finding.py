"""What a rule has to say, and the change that would mend it."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from aftershock.chaos.lint.text import MASK, Edit

LONGEST = 80
"""Characters of a value that are shown."""


class Severity(StrEnum):
    """error: refused, without effect, or not what was meant. warning: so under some circumstances."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Finding:
    """One hazard at one place of a file."""

    source: str
    line: int
    """From 1, in the outermost file, also for an engine that a workflow holds as a string."""
    column: int
    severity: Severity
    rule: str
    what: str
    """What is wrong, and what Litmus would do."""
    fix: str
    """What to do."""
    path: str
    """Where in the document, as `spec.experiments[0].name`."""
    engine: str
    """Name of the ChaosEngine; empty where the file itself is wrong."""
    reference: str
    edits: tuple[Edit, ...] = ()
    """The change that mends it without a decision; empty if there is none."""

    def line_text(self) -> str:
        """The finding for people: one line, whatever the file holds."""
        return f"{self.source}:{self.line}: {self.severity} {self.rule}: {self.what}; fix: {self.fix}"

    def to_dict(self) -> dict[str, Any]:
        """The finding for programs. Edits are left out: only whoever has the text can use them."""
        document = asdict(self)
        del document["edits"]
        return document | {"severity": str(self.severity), "fixable": bool(self.edits)}


def shown(value: str) -> str:
    """A value of the file in quotes, on one line, cut where it is too long to read."""
    text = repr(re.sub(f"{MASK}+", "{{...}}", value))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 20]}...' ({len(value)} characters)"
