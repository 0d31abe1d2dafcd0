"""All that a verdict rests on, read back from files: those of a pipeline's steps, or those of a finished run.

Judging and reporting from files alone is what makes a verdict one that can be defended: anybody can repeat it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow.parquet import ParquetFile

from aftershock.errors import ExperimentError
from aftershock.experiment import Experiment, load_experiment
from aftershock.files import read_json
from aftershock.rundir import RunDirectory
from aftershock.slo.circumstances import LoadHealth
from aftershock.slo.judge import judge
from aftershock.slo.objective import Objective
from aftershock.slo.openslo import load_slos
from aftershock.slo.verdict import Judgement
from aftershock.windows import Phase, Window

RECORD_COLUMNS = ["phase", "seq", "item_id", "latency_s", "ttft_s", "output_tokens", "outcome", "correct"]
"""What judge and report need of the records; a day of them has far more."""
REPEATED = ["phase", "item_id", "outcome"]
"""Columns of texts that come again and again."""


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
        """From the files that the steps wrote. Raises ExperimentError where one of them is not what it should be."""
        experiment = load_experiment(experiment_path.read_text(encoding="utf-8"), str(experiment_path))
        with _reading(windows):
            entries = read_json(windows)
            found = [Window.from_dict(entry) for entry in entries]
            health = {Phase(entry["phase"]): LoadHealth.from_dict(entry["load"]) for entry in entries}
        with _reading(outcome):
            result = dict(read_json(outcome)) or None
        with _reading(metrics):
            measured = pd.read_parquet(metrics)
        tables = [_records(path) for path in records if path.exists()]
        return cls(
            experiment=experiment,
            objectives=load_slos(experiment.slo, experiment.matchers),
            metrics=measured,
            windows=found,
            load_health=health,
            outcome=result,
            records=_frame(tables) if tables else None,
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
        judgement = judge(
            self.objectives,
            self.metrics,
            self.windows,
            policy=self.experiment.policy,
            fault=self.experiment.fault,
            fault_effects=outcome.get("effects"),
            fault_verdict=outcome.get("verdict"),
            load_health=self.load_health,
            records=self.records,
        )
        return replace(judgement, notes=(*judgement.notes, *self._early_stop(), *self._gaps()))

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

    def _early_stop(self) -> Iterator[str]:
        """Why the fault did not last as long as it was to."""
        from aftershock.report.fault import early_stop

        if why := early_stop(self.outcome or {}):
            yield f"{self.experiment.fault} was {why}."

    def _gaps(self) -> Iterator[str]:
        """Phases without records: their answers cannot be compared one by one."""
        there = set() if self.records is None else set(self.records["phase"].unique())
        missing = [window.phase.value for window in self.windows if window.phase.value not in there]
        if missing:
            yield f"There are no request records of: {', '.join(missing)}."


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Whatever a file that is cut off, or is another one, makes its readers raise, in one line."""
    try:
        yield
    except (
        OSError,
        ValueError,
        LookupError,
        TypeError,
        AttributeError,
    ) as error:  # pyarrow's and json's are ValueErrors
        reason = " ".join(str(error).split())
        raise ExperimentError(
            f"{path}: cannot be read ({type(error).__name__}: {reason}); is it whole? run the experiment again"
        ) from error


def _records(path: Path) -> pa.Table:
    """The records of one phase. Raises ExperimentError where a request is there twice: it would count twice.

    Texts that come again and again are dictionaries: ten million requests then take a fraction of the memory and time.
    """
    with _reading(path):
        table = ParquetFile(path, read_dictionary=REPEATED).read(columns=RECORD_COLUMNS).select(RECORD_COLUMNS)
        table = table.unify_dictionaries()
        requests = _request_numbers(table)
    requests.sort(kind="stable")  # they are in the order in which they finished: nearly sorted
    twice = np.flatnonzero(requests[1:] == requests[:-1])
    if len(twice):
        phase, seq = divmod(int(requests[twice[0]]), 1 << 32)
        named = table["phase"].chunk(0).dictionary[phase]
        raise ExperimentError(f"{path}: request {seq} of the {named} phase is there twice; run the experiment again")
    return table


def _request_numbers(table: pa.Table) -> NDArray[np.int64]:
    """A number for each request of a file: phase and seq in one."""
    numbers: NDArray[np.int64] = table["seq"].to_numpy().astype(np.int64)
    at = 0
    for chunk in table["phase"].chunks:
        numbers[at : at + len(chunk)] += chunk.indices.to_numpy().astype(np.int64) << 32
        at += len(chunk)
    return numbers


def _frame(tables: list[pa.Table]) -> pd.DataFrame:
    """All phases as one frame. The tables are let go of column by column, so that nothing is there twice for long."""
    whole = pa.concat_tables(tables).unify_dictionaries()
    tables.clear()
    nullable = {pa.bool_(): pd.BooleanDtype()}
    frame: pd.DataFrame = whole.to_pandas(types_mapper=nullable.get, split_blocks=True, self_destruct=True)
    return frame


def judge_again(run: RunDirectory, *, slo: str | None = None, policy: str | None = None) -> Judgement:
    """Judge a finished run by another SLO or policy, or by its own. Raises InputError."""
    evidence = Evidence.of_run(run)
    if slo is not None:
        evidence = replace(evidence, objectives=load_slos(slo, evidence.experiment.matchers))
    if policy is not None:
        evidence = replace(evidence, experiment=evidence.experiment.model_copy(update={"policy": policy}))
    return evidence.judge()
