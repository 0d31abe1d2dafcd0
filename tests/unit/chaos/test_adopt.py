"""Engines of one's own: what is refused, what is set, and that all else stays as it was given."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from aftershock.chaos.adopt import adopt, follow_engine
from aftershock.chaos.engine import RUN_ID_LABEL, AppInfo, ChaosEngine, parse_engine
from aftershock.chaos.lint.linter import lint
from aftershock.chaos.render import engine_name
from aftershock.errors import InputError
from aftershock.experiment import Experiment, validate

OWN = """\
# our game day
apiVersion: litmuschaos.io/v1alpha1
kind: ChaosEngine
metadata:
  name: game-day
  namespace: litmus
  labels:
    team: search
  annotations:
    note: "yes"
spec:
  engineState: active
  appinfo:
    appns: shop
    applabel: app=model-server
    appkind: statefulset
  chaosServiceAccount: pod-delete-sa
  auxiliaryAppInfo: ""
  experiments:
    - name: pod-delete
      spec:
        components:
          env:
            - name: TOTAL_CHAOS_DURATION
              value: "60"
            - name: CHAOS_INTERVAL
              value: "10"
            - name: FORCE
              value: "true"
            - name: PODS_AFFECTED_PERC
              value: "50"
"""
LITMUS = {"backend": "litmus", "target_url": "http://model", "prometheus_url": "http://prometheus:9090"}


def experiment(engine: str = OWN, **fields: Any) -> Experiment:
    return validate({"run_id": "r-1", **LITMUS, "engine": engine, **fields}, "test")


def adopted(engine: str = OWN, **fields: Any) -> ChaosEngine:
    own = experiment(engine, **fields)
    return parse_engine(adopt(own, confirmed=own.confirmed), "test")


def refused(engine: str = OWN, **fields: Any) -> str:
    own = experiment(engine, **fields)
    with pytest.raises(InputError) as caught:
        adopt(follow_engine(own), confirmed=own.confirmed)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 600
    return str(caught.value)


def second(experiment_name: str, *env: str) -> str:
    """Another experiment for the end of the list."""
    items = "".join(
        f"            - {{name: {each.partition('=')[0]}, value: {each.partition('=')[2]}}}\n" for each in env
    )
    return f"    - name: {experiment_name}\n      spec:\n        components:\n          env:\n{items}"


# --- what becomes of it -----------------------------------------------------------------------------------------------


def test_it_gets_a_name_and_the_labels_of_the_run_and_else_stays_as_it_is() -> None:
    engine = adopted()
    meant = yaml.safe_load(OWN)
    meant["metadata"]["name"] = engine_name("game-day", "r-1")
    meant["metadata"]["labels"] |= {RUN_ID_LABEL: "r-1", "app.kubernetes.io/managed-by": "aftershock"}
    meant["spec"] |= {"jobCleanUpPolicy": "delete", "terminationGracePeriodSeconds": 60}
    assert engine.document == meant
    assert lint(adopt(experiment()), "adopted") == []


def test_the_artifact_says_what_was_changed() -> None:
    first = adopt(experiment()).splitlines()[0]
    assert first.startswith("# The ChaosEngine game-day as it was given, but for these")
    assert first.endswith("metadata, spec.jobCleanUpPolicy, spec.terminationGracePeriodSeconds")


def test_what_it_says_of_clean_up_is_kept() -> None:
    own = OWN.replace(
        "  auxiliaryAppInfo", "  jobCleanUpPolicy: retain\n  terminationGracePeriodSeconds: 90\n  auxiliaryAppInfo"
    )
    spec = adopted(own).document["spec"]
    assert (spec["jobCleanUpPolicy"], spec["terminationGracePeriodSeconds"]) == ("retain", 90)


def test_a_dump_of_a_finished_engine_starts_anew() -> None:
    own = OWN.replace("engineState: active", "engineState: stop").replace(
        "  name: game-day\n",
        "  name: game-day\n  uid: 3f\n  resourceVersion: '7'\n  generation: 4\n  creationTimestamp: 2026-01-01\n"
        "  finalizers: [chaosengine.litmuschaos.io/finalizer]\n  managedFields: [{manager: kubectl}]\n"
        "  ownerReferences: [{kind: Workflow, name: w, uid: 4e}]\n",
    )
    own = own.replace("    note:", "    kubectl.kubernetes.io/last-applied-configuration: '{}'\n    note:")
    engine = adopted(own + "status: {engineStatus: completed}\n")
    assert engine.state == "active"
    assert "status" not in engine.document
    assert set(engine.document["metadata"]) == {"name", "namespace", "labels", "annotations"}
    assert engine.document["metadata"]["annotations"] == {"note": "yes"}


def test_namespace_and_account_can_be_others() -> None:
    engine = adopted(chaos_namespace="chaos", service_account="other-sa")
    assert (engine.namespace, engine.document["spec"]["chaosServiceAccount"]) == ("chaos", "other-sa")
    assert engine.appinfo == AppInfo("shop", "app=model-server", "statefulset")
    without = OWN.replace("  chaosServiceAccount: pod-delete-sa\n", "")
    assert "account-missing" in refused(without)
    assert adopted(without, service_account="other-sa").document["spec"]["chaosServiceAccount"] == "other-sa"


def test_an_engine_without_a_namespace_goes_where_its_target_is() -> None:
    assert adopted(OWN.replace("  namespace: litmus\n", "")).namespace == "shop"


def test_a_long_name_and_the_beginning_of_one_give_a_legal_name() -> None:
    for name in ("name: " + "a.b" * 20, "generateName: game-day-", "generateName: " + "a" * 29 + ".b-"):
        engine = adopted(OWN.replace("name: game-day", name))
        assert len(engine.name) <= 40
        assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", engine.name)
    assert adopted(OWN.replace("name: game-day", "generateName: game-day-")).name == "game-day-r-1"


def test_json_and_anchors_and_dates_are_read_as_kubernetes_reads_them() -> None:
    assert adopted(json.dumps(yaml.safe_load(OWN))) == adopted()
    shared = OWN.replace("namespace: litmus", "namespace: &where litmus").replace("appns: shop", "appns: *where")
    text = adopt(experiment(shared.replace('note: "yes"', "note: 2026-01-01")))
    assert "&" not in text and "*" not in text
    assert parse_engine(text, "test").document["metadata"]["annotations"] == {"note": "2026-01-01"}


WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: game-day-}
spec:
  templates:
    - name: run
      inputs:
        artifacts:
          - name: engine
            raw:
              data: |
"""


