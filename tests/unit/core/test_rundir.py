"""The run directory: one run one folder, and outputs under their names whatever happened."""

from pathlib import Path

import pytest

from aftershock.errors import ExperimentError, RunDirectoryError
from aftershock.files import read_json, write_json
from aftershock.rundir import RunDirectory, gather, new_run_id


def artifact(run: RunDirectory, task: str, name: str, text: str) -> Path:
    path = run.artifacts / "slo-chaos-2026" / task / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_gather_names_what_exists_and_can_be_repeated(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "runs", "r1")
    artifact(run, "render", "chaos_engine", "kind: ChaosEngine\n")
    artifact(run, "load-2", "records", "recovery")
    artifact(run, "load", "records", "baseline")
    artifact(run, "judge", "judgement", "")

    assert set(gather(run)) == {"engine.yaml", "records/baseline.parquet", "records/recovery.parquet"}
    assert gather(run) == [], "only what is new is named"

    assert (run.path / "engine.yaml").read_text() == "kind: ChaosEngine\n"
    assert (run.path / "records" / "recovery.parquet").read_text() == "recovery"
    assert not run.verdict.exists(), "an empty output is an output that was never written"


def test_logs_of_the_cluster_are_gathered_too(tmp_path: Path) -> None:
    run = RunDirectory.create(tmp_path / "runs", "r1")
    artifact(run, "chaos", "archive/engine-runner.log", "a line")
    artifact(run, "chaos", "archive/.engine.json.x1", "cut off while it was written")
    assert gather(run) == ["cluster/engine-runner.log"]
    assert (run.path / "cluster" / "engine-runner.log").read_text() == "a line"


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    RunDirectory.create(tmp_path, "r1")
    with pytest.raises(ExperimentError, match="r1"):
        RunDirectory.create(tmp_path, "r1")


def test_a_folder_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises((RunDirectoryError, ExperimentError), match="runs"):
        RunDirectory.create(tmp_path / "runs", "r1")


def test_existing_refuses_other_folders(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="no run directory"):
        RunDirectory.existing(tmp_path)


def test_writes_are_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError, match="JSON"):
        write_json(path, {"a": float("nan")})
    assert read_json(path) == {"a": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["x.json"]
    with pytest.raises(RunDirectoryError, match="full"):
        write_json(Path("/dev/full/x.json"), {})


def test_run_ids_are_valid_and_sort_by_time() -> None:
    from aftershock.experiment import Experiment

    assert Experiment(run_id=new_run_id()).run_id.startswith("20")
