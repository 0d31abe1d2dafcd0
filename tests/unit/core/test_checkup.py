"""A check-up makes every check, whatever becomes of the others."""

from __future__ import annotations

import threading
import time

import pytest

from aftershock.checkup import Check, Finding, NotCheckedError, Status, examine, exit_code
from aftershock.errors import ExitCode, InputError, StackError


def raising(error: Exception) -> Check:
    def look() -> str:
        raise error

    return Check("room", type(error).__name__, look)


def fine(*needs: Check) -> Check:
    return Check("room", "fine", lambda: "found", needs)


def test_each_check_ends_in_a_finding_and_hides_no_other() -> None:
    checks = [
        raising(StackError("gone;\n  mend it")),
        raising(NotCheckedError("no right")),
        raising(KeyError("x")),
        fine(),
    ]
    found = list(examine(checks))
    assert [finding.status for finding in found] == [Status.FAIL, Status.SKIPPED, Status.FAIL, Status.OK]
    assert found[0].text == "gone; mend it"
    assert found[1].text == "no right"
    assert "a mistake in aftershock" in found[2].text
    assert found[3] == Finding("room", "fine", Status.OK, "found")


def test_what_needs_a_failed_check_is_skipped_with_the_reason_and_so_is_what_needs_that() -> None:
    root = raising(StackError("gone"))
    second = fine(root)
    found = list(examine([root, second, fine(second), fine()]))
    assert [finding.status for finding in found] == [Status.FAIL, Status.SKIPPED, Status.SKIPPED, Status.OK]
    assert found[1].text == "cannot be told while room: StackError is not ok"


def test_a_check_that_hangs_fails_in_time_and_the_next_is_made() -> None:
    release = threading.Event()

    def hang() -> str:
        release.wait(60)
        return "late"

    began = time.monotonic()
    hung, after = examine([Check("room", "hangs", hang, deadline_s=0.1), fine()])
    release.set()
    assert time.monotonic() - began < 30
    assert (hung.status, hung.exit_code) == (Status.FAIL, ExitCode.INFRASTRUCTURE)
    assert "no answer within 0.1 s" in hung.text
    assert after.status is Status.OK


def test_findings_come_as_they_are_made() -> None:
    made: list[str] = []
    checks = [Check("room", name, lambda name=name: made.append(name) or name) for name in ("a", "b")]  # type: ignore[misc]
    findings = examine(checks)
    next(findings)
    assert made == ["a"]


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([], ExitCode.PASS),
        ([NotCheckedError("x")], ExitCode.PASS),
        ([StackError("x")], ExitCode.INFRASTRUCTURE),
        ([StackError("x"), InputError("y")], ExitCode.BAD_INPUT),
    ],
)
def test_a_wrong_experiment_decides_the_exit_code(errors: list[Exception], code: ExitCode) -> None:
    assert exit_code(examine([fine(), *map(raising, errors)])) is code
