"""Engines that other files hold: found wherever they are, with the line of the outermost file, and mended there."""

from __future__ import annotations

import json
from textwrap import indent

import pytest
import yaml

from aftershock.chaos.lint.linter import examine, lint, mend
from aftershock.errors import EngineError

ENGINE = """\
apiVersion: litmuschaos.io/v1alpha1
kind: ChaosEngine
metadata:
  generateName: pod-delete-
  namespace: "{{workflow.parameters.adminModeNamespace}}"
spec:
  engineState: active
  appinfo:
    appns: {{workflow.parameters.appNamespace}}
    applabel: app=model-server
    appkind: Deployment
  chaosServiceAccount: chaos
  experiments:
    - name: pod-delete
      spec:
        components:
          env:
            - name: TOTAL_CHAOS_DURATION
              value: 60
"""
MENDED = ENGINE.replace("Deployment", "deployment").replace("value: 60", 'value: "60"')
RULES = ["kind-case", "env-not-string"]
LINES = [11, 19]

WORKFLOW = """\
apiVersion: argoproj.io/v1alpha1
kind: Workflow
spec:
  templates:
    - name: install
      inputs:
        artifacts:
          - name: engine
            path: /tmp/engine.yaml
            raw:
              data: {style}
{engine}      container: {{image: kubectl}}
"""


def workflow(engine: str = ENGINE, style: str = "|", margin: int = 16) -> str:
    return WORKFLOW.format(style=style, engine=indent(engine, " " * margin))


@pytest.mark.parametrize(("style", "margin"), [("|", 16), ("|  # engine", 24), ("|-", 15), ("|+", 16), ("|2", 16)])
def test_an_engine_in_a_block_has_the_lines_of_the_workflow(style: str, margin: int) -> None:
    findings = lint(workflow(style=style, margin=margin), "flow.yaml")
    assert [finding.rule for finding in findings] == RULES
    assert [finding.line for finding in findings] == [line + 11 for line in LINES]
    assert findings[0].path == "spec.templates[0].inputs.artifacts[0].raw.data: spec.appinfo.appkind"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_engine_in_a_block_is_mended_there(newline: str) -> None:
    text = workflow().replace("\n", newline)
    assert mend(text, "flow.yaml").text == workflow(MENDED).replace("\n", newline)


def test_an_entry_is_inserted_with_the_margin_of_the_block() -> None:
    engine = MENDED.replace("pod-delete\n", "pod-cpu-hog\n")
    mended = engine.replace("spec:\n  engineState", "spec:\n  terminationGracePeriodSeconds: 60\n  engineState")
    assert mend(workflow(engine), "flow.yaml").text == workflow(mended)


@pytest.mark.parametrize("style", ["'", '"', None])
def test_an_engine_in_a_string_over_several_lines_has_true_lines(style: str | None) -> None:
    text = yaml.dump({"a": 1, "data": ENGINE}, default_style=style, width=60)
    lines = text.splitlines()
    findings = lint(text, "flow.yaml")
    assert [finding.rule for finding in findings] == RULES
    assert "Deployment" in lines[findings[0].line - 1]
    assert "60" in lines[findings[1].line - 1]


def test_an_engine_in_json_is_mended_there() -> None:
    flow = {"kind": "Workflow", "spec": {"data": ENGINE}}
    text = json.dumps(flow)
    assert json.loads(mend(text, "flow.json").text) == {"kind": "Workflow", "spec": {"data": MENDED}}


def test_an_engine_in_a_workflow_in_a_string_is_mended_there() -> None:
    inner = json.dumps({"kind": "Workflow", "data": ENGINE})
    text = f"# exported\nmanifest: {json.dumps(inner)}\nname: x\n"
    findings = lint(text, "flow.yaml")
    assert [(finding.rule, finding.line) for finding in findings] == [(rule, 2) for rule in RULES]
    assert findings[0].path == "manifest: data: spec.appinfo.appkind"
    mended = mend(text, "flow.yaml").text
    assert json.loads(json.loads(mended.splitlines()[1].removeprefix("manifest: ")))["data"] == MENDED


def test_a_folded_engine_is_found_and_left_alone() -> None:
    text = "data: >\n\n" + indent(ENGINE.replace("\n", "\n\n"), "  ")
    findings = lint(text, "flow.yaml")
    assert sorted((finding.rule, finding.line) for finding in findings) == [(rule, 1) for rule in sorted(RULES)]
    assert mend(text, "flow.yaml").text == text


