"""What Prometheus answered, as the judge looks it up: by what was asked, role and phase. No I/O.

The frame is the collector's: one row a sample, with a status that says what became of the question. It is walked once;
rows of the report's time line are left out. Answers belong to questions and not to names: an objective that was
renamed, or stands in another document, finds those of its queries; one whose query was changed finds none.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from aftershock.errors import InputError
from aftershock.slo.frame import Answer, Role
from aftershock.slo.objective import Objective, templates
from aftershock.slo.verdict import Status
from aftershock.windows import Phase

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("objective", "role", "phase", "at", "labels", "value", "status", "detail", "template", "range_s")

STATUSES = {
    Answer.OK: Status.OK,
    Answer.EMPTY: Status.EMPTY,
    Answer.NAN: Status.NAN,
    Answer.INF: Status.INFINITE,
    Answer.ERROR: Status.QUERY_ERROR,
    Answer.UNREACHABLE: Status.UNREACHABLE,
}
"""What each answer makes of a value."""

ANOTHER_QUERY = "this run asked another query: it can be judged only by what it collected"


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
    range_s: float

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
        self.asked: dict[tuple[str, str], dict[str, dict[str, list[Sample]]]] = {}
        """Template and role -> phase -> objective for which it was asked -> samples."""
        self.names: set[tuple[str, str]] = set()
        """Objective and role of every question, whatever its query."""
        rows = frame.loc[frame["role"] != Role.TIMELINE.value, list(COLUMNS)]
        for objective, role, phase, at, labels, value, status, detail, template, range_s in rows.itertuples(
            index=False, name=None
        ):
            instant = at if isinstance(at, datetime) and at == at else None  # NaT is a datetime that equals nothing
            number = float(value) if value is not None else math.nan
            known = STATUSES.get(status, Status.INCONSISTENT)
            sample = Sample(instant, _text(labels), number, known, _text(detail), float(range_s))
            phases = self.asked.setdefault((template, role), {})
            phases.setdefault(_text(phase), {}).setdefault(objective, []).append(sample)
            self.names.add((objective, role))

    def of(self, objective: Objective) -> Answers:
        """Those that `objective` asks for."""
        return Answers(self, objective.name, templates(objective.indicator))


@dataclass(frozen=True)
class Answers:
    """The samples of one objective."""

    samples: Samples
    name: str
    templates: dict[Role, str]

    def series(self, role: Role, phase: Phase | None) -> list[Sample]:
        """Every sample of a role. Raises UnmeasuredError if the question was never asked."""
        asked = self.samples.asked.get((self.templates[role], role))
        found = asked.get(phase.value if phase else "") if asked else None
        if found:
            return found.get(self.name) or next(iter(found.values()))
        if asked is None and (self.name, role) in self.samples.names:
            raise UnmeasuredError(Status.MISSING, ANOTHER_QUERY)
        raise UnmeasuredError(Status.MISSING, f"no {role} was asked of Prometheus")

    def single(self, role: Role, phase: Phase) -> float:
        """The one number of a role. Raises UnmeasuredError if there is none, or more than one."""
        found = self.series(role, phase)
        if len(found) > 1:
            raise UnmeasuredError(
                Status.INCONSISTENT, f"{role}: {len(found)} series where one is needed; aggregate the query"
            )
        return found[0].number()


def _text(value: object) -> str:
    """A missing text is None, or NaN once it was in a Parquet file."""
    return value if isinstance(value, str) else ""
