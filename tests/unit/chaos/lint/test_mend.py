"""Fixes: what has to change changes, and every other byte of the file stays."""

from __future__ import annotations

import pytest

from aftershock.chaos.lint.linter import lint, mend

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
    if rule == "health-check-overridden":
        pair = '        - name: DEFAULT_HEALTH_CHECK\n          value: "true"\n'
        start = "        - name: TOTAL"
        assert result.text == text.replace(start, pair + start)
    else:
        assert mended is not None
        expected = ENGINE if bad else ENGINE.replace("  terminationGracePeriodSeconds: 60\n", "")
        assert result.text == expected.replace(old, mended)
    assert [finding.rule for finding in result.fixed] == [rule]
    assert rule not in {finding.rule for finding in lint(result.text, "mine.yaml")}


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
