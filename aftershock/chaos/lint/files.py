"""Files in, text out: what `aftershock lint` does, short of printing it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from aftershock.chaos.lint.catalogue import closest
from aftershock.chaos.lint.finding import Finding, Severity, shown
from aftershock.chaos.lint.linter import LARGEST, examine, mend, rule_ids
from aftershock.errors import EngineError, ExitCode, InputError, RunDirectoryError
from aftershock.files import write_text

Format = Literal["text", "json"]


@dataclass
class _Result:
    """What came of all files."""

    files: int = 0
    engines: int = 0
    ignored: int = 0
    findings: list[Finding] = field(default_factory=list)
    fixed: list[Finding] = field(default_factory=list)
    unreadable: list[str] = field(default_factory=list)
    empty: int = 0
    """1 if the last of them says only that no engine is there."""

    def count(self, severity: Severity) -> int:
        """How many findings of this severity are left."""
        return sum(finding.severity is severity for finding in self.findings)

    @property
    def exit_code(self) -> ExitCode:
        """2 if a file could not be read or there was nothing to look at, 1 with an error, else 0."""
        if self.unreadable:
            return ExitCode.BAD_INPUT
        return ExitCode.FAIL if self.count(Severity.ERROR) else ExitCode.PASS


def run_lint(
    paths: Sequence[Path], fix: bool = False, output: Format = "text", ignored: Collection[str] = ()
) -> tuple[str, ExitCode]:
    """Lint files, mend them if `fix`, and give what to print and the exit code; `ignored` rules are passed over.

    A file that cannot be read gets one line and does not keep the others from being read. Raises InputError for an
    ignored rule that is none.
    """
    result = _Result()
    for rule in ignored:
        if rule not in rule_ids():
            near = closest(rule, rule_ids())
            meant = f"did you mean {near}? " if near else ""
            raise InputError(f"rule {shown(rule)} is unknown; {meant}`aftershock lint --rules` lists them")
    for path in paths:
        try:
            _lint_file(path, fix, ignored, result)
        except InputError as error:
            result.unreadable.append(str(error))
    if not result.engines and not result.unreadable:
        names = ", ".join(str(path) for path in paths) or "no file"
        result.unreadable.append(f"{names}: no ChaosEngine in it; name a file that holds one")
        result.empty = 1
    return (_json(result) if output == "json" else _text(result)), result.exit_code


def _lint_file(path: Path, fix: bool, ignored: Collection[str], result: _Result) -> None:
    text = _read(path)
    result.files += 1
    if fix:
        mended = mend(text, str(path), ignored)
        report = mended.report
        if mended.fixed:
            _write(path, mended.text)
            result.fixed += mended.fixed
    else:
        report = examine(text, str(path), ignored)
    result.engines += report.engines
    result.ignored += report.ignored
    result.findings += report.findings


def _read(path: Path) -> str:
    """The text of a file, byte for byte. Raises EngineError."""
    try:
        if not path.is_file():
            raise EngineError(f"{path}: {'is no file' if path.exists() else 'does not exist'}; name a YAML file")
        if path.stat().st_size > 4 * LARGEST:
            raise EngineError(f"{path}: is larger than {4 * LARGEST} bytes; give its engines alone")
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise EngineError(f"{path}: is no text in UTF-8 (byte {error.start}); name a YAML file") from error
    except (OSError, ValueError) as error:
        raise EngineError(f"{path}: cannot be read ({error}); name a YAML file that you may read") from error


def _write(path: Path, text: str) -> None:
    """Put `text` in the place of the file, through links, with the permissions it has. Raises EngineError."""
    target = path.resolve()
    try:
        write_text(target, text, target.stat().st_mode & 0o7777)
    except (RunDirectoryError, OSError) as error:
        reason = error.__cause__ or error
        raise EngineError(f"{path}: cannot be written ({reason}); nothing in it was changed") from error


def _text(result: _Result) -> str:
    lines = list(result.unreadable)
    lines += [f"{each.source}:{each.line}: fixed {each.rule}: {each.what}; done: {each.fix}" for each in result.fixed]
    lines += [finding.line_text() for finding in result.findings]
    return "\n".join([*lines, _summary(result)])


def _summary(result: _Result) -> str:
    counts = f"{_plural(result.files, 'file')}, {_plural(result.engines, 'ChaosEngine')}: "
    counts += f"{_plural(result.count(Severity.ERROR), 'error')}, {_plural(result.count(Severity.WARNING), 'warning')}"
    fixable = sum(bool(finding.edits) for finding in result.findings)
    if result.fixed:
        counts += f"; {len(result.fixed)} fixed"
    if fixable:
        counts += f"; {fixable} can be fixed with --fix"
    if result.ignored:
        counts += f"; {result.ignored} ignored"
    unreadable = len(result.unreadable) - result.empty
    if unreadable:
        counts += f"; {unreadable} could not be read"
    return counts


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _json(result: _Result) -> str:
    document = {
        "version": 1,
        "files": result.files,
        "engines": result.engines,
        "errors": result.count(Severity.ERROR),
        "warnings": result.count(Severity.WARNING),
        "ignored": result.ignored,
        "findings": [finding.to_dict() for finding in result.findings],
        "fixed": [finding.to_dict() for finding in result.fixed],
        "unreadable": result.unreadable,
    }
    return json.dumps(document, indent=2, ensure_ascii=False)