def test_engines_of_a_list_and_of_several_documents_are_all_found() -> None:
    bare = ENGINE.replace("{{workflow.parameters.appNamespace}}", "inference")
    listed = "kind: List\nitems:\n- " + indent(bare, "  ").lstrip()
    text = f"{bare}---\n# nothing\n---\n{listed}...\n---\nkind: Service\n"
    report = examine(text, "all.yaml")
    assert report.engines == 2
    assert [finding.line for finding in report.findings] == [*LINES, *(line + 24 for line in LINES)]


def test_a_script_that_is_no_yaml_gets_one_warning() -> None:
    text = "args:\n  - |\n    cat <<EOF | kubectl apply -f -\n    kind: ChaosEngine\n    metadata: {{ x\n    EOF\n"
    (finding,) = lint(text, "flow.yaml")
    assert (finding.rule, finding.severity) == ("embedded-yaml", "warning")
    assert "args[0] seems to hold a ChaosEngine" in finding.what


REFERENCES = """\
kind: List
apiVersion: v1
items:
- kind: Event
  apiVersion: v1
  involvedObject: {apiVersion: litmuschaos.io/v1alpha1, kind: ChaosEngine, name: x, namespace: y, uid: z}
- kind: Pod
  apiVersion: v1
  metadata:
    ownerReferences:
    - {apiVersion: litmuschaos.io/v1alpha1, kind: ChaosEngine, name: x, uid: z}
"""


def test_what_only_names_an_engine_is_none() -> None:
    report = examine(REFERENCES, "dump.yaml")
    assert (report.engines, report.findings) == (0, ())


PATCH = """\
apiVersion: litmuschaos.io/v1alpha1
kind: ChaosEngine
metadata: {name: x}
spec: {SPEC}
"""
KUSTOMIZATION = """\
patches:
- target: {kind: ChaosEngine}
  patch: |-
PATCH
patchesStrategicMerge:
- |
PATCH
"""


@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        ("engineState: stop", []),
        ("appinfo: {applabel: app=y}", []),
        ("terminationGracePeriodSeconds: 60", []),
        ("appinfo: {applabel: 'app=y,tier=z'}", ["label-comma"]),
        ("experimentz: []", ["field-unknown"]),
    ],
)
def test_a_patch_may_leave_out_what_it_does_not_change(spec: str, rules: list[str]) -> None:
    patch = PATCH.replace("SPEC", spec)
    assert [finding.rule for finding in lint(patch, "patch.yaml")] == rules
    whole = KUSTOMIZATION.replace("PATCH", indent(patch, "    ").rstrip())
    report = examine(whole, "kustomization.yaml")
    assert report.engines == 2
    assert [finding.rule for finding in report.findings] == rules * 2


def test_a_patch_with_experiments_is_still_one_where_the_file_says_so() -> None:
    spec = 'experiments: [{name: pod-delete, spec: {components: {env: [{name: FORCE, value: "true"}]}}}]'
    whole = KUSTOMIZATION.replace("PATCH", indent(PATCH.replace("SPEC", spec), "    ").rstrip())
    assert lint(whole, "kustomization.yaml") == []
    assert lint(PATCH.replace("SPEC", spec), "engine.yaml")


HELM = """\
{{- if .Values.chaos.enabled }}
{{/* one engine for each { target } */}}
{{- $name := .Release.Name }}
apiVersion: litmuschaos.io/v1alpha1
kind: ChaosEngine
metadata:
  name: {{ $name }}-chaos
spec:
  appinfo:
    appns: {{ .Values.ns | default "n" }}
    applabel: "app={{ .Values.app | default "x" }}"
    appkind: Deployment
  chaosServiceAccount: chaos
  experiments:
    - name: pod-delete
      spec: {components: {env: [{name: TOTAL_CHAOS_DURATION, value: {{ .Values.seconds | quote }}}]}}
{{- end }}
"""


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_a_helm_template_with_plain_conditions_is_read(newline: str) -> None:
    text = HELM.replace("\n", newline)
    (finding,) = lint(text, "chart.yaml")
    assert (finding.rule, finding.line) == ("kind-case", 12)
    assert mend(text, "chart.yaml").text == text.replace("Deployment", "deployment")


@pytest.mark.parametrize("line", ["{{- else }}", "{{- toYaml .Values.env | nindent 12 }}"])
def test_a_helm_template_that_prints_lines_gets_the_advice_that_helps(line: str) -> None:
    text = HELM.replace("  chaosServiceAccount", f"{line}\n  chaosServiceAccount")
    with pytest.raises(EngineError, match="looks like a Helm template; lint what `helm template` prints"):
        lint(text, "chart.yaml")


def test_delimiters_in_strings_are_no_expression() -> None:
    text = 'delims: {left: "{{", right: "}}", kind: "x"}\n---\n' + PATCH.replace("SPEC", "engineState: Stop")
    assert [finding.rule for finding in lint(text, "mine.yaml")] == ["field-value"]
