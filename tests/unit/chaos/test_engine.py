"""Reading a ChaosEngine: what is lifted out, and what is refused because Litmus would do something else."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from aftershock.chaos.engine import RUN_ID_LABEL, AppInfo, parse_engine
from aftershock.errors import EngineError, ExitCode


def document(**spec: Any) -> dict[str, Any]:
    """A small engine; `spec` replaces keys of its spec."""
    return {
        "apiVersion": "litmuschaos.io/v1alpha1",
        "kind": "ChaosEngine",
        "metadata": {"name": "kill-1", "namespace": "llm", "labels": {"aftershock.io/run-id": "r1"}},
        "spec": {
            "engineState": "active",
            "appinfo": {"appns": "llm", "applabel": "app=vllm", "appkind": "deployment"},
            "experiments": [experiment("pod-delete", [{"name": "FORCE", "value": "true"}, {"name": "RAMP_TIME"}])],
        }
        | spec,
    }


def experiment(name: str, env: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"name": name, "spec": {"components": {"env": env}}}


def parse(data: object) -> Any:
    return parse_engine(yaml.safe_dump(data), "engine.yaml")


def test_everything_an_injector_needs_is_a_field() -> None:
    engine = parse(document())
    assert (engine.name, engine.namespace, engine.uid, engine.state) == ("kill-1", "llm", None, "active")
    assert engine.labels[RUN_ID_LABEL] == "r1"
    assert engine.appinfo == AppInfo("llm", "app=vllm", "deployment")
    (only,) = engine.experiments
    assert only.name == "pod-delete"
    assert only.env == {"FORCE": "true", "RAMP_TIME": ""}
    assert only.status_check_timeout_s == 180.0
    assert engine.result_name(only) == "kill-1-pod-delete"


def test_an_empty_tunable_is_not_set() -> None:
    only = parse(document()).experiments[0]
    assert only.value("RAMP_TIME", "7") == "7"
    assert only.value("FORCE", "false") == "true"
    assert only.value("ABSENT") == ""


def test_status_check_timeouts_and_instance_id_are_read() -> None:
    one = experiment("pod-delete", [{"name": "INSTANCE_ID", "value": "b"}])
    one["spec"]["components"]["statusCheckTimeouts"] = {"delay": 1, "timeout": 45}
    engine = parse(document(experiments=[one]))
    assert engine.experiments[0].status_check_timeout_s == 45.0
    assert engine.result_name(engine.experiments[0]) == "kill-1-pod-delete-b"


@pytest.mark.parametrize(
    ("given", "timeout_s"),
    [
        ({}, 180.0),
        ({"delay": 0, "timeout": 0}, 180.0),
        ({"delay": 1}, 0.0),
        ({"timeout": 600}, 600.0),
        ({"delay": 5, "timeout": 60}, 60.0),
    ],
)
def test_one_status_check_timeout_makes_the_other_zero_as_the_runner_has_it(
    given: dict[str, int], timeout_s: float
) -> None:
    one = experiment("pod-delete")
    one["spec"]["components"]["statusCheckTimeouts"] = given
    assert parse(document(experiments=[one])).experiments[0].status_check_timeout_s == timeout_s


def test_an_engine_survives_the_way_to_text_and_back() -> None:
    engine = parse(document(somethingElse={"kept": [1, "Ünïcode 🌍", None]}))
    assert parse_engine(yaml.safe_dump(dict(engine.document), allow_unicode=True), "again") == engine


def test_an_absent_state_is_active_and_a_stopped_engine_says_so() -> None:
    assert parse(document(engineState="")).state == "active"
    assert parse(document(engineState=None)).state == "active"
    assert parse(document(engineState="stop")).state == "stop"


def test_no_target_is_allowed_for_faults_of_nodes() -> None:
    assert parse(document(appinfo=None)).appinfo == AppInfo()
    assert parse(document(appinfo={"appns": "", "applabel": "", "appkind": ""})).appinfo == AppInfo()


def test_selectors_replace_a_part_of_appinfo() -> None:
    selectors = {"pods": [{"namespace": "llm", "names": "a,b"}]}
    assert parse(document(appinfo={"appns": "llm"}, selectors=selectors)).appinfo == AppInfo("llm")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"engineState": "running"}, "spec.engineState='running'"),
        ({"appinfo": {"appns": "llm"}}, "spec.appinfo: needs appns, applabel and appkind"),
        ({"appinfo": {"appns": "llm", "applabel": "app=vllm"}}, "Litmus stops at once or hits any pod"),
        ({"appinfo": {"applabel": "app=vllm,tier=prod"}}, "Litmus reads a comma as OR"),
        ({"appinfo": {"applabel": "app in (a, b)"}}, "exactly one key=value"),
        ({"appinfo": {"applabel": "app=" + "x" * 64}}, "at most 63"),
        ({"appinfo": {"appkind": "Deployment"}}, "spec.appinfo.appkind='Deployment'"),
        ({"experiments": []}, "spec.experiments=[]"),
        ({"experiments": [experiment("a"), experiment("a")]}, "a is listed twice"),
        ({"experiments": [experiment("Pod Delete")]}, "spec.experiments.0.name='Pod Delete'"),
        ({"experiments": [experiment("a", [{"name": "N", "value": 5}])]}, "components.env.0.value=5"),
        ({"experiments": [experiment("a", [{"name": "N", "value": True}])]}, "components.env.0.value=True"),
        ({"experiments": [experiment("a", [{"name": "N"}, {"name": "N"}])]}, "env N is given twice"),
        ({"experiments": [experiment("a", [{"name": "N", "valueFrom": {}}])]}, "env N has valueFrom"),
    ],
)
def test_what_litmus_would_misread_is_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(EngineError) as caught:
        parse(document(**change))
    message = str(caught.value)
    assert message.startswith("engine.yaml: ")
    assert said in message
    assert "\n" not in message
    assert caught.value.exit_code is ExitCode.BAD_INPUT


@pytest.mark.parametrize(
    "name",
    ["", "Kill", "kill_1", "-kill", "kill-", "k" * 64, "kill\n", "kill 1"],
)
def test_a_name_no_runner_pod_could_have_is_refused(name: str) -> None:
    data = document()
    data["metadata"]["name"] = name
    with pytest.raises(EngineError, match=r"metadata\.name=.*must be 1 to 63"):
        parse(data)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "holds 0 documents"),
        ("a: 1\n---\nb: 2\n", "holds 2 documents"),
        ("just words", "is a str"),
        ("a: 1\nb: [\n", "engine.yaml:3: not YAML"),
        ("a: *nowhere\n", "engine.yaml:1: not YAML"),
        ("a: !!python/object/apply:os.getcwd []\n", "engine.yaml:1: not YAML"),
        ("[" * 100_000, "not YAML"),
        ("a: \x00", "not YAML"),
        ("apiVersion: v1\nkind: Pod\n", "apiVersion='v1'"),
    ],
)
def test_other_text_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(EngineError) as caught:
        parse_engine(text, "engine.yaml")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
