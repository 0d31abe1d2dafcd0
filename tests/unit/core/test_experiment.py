"""The experiment: every way in gives the same model, and every wrong value is refused with its name."""

from pathlib import Path

import pytest
import yaml

from aftershock.errors import ExitCode, ExperimentError
from aftershock.experiment import Experiment, load_experiment, resolve, validate


def test_flags_win_over_environment_over_file_over_defaults(tmp_path: Path) -> None:
    file = tmp_path / "exp.yaml"
    file.write_text("rate: 10\nchaos_s: 11\nseed: 12\n")

    experiment = resolve(
        flags={"rate": "30"}, environment={"AFTERSHOCK_RATE": "20", "AFTERSHOCK_CHAOS_S": "21"}, file=file
    )

    assert (experiment.rate, experiment.chaos_s, experiment.seed) == (30, 21, 12)
    assert experiment.max_tokens == Experiment().max_tokens


def test_yaml_round_trip() -> None:
    experiment = Experiment(fault_parameters={"FORCE": "true"}, slo="apiVersion: openslo/v1\nkind: SLO\n")
    assert load_experiment(experiment.to_yaml()) == experiment


def test_fault_parameters_become_the_strings_litmus_wants() -> None:
    given = {"A": 5, "B": 5.0, "C": True, "D": "x", "E": 2.5}
    expected = {"A": "5", "B": "5", "C": "true", "D": "x", "E": "2.5"}
    assert validate({"fault_parameters": given}, "test").fault_parameters == expected
    assert validate({"fault_parameters": '{"A": 5}'}, "test").fault_parameters == {"A": "5"}


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"rat": 1}, ["unknown parameter 'rat'", "rate"]),
        ({"rate": "fast"}, ["rate='fast'", "number"]),
        ({"rate": 0}, ["rate=0", "greater than 0"]),
        ({"chaos_s": 90_000}, ["chaos_s=90000", "86400"]),
        ({"label": "app=a,tier=b"}, ["label='app=a,tier=b'", "exactly one key=value"]),
        ({"label": "app in (a,b)"}, ["label=", "exactly one key=value"]),
        ({"kind": "pod"}, ["kind='pod'", "'deployment'"]),
        ({"run_id": "Not A Label"}, ["run_id='Not A Label'", "a-z"]),
        ({"run_id": "store"}, ["run_id='store'", "choose another"]),
        ({"store_endpoint": "foo bar"}, ["store_endpoint='foo bar'", "host:port"]),
        ({"scrape_interval_s": 0.01}, ["scrape_interval_s=0.01", "0.1"]),
        ({"target_url": "inference:8000"}, ["target_url='inference:8000'", "http://"]),
        ({"backend": "docker"}, ["backend='docker'", "'local'"]),
        ({"fault_parameters": "FORCE=true"}, ["fault_parameters='FORCE=true'", "not JSON"]),
        ({"fault_parameters": {"A": [1]}}, ["fault_parameters", "strings or numbers"]),
        ({"metrics_port": 70_000}, ["metrics_port=70000", "65535"]),
    ],
)
def test_wrong_values_are_named_in_one_line(values: dict[str, object], words: list[str]) -> None:
    with pytest.raises(ExperimentError) as caught:
        validate(values, "here")
    message = str(caught.value)
    assert message.startswith("here: ") and "\n" not in message
    for word in words:
        assert word in message
    assert caught.value.exit_code is ExitCode.BAD_INPUT


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rate: [", "exp.yaml:1: not YAML"),
        ("- rate", "must map parameter names to values"),
        ("rate: 1\nspeed: 2\n", "exp.yaml: unknown parameter 'speed'"),
    ],
)
def test_wrong_files_are_named(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "exp.yaml"
    file.write_text(text)
    with pytest.raises(ExperimentError, match=r"exp\.yaml") as caught:
        resolve(flags={}, environment={}, file=file)
    assert words in str(caught.value)


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match=r"none\.yaml: cannot be read"):
        resolve(flags={}, environment={}, file=tmp_path / "none.yaml")


def test_unknown_variable_is_refused_but_reserved_ones_pass() -> None:
    resolve(flags={}, environment={"AFTERSHOCK_JOURNAL": "/x", "HOME": "/root"})
    with pytest.raises(ExperimentError, match="AFTERSHOCK_RATES='1' is no parameter"):
        resolve(flags={}, environment={"AFTERSHOCK_RATES": "1"})


def test_every_field_is_described() -> None:
    for name, field in Experiment.model_fields.items():
        assert field.description and len(field.description) > 10, name
        assert name.endswith("_s") is ("seconds" in field.description and field.annotation is float), name


def test_experiment_file_is_plain_yaml() -> None:
    assert yaml.safe_load(Experiment().to_yaml())["rate"] == 60.0
