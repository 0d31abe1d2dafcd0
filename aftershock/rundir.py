"""The run directory: where everything a verdict rests on lies, under names that do not change.

The pipeline's runner writes each output below `artifacts/<pipeline>/<task>/<output>`, in a cluster to its own store.
`gather` gives those of a local run their names here, as far as they exist: after a run, and after one that died.
"""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path

from aftershock.errors import ExperimentError, RunDirectoryError
from aftershock.files import atomic_path
from aftershock.windows import Phase, utc_now

RECORDS_TASKS = {"load": Phase.BASELINE, "chaos": Phase.CHAOS, "load-2": Phase.RECOVERY}
"""Which phase's records a task of the compiled package writes; a test holds these to the package."""

ARTIFACTS = {
    ("render", "chaos_engine"): "engine.yaml",
    ("chaos", "outcome"): "chaos_result.json",
    ("collect", "windows"): "windows.json",
    ("collect", "metrics"): "metrics.parquet",
    ("judge", "judgement"): "verdict.json",
    ("report", "table"): "slo_table.csv",
    ("report", "summary"): "report.md",
    ("report", "page"): "report.html",
    **{(task, "records"): f"records/{phase}.parquet" for task, phase in RECORDS_TASKS.items()},
}
"""(task, output) of the compiled package -> name in the run directory. The experiment lies there from the start, as it
was given: the task's has the addresses of a stack that is gone with the run."""


CLUSTER_FOLDER = "cluster"
"""Where the logs of Litmus' pods and the objects as they were last seen lie, of a run in a cluster."""


def new_run_id() -> str:
    """A name that sorts by time and does not collide: `20261201-053000-4f2a`."""
    return f"{utc_now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


@dataclass(frozen=True)
class RunDirectory:
    """Paths below `runs/<run-id>`."""

    path: Path

    @classmethod
    def create(cls, runs: Path, run_id: str) -> RunDirectory:
        """Make a new one. Raises ExperimentError if the run exists, RunDirectoryError if it cannot be made."""
        run = cls((runs / run_id).absolute())
        try:
            runs.mkdir(parents=True, exist_ok=True)
            run.path.mkdir()
            run.logs.mkdir()
            run.artifacts.mkdir()
        except FileExistsError as error:
            raise ExperimentError(f"run_id={run_id!r}: {run.path} exists; choose another --run-id") from error
        except OSError as error:
            raise RunDirectoryError(f"cannot make {run.path}: {error.strerror}; choose another with --runs") from error
        return run

    @classmethod
    def existing(cls, path: Path) -> RunDirectory:
        """An earlier run's. Raises ExperimentError if `path` holds none."""
        if not (path / "artifacts").is_dir() and not (path / "metrics.parquet").is_file():
            raise ExperimentError(f"{path}: is no run directory; give one like runs/<run-id>")
        return cls(path.absolute())

    @property
    def artifacts(self) -> Path:
        """Root of the pipeline's runner."""
        return self.path / "artifacts"

    @property
    def logs(self) -> Path:
        """Folder of the logs."""
        return self.path / "logs"

    @property
    def stack_state(self) -> Path:
        """State of the embedded stack, JSON."""
        return self.path / "stack" / "state.json"

    @property
    def journal(self) -> Path:
        """Progress events, one JSON line each."""
        return self.path / "events.jsonl"

    @property
    def experiment(self) -> Path:
        """The experiment as it was given, YAML."""
        return self.path / "experiment.yaml"

    @property
    def report(self) -> Path:
        """The HTML report."""
        return self.path / "report.html"

    @property
    def verdict(self) -> Path:
        """The verdicts, JSON."""
        return self.path / "verdict.json"

    def records(self, phase: Phase) -> Path:
        """Records of one phase, Parquet."""
        return self.path / "records" / f"{phase}.parquet"


def gather(run: RunDirectory) -> list[str]:
    """Give every output that exists its name in the run directory; return the names that are new. Safe to repeat.

    Not for a run that is going on. Records of a phase that was cut off are made of the parts that were flushed.
    Raises RunDirectoryError where the directory cannot be written.
    """
    gathered = []
    for (task, output), name in ARTIFACTS.items():
        for source in sorted(run.artifacts.glob(f"*/{task}/{output}")):
            if source.is_file() and source.stat().st_size and _place(source, run.path / name):
                gathered.append(name)
    for task, phase in RECORDS_TASKS.items():
        if not run.records(phase).exists() and _compact(run, task, phase):
            gathered.append(f"records/{phase}.parquet")
    return gathered + _gather_cluster(run)


def _gather_cluster(run: RunDirectory) -> list[str]:
    """What the litmus backend kept beside the outcome."""
    gathered = []
    for folder in sorted(run.artifacts.glob("*/chaos/archive")):
        for source in sorted(folder.glob("[!.]*")):
            name = f"{CLUSTER_FOLDER}/{source.name}"
            if source.is_file() and _place(source, run.path / name):
                gathered.append(name)
    return gathered


def _place(source: Path, target: Path) -> bool:
    """Link (or copy, across file systems) `source` to `target`, atomically; whether there was anything to do."""
    if target.exists():
        return False
    with atomic_path(target) as temporary:
        temporary.unlink()
        try:
            os.link(source, temporary)
        except OSError:
            shutil.copyfile(source, temporary)
    return True


def _compact(run: RunDirectory, task: str, phase: Phase) -> bool:
    """Put the records of a phase that was cut off together; whether there were any."""
    from aftershock.load.records import (
        compact,
        parts_folder,
    )  # pyarrow takes its time; a run that ended well needs none

    for folder in sorted(run.artifacts.glob(f"*/{task}")):
        parts = parts_folder(folder / "records")
        if parts.is_dir():
            compact(parts, run.records(phase))
            return True
    return False
