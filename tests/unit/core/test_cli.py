"""The command line: one clear line for what is wrong, and exit codes that scripts can rely on."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from aftershock.experiment import Experiment


def aftershock(*arguments: str, cwd: Path, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "aftershock.cli", *arguments], cwd=cwd, text=True, capture_output=True, **options
    )  # type: ignore[call-overload, no-any-return]


def test_faults_are_listed_and_explained(tmp_path: Path) -> None:
    listed = aftershock("faults", cwd=tmp_path)
    assert listed.returncode == 0
    for name in ("pod-delete", "pod-network-partition", "pod-http-status-code"):
        assert name in listed.stdout
    explained = aftershock("faults", "pod-network-latency", cwd=tmp_path)
    assert "NETWORK_LATENCY" in explained.stdout and "ms" in explained.stdout


def test_render_prints_the_engine(tmp_path: Path) -> None:
    rendered = aftershock("render", "pod-delete", "-p", "FORCE=false", "--label", "app=vllm", cwd=tmp_path)
    assert rendered.returncode == 0, rendered.stderr
    engine = yaml.safe_load(rendered.stdout)
    assert engine["spec"]["appinfo"]["applabel"] == "app=vllm"
    env = {item["name"]: item["value"] for item in engine["spec"]["experiments"][0]["spec"]["components"]["env"]}
    assert env["FORCE"] == "false"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("render", "pod-delete", "-p", "FORCE"), ["-p FORCE", "KEY=VALUE"]),
        (("render", "pod-delete", "-p", "FORSE=true"), ["FORSE", "FORCE"]),
        (("faults", "pod-explode"), ["pod-explode", "pod-delete"]),
        (("judge", "nowhere"), ["nowhere", "no run directory"]),
        (("stop", "nowhere"), ["nowhere", "no fault is running"]),
        (("walk",), ["walk"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, arguments: tuple[str, ...], words: list[str]) -> None:
    done = aftershock(*arguments, cwd=tmp_path)
    assert done.returncode == 2
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("error: ")
    for word in words:
        assert word in line


def test_closed_output_is_not_a_fail(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "aftershock.cli", "faults", "pod-delete"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout and process.stderr
        process.stdout.close()
        errors = process.stderr.read().decode()
        assert process.wait(30) == 4, errors
    assert errors.startswith("error: standard output was closed") and len(errors.splitlines()) == 1


def test_cleanup_with_nothing_to_do(tmp_path: Path) -> None:
    done = aftershock("cleanup", cwd=tmp_path)
    assert (done.returncode, done.stdout.strip()) == (0, "nothing was left")


def test_every_parameter_is_a_flag(tmp_path: Path) -> None:
    text = aftershock("run", "--help", cwd=tmp_path).stdout
    for name in set(Experiment.model_fields) - {"stack"}:
        assert f"--{name.replace('_', '-')}" in text, name
