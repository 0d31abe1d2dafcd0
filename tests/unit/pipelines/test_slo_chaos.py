"""The compiled package: up to date, uncached, and with exactly the parameters of the experiment."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from kfp import compiler
from kfp.pipeline_spec import pipeline_spec_pb2

from aftershock.experiment import Experiment
from aftershock.files import data_folder
from aftershock.rundir import ARTIFACTS

PACKAGE = data_folder("pipelines") / "slo_chaos" / "pipeline.yaml"
KFP_TYPES = {str: "STRING", float: "NUMBER_DOUBLE", int: "NUMBER_INTEGER", bool: "BOOLEAN", dict: "STRUCT"}


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    (document,) = yaml.safe_load_all(PACKAGE.read_text())
    return document


def test_package_is_up_to_date(tmp_path: Path) -> None:
    from pipelines.slo_chaos.pipeline import slo_chaos

    compiler.Compiler().compile(slo_chaos, str(tmp_path / "pipeline.yaml"))
    assert (tmp_path / "pipeline.yaml").read_text() == PACKAGE.read_text(), "run `make compile`"


def test_package_is_a_strict_pipeline_spec(spec: dict[str, Any]) -> None:
    parsed = json_format.ParseDict(spec, pipeline_spec_pb2.PipelineSpec())
    assert parsed.schema_version == "2.1.0"


def test_no_task_may_be_cached(spec: dict[str, Any]) -> None:
    tasks = spec["root"]["dag"]["tasks"]
    assert len(tasks) == 8
    for name, task in tasks.items():
        assert not task.get("cachingOptions", {}).get("enableCache"), name


def test_nothing_is_installed_at_run_time(spec: dict[str, Any]) -> None:
    for name, executor in spec["deploymentSpec"]["executors"].items():
        assert "pip install" not in str(executor["container"]), name


def test_parameters_are_those_of_the_experiment(spec: dict[str, Any]) -> None:
    parameters = spec["root"]["inputDefinitions"]["parameters"]
    assert set(parameters) == set(Experiment.model_fields)
    defaults = Experiment().model_dump(mode="json")
    for name, parameter in parameters.items():
        kind = type(defaults[name])
        assert parameter["parameterType"] == KFP_TYPES[kind], name
        assert parameter["defaultValue"] == defaults[name], name


def test_tasks_and_outputs_are_those_the_run_directory_names(spec: dict[str, Any]) -> None:
    tasks = spec["root"]["dag"]["tasks"]
    for task, output in ARTIFACTS:
        component = spec["components"][tasks[task]["componentRef"]["name"]]
        assert output in component["outputDefinitions"]["artifacts"], (task, output)
    assert tasks["load"]["inputs"]["parameters"]["phase"]["runtimeValue"]["constant"] == "baseline"
    assert tasks["load-2"]["inputs"]["parameters"]["phase"]["runtimeValue"]["constant"] == "recovery"


def test_order_of_the_phases(spec: dict[str, Any]) -> None:
    tasks = spec["root"]["dag"]["tasks"]
    for task, before in (
        ("load", "render"),
        ("chaos", "load"),
        ("load-2", "chaos"),
        ("collect", "load-2"),
        ("judge", "collect"),
        ("report", "judge"),
        ("gate", "report"),
    ):
        assert before in tasks[task]["dependentTasks"], task
