"""Several faults in one experiment: one engine, in the order given, each with its own parameters."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aftershock.chaos.choice import choose
from aftershock.chaos.engine import EngineExperiment, parse_engine
from aftershock.chaos.lint.crd import schemas
from aftershock.chaos.render import LONGEST_NAME, render, render_fault
from aftershock.chaos.template import list_faults
from aftershock.errors import InputError, TemplateError
from aftershock.experiment import load_experiment

PODS = [fault.name for fault in list_faults() if not fault.hits_nodes]
REPLICAS = {"pod-autoscaler.REPLICA_COUNT": "3"}
SPOOF = {"pod-dns-spoof.SPOOF_MAP": '{"a": "b"}'}


def experiments(text: str) -> dict[str, EngineExperiment]:
    return {each.name: each for each in parse_engine(text, "test").experiments}


def rendered(fault: str, parameters: dict[str, Any] | None = None, **fields: Any) -> str:
    fields = {"run_id": "r-1", "fault": fault, "fault_parameters": parameters or {}, **fields}
    return render(load_experiment(yaml.safe_dump(fields)))


def refused(fault: str, parameters: dict[str, str]) -> str:
    with pytest.raises(InputError) as caught:
        rendered(fault, parameters)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_two_faults_make_one_engine_in_the_order_given() -> None:
    text = rendered("pod-network-latency, pod-delete")
    assert list(experiments(text)) == ["pod-network-latency", "pod-delete"]
    assert text.count("kind: ChaosEngine") == 1
    single = rendered("pod-network-latency")
    assert text.startswith(single.replace("pod-network-latency-r-1", "pod-network-latency-pod-delete-r-1")[:300])


def test_each_has_its_own_parameters() -> None:
    own = {
        "pod-delete.FORCE": False,
        "pod-delete.RAMP_TIME": 5,
        "pod-delete.STATUS_CHECK_TIMEOUT": 600,
        "pod-cpu-hog.PODS_AFFECTED_PERC": 20,
    }
    found = experiments(rendered("pod-delete,pod-cpu-hog", own))
    assert (found["pod-delete"].env["FORCE"], found["pod-delete"].env["RAMP_TIME"]) == ("false", "5")
    assert (found["pod-cpu-hog"].env["RAMP_TIME"], found["pod-cpu-hog"].env["PODS_AFFECTED_PERC"]) == ("0", "20")
    assert (found["pod-delete"].status_check_timeout_s, found["pod-cpu-hog"].status_check_timeout_s) == (600, 180)
    assert found["pod-delete"].env["PODS_AFFECTED_PERC"] == "50"


def test_they_share_the_phase_unless_given_their_own_time() -> None:
    def durations(**fields: Any) -> list[str]:
        found = experiments(rendered("pod-delete,pod-cpu-hog,pod-network-loss", **fields))
        return [each.env["TOTAL_CHAOS_DURATION"] for each in found.values()]

    assert durations(chaos_s=31.5) == ["10", "10", "10"]
    assert durations(chaos_s=60, parameters={"pod-cpu-hog.TOTAL_CHAOS_DURATION": 40}) == ["20", "40", "20"]
    with pytest.raises(TemplateError, match="TOTAL_CHAOS_DURATION='0': must be a whole number of s from 1"):
        durations(chaos_s=2)


def test_by_themselves_they_last_as_their_templates_say() -> None:
    found = experiments(
        render_fault(
            "node-memory-hog,node-cpu-hog", {"node-memory-hog.TARGET_NODES": "a", "node-cpu-hog.TARGET_NODES": "a"}
        )
    )
    assert [each.env["TOTAL_CHAOS_DURATION"] for each in found.values()] == ["120", "30"]


def test_one_fault_may_name_itself() -> None:
    assert rendered("pod-delete", {"pod-delete.FORCE": "false"}) == rendered("pod-delete", {"FORCE": "false"})
    assert "'FORCE' is given twice" in refused("pod-delete", {"pod-delete.FORCE": "false", "FORCE": "true"})


@pytest.mark.parametrize(
    ("fault", "parameters", "said"),
    [
        ("pod-delete,pod-delete", {}, "pod-delete is named twice; in one ChaosEngine both would share one ChaosResult"),
        ("pod-delete, pod-cpu-hog,pod-delete", {}, "named twice"),
        ("pod-delete,", {}, "unknown fault ''"),
        ("pod-delete,none", {}, "unknown fault 'none'"),
        ("pod-delete,pod-cpu-hogg", {}, "did you mean pod-cpu-hog?"),
        ("pod-delete,pod-cpu-hog", {"FORCE": "true"}, "which of the faults is it for? write pod-delete.FORCE"),
        ("pod-delete,pod-cpu-hog", {"RAMP_TIME": "1"}, "write pod-delete.RAMP_TIME or pod-cpu-hog.RAMP_TIME"),
        ("pod-delete,pod-cpu-hog", {"pod-delte.FORCE": "true"}, "no fault pod-delte; did you mean pod-delete?"),
        ("pod-delete,pod-cpu-hog", {"pod-delete.CPU_LOAD": "1"}, "pod-delete: unknown parameter 'CPU_LOAD'"),
        ("pod-delete,pod-cpu-hog", {"pod-cpu-hog.CPU_LOAD": "101"}, "pod-cpu-hog: CPU_LOAD='101': must be"),
    ],
)
def test_what_is_ambiguous_or_unknown_is_refused(fault: str, parameters: dict[str, str], said: str) -> None:
    assert said in refused(fault, parameters)


def test_faults_with_different_targets_cannot_share_an_engine() -> None:
    parameters = {"node-cpu-hog.TARGET_NODES": "a"}
    message = refused("pod-delete,node-cpu-hog", parameters)
    assert message.startswith("pod-delete and node-cpu-hog cannot share a ChaosEngine, their spec.appinfo differs")
    nodes = {"node-drain.TARGET_NODE": "a", "node-drain.CHAOS_NODE": "b", "node-taint.TARGET_NODE": "a"}
    assert rendered("node-drain,node-taint", nodes | {"node-taint.CHAOS_NODE": "b"})
    assert "spec.components differs" in refused("node-drain,node-taint", nodes | {"node-taint.CHAOS_NODE": "c"})


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(PODS), min_size=2, max_size=5, unique=True))
def test_any_faults_of_pods_share_an_engine_that_the_crds_accept(names: list[str]) -> None:
    parameters = {key: value for key, value in (REPLICAS | SPOOF).items() if key.split(".")[0] in names}
    text = rendered(",".join(names), parameters, chaos_s=100)
    engine = parse_engine(text, "test")
    assert [each.name for each in engine.experiments] == names
    assert len(engine.name) <= LONGEST_NAME
    alone = {name: rendered(name, {k: v for k, v in parameters.items() if k.startswith(f"{name}.")}) for name in names}
    for each in engine.experiments:
        (single,) = parse_engine(alone[each.name], "test").experiments
        assert {**each.env, "TOTAL_CHAOS_DURATION": "", "CHAOS_INTERVAL": ""} == {
            **single.env,
            "TOTAL_CHAOS_DURATION": "",
            "CHAOS_INTERVAL": "",
        }
    assert len(schemas()) == 3
    for schema in schemas().values():
        assert not list(jsonschema.Draft7Validator(schema).iter_errors(dict(engine.document)))


def test_the_names_of_two_combinations_never_clash() -> None:
    forth, back = (
        parse_engine(rendered(names), "t").name for names in ("pod-delete,pod-cpu-hog", "pod-cpu-hog,pod-delete")
    )
    assert forth != back


def test_what_was_given_is_told_from_defaults() -> None:
    (choice,) = choose("pod-delete", {"FORCE": "true"}, 30, None)
    assert choice.given == {"FORCE"}
    assert choice.seconds == 30
    assert not choice.is_set("TARGET_PODS")
