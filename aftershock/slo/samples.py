"""What Prometheus answered, as the judge looks it up: by objective, role and phase. No I/O.

The frame is the collector's: one row a sample, with a status that says what became of the question. It is walked once;
rows of the report's time line are left out.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from aftershock.errors import InputError
from aftershock.slo.verdict import Status
from aftershock.windows import Phase

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("objective", "role", "phase", "at", "labels", "value", "status", "detail")

STATUSES = {
    "ok": Status.OK,
    "empty": Status.EMPTY,
    "nan": Status.NAN,
    "inf": Status.INFINITE,
    "error": Status.QUERY_ERROR,
    "unreachable": Status.UNREACHABLE,
}
"""The collector's words."""


class UnmeasuredError(Exception):
    """There is no value, and this is why. On its way to a PhaseValue; it never leaves the package."""

    def __init__(self, status: Status, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail


@dataclass(frozen=True)
class Sample:
    """One answer."""

    at: datetime | None
    labels: str
    value: float
    status: Status
    detail: str

    def number(self) -> float:
        """Its value. Raises UnmeasuredError if it is none: NaN and infinity are not."""
        if self.status is not Status.OK:
            raise UnmeasuredError(self.status, self.detail)
        if math.isnan(self.value):
            raise UnmeasuredError(Status.NAN, self.detail or "the answer is NaN")
        if math.isinf(self.value):
            raise UnmeasuredError(Status.INFINITE, self.detail or f"the answer is {self.value:+}")
        return self.value

    def label(self, name: str) -> str | None:
        """One of its labels."""
        labels: dict[str, str] = json.loads(self.labels or "{}")
        return labels.get(name)


class Samples:
    """The samples of a run."""

    def __init__(self, frame: pd.DataFrame) -> None:
        missing = [name for name in COLUMNS if name not in frame.columns]
        if missing:
            raise InputError(f"metrics: there is no column {missing[0]!r}; give the metrics.parquet of a run")
        self._groups: dict[tuple[str, str, str], list[Sample]] = defaultdict(list)
        asked = frame.loc[frame["role"] != "timeline", list(COLUMNS)]
        for objective, role, phase, at, labels, value, status, detail in asked.itertuples(index=False, name=None):
            instant = at if isinstance(at, datetime) and at == at else None  # NaT is a datetime that equals nothing
            number = float(value) if value is not None else math.nan
            known = STATUSES.get(status, Status.INCONSISTENT)
            sample = Sample(instant, _text(labels), number, known, _text(detail))
            self._groups[objective, role, _text(phase)].append(sample)

    def series(self, objective: str, role: str, phase: Phase | None) -> list[Sample]:
        """Every sample of a role. Raises UnmeasuredError if the question was never asked."""
        found = self._groups.get((objective, role, phase.value if phase else ""), [])
        if not found:
            raise UnmeasuredError(Status.MISSING, f"no {role} was asked of Prometheus")
        return found

    def single(self, objective: str, role: str, phase: Phase) -> float:
        """The one number of a role. Raises UnmeasuredError if there is none, or more than one."""
        found = self.series(objective, role, phase)
        if len(found) > 1:
            raise UnmeasuredError(
                Status.INCONSISTENT, f"{role}: {len(found)} series where one is needed; aggregate the query"
            )
        return found[0].number()


def _text(value: object) -> str:
    """A missing text is None, or NaN once it was in a Parquet file."""
    return value if isinstance(value, str) else ""
