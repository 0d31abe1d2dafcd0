"""Fixes: what has to change changes, and every other byte of the file stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from aftershock.chaos.lint.engine import Engine
from aftershock.chaos.lint.finding import Severity
from aftershock.chaos.lint.linter import lint, mend
from aftershock.chaos.lint.proof import reads_as_meant
from aftershock.chaos.lint.registry import RULES, Hit, engine_rule
from aftershock.chaos.lint.text import Change

ENGINE = """\
# Written by hand, on a Friday.
apiVersion: litmuschaos.io/v1alpha1
kind: ChaosEngine
metadata: {name: bring-your-own, namespace: inference}   # flow style
spec:
  engineState: 'active'
  appinfo:
      appns: inference      # odd indent
      applabel: "app=model-server"
      appkind: deployment

  chaosServiceAccount: chaos
  terminationGracePeriodSeconds: 60
  experiments:
  - name: pod-network-latency
    spec:
      components:
        env:
        # how long
        - name: TOTAL_CHAOS_DURATION
          value: "60"   # s
        - {name: NETWORK_LATENCY, value: '200'}
      probe:
      - name: errors
        type: promProbe
        mode: Continuous
        promProbe/inputs:
          endpoint: http://prometheus:9090
          query: sum(rate(errors_total{code='500'}[1m]))
          comparator: {criteria: "<=", value: "0.1"}
        runProperties:
          probeTimeout: 2s
          interval: 2s
          attempt: 2
          stopOnFailure: true
"""

PROBE = """\
      - name: replicas
        type: cmdProbe
        mode: SOT
        cmdProbe/inputs:
          command: x
          comparator: {type: string, criteria: contains, value: "1"}
        runProperties:
          probeTimeout: 3s
          interval: 3s
