"""From the text of a file to what is wrong with its ChaosEngines, and to the text in which the safe part is mended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from aftershock.chaos.lint.engine import Broken, Engine, find_engines
from aftershock.chaos.lint.finding import Finding, Severity
from aftershock.chaos.lint.item import UnreadableError
from aftershock.chaos.lint.registry import RULES, Hit, Rule
from aftershock.chaos.lint.rules import document, environment, probes, queries, target
from aftershock.chaos.lint.text import Edit, Text, apply
from aftershock.errors import EngineError

RULE_MODULES = (target, document, environment, probes, queries)
"""Imported so that their rules are in the registry."""

LARGEST = 4 * 1024 * 1024
"""Characters. No ChaosEngine comes near, and a longer file is a mistake."""

_BROKEN = "embedded-yaml"
_BOM = "\ufeff"
_PASSES = 10


@dataclass(frozen=True)
class Report:
    """What is to be said about one file."""

    engines: int
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class Mended:
    """A file after its safe fixes."""

    text: str
    fixed: tuple[Finding, ...]
    """What was mended, with the lines as they were then."""
    report: Report
    """What is left."""


def lint(text: str, source: str) -> list[Finding]:
    """Every hazard of every ChaosEngine in `text`, in its order; `source` is the name of the file in the findings.

    Raises EngineError, one line with `source`, for a text that is no YAML.
    """
    return list(examine(text, source).findings)


def examine(text: str, source: str) -> Report:
    """The same, with the number of ChaosEngines. Raises EngineError."""
    if len(text) > LARGEST:
        raise EngineError(
            f"{source}: is {len(text)} characters long; at most {LARGEST} are read, so give its engines alone"
        )
    outer = Text(text.removeprefix(_BOM))
    try:
        parts = list(find_engines(outer))
    except UnreadableError as error:
        line = outer.characters.count("\n", 0, error.at) + 1
        raise EngineError(f"{source}:{line}: {error.reason}; give YAML with one or more ChaosEngines") from error
    found = dict.fromkeys(finding for part in parts for finding in _findings(part, _Lines(outer.characters), source))
    ordered = sorted(found, key=lambda finding: (finding.line, finding.column))
    return Report(sum(isinstance(part, Engine) for part in parts), tuple(ordered))


def mend(text: str, source: str) -> Mended:
    """`text` with every fix made that takes no decision; all else in it stays as it is. Raises EngineError.

    Each change is tried: the text must still be read, hold the same engines, and be free of what was mended.
    """
    start = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    fixed: list[Finding] = []
    refused: set[tuple[str, str]] = set()
    report = examine(body, source)
    for _ in range(_PASSES):
        chosen = _compatible([each for each in report.findings if each.edits and _key(each) not in refused])
        if not chosen:
            break
        tried = _try(body, source, chosen, report)
        if tried:
            body, report = tried
            fixed += chosen
        else:
            alone = [each for each in chosen if not _try(body, source, [each], report)]
            refused.update(_key(each) for each in alone or chosen)
    fixed.sort(key=lambda finding: (finding.line, finding.column))
    return Mended(start + body, tuple(fixed), report)


def rules_text() -> str:
    """Every rule: id, severity, title, and where to read it up."""
    width = max(len(rule.id) for rule in RULES.values())
    lines = [f"{rule.id:<{width}}  {rule.severity:<7}  {rule.title} ({rule.reference})" for rule in RULES.values()]
    return "\n".join(lines)


class _Lines:
    """Lines and columns of a text, without counting from its beginning each time."""

    def __init__(self, characters: str) -> None:
        self._characters = characters
        self._counted: tuple[int, int] = (0, 1)

    def of(self, at: int) -> tuple[int, int]:
        """Line and column, from 1."""
        start, line = self._counted if self._counted[0] <= at else (0, 1)
        line += self._characters.count("\n", start, at)
        self._counted = (at, line)
        return line, at - self._characters.rfind("\n", 0, at)


def _findings(part: Engine | Broken, lines: _Lines, source: str) -> Iterator[Finding]:
    if isinstance(part, Broken):
        line, column = lines.of(part.place)
        yield Finding(
            source=source,
            line=line,
            column=column,
            severity=Severity.WARNING,
            rule=_BROKEN,
            what=f"{part.item.path} seems to hold a ChaosEngine, but is {part.reason}",
            fix="mend it, or lint what it becomes",
            path=part.item.path,
            engine="",
            reference="YAML",
        )
        return
    for rule in RULES.values():
        for hit in rule.check(part):
            yield _finding(part, rule, hit, lines, source)


def _finding(engine: Engine, rule: Rule, hit: Hit, lines: _Lines, source: str) -> Finding:
    line, column = lines.of(hit.item.offset)
    return Finding(
        source=source,
        line=line,
        column=column,
        severity=rule.severity,
        rule=rule.id,
        what=" ".join(hit.what.split()),
        fix=" ".join(hit.fix.split()),
        path=engine.inside + hit.item.path,
        engine=engine.name,
        reference=rule.reference,
        edits=hit.edits,
    )


def _key(finding: Finding) -> tuple[str, str]:
    return finding.rule, finding.path


def _compatible(findings: Sequence[Finding]) -> list[Finding]:
    """Those whose edits do not touch each other; the others have their turn in the next pass."""
    chosen: list[Finding] = []
    taken: list[Edit] = []
    for finding in findings:
        if not any(_touch(one, other) for one in finding.edits for other in taken):
            chosen.append(finding)
            taken += finding.edits
    return chosen


def _touch(one: Edit, other: Edit) -> bool:
    return (one.start < other.end and other.start < one.end) or one.start == other.start


def _try(body: str, source: str, group: Sequence[Finding], before: Report) -> tuple[str, Report] | None:
    changed = apply(body, (edit for finding in group for edit in finding.edits))
    try:
        after = examine(changed, source)
    except EngineError:
        return None
    left = {_key(finding) for finding in after.findings}
    is_better = after.engines == before.engines and not any(_key(finding) in left for finding in group)
    return (changed, after) if is_better else None
