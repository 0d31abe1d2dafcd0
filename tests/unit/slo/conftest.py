"""A run as the collector leaves it, built row by row."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from aftershock.slo.judge import judge
from aftershock.slo.objective import (
    Indicator,
    Objective,
    Op,
    QuantileIndicator,
    RatioIndicator,
    RecoveryIndicator,
    templates,
)
from aftershock.slo.verdict import Judgement, VerdictRow
from aftershock.windows import Phase, Window

START = datetime(2026, 1, 1, tzinfo=UTC)
COLUMNS = ["objective", "role", "phase", "at", "labels", "value", "status", "detail", "template", "range_s"]
TOTAL = 'sum(increase(aftershock_requests_total{phase="{{ phase }}"}[{{ window }}]))'
BOUNDS = [0.0005 * 1.1**index for index in range(124)]


def at(seconds: float) -> datetime:
    """An instant of the run."""
    return START + timedelta(seconds=seconds)


def window(phase: Phase, start: float, end: float, reverted: float | None = None) -> Window:
    injected = None if reverted is None else at(start + 1)
    return Window(phase, at(start), at(end), at(end + 1), injected, None if reverted is None else at(reverted))


WINDOWS = (
    window(Phase.BASELINE, 0, 20),
    window(Phase.CHAOS, 25, 60, reverted=50),
    window(Phase.RECOVERY, 60, 80),
)

LATENCY = Objective(
    "latency", "P99 latency", "ms", Op.LTE, 800, QuantileIndicator("duration_seconds", quantile=0.99, scale=1000)
)
ERRORS = Objective("errors", "Error rate", "%", Op.LTE, 1, RatioIndicator(total=TOTAL, bad="bad"))
RECOVERY = Objective(
    "recovery", "Recovery time", "s", Op.LTE, 15, RecoveryIndicator("sick", Op.LTE, 1), phases=(Phase.RECOVERY,)
)


@dataclass
class Run:
    """Metrics that grow row by row, and the judge over them."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    windows: Sequence[Window] = WINDOWS

    def add(
        self,
        objective: str,
        role: str,
        phase: str,
        value: float | None,
        *,
        seconds: float = 0,
        status: str = "ok",
        detail: str = "",
        template: str | None = None,
        range_s: float = 0.0,
        **labels: str,
    ) -> Run:
        """One row. Without a template it answers what the objective of that name asks when the run is judged."""
        number = math.nan if value is None else value
        text = json.dumps(labels, sort_keys=True)
        row = (objective, role, phase, at(seconds), text, number, status, detail, template, range_s)
        self.rows.append(dict(zip(COLUMNS, row, strict=True)))
        return self

    def share(self, objective: str, phase: str, count: float, total: float, role: str = "bad") -> Run:
        return self.add(objective, role, phase, count).add(objective, "total", phase, total)

    def histogram(self, objective: str, phase: str, values: Sequence[float], bounds: Sequence[float] = BOUNDS) -> Run:
        for bound in bounds:
            self.add(objective, "bucket", phase, sum(value <= bound for value in values), le=repr(bound))
        return self.add(objective, "bucket", phase, len(values), le="+Inf")

    def sick(self, values: Sequence[tuple[float, float]], lookback_s: float = 0.0) -> Run:
        """Steps of a recovery query: (second of the run, value)."""
        for seconds, value in values:
            status = "nan" if math.isnan(value) else "ok"
            self.add("recovery", "recovery", "", value, seconds=seconds, status=status, range_s=lookback_s)
        return self

    def frame(self, *objectives: Objective) -> pd.DataFrame:
        """As it was collected for `objectives`."""
        asked = {(one.name, role): text for one in objectives for role, text in templates(one.indicator).items()}
        rows = [
            row | {"template": row["template"] or asked.get((row["objective"], row["role"]), "?")} for row in self.rows
        ]
        return pd.DataFrame(rows, columns=COLUMNS)

    def judge(self, *objectives: Objective, **given: Any) -> Judgement:
        settings: dict[str, Any] = {
            "policy": "strict",
            "fault": "pod-delete",
            "fault_effects": 3,
            "fault_verdict": "Pass",
            "windows": self.windows,
        } | given
        return judge(objectives, self.frame(*objectives), settings.pop("windows"), **settings)

    def row(self, objective: Objective, **given: Any) -> VerdictRow:
        return self.judge(objective, **given).rows[0]


@pytest.fixture
def run() -> Run:
    return Run()


@pytest.fixture
def healthy() -> Run:
    """Fast, without errors, back at once: every objective of this module passes."""
    made = Run()
    for phase, count in (("baseline", 1200), ("chaos", 1800), ("recovery", 1200)):
        made.histogram("latency", phase, [0.4] * count)
        made.share("errors", phase, 0, count)
    return made.sick([(second, 0.0) for second in range(81)])


def objective(indicator: Indicator, op: Op = Op.LTE, value: float = 1.0, **given: Any) -> Objective:
    return Objective("o", "Measured thing", "", op, value, indicator, **given)
