"""What the judge says: rows of the compliance table and the verdict over all of them. Value types; no I/O.

`to_dict` and `from_dict` are `verdict.json`. It holds finite numbers and null, never NaN or an infinity: a value that
is not known is null, and `status` says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from aftershock.errors import ExitCode
from aftershock.slo.objective import Op, target_text
from aftershock.windows import Phase

FORMAT_VERSION = 1


class Verdict(StrEnum):
    """The closed set of verdicts."""

    PASS = "PASS"
    FAIL = "FAIL"
    INCONCLUSIVE = "INCONCLUSIVE"
    """There are data, and they prove neither side."""
    NO_DATA = "NO_DATA"
    """There is nothing to judge. Never a pass."""
    ERROR = "ERROR"
    """The question itself failed: a refused query, an answer that cannot be, a fault that could not be injected."""

    @property
    def rank(self) -> int:
        """How much it weighs in a run: the highest decides. A proven breach outweighs what could not be measured."""
        order = (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.NO_DATA, Verdict.FAIL, Verdict.ERROR)
        return order.index(self)

    @property
    def exit_code(self) -> ExitCode:
        """What a command that ends with this verdict tells its caller."""
        return {
            Verdict.PASS: ExitCode.PASS,
            Verdict.FAIL: ExitCode.FAIL,
            Verdict.INCONCLUSIVE: ExitCode.INCONCLUSIVE,
            Verdict.NO_DATA: ExitCode.INCONCLUSIVE,
            Verdict.ERROR: ExitCode.INFRASTRUCTURE,
        }[self]


class Reason(StrEnum):
    """Why a row has its verdict."""

    COMPLIES = "COMPLIES"
    """PASS: the whole interval complies."""
    POINT_COMPLIES = "POINT_COMPLIES"
    """PASS by the point alone: the policy asks for it, or no interval is known."""

    BREACHES = "BREACHES"
    """FAIL: the whole interval breaches."""
    POINT_BREACHES = "POINT_BREACHES"
    """FAIL by the point alone."""
    NOT_RECOVERED = "NOT_RECOVERED"
    """FAIL: watched for longer than the objective allows, and the service was not back."""

    STRADDLES = "STRADDLES"
    """INCONCLUSIVE: the objective lies inside the interval."""
    TOO_FEW_SAMPLES = "TOO_FEW_SAMPLES"
    """INCONCLUSIVE: fewer observations than the interval or the objective needs."""
    SATURATED = "SATURATED"
    """INCONCLUSIVE: the value lies above the last finite bucket bound; how far is not known."""
    CENSORED = "CENSORED"
    """INCONCLUSIVE: not back while watched, but not watched for as long as the objective allows."""
    BASELINE_NOT_STEADY = "BASELINE_NOT_STEADY"
    """INCONCLUSIVE: the objective was breached before the fault, so a breach is not attributable to it."""
    LOAD_FELL_BEHIND = "LOAD_FELL_BEHIND"
    """INCONCLUSIVE: the load generator was late, so the service was not asked what it should have been; or its own
    delay is as large as the breach."""
    LAST_SCRAPE_MISSED = "LAST_SCRAPE_MISSED"
    """INCONCLUSIVE: no scrape saw the last values of the phase, so its numbers are those of a part of it."""
    COUNTS_DISAGREE = "COUNTS_DISAGREE"
    """INCONCLUSIVE: Prometheus counted something else than the load generator sent or graded."""
    NO_EFFECT = "NO_EFFECT"
    """INCONCLUSIVE: it complied, but the fault was not seen to do anything."""
    STOPPED = "STOPPED"
    """INCONCLUSIVE: it complied, but the fault was stopped before its time."""

    EMPTY = "EMPTY"
    """NO_DATA: the query has no result."""
    NAN = "NAN"
    """NO_DATA: the answer is not a number."""
    INFINITE = "INFINITE"
    """NO_DATA: the answer is infinite, as after a division by zero."""
    NO_OBSERVATIONS = "NO_OBSERVATIONS"
    """NO_DATA: the series exist, and nothing was counted in the window."""
    UNREACHABLE = "UNREACHABLE"
    """NO_DATA: Prometheus did not answer."""
    MISSING = "MISSING"
    """NO_DATA: never asked: the phase did not run, or the run collected the answers to another query."""
    NOT_REVERTED = "NOT_REVERTED"
    """NO_DATA: the end of the fault was not seen, so there is no instant to count the recovery from."""

    QUERY_ERROR = "QUERY_ERROR"
    """ERROR: Prometheus refused the query."""
    INCONSISTENT = "INCONSISTENT"
    """ERROR: the answers contradict each other or the indicator."""
    FAULT_ERROR = "FAULT_ERROR"
    """ERROR: the fault could not be injected or reverted, or left no outcome behind."""


class Status(StrEnum):
    """State of one measured value."""

    OK = "ok"
    AT_LEAST = "at_least"
    """`value` is a lower bound of what is meant: a saturated histogram, a recovery that was not seen."""
    EMPTY = "empty"
    NAN = "nan"
    INFINITE = "infinite"
    NO_OBSERVATIONS = "no_observations"
    UNREACHABLE = "unreachable"
    MISSING = "missing"
    NOT_REVERTED = "not_reverted"
    QUERY_ERROR = "query_error"
    INCONSISTENT = "inconsistent"

    @property
    def known(self) -> bool:
        """Whether there is a value at all."""
        return self in (Status.OK, Status.AT_LEAST)

    @property
    def reason(self) -> Reason:
        """The reason code of a row that fails on this status. Only statuses without a value have one."""
        return Reason(self.name)


@dataclass(frozen=True)
class PhaseValue:
    """What one phase measured for one row, in the row's unit.

    `low` and `high` bound it with 95 % confidence; None is an open side. `n` is the number of observations, None where
    it is not known; `effective_n` is how many independent ones would know as much, where that was found out.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    status: Status = Status.OK
    detail: str = ""
    effective_n: int | None = None

    @property
    def independent_n(self) -> int:
        """Observations that an interval may rest on."""
        return (self.n or 0) if self.effective_n is None else self.effective_n

    @property
    def has_interval(self) -> bool:
        """Whether at least one side of the interval is known."""
        return self.low is not None or self.high is not None

    @property
    def text(self) -> str:
        """The value as a table shows it: `940`, `>= 60000`, or `-` where there is none."""
        if self.value is None:
            return "-"
        prefix = ">= " if self.status is Status.AT_LEAST else ""
        return prefix + number(self.value)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        document = {
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "n": self.n,
            "status": self.status.value,
            "detail": self.detail,
        }
        return document if self.effective_n is None else document | {"effective_n": self.effective_n}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> PhaseValue:
        """Inverse of `to_dict`."""
        return cls(**{**data, "status": Status(data["status"])})