def test_a_workflow_that_holds_one_engine_gives_it() -> None:
    inner = OWN.replace("    team: search", '    workflow_run_id: "{{ workflow.uid }}"\n    team: search')
    inner = inner.replace("namespace: litmus", 'namespace: "{{workflow.parameters.adminModeNamespace}}"')
    workflow = WORKFLOW + "".join(f"                {line}\n" for line in inner.splitlines())
    engine = adopted(workflow)
    assert engine.name == "game-day-r-1"
    assert engine.namespace == "shop", "an expression is no namespace"
    assert "workflow_run_id" not in engine.labels and engine.labels["team"] == "search"
    assert adopted(workflow + "---\n" + "kind: ConfigMap\n").name == "game-day-r-1"
    unfilled = workflow.replace("applabel: app=model-server", "applabel: '{{workflow.parameters.label}}'")
    said = refused(unfilled)
    assert said.startswith("engine:27: spec.appinfo.applabel") and "workflow engine" in said


# --- what the experiment becomes --------------------------------------------------------------------------------------


def test_the_experiment_says_what_the_engine_says(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(OWN + second("pod-network-latency", "TOTAL_CHAOS_DURATION='9'", "DESTINATION_IPS='10.0.0.7'"))
    own = follow_engine(experiment(str(file)))
    assert own.fault == "pod-delete,pod-network-latency"
    assert (own.namespace, own.label, own.kind) == ("shop", "app=model-server", "statefulset")
    assert own.engine_namespace == "litmus"
    assert own.engine == file.read_text(), "a pod does not have the file"
    assert follow_engine(own) == own, "the pipeline's step does it once more"
    file.unlink()
    assert adopt(own) == adopt(follow_engine(own))


def test_an_experiment_without_an_engine_stays_as_it_is() -> None:
    assert follow_engine(experiment("none", label="app=x")) == experiment("none", label="app=x")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"fault": "pod-cpu-hog"}, "fault=pod-cpu-hog: the engine of engine has pod-delete; change it there, or leave"),
        ({"fault": "none"}, "fault=none: a control run has no ChaosEngine"),
        ({"fault_parameters": {"FORCE": "true"}}, "fault_parameters={'FORCE': 'true'}: the engine of engine has its"),
        ({"label": "app=other"}, "label=app=other: the engine of engine has app=model-server"),
        ({"namespace": "prod"}, "namespace=prod: the engine of engine has shop"),
        ({"kind": "daemonset"}, "kind=daemonset: the engine of engine has statefulset"),
    ],
)
def test_a_parameter_that_says_something_else_is_refused(fields: dict[str, Any], said: str) -> None:
    assert said in refused(**fields)


def test_what_the_engine_does_not_say_is_the_experiments() -> None:
    own = OWN[: OWN.index("  appinfo:")] + OWN[OWN.index("  chaosServiceAccount") :]
    own = own.replace(
        "            - name: FORCE", '            - {name: TARGET_PODS, value: "a-1"}\n            - name: FORCE'
    )
    followed = follow_engine(experiment(own, label="app=x", namespace="prod"))
    assert (followed.label, followed.namespace, followed.engine_namespace) == ("app=x", "prod", "litmus")


# --- what is refused --------------------------------------------------------------------------------------------------


def test_an_error_of_the_linter_is_named_with_its_line_and_the_others_are_counted(tmp_path: Path) -> None:
    file = tmp_path / "own.yaml"
    file.write_text(OWN.replace('"60"', "60s").replace('"50"', "50").replace("appkind: statefulset", "appkind: Pod"))
    said = refused(str(file))
    assert said.startswith(f"{file}:16: kind-case: spec.appinfo.appkind='Pod'")
    assert said.endswith(f"(2 more errors after it); `aftershock lint --fix {file}` mends what takes no decision")


