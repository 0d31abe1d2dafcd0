"""The command line: one clear line for what is wrong, and exit codes that scripts can rely on."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from aftershock.experiment import Experiment

PROBES = """\
- name: health
  type: httpProbe
  mode: SOT
  httpProbe/inputs: {url: "http://model:8000/health", method: {get: {criteria: ==, responseCode: "200"}}}
  runProperties: {probeTimeout: 2s, interval: 1s, attempt: 3}
"""


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


def test_a_run_that_came_to_nothing_is_an_error_in_junit(tmp_path: Path) -> None:
    (tmp_path / "junit.xml").write_text("of the last run, which passed")
    refused = aftershock("run", "--fault", "nonsense", "--junit", "junit.xml", cwd=tmp_path)
    assert refused.returncode == 2
    assert '<error type="' in (tmp_path / "junit.xml").read_text()
    assert "nonsense" in (tmp_path / "junit.xml").read_text()


def test_render_takes_a_namespace_an_account_and_probes(tmp_path: Path) -> None:
    (tmp_path / "probes.yaml").write_text(PROBES)
    flags = ("--chaos-namespace", "litmus", "--service-account", "mine", "--probes", "probes.yaml")
    rendered = aftershock("render", "pod-delete", *flags, cwd=tmp_path)
    assert rendered.returncode == 0, rendered.stderr
    engine = yaml.safe_load(rendered.stdout)
    assert (engine["metadata"]["namespace"], engine["spec"]["appinfo"]["appns"]) == ("litmus", "inference")
    assert engine["spec"]["chaosServiceAccount"] == "mine"
    assert engine["spec"]["experiments"][0]["spec"]["probe"] == yaml.safe_load(PROBES)
    (tmp_path / "engine.yaml").write_text(rendered.stdout)
    linted = aftershock("lint", "engine.yaml", cwd=tmp_path)
    assert linted.returncode == 0, linted.stdout

    (tmp_path / "probes.yaml").write_text(PROBES.replace("mode: SOT", "mode: sot"))
    refused = aftershock("render", "pod-delete", *flags, cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: probes.yaml:3: probe-mode: probe[0].mode='sot'")
    assert len(refused.stderr.splitlines()) == 1


def test_lint_lists_its_rules_and_passes_over_those_that_are_meant(tmp_path: Path) -> None:
    rules = aftershock("lint", "--rules", cwd=tmp_path)
    assert rules.returncode == 0
    assert "label-comma" in rules.stdout
    engine = aftershock("render", "pod-delete", cwd=tmp_path).stdout.replace("deployment", "Deployment")
    (tmp_path / "engine.yaml").write_text(engine)
    assert aftershock("lint", "engine.yaml", cwd=tmp_path).returncode == 1
    assert aftershock("lint", "--ignore", "kind-case", "engine.yaml", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("render", "pod-delete", "-p", "FORCE"), ["-p FORCE", "KEY=VALUE"]),
        (("render", "pod-delete", "--probes", "nowhere.yaml"), ["probes=nowhere.yaml", "no such file"]),
        (("run", "--engine", "nowhere.yaml"), ["engine=nowhere.yaml", "no such file"]),
        (("run", "--engine", "own.yaml", "--fault", "pod-cpu-hog"), ["fault=pod-cpu-hog", "own.yaml has pod-delete"]),
        (("run", "--engine", "own.yaml", "--fault", "none"), ["fault=none", "control run"]),
        (("run", "--engine", "wrong.yaml"), ["wrong.yaml:", "FORSE", "aftershock lint --fix wrong.yaml"]),
        (("run", "--probes", "probes.yaml"), ["probes: ", "the local backend runs no probes"]),
        (("run", "--slo-probes", "auto"), ["slo_probes: ", "the local backend runs no probes"]),
        (("run", "--probes", "probes.yaml", "--fault", "none"), ["probes: ", "control run"]),
        (("render", "pod-delete", "-p", "FORSE=true"), ["FORSE", "FORCE"]),
        (("faults", "pod-explode"), ["pod-explode", "pod-delete"]),
        (("judge", "nowhere"), ["nowhere", "no run directory"]),
        (("stop", "nowhere"), ["nowhere", "no fault is running"]),
        (("lint",), ["no file to lint"]),
        (("lint", "--ignore", "kind-csae", "own.yaml"), ["kind-csae", "kind-case", "lint --rules"]),
        (("walk",), ["walk"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path: Path, arguments: tuple[str, ...], words: list[str]) -> None:
    own = aftershock("render", "pod-delete", cwd=tmp_path).stdout if "--engine" in arguments else ""
    (tmp_path / "own.yaml").write_text(own)
    (tmp_path / "wrong.yaml").write_text(own.replace("FORCE", "FORSE"))
    (tmp_path / "probes.yaml").write_text(PROBES)
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
