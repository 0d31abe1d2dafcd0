"""All that a verdict rests on, read back from files: those of a pipeline's steps, or those of a finished run.

Judging and reporting from files alone is what makes a verdict one that can be defended: anybody can repeat it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from aftershock.errors import ExperimentError
from aftershock.experiment import Experiment, load_experiment
from aftershock.files import read_json
from aftershock.load.records import read_records
from aftershock.rundir import RunDirectory
from aftershock.slo.circumstances import LoadHealth
from aftershock.slo.judge import judge
from aftershock.slo.objective import Objective
from aftershock.slo.openslo import load_slos
from aftershock.slo.verdict import Judgement
from aftershock.windows import Phase, Window


@dataclass(frozen=True)
class Evidence:
    """A run as it was measured. `outcome` is chaos_result.json, None in a control run."""

    experiment: Experiment
    objectives: Sequence[Objective]
    metrics: pd.DataFrame
    windows: Sequence[Window]
    load_health: Mapping[Phase, LoadHealth]
    outcome: Mapping[str, Any] | None
    records: pd.DataFrame | None

    @classmethod
    def read(
        cls, experiment_path: Path, *, metrics: Path, windows: Path, outcome: Path, records: Sequence[Path]
    ) -> Evidence:
        """From the files that the steps wrote."""
        experiment = load_experiment(experiment_path.read_text(encoding="utf-8"), str(experiment_path))
        entries = read_json(windows)
        frames = [read_records(path) for path in records if path.exists()]
        return cls(
            experiment=experiment,
            objectives=load_slos(experiment.slo),
            metrics=pd.read_parquet(metrics),
            windows=[Window.from_dict(entry) for entry in entries],
            load_health={Phase(entry["phase"]): LoadHealth.from_dict(entry["load"]) for entry in entries},
            outcome=read_json(outcome) or None,
            records=pd.concat(frames, ignore_index=True) if frames else None,
        )

    @classmethod
    def of_run(cls, run: RunDirectory) -> Evidence:
        """From a run directory. Raises ExperimentError for a run that ended before it had measured everything."""
        needed = [
            run.path / name for name in ("experiment.yaml", "metrics.parquet", "windows.json", "chaos_result.json")
        ]
        missing = [path.name for path in needed if not path.exists()]
        if missing:
            raise ExperimentError(
                f"{run.path}: has no {missing[0]}: the run ended too early to be judged; run it again"
            )
        experiment, metrics, windows, outcome = needed
        return cls.read(
            experiment,
            metrics=metrics,
            windows=windows,
            outcome=outcome,
            records=[run.records(phase) for phase in Phase],
        )

    def judge(self) -> Judgement:
        """The verdicts. Pure: the same evidence gives the same verdicts."""
        outcome = self.outcome or {}
        return judge(
            self.objectives,
            self.metrics,
            self.windows,
            policy=self.experiment.policy,
            fault=self.experiment.fault,
            fault_effects=outcome.get("effects"),
            fault_verdict=outcome.get("verdict", "Pass"),
            load_health=self.load_health,
            records=self.records,
        )

    def report(self, judgement: Judgement) -> dict[str, str]:
        """The table and the report in every form: name in the run directory -> text."""
        from aftershock.report.html import render_html
        from aftershock.report.markdown import render_markdown
        from aftershock.report.table import to_csv

        experiment = self.experiment.model_dump(mode="json")
        return {
            "slo_table.csv": to_csv(judgement),
            "report.md": render_markdown(judgement, self.windows, self.outcome, experiment),
            "report.html": render_html(judgement, self.metrics, self.windows, self.outcome, experiment, self.records),
        }


def judge_again(run: RunDirectory, *, slo: str | None = None, policy: str | None = None) -> Judgement:
    """Judge a finished run by another SLO or policy, or by its own. Raises InputError."""
    evidence = Evidence.of_run(run)
    if slo is not None:
        evidence = replace(evidence, objectives=load_slos(slo))
    if policy is not None:
        evidence = replace(evidence, experiment=evidence.experiment.model_copy(update={"policy": policy}))
    return evidence.judge()
