"""The main job, end to end, on real servers: what was injected is what the table shows."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pandas as pd
import pytest
from command import SHORT, Command, Start, assert_nothing_left

from aftershock.evidence import Evidence
from aftershock.files import data_folder
from aftershock.rundir import RunDirectory

pytestmark = [pytest.mark.integration, pytest.mark.alone]

KEPT = [
    "experiment.yaml", "chaos_result.json", "engine.yaml", "windows.json", "metrics.parquet", "slo_table.csv",
    "verdict.json", "report.md", "report.html", "records/baseline.parquet", "records/chaos.parquet",
    "records/recovery.parquet", "logs/pipeline.log", "events.jsonl",
]  # fmt: skip


@pytest.fixture
def slo(tmp_path: Path) -> str:
    """The canary's SLO with room for a busy machine in all that is time: what is tested is what the fault does."""
    text = (data_folder("slo_specs") / "canary.yaml").read_text()
    text = re.sub(r"value: (60|50)\b", "value: 5000", text)
    text = text.replace("/ 0.06", "/ 5")
    (tmp_path / "roomy.yaml").write_text(text)
    return "roomy.yaml"


def rows(command: Command) -> dict[str, dict[str, Any]]:
    return {row["objective"]: row for row in command.verdict()["rows"]}


def test_pod_delete_shows_in_the_table(start: Start, slo: str) -> None:
    given = {"fault_parameters": '{"CHAOS_INTERVAL": 3}', "junit": "table.xml"}
    command = start("run", fault="pod-delete", slo=slo, **given, **SHORT)
    code = command.finish()

    assert code == 1, command.output + command.errors
    shown = rows(command)
    assert shown["error-rate"]["verdict"] == "FAIL", command.output
    phases = shown["error-rate"]["phases"]
    assert phases["chaos"]["value"] > phases["baseline"]["value"], command.output
    for name in KEPT:
        assert (command.run / name).is_file(), name
    outcome = json.loads((command.run / "chaos_result.json").read_text())
    assert outcome["result"]["kind"] == "ChaosResult"
    assert outcome["verdict"] == "Pass" and outcome["effects"] == 3
    records = pd.read_parquet(command.run / "records" / "chaos.parquet")
    failed = int((records["outcome"] != "ok").sum())
    assert phases["chaos"]["value"] == pytest.approx(100 * failed / len(records)), "the table is what happened"
    table = pd.read_csv(command.run / "slo_table.csv")
    assert list(table.query("verdict == 'FAIL' and severity == 'critical'")["objective"]) == ["error-rate"]
    assert "FAIL" in command.output and "report.html" in command.output
    assert_nothing_left(command)

    junit = ElementTree.parse(command.runs.parent / "table.xml").getroot()
    assert (junit.get("failures"), junit.get("errors")) == ("1", "0")
    again = judge_again(command.run, "--format", "json", "--junit", "again.xml")
    assert again.returncode == 1, again.stderr
    assert json.loads(again.stdout)["verdict"] == "FAIL"
    assert (command.runs / "again.xml").read_text() == (command.runs.parent / "table.xml").read_text()
    assert (
        json.loads((command.run / "verdict.json").read_text())
        == Evidence.of_run(RunDirectory.existing(command.run)).judge().to_dict()
    ), "the same evidence gives the same verdicts"
    lenient = (command.runs.parent / slo).read_text().replace("targetPercent: 99.5", "targetPercent: 1")
    (command.runs / "lenient.yaml").write_text(lenient)
    milder = judge_again(command.run, "--slo", "lenient.yaml")
    assert milder.returncode == 0, milder.stdout + milder.stderr


def test_without_a_fault_nothing_shows(start: Start, slo: str) -> None:
    command = start("run", fault="none", slo=slo, **SHORT)
    code = command.finish()

    assert code == 0, command.output + command.errors
    assert {row["verdict"] for row in rows(command).values()} == {"PASS"}
    assert json.loads((command.run / "chaos_result.json").read_text()) == {}
    assert_nothing_left(command)


def test_unreachable_prometheus_is_no_data(start: Start) -> None:
    short = {**SHORT, "baseline_s": "2", "chaos_s": "2", "recovery_s": "2"}
    command = start("run", fault="none", prometheus_url="http://127.0.0.1:9", **short)
    code = command.finish()

    assert code == 3, command.output + command.errors
    assert {row["verdict"] for row in rows(command).values()} == {"NO_DATA"}
    assert "127.0.0.1:9" in command.output


def judge_again(run: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`aftershock judge` in a process of its own, in a folder where nothing else is."""
    return subprocess.run(
        [sys.executable, "-m", "aftershock.cli", "judge", str(run), *arguments],
        capture_output=True,
        text=True,
        cwd=run.parent,
    )