"""
FIXES = [
    ("kind-case", "appkind: deployment", "appkind: Deployments", "appkind: deployment"),
    ("kind-case", "appkind: deployment", 'appkind: "StatefulSet" # x', 'appkind: "statefulset" # x'),
    ("label-set", '"app=model-server"', '"app==model-server"', '"app=model-server"'),
    ("field-removed", "  engineState", "  annotationCheck: 'true'  # safe\n  engineState", "  engineState"),
    ("field-removed", "    spec:\n", "    spec:\n      rank: 1\n", "    spec:\n"),
    ("field-removed", "  - name: pod-n", "  - rank: 1\n    name: pod-n", "  - name: pod-n"),
    (
        "field-removed",
        "  appinfo",
        "  components:\n    runner: {image: x, type: ansible}\n  appinfo",
        "  components:\n    runner: {image: x, type: go}\n  appinfo",
    ),
    ("field-type", "Seconds: 60", "Seconds: '60'  # s", "Seconds: 60  # s"),
    ("field-type", "chaosServiceAccount: chaos", "chaosServiceAccount: 007", 'chaosServiceAccount: "007"'),
    ("field-value", "'active'", "'Active'", "'active'"),
    ("status-applied", "spec:\n  eng", "status:\n  a:\n  - b\n\n# kept\nspec:\n  eng", "\n# kept\nspec:\n  eng"),
    ("dumped", "metadata: {", "metadata: {uid: 1, ", "metadata: {"),
    (
        "dumped",
        "metadata: {name: bring-your-own, namespace: inference}",
        "metadata:\n  name: a\n  managedFields:\n  - manager: kubectl\n    fieldsV1: {f:spec: {}}\n  namespace: b",
        "metadata:\n  name: a\n  namespace: b",
    ),
    (
        "grace-missing",
        "  engineState: 'active'\n",
        None,
        "  terminationGracePeriodSeconds: 60\n  engineState: 'active'\n",
    ),
    ("grace-missing", "Seconds: 60", "Seconds: 0", "Seconds: 60"),
    ("env-not-string", '"60"   # s', "60   # s", '"60"   # s'),
    ("env-not-string", "value: '200'}", "value: 200}", 'value: "200"}'),
    ("tunable-number", "value: '200'}", "value: '200ms'}", "value: '200'}"),
    ("tunable-number", '"60"   # s', "1m   # s", '"60"   # s'),
    ("env-not-string", '"60"   # s', "6e1   # s", '"6e1"   # s'),
    ("status-check-half", "        env:\n", "        statusCheckTimeouts: {delay: 5}\n        env:\n", None),
    ("health-check-overridden", "  engineState", "  defaultHealthCheck: true\n  engineState", None),
    (
        "probe-source-text",
        "      - name: errors",
        PROBE.replace("command: x", "source: inline\n          command: x") + "      - name: errors",
        PROBE + "      - name: errors",
    ),
    ("probe-mode", "mode: Continuous", "mode: continuous", "mode: Continuous"),
    ("probe-type", "type: promProbe", "type: 'PromProbe'", "type: 'promProbe'"),
    ("probe-duration", "interval: 2s", "interval: 2 # s", "interval: 2s # s"),
    ("probe-duration", "interval: 2s", 'interval: "2"', 'interval: "2s"'),
    (
        "probe-initial-delay-seconds",
        "          attempt",
        "          initialDelaySeconds: 3\n          attempt",
        "          initialDelay: 3s\n          attempt",
    ),
    ("probe-count", "attempt: 2", "attempt: '2'", "attempt: 2"),
    ("probe-count", "stopOnFailure: true", 'stopOnFailure: "true"', "stopOnFailure: true"),
    ("comparator-type", '{criteria: "<="', '{type: float, criteria: "<="', '{criteria: "<="'),
    ("comparator", '"0.1"}', "0.1}", '"0.1"}'),
    ("query-quotes", "{code='500'}[1m]))", '{code="500"}[1m]))', "{code='500'}[1m]))"),
    (
        "query-quotes",
        "sum(rate(errors_total{code='500'}[1m]))",
        '"sum(rate(errors_total{code=\\"500\\"}[1m]))"',
        "\"sum(rate(errors_total{code='500'}[1m]))\"",
    ),
    (
        "query-quotes",
        "sum(rate(errors_total{code='500'}[1m]))",
        "'sum(rate(errors_total{code=\"500\"}[1m]))'",
        "'sum(rate(errors_total{code=''500''}[1m]))'",
    ),
    (
        "query-quotes",
        "sum(rate(errors_total{code='500'}[1m]))",
        '>-\n            sum(\n            rate(errors_total{code="500"}[1m]))',
        ">-\n            sum(\n            rate(errors_total{code='500'}[1m]))",
    ),
]


@pytest.mark.parametrize(("rule", "old", "bad", "mended"), FIXES, ids=[fix[0] for fix in FIXES])
def test_a_fix_changes_what_is_wrong_and_nothing_else(rule: str, old: str, bad: str | None, mended: str | None) -> None:
    assert ENGINE.count(old) == 1
    text = ENGINE.replace(old, bad) if bad else ENGINE.replace("  terminationGracePeriodSeconds: 60\n", "")
    result = mend(text, "mine.yaml")
    if rule == "status-check-half":
        assert result.text == text.replace("{delay: 5}", "{timeout: 180, delay: 5}")
    elif rule == "health-check-overridden":
        pair = '        - name: DEFAULT_HEALTH_CHECK\n          value: "true"\n'
        start = "        - name: TOTAL"
        assert result.text == text.replace(start, pair + start)
    else:
        assert mended is not None
        expected = ENGINE if bad else ENGINE.replace("  terminationGracePeriodSeconds: 60\n", "")
        assert result.text == expected.replace(old, mended)
    assert [finding.rule for finding in result.fixed] == [rule]
    assert rule not in {finding.rule for finding in lint(result.text, "mine.yaml")}


@pytest.mark.parametrize(
    ("fault", "size", "share"),
    [
        ("pod-io-stress", "FILESYSTEM_UTILIZATION_BYTES", "FILESYSTEM_UTILIZATION_PERCENTAGE"),
        ("node-memory-hog", "MEMORY_CONSUMPTION_MEBIBYTES", "MEMORY_CONSUMPTION_PERCENTAGE"),
    ],
)
def test_a_size_alone_gets_the_0_for_the_share_that_makes_it_count(fault: str, size: str, share: str) -> None:
    text = ENGINE.replace("pod-network-latency", fault).replace("NETWORK_LATENCY", size)
    if fault == "node-memory-hog":
        text = text.replace("      probe:", "        - {name: TARGET_NODES, value: n1}\n      probe:")
    start = text.index("- ", text.index("env:"))
    wanted = f'{text[:start]}- name: {share}\n          value: "0"\n        {text[start:]}'
    assert mend(text, "mine.yaml").text == wanted
    empty = text.replace("      probe:", f'        - {{name: {share}, value: ""}}\n      probe:')
    assert mend(empty, "mine.yaml").text == empty.replace('value: ""', 'value: "0"')


def test_a_clean_file_stays_as_it_is() -> None:
    assert lint(ENGINE, "mine.yaml") == []
    result = mend(ENGINE, "mine.yaml")
    assert (result.text, result.fixed) == (ENGINE, ())


def broken(newline: str = "\n", start: str = "") -> str:
    """Many hazards at once, in a file as other systems write them."""
    text = ENGINE
    for _, old, bad, _ in FIXES:
        if bad and old in text:
            text = text.replace(old, bad)
    return (start + text).replace("\n", newline)


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("start", ["", "\ufeff", "---\n", "# ünïcödé 🌍\n"])
def test_many_fixes_at_once_leave_nothing_that_can_be_fixed(newline: str, start: str) -> None:
    text = broken(newline, start)
    result = mend(text, "mine.yaml")
    assert len(result.fixed) >= 12
    assert [finding for finding in result.report.findings if finding.edits] == []
    assert result.text.startswith(start.replace("\n", newline))
    assert result.text.count("\r\n") == (result.text.count("\n") if newline == "\r\n" else 0)
    untouched = [line for line in text.split(newline) if line.lstrip().startswith(("#", "endpoint", "appns"))]
    assert [line for line in untouched if line not in result.text.split(newline)] == []
    assert mend(result.text, "mine.yaml").text == result.text


@pytest.mark.parametrize(
    "bad",
    [
        ("app=model-server", "app=model-server,tier=prod"),  # which of the labels?
        ("TOTAL_CHAOS_DURATION", "TOTAL_CHAOS_DURATIN"),  # perhaps something else is meant
        ("'active'", "'stop'"),  # would start a fault
        ("type: promProbe", "type: sloProbe"),
        ("value: '200'}", "value: '200MB'}"),
        ("value: '200'}", "value: '5m'}"),  # minutes or milliseconds?
        ("value: '200'}", "value: '1h'}"),
    ],
)
def test_what_needs_a_decision_is_not_fixed(bad: tuple[str, str]) -> None:
    text = ENGINE.replace(*bad)
    assert lint(text, "mine.yaml")
    assert mend(text, "mine.yaml").text == text


def test_a_value_that_others_share_is_not_changed() -> None:
    text = ENGINE.replace("metadata:", "x: &number 60\nmetadata:").replace('value: "60"', "value: *number")
    assert "env-not-string" in {finding.rule for finding in lint(text, "mine.yaml")}
    assert "value: *number" in mend(text, "mine.yaml").text
    assert "x: &number 60" in mend(text, "mine.yaml").text


# --- what several places share ----------------------------------------------------------------------------------------

HEAD = ENGINE[: ENGINE.index("  experiments:")]
SHARED = {
    "a value of two probes": ENGINE.replace("runProperties:\n", "runProperties: &own\n").replace(
        "probeTimeout: 2s", "probeTimeout: 100"
    )
    + PROBE.replace("runProperties:\n          probeTimeout: 3s\n          interval: 3s\n", "runProperties: *own\n"),
    "a comparator of two probes": ENGINE.replace(
        '{criteria: "<=", value: "0.1"}', '&own {type: float, criteria: "<=", value: "0.1"}'
    )
    + PROBE.replace('{type: string, criteria: contains, value: "1"}', "*own"),
    "an environment of two faults": HEAD
    + """\
  experiments:
  - name: node-memory-hog
    spec:
      components:
        env: &env
        - {name: TOTAL_CHAOS_DURATION, value: "60"}
        - {name: TARGET_NODES, value: n1}
        - {name: MEMORY_CONSUMPTION_MEBIBYTES, value: "40"}
  - name: our-own-fault
    spec: {components: {env: *env}}
