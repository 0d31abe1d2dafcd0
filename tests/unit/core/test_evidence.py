"""Evidence as it is read back: whole, or refused in one line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from aftershock.errors import ExperimentError
from aftershock.evidence import RECORD_COLUMNS, Evidence, judge_again
from aftershock.experiment import Experiment
from aftershock.files import write_json, write_text
from aftershock.rundir import RunDirectory
from aftershock.slo.frame import Row, to_frame
from aftershock.slo.objective import RecoveryIndicator, templates
from aftershock.slo.openslo import load_slos
from aftershock.slo.verdict import Judgement, Verdict
from aftershock.windows import Phase, Window

LENGTHS = {Phase.BASELINE: (0, 20), Phase.CHAOS: (25, 55), Phase.RECOVERY: (60, 80)}
REQUESTS = 400


def instant(second: float) -> datetime:
    return datetime.fromtimestamp(1_800_000_000 + second, UTC)


def rows_of(slo: str) -> list[Row]:
    """Answers of a service that is fast, and without a fault."""
    out = []
    for objective in load_slos(slo):
        for role, template in templates(objective.indicator).items():
            whole_run = isinstance(objective.indicator, RecoveryIndicator)
            spots = (
                [("", s) for s in range(81)]
                if whole_run
                else [(phase.value, end) for phase, (_, end) in LENGTHS.items()]
            )
            for phase, second in spots:
                value = 0.0 if role in ("bad", "recovery") else float(REQUESTS)
                for labels in ('{"le": "0.01"}', '{"le": "+Inf"}') if role == "bucket" else ("{}",):
                    at = instant(second)
                    row = Row(objective.name, role, phase, at, labels, value, "ok", "", template, "q", 3.0)
                    out.append(row)
    return out


def records_of(phase: Phase) -> pd.DataFrame:
    rows = pd.DataFrame({"seq": range(REQUESTS)})
    return rows.assign(
        phase=phase.value,
        item_id=rows["seq"].astype("str"),
        latency_s=0.01,
        ttft_s=0.01,
        output_tokens=8,
        outcome="ok",
        correct=True,
        answer="x" * 99,
    )


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A finished run that passes."""
    experiment = Experiment.model_validate({"run_id": "it", "target_url": "http://127.0.0.1:1"})
    write_text(tmp_path / "experiment.yaml", experiment.to_yaml())
    to_frame(rows_of("canary")).to_parquet(tmp_path / "metrics.parquet")
    write_windows(tmp_path)
    write_json(tmp_path / "chaos_result.json", {"verdict": "Pass", "effects": 2})
    directory = RunDirectory.existing(tmp_path)
    for phase in Phase:
        directory.records(phase).parent.mkdir(exist_ok=True)
        records_of(phase).to_parquet(directory.records(phase))
    return directory


def write_windows(folder: Path, **load: Any) -> None:
    entries = []
    for phase, (start, end) in LENGTHS.items():
        struck = (instant(30), instant(50)) if phase is Phase.CHAOS else (None, None)
        window = Window(phase, instant(start), instant(end), instant(end + 1), *struck)
        entries.append(window.to_dict() | {"load": {"keeping_up": True, "sent": REQUESTS} | load})
    write_json(folder / "windows.json", entries)


def judged(run: RunDirectory) -> Judgement:
    return Evidence.of_run(run).judge()


def test_a_whole_run_is_judged(run: RunDirectory) -> None:
    judgement = judged(run)
    assert {row.objective: row.verdict for row in judgement.rows} == {
        "latency-p99": Verdict.PASS,
        "latency-p99-failures-slow": Verdict.PASS,
        "ttft-p99": Verdict.PASS,
        "ttft-p99-failures-slow": Verdict.PASS,
        "error-rate": Verdict.INCONCLUSIVE,  # of 400 requests
        "accuracy-drop": Verdict.INCONCLUSIVE,
        "recovery-time": Verdict.PASS,
    }
    drop = next(row for row in judgement.rows if row.objective == "accuracy-drop")
    assert drop.evidence["pairs"] == REQUESTS
    assert judgement.notes == ()


