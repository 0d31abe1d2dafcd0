"""From the text of a file to what is wrong with its ChaosEngines, and to the text in which the safe part is mended."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from aftershock.chaos.lint.engine import Broken, Engine, find_engines
from aftershock.chaos.lint.finding import Finding, Severity
from aftershock.chaos.lint.item import UnreadableError
from aftershock.chaos.lint.meant import Meant
from aftershock.chaos.lint.proof import reads_as_meant
from aftershock.chaos.lint.registry import RULES, Hit, Rule
from aftershock.chaos.lint.rules import document, environment, faults, probes, queries, target
from aftershock.chaos.lint.text import Change, Edit, Text, apply
from aftershock.errors import EngineError

RULE_MODULES = (target, document, environment, faults, probes, queries)
"""Imported so that their rules are in the registry."""

LARGEST = 4 * 1024 * 1024
"""Characters. No ChaosEngine comes near, and a longer file is a mistake."""

_ADVICE = "give YAML with one or more ChaosEngines"
_BROKEN = "embedded-yaml"
_BOM = "\ufeff"
_PASSES = 10


@dataclass(frozen=True)
class Report:
    """What is to be said about one file."""

    engines: int
    findings: tuple[Finding, ...]
    ignored: int = 0
    """Findings that were passed over, because the file or the caller says that they are meant."""


@dataclass(frozen=True)
class Mended:
    """A file after its safe fixes."""

    text: str
    fixed: tuple[Finding, ...]
    """What was mended, with the lines as they were then."""
    report: Report
    """What is left."""


def lint(text: str, source: str, ignored: Collection[str] = ()) -> list[Finding]:
    """Every hazard of every ChaosEngine in `text`, in its order; `source` is the name of the file in the findings.

    `ignored` names rules that are passed over. Raises EngineError, one line with `source`, for a text that is no YAML.
    """
    return list(examine(text, source, ignored).findings)


def examine(text: str, source: str, ignored: Collection[str] = ()) -> Report:
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
        is_template = "not YAML" in error.reason and "{{" in text
        advice = "looks like a Helm template; lint what `helm template` prints" if is_template else _ADVICE
        raise EngineError(f"{source}:{line}: {error.reason}; {advice}") from error
    found = dict.fromkeys(finding for part in parts for finding in _findings(part, _Lines(outer.characters), source))
    meant = Meant(outer.characters)
    left = [each for each in found if each.rule not in ignored and not meant.covers(each.line, each.rule)]
    ordered = sorted(left, key=lambda finding: (finding.line, finding.column))
    return Report(sum(isinstance(part, Engine) for part in parts), tuple(ordered), len(found) - len(left))


def findings_of(engine: Engine, text: Text, source: str) -> list[Finding]:
    """Every hazard of one engine of `text`, in the order of the text."""
    meant = Meant(text.characters)
    found = dict.fromkeys(_findings(engine, _Lines(text.characters), source))
    left = [finding for finding in found if not meant.covers(finding.line, finding.rule)]
    return sorted(left, key=lambda finding: (finding.line, finding.column))


def mend(text: str, source: str, ignored: Collection[str] = ()) -> Mended:
    """`text` with every fix made that takes no decision; all else in it stays as it is. Raises EngineError.

    Each change is tried: the text must read as before but for what the edits say, hold the same engines, be free of
    what was mended, and have nothing else wrong with it. What fails is not made, and its finding says so.
    """
    start = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    fixed: list[Finding] = []
    refused: set[tuple[str, str]] = set()
    report = examine(body, source, ignored)
    for _ in range(_PASSES):
        chosen = _compatible([each for each in report.findings if each.edits and _key(each) not in refused])
        if not chosen:
            break
        tried = _try(body, source, chosen, report, ignored)
        if not tried:
            failing = [each for each in chosen if not _try(body, source, [each], report, ignored)]
            refused.update(_key(each) for each in failing)
            chosen = [] if failing else chosen[:1]  # each would do, only not all of them at once
            tried = _try(body, source, chosen, report, ignored)
        if tried:
            body, report = tried
            fixed += chosen
    fixed.sort(key=lambda finding: (finding.line, finding.column))
    left = [_by_hand(each) if _key(each) in refused else each for each in report.findings]
    return Mended(start + body, tuple(fixed), replace(report, findings=tuple(left)))


def rule_ids() -> list[str]:
    """What may be passed over."""
    return [*RULES, _BROKEN]


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
        if rule.of_whole and part.is_patch:
            continue
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


def _try(
    body: str, source: str, group: Sequence[Finding], before: Report, ignored: Collection[str]
) -> tuple[str, Report] | None:
    edits = [edit for finding in group for edit in finding.edits]
    changed = apply(body, edits)
    if not reads_as_meant(body, changed, (edit.change for edit in edits if edit.change)):
        return None
    try:
        after = examine(changed, source, ignored)
    except EngineError:
        return None
    left = {_key(finding) for finding in after.findings}
    new = left - {_key(finding) for finding in before.findings}
    is_mended = after.engines == before.engines and not any(_key(finding) in left for finding in group)
    return (changed, after) if is_mended and all(_was_hidden(path, group) for _, path in new) else None


def _was_hidden(path: str, group: Sequence[Finding]) -> bool:
    """What is found only now is in the mapping or list that was mended: there one mistake may hide another."""
    for finding in group:
        inside = finding.path[: finding.path.rfind(": ") + 2] if ": " in finding.path else ""
        for edit in finding.edits:
            around = f"{inside}{_around(edit.change)}" if edit.change else ""
            if path.startswith(around):
                return True
    return False


def _around(change: Change) -> str:
    """Path of the mapping or list in which the change is made."""
    if change.action == "insert":
        return change.path
    return re.sub(r"(^|\.)[^.\[]*$|\[\d+\]$", "", change.path)


def _by_hand(finding: Finding) -> Finding:
    """Without its edits, and saying so."""
    return replace(finding, fix=f"{finding.fix} (by hand: --fix would change more than that)", edits=())