""",
    "a spec that is also elsewhere": """\
x-spec: &spec
  chaosServiceAccount: chaos
  appinfo: {appns: n, applabel: app=x, appkind: deployment}
  experiments:
  - name: pod-cpu-hog
    spec: {components: {env: [{name: TOTAL_CHAOS_DURATION, value: "60"}]}}
items:
- {apiVersion: litmuschaos.io/v1alpha1, kind: ChaosEngine, metadata: {name: a}, spec: *spec}
""",
    "a merged mapping": ENGINE.replace("metadata:", "x: &x {rank: 1, a: b}\nmetadata:").replace(
        "    spec:\n", "    spec:\n      <<: *x\n"
    ),
}


@pytest.mark.parametrize("text", SHARED.values(), ids=SHARED)
def test_what_several_places_share_is_left_to_the_author(text: str) -> None:
    assert lint(text, "mine.yaml")
    result = mend(text, "mine.yaml")
    assert (result.text, result.fixed) == (text, ())


def test_what_an_anchor_that_nobody_uses_marks_is_mended() -> None:
    text = ENGINE.replace("appkind: deployment", "appkind: Deployment").replace("appinfo:", "appinfo: &unused")
    assert mend(text, "mine.yaml").text == text.replace("Deployment", "deployment")


# --- JSON -------------------------------------------------------------------------------------------------------------


def json_engine() -> tuple[dict[str, Any], dict[str, Any]]:
    """One with many hazards, and what is to become of it."""
    document = yaml.safe_load(ENGINE)
    bad = json.loads(json.dumps(document))
    del bad["spec"]["terminationGracePeriodSeconds"]
    bad["spec"]["appinfo"]["appkind"] = "Deployment"
    experiment = bad["spec"]["experiments"][0]["spec"]
    experiment["components"]["env"][0]["value"] = 60
    experiment["probe"][0]["runProperties"] |= {"interval": 2, "initialDelaySeconds": 5}
    document["spec"]["experiments"][0]["spec"]["probe"][0]["runProperties"]["initialDelay"] = "5s"
    return bad, document


@pytest.mark.parametrize("indent", [None, 2])
def test_json_stays_json(indent: int | None) -> None:
    bad, good = json_engine()
    assert json.loads(mend(json.dumps(bad, indent=indent), "mine.json").text) == good


@pytest.mark.parametrize("indent", [None, 2])
def test_json_in_json_stays_json(indent: int | None) -> None:
    bad, good = json_engine()
    flow = {"kind": "Workflow", "spec": {"data": json.dumps(bad, indent=indent)}}
    for text in (json.dumps(flow, indent=indent), f"manifest: {json.dumps(json.dumps(flow))}\n"):
        mended = mend(text, "mine").text
        outer = yaml.safe_load(mended)
        outer = json.loads(outer["manifest"]) if "manifest" in outer else json.loads(mended)
        assert json.loads(outer["spec"]["data"]) == good


# --- comments and lines -----------------------------------------------------------------------------------------------


def test_a_comment_on_what_stays_stays_too() -> None:
    text = ENGINE.replace("  - name: pod-n", "  - rank: 1  # first\n    # the important one\n    name: pod-n")
    mended = mend(text, "mine.yaml").text
    assert mended == ENGINE.replace("  - name: pod-n", "  -\n    # the important one\n    name: pod-n")
    assert yaml.safe_load(mended) == yaml.safe_load(ENGINE)


@pytest.mark.parametrize(
    ("finalizers", "left"),
    [
        ("\n  - chaosengine.litmuschaos.io/finalizer\n  - example.com/keep", "\n  - example.com/keep"),
        ("\n  - example.com/keep\n  - chaosengine.litmuschaos.io/finalizer  # x", "\n  - example.com/keep"),
        (" [chaosengine.litmuschaos.io/finalizer, example.com/keep]", " [example.com/keep]"),
    ],
)
def test_of_several_finalizers_only_litmus_own_goes(finalizers: str, left: str) -> None:
    metadata = "metadata: {name: bring-your-own, namespace: inference}"
    block = "metadata:\n  name: a\n  namespace: b\n  finalizers:"
    text = ENGINE.replace(metadata, f"{block}{finalizers}\n  labels: {{a: b}}")
    assert mend(text, "mine.yaml").text == ENGINE.replace(metadata, f"{block}{left}\n  labels: {{a: b}}")


def test_a_new_line_in_a_block_ends_as_the_lines_of_the_file() -> None:
    engine = ENGINE.replace("  terminationGracePeriodSeconds: 60\n", "")
    text = "kind: Workflow\ndata: |\n" + "".join(f"  {line}\n" for line in engine.splitlines())
    mended = mend(text.replace("\n", "\r\n"), "flow.yaml")
    assert [finding.rule for finding in mended.fixed] == ["grace-missing"]
    assert mended.text.count("\r\n") == mended.text.count("\n") == text.count("\n") + 1


# --- the proof --------------------------------------------------------------------------------------------------------


@pytest.fixture
def careless() -> Iterator[None]:
    """A rule whose edit does more than it says."""

    def check(engine: Engine) -> Iterator[Hit]:
        item = engine.root.get("spec", "appinfo", "appns")
        if item and item.value == "inference":
            (edit,) = item.write("other")
            yield Hit(item, "wrong", "write other", (replace(edit, new="other\n      applabel: app=all"),))

    engine_rule("careless", Severity.ERROR, "A test's", "nowhere")(check)
    yield
    del RULES["careless"]


@pytest.mark.usefixtures("careless")
def test_an_edit_that_changes_more_than_it_names_is_not_made_and_its_finding_says_so() -> None:
    text = ENGINE.replace("      applabel", "      # applabel").replace("appkind: deployment", "appkind: Deployment")
    result = mend(text, "mine.yaml")
    assert result.text == text.replace("Deployment", "deployment"), "the others are made all the same"
    (finding,) = [each for each in result.report.findings if each.rule == "careless"]
    assert finding.fix == "write other (by hand: --fix would change more than that)"
    assert finding.edits == ()


BEFORE = "a: &a {b: 1}\nc: *a\nd: [x, y]\ne: 'kind: ChaosEngine'\n"


@pytest.mark.parametrize(
    "after",
    [
        BEFORE.replace("b: 1", "b: 2"),
        BEFORE.replace("b: 1", "b: '1'"),
        BEFORE.replace("b: 1", "b: 1, b: 1"),
        BEFORE.replace("b:", "q:"),
        BEFORE.replace("c: *a", "c: {b: 1}"),
        BEFORE.replace("x, y", "y, x"),
        BEFORE.replace("x, y", "x"),
        BEFORE.replace("[x, y]", "{x: y}"),
        BEFORE.replace("kind: ", "kind:  other: "),
        BEFORE.replace("'kind: ChaosEngine'", "'kind: ChaosEngine\n\n  f: g'"),
        f"{BEFORE}---\n{BEFORE}",
        f"{BEFORE}: [",
    ],
)
def test_any_other_reading_is_seen(after: str) -> None:
    assert reads_as_meant(BEFORE, f"# a comment\n{BEFORE}".replace("[x, y]", '[ "x", y ]'), [])
    assert not reads_as_meant(BEFORE, after, [])


def test_json_that_becomes_other_yaml_is_seen() -> None:
    assert not reads_as_meant('{"a": 1}', "{a: 1}", [])
    assert not reads_as_meant('{"a": "b"}', '{"a": b}', [])


def test_a_change_that_was_to_be_made_and_was_not_is_seen() -> None:
    place = BEFORE.index("[x, y]")
    assert not reads_as_meant(BEFORE, BEFORE, [Change("remove", place, "d")])
    assert reads_as_meant(BEFORE, BEFORE.replace("d: [x, y]\n", ""), [Change("remove", place, "d")])
    assert not reads_as_meant(BEFORE, BEFORE, [Change("remove", place + 1, "d")])
