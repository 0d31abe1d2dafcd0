"""A check-up: named checks in groups, made one after the other, each with a deadline, none hidden by another's failure.

What is worth checking is known by the packages (`doctor.py` in each); `aftershock/doctor.py` puts that together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from queue import Empty, SimpleQueue

from aftershock.errors import AftershockError, ExitCode

DEADLINE_S = 20.0


class Status(StrEnum):
    """What came of a check, as it is printed."""

    OK = "ok"
    FAIL = "FAIL"
    SKIPPED = "skipped"


class NotCheckedError(Exception):
    """Raised by a check that cannot be made; the message says why. It ends in a finding and leaves no check-up."""


@dataclass(frozen=True, eq=False)
class Check:
    """One question to the surroundings."""

    group: str
    name: str
    look: Callable[[], str]
    """What was found, in one line. Raises AftershockError where it is wrong, saying what to do, or NotCheckedError."""
    needs: tuple[Check, ...] = ()
    """Checks without which this one would only repeat what they say."""
    deadline_s: float = DEADLINE_S


@dataclass(frozen=True)
class Finding:
    """What came of one check."""

    group: str
    name: str
    status: Status
    text: str
    exit_code: ExitCode = ExitCode.PASS
    """For the process, if this was the only finding: 2 where the experiment is wrong, 4 where something is missing."""


def examine(checks: Iterable[Check]) -> Iterator[Finding]:
    """Make the checks in their order; each finding as soon as it is there. Raises nothing of what a check raises."""
    passed: set[Check] = set()
    for check in checks:
        lacking = next((need for need in check.needs if need not in passed), None)
        if lacking is not None:
            yield _finding(check, Status.SKIPPED, f"cannot be told while {lacking.group}: {lacking.name} is not ok")
            continue
        finding = _made(check)
        if finding.status is Status.OK:
            passed.add(check)
        yield finding


def exit_code(findings: Iterable[Finding]) -> ExitCode:
    """Of all findings together: a wrong experiment first, since its user can mend it here and now."""
    codes = {finding.exit_code for finding in findings}
    return next((code for code in (ExitCode.BAD_INPUT, ExitCode.INFRASTRUCTURE) if code in codes), ExitCode.PASS)


def _made(check: Check) -> Finding:
    """The finding, or that none came in time; the thread that still waits for it is left behind and holds nobody up."""
    answers: SimpleQueue[Finding] = SimpleQueue()
    threading.Thread(target=lambda: answers.put(_found(check)), name=check.name, daemon=True).start()
    try:
        return answers.get(timeout=check.deadline_s)
    except Empty:
        text = f"no answer within {check.deadline_s:g} s; is it overloaded or stopped?"
        return _finding(check, Status.FAIL, text, ExitCode.INFRASTRUCTURE)


def _found(check: Check) -> Finding:
    try:
        return _finding(check, Status.OK, check.look())
    except NotCheckedError as reason:
        return _finding(check, Status.SKIPPED, str(reason))
    except AftershockError as error:
        return _finding(check, Status.FAIL, str(error), error.exit_code)
    except Exception as error:  # noqa: BLE001 - a mistake of ours in one check must not hide the others
        text = f"{type(error).__name__}: {error}; this is a mistake in aftershock, please report it"
        return _finding(check, Status.FAIL, text, ExitCode.INFRASTRUCTURE)


def _finding(check: Check, status: Status, text: str, code: ExitCode = ExitCode.PASS) -> Finding:
    return Finding(check.group, check.name, status, " ".join(text.split()), code)