def test_only_the_columns_that_are_needed_are_read(run: RunDirectory) -> None:
    records = Evidence.of_run(run).records
    assert records is not None and list(records) == RECORD_COLUMNS


def test_what_the_load_says_of_its_last_scrape_is_heard(run: RunDirectory) -> None:
    write_windows(run.path, settled=False)
    assert {row.reason for row in judged(run).rows} == {"LAST_SCRAPE_MISSED"}
    write_windows(run.path, sent=REQUESTS + 1)
    assert {row.reason for row in judged(run).rows} == {"COUNTS_DISAGREE"}


def test_a_fault_that_left_no_outcome_is_an_error(run: RunDirectory) -> None:
    write_json(run.path / "chaos_result.json", {})
    judgement = judged(run)
    assert {row.reason for row in judgement.rows} == {"FAULT_ERROR"}
    assert judgement.notes == ("pod-delete left no outcome behind, so there is no verdict.",)


def test_a_run_whose_fault_was_stopped_early_says_why_and_passes_nothing_disturbed(run: RunDirectory) -> None:
    stop = {"message": "error-rate 63 % is beyond 50 % since 5 s", "seconds_to_stop": 5.62}
    write_json(run.path / "chaos_result.json", {"verdict": "Stopped", "effects": 2, "stop": stop})
    judgement = judged(run)
    assert {row.verdict for row in judgement.rows} == {Verdict.INCONCLUSIVE}
    assert judgement.notes == (
        "pod-delete was stopped before its time, so no row of the phases it disturbed passes.",
        "pod-delete was stopped by the SLO watch (error-rate 63 % is beyond 50 % since 5 s), verified 5.6 s after that "
        "began.",
    )


def test_records_that_are_not_there_are_told(run: RunDirectory) -> None:
    run.records(Phase.CHAOS).unlink()
    assert judged(run).notes == ("There are no request records of: chaos.",)
    for phase in (Phase.BASELINE, Phase.RECOVERY):
        run.records(phase).unlink()
    assert judged(run).notes == ("There are no request records of: baseline, chaos, recovery.",)


def test_a_request_may_be_there_once(run: RunDirectory) -> None:
    path = run.records(Phase.CHAOS)
    frame = records_of(Phase.CHAOS)
    pd.concat([frame, frame.iloc[[7]]]).to_parquet(path)
    with pytest.raises(ExperimentError) as caught:
        Evidence.of_run(run)
    assert str(caught.value) == f"{path}: request 7 of the chaos phase is there twice; run the experiment again"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("metrics.parquet", "PAR1 cut off"),
        ("windows.json", '[{"phase": "chaos"'),
        ("windows.json", '[{"phase": "chaos"}]'),
        ("windows.json", "[7]"),
        ("windows.json", json.dumps([{"phase": "no phase"}])),
        ("chaos_result.json", "7"),
        ("chaos_result.json", ""),
        ("records/chaos.parquet", "PAR1 cut off"),
    ],
)
def test_a_broken_file_is_named_in_one_line(run: RunDirectory, name: str, content: str) -> None:
    (run.path / name).write_text(content)
    with pytest.raises(ExperimentError) as caught:
        Evidence.of_run(run)
    message = str(caught.value)
    assert message.startswith(f"{run.path / name}: cannot be read (")
    assert "\n" not in message
    assert caught.value.__cause__ is not None


def test_records_without_a_column_are_refused(run: RunDirectory) -> None:
    path = run.records(Phase.CHAOS)
    records_of(Phase.CHAOS).drop(columns="correct").to_parquet(path)
    with pytest.raises(ExperimentError, match="cannot be read"):
        Evidence.of_run(run)


def test_another_slo_is_judged_by_what_was_asked(run: RunDirectory) -> None:
    judgement = judge_again(run, slo="llm-inference", policy="point")
    reasons = {row.objective: row.reason for row in judgement.rows}
    assert reasons.pop("recovery-time") == "MISSING"  # its bounds stand in its query
    assert set(reasons.values()) == {"POINT_COMPLIES"}
    assert judgement.policy == "point"
