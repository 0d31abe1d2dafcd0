"""The main job, end to end, on real servers: what was injected is what the table shows."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command import SHORT, Command, Start, assert_nothing_left

pytestmark = pytest.mark.integration

KEPT = [
    "experiment.yaml", "chaos_result.json", "engine.yaml", "windows.json", "metrics.parquet", "slo_table.csv",
    "verdict.json", "report.md", "report.html", "records/baseline.parquet", "records/chaos.parquet",
    "records/recovery.parquet", "logs/pipeline.log", "events.jsonl",
]  # fmt: skip


def rows(command: Command) -> dict[str, dict[str, Any]]:
    return {row["objective"]: row for row in command.verdict()["rows"]}


def test_pod_delete_shows_in_the_table(start: Start) -> None:
    command = start("run", fault="pod-delete", **SHORT)
    code = command.finish()

    assert code == 1, command.output + command.errors
    assert rows(command)["error-rate"]["verdict"] == "FAIL", command.output
    for name in KEPT:
        assert (command.run / name).is_file(), name
    outcome = json.loads((command.run / "chaos_result.json").read_text())
    assert outcome["result"]["kind"] == "ChaosResult"
    assert outcome["verdict"] == "Pass" and outcome["effects"] >= 1
    failed = pd.read_parquet(command.run / "records" / "chaos.parquet").query("outcome != 'ok'")
    assert len(failed) > 0
    table = list(csv.DictReader((command.run / "slo_table.csv").open()))
    assert {row["verdict"] for row in table} >= {"FAIL"}
    assert "FAIL" in command.output and "report.html" in command.output
    assert_nothing_left(command)


def test_without_a_fault_nothing_shows(start: Start) -> None:
    command = start("run", fault="none", **SHORT)
    code = command.finish()

    assert code == 0, command.output + command.errors
    assert {row["verdict"] for row in rows(command).values()} == {"PASS"}
    assert json.loads((command.run / "chaos_result.json").read_text()) == {}
    assert_nothing_left(command)


def test_unreachable_prometheus_is_no_data(start: Start) -> None:
    command = start("run", fault="none", prometheus_url="http://127.0.0.1:9", **SHORT)
    code = command.finish()

    assert code == 3, command.output + command.errors
    assert {row["verdict"] for row in rows(command).values()} == {"NO_DATA"}
    assert "127.0.0.1:9" in command.output


def test_a_finished_run_is_judged_again_without_servers(start: Start, tmp_path: Path) -> None:
    first = start("run", fault="none", **SHORT)
    assert first.finish() == 0, first.output + first.errors

    import subprocess
    import sys

    def judge(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "aftershock.cli", "judge", str(first.run), *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
        )

    again = judge()
    assert again.returncode == 0, again.stderr
    assert again.stdout.strip() in first.output

    from aftershock.files import data_folder

    strict = (data_folder("slo_specs") / "canary.yaml").read_text()
    import re

    impossible = re.sub(r"value: 60\b", "value: 0.001", strict)
    assert impossible != strict
    (tmp_path / "impossible.yaml").write_text(impossible)
    worse = judge("--slo", "impossible.yaml")
    assert worse.returncode == 1, worse.stdout + worse.stderr
    assert "FAIL" in worse.stdout