@dataclass(frozen=True)
class Delta:
    """Judged phase minus baseline, in the row's unit, with its interval where known. `percent` is of the baseline."""

    value: float
    low: float | None = None
    high: float | None = None
    percent: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {"value": self.value, "low": self.low, "high": self.high, "percent": self.percent}


@dataclass(frozen=True)
class VerdictRow:
    """One row of the compliance table."""

    objective: str
    display: str
    unit: str
    op: Op
    bound: float
    """The value must be `op` this."""
    phases: Mapping[Phase, PhaseValue]
    """Values of every phase that was measured. A recovery time is in the recovery phase alone."""
    judged: tuple[Phase, ...]
    """The phases that the objective holds for; the verdict is the worst of them."""
    decided_by: Phase
    """The worst of them, whose verdict the row has."""
    verdict: Verdict
    reason: Reason
    explanation: str
    """One sentence that can be quoted as it is."""
    delta: Delta | None = None
    """Of the phase that decided."""
    severity: str = "critical"
    evidence: Mapping[str, float] = field(default_factory=dict)
    """Further numbers that the verdict rests on, such as the p-value of a paired comparison."""

    @property
    def target(self) -> str:
        """`<= 800 ms`"""
        return target_text(self.op, self.bound, self.unit)

    @property
    def decisive(self) -> PhaseValue:
        """What was measured in the phase that decided."""
        return self.phases[self.decided_by]

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready."""
        return {
            "objective": self.objective,
            "display": self.display,
            "unit": self.unit,
            "op": self.op.value,
            "bound": self.bound,
            "phases": {phase.value: value.to_dict() for phase, value in self.phases.items()},
            "judged": [phase.value for phase in self.judged],
            "decided_by": self.decided_by.value,
            "delta": self.delta.to_dict() if self.delta else None,
            "verdict": self.verdict.value,
            "reason": self.reason.value,
            "explanation": self.explanation,
            "severity": self.severity,
            "evidence": dict(self.evidence),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> VerdictRow:
        """Inverse of `to_dict`."""
        return cls(
            **{
                **data,
                "phases": {Phase(phase): PhaseValue.from_dict(value) for phase, value in data["phases"].items()},
                "judged": tuple(Phase(phase) for phase in data["judged"]),
                "op": Op(data["op"]),
                "decided_by": Phase(data["decided_by"]),
                "delta": Delta(**data["delta"]) if data["delta"] else None,
                "verdict": Verdict(data["verdict"]),
                "reason": Reason(data["reason"]),
            }
        )


@dataclass(frozen=True)
class Judgement:
    """The verdict of a run: that of its worst row, leaving out rows of severity `info`."""

    rows: tuple[VerdictRow, ...]
    verdict: Verdict
    policy: str
    fault: str
    notes: tuple[str, ...] = ()
    """What a reader must know beside the rows: a control run, an unsteady baseline, a fault without effect."""

    @property
    def exit_code(self) -> ExitCode:
        """What the process tells its caller."""
        return self.verdict.exit_code

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready: `verdict.json`."""
        return {
            "version": FORMAT_VERSION,
            "verdict": self.verdict.value,
            "exit_code": int(self.exit_code),
            "policy": self.policy,
            "fault": self.fault,
            "notes": list(self.notes),
            "rows": [row.to_dict() for row in self.rows],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Judgement:
        """Inverse of `to_dict`. Raises ValueError for another version of the format."""
        if data.get("version") != FORMAT_VERSION:
            raise ValueError(
                f"verdict.json has version {data.get('version')!r}; this aftershock reads {FORMAT_VERSION}"
            )
        return cls(
            rows=tuple(VerdictRow.from_dict(row) for row in data["rows"]),
            verdict=Verdict(data["verdict"]),
            policy=data["policy"],
            fault=data["fault"],
            notes=tuple(data["notes"]),
        )


def number(value: float) -> str:
    """A number as people read it: at most four significant digits below 1000, whole above, never an exponent."""
    text = f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    if "e" in text:
        text = f"{value:.6f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