def test_a_warning_of_the_linter_does_not_refuse() -> None:
    ignored = OWN.replace(
        "            - name: FORCE", "            - {name: TC_IMAGE, value: x}\n            - name: FORCE"
    )
    assert "tunable-unread" in [each.rule for each in lint(ignored, "own")]
    assert adopted(ignored).experiments[0].env["TC_IMAGE"] == "x"


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        (OWN + "---\n" + OWN.replace("game-day", "other"), "holds 2 ChaosEngines, 'game-day', 'other'; give one"),
        ("kind: Pod\napiVersion: v1\n", "holds no ChaosEngine"),
        ("a: [1\n", "engine:2: not YAML"),
        ("x: |\n  kind: ChaosEngine\n  a: [\n", "x seems to hold a ChaosEngine, but is not YAML"),
        (OWN.replace("name: game-day", "name: '{{ x }}'"), "metadata.name is for a workflow engine to fill in"),
        (OWN.replace('value: "60"', "value: ${SECONDS}"), "is for a workflow engine to fill in"),
        (OWN.replace("team: search", "team: 7"), "metadata.labels: must map names to text"),
        (OWN.replace("  labels:\n    team: search", "  labels: [a]"), "metadata.labels: must map names to text"),
        (OWN.replace('note: "yes"', "? [a]\n    : b"), "a key is no text"),
        (
            OWN.replace('auxiliaryAppInfo: ""', "auxiliaryAppInfo: !!binary aGk="),
            "binary is nothing that Kubernetes takes",
        ),
        (OWN.replace("team: search", "<<: {<<: {a: b}}"), "write it out"),
        (OWN.replace("    applabel: app=model-server\n", ""), "appinfo-incomplete"),
        (OWN + second("pod-delete", "TOTAL_CHAOS_DURATION='9'"), "experiment-twice"),
        ("[" * 2000, "not YAML"),
    ],
)
def test_what_is_no_engine_to_run_is_refused_in_one_line(engine: str, said: str) -> None:
    assert said in refused(engine)


def test_a_bomb_of_aliases_is_refused() -> None:
    bomb = "".join(f"  b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 12))
    assert "aliases blow it up" in refused(OWN.replace("spec:\n", f"spec:\n  b0: &b0 [x]\n{bomb}", 1))
    itself = OWN.replace("spec:\n", "spec:\n  b: &b {c: *b}\n", 1)
    assert "nested too deeply" in refused(itself)


@pytest.mark.parametrize("reference", ["nowhere.yaml", "", ".", "/dev/zero", "x" * 5000, "nul\0"])
def test_a_file_that_cannot_be_read_is_named(reference: str) -> None:
    assert refused(reference).startswith("engine=")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_bytes(b"\xff\xfe")
    assert "no text in UTF-8" in refused(str(tmp_path / "own.yaml"))


# --- harm -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("own", "confirmation", "said"),
    [
        (OWN.replace('"50"', '"30-80"'), "blast-radius", "PODS_AFFECTED_PERC=80 is more than 50 percent"),
        (OWN.replace('"60"', '"3601"'), "duration", "3601 s"),
        (OWN + second("our-own-fault", "TOTAL_CHAOS_DURATION='3000'", "RAMP_TIME='300'"), "duration", "3660 s"),
        (OWN + second("pod-network-loss", "TOTAL_CHAOS_DURATION='60'"), "scrape-gap", "LOSS_PERCENTAGE=100 on every"),
        (OWN + second("pod-network-loss", "NETWORK_PACKET_LOSS_PERCENTAGE='30'"), "scrape-gap", "PERCENTAGE=30"),
        (OWN + second("pod-network-latency", "NETWORK_LATENCY='900'"), "scrape-gap", "NETWORK_LATENCY=900"),
    ],
)  # fmt: skip
def test_harm_has_to_be_confirmed_as_that_of_a_template(own: str, confirmation: str, said: str) -> None:
    message = refused(own)
    assert said in message
    assert message.endswith(f"give confirm={confirmation}")
    assert adopted(own, confirm=confirmation)


def test_what_litmus_would_do_by_itself_counts_too() -> None:
    """Without a duration the chart's holds, and without a share one pod is hit."""
    lonely = OWN.replace('            - name: PODS_AFFECTED_PERC\n              value: "50"\n', "")
    assert adopted(lonely)
    assert "is unknown" in refused(confirm="everything")


def test_the_embedded_stack_belongs_to_the_run() -> None:
    local = {"backend": "local", "target_url": "embedded", "prometheus_url": "embedded"}
    assert adopted(OWN.replace('"50"', '"100"'), **local)
    probe = (
        "        probe:\n          - {name: a, type: cmdProbe, mode: SOT, cmdProbe/inputs: {command: x, comparator: "
    )
    probe += "{type: string, criteria: equal, value: x}}, runProperties: {probeTimeout: 1s, interval: 1s}}\n"
    assert "the local backend runs none" in refused(OWN + probe, **local)
    assert adopted(OWN + probe)
