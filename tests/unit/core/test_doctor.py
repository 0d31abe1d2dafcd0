"""What `aftershock doctor` prints, and which checks it makes of which experiment."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aftershock.checkup import Finding, Status
from aftershock.cli import cli
from aftershock.doctor import as_document, as_lines, checks
from aftershock.errors import ExitCode
from aftershock.experiment import Experiment
from aftershock.run import RunOptions
from aftershock.stack.settings import StackSettings

FOUND = [
    Finding("target", "answers", Status.OK, "in 0.1 s"),
    Finding("target", "model", Status.SKIPPED, "it lists none"),
    Finding("cluster", "API server", Status.FAIL, "gone; start it", ExitCode.INFRASTRUCTURE),
]


def test_a_line_for_each_group_and_check_and_one_that_sums_up() -> None:
    assert list(as_lines(FOUND)) == [
        "target",
        "  ok       answers            in 0.1 s",
        "  skipped  model              it lists none",
        "cluster",
        "  FAIL     API server         gone; start it",
        "1 of 3 checks failed, 1 skipped",
    ]
    assert list(as_lines(FOUND[:2]))[-1] == "all is well: 1 checks are ok, 1 skipped"


def test_lines_come_one_by_one() -> None:
    made: list[str] = []

    def findings() -> object:
        for finding in FOUND:
            made.append(finding.name)
            yield finding

    lines = as_lines(findings())  # type: ignore[arg-type]
    assert next(lines) == "target" and next(lines).startswith("  ok")
    assert made == ["answers"]


def test_the_same_for_programs() -> None:
    document = json.loads(json.dumps(as_document(FOUND)))
    assert document["exit_code"] == 4
    assert document["checks"][2] == {
        "group": "cluster",
        "name": "API server",
        "status": "fail",
        "text": "gone; start it",
    }


def groups(endpoint: str | None = None, **parameters: str) -> set[str]:
    options = RunOptions(Experiment(**parameters), StackSettings(), Path("runs"))  # type: ignore[arg-type]
    return {check.group for check in checks(options, endpoint)}


@pytest.mark.parametrize(
    ("parameters", "more"),
    [
        ({}, set()),
        ({"target_url": "http://h"}, {"target"}),
        ({"prometheus_url": "http://h"}, {"Prometheus"}),
        ({"store_endpoint": "none"}, set()),
        ({"store_endpoint": "h:9000"}, {"object store"}),
        ({"backend": "litmus"}, {"cluster"}),
        ({"kube_context": "one"}, {"cluster"}),
    ],
)
def test_only_what_the_run_needs_is_checked(parameters: dict[str, str], more: set[str]) -> None:
    assert groups(**parameters) == {"experiment", "this machine", "Kubeflow Pipelines"} | more


def names(group: str, endpoint: str | None = None, **parameters: str) -> list[str]:
    options = RunOptions(Experiment(**parameters), StackSettings(), Path("runs"))  # type: ignore[arg-type]
    return [check.name for check in checks(options, endpoint) if check.group == group]


def test_an_engine_is_checked_only_where_one_would_be_created() -> None:
    of_the_cluster = names("cluster", kube_context="one")
    assert of_the_cluster == ["API server", "Litmus", "operator", "leftovers"]
    assert names("cluster", backend="litmus", fault="none") == of_the_cluster
    assert set(names("cluster", backend="litmus")) > {*of_the_cluster, "own rights", "target pods", "container runtime"}


def test_the_image_counts_only_for_a_cluster() -> None:
    assert names("Kubeflow Pipelines") == ["library", "package"]
    assert names("Kubeflow Pipelines", "http://h") == ["library", "package", "API server", "image"]


def test_parts_that_run_elsewhere_need_nothing_here() -> None:
    elsewhere = {"target_url": "http://h", "prometheus_url": "http://h", "store_endpoint": "none"}
    assert names("this machine", **elsewhere) == ["runs folder", "memory", "metrics port"]
    assert names("this machine") == ["runs folder", "memory", "model server", "Prometheus", "object store"]


def test_it_takes_the_flags_of_run() -> None:
    flags = {name: {option.name for option in cli.commands[name].params} for name in ("run", "doctor")}
    assert flags["doctor"] - flags["run"] == {"kfp_endpoint", "output"}
    assert flags["run"] <= flags["doctor"]


def test_a_value_that_is_no_value_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "aftershock.cli", "doctor", "--rate", "-1"]
    done = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: experiment: rate='-1': Input should be greater than 0\n"
