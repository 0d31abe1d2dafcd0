"""Files that are no engines, or mean harm: one line, in little time, and never a traceback."""

from __future__ import annotations

import time

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from aftershock.chaos.lint.linter import LARGEST, lint, mend
from aftershock.errors import EngineError

ENGINE = "apiVersion: litmuschaos.io/v1alpha1\nkind: ChaosEngine\nmetadata: {name: x}\n"
BOMB = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))

UNREADABLE = {
    "open": ("a: [1", "mine.yaml:1: not YAML"),
    "tab": ("a: b\n\tc: d", "mine.yaml:2: not YAML"),
    "binary": ("a: b\nc: \x00\x01", "mine.yaml:2: not YAML"),
    "surrogate": ("a: \ud800", "mine.yaml:1: not YAML"),
    "deep": ("[" * 100_000, "mine.yaml:1: not YAML"),
    "deep block": ("- " * 100_000, "mine.yaml:1: not YAML"),
    "unknown alias": ("a: *b", "mine.yaml:1: not YAML"),
    "huge": ("#" * (LARGEST + 1), "mine.yaml: is 4194305 characters long"),
    "many": ("[" + "1," * 300_000 + "]", "mine.yaml:1: holds more than 200000 YAML values"),
}


@pytest.mark.parametrize(("text", "start"), UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_gets_one_line(text: str, start: str) -> None:
    began = time.monotonic()
    with pytest.raises(EngineError) as caught:
        lint(text, "mine.yaml")
    assert str(caught.value).startswith(start)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 300
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("text", ["", "---\n---\n", "null", "just text", "- 1\n- 2", "kind: Pod", "{}: {}", BOMB])
def test_what_holds_no_engine_has_no_findings(text: str) -> None:
    assert lint(text, "mine.yaml") == []


@pytest.mark.parametrize(
    "spec",
    [
        "spec: []",
        "spec: text",
        "spec: null",
        "spec: {experiments: {a: b}}",
        "spec: {experiments: [text, 1, null, [a], {name: [x]}]}",
        "spec: {appinfo: [a], selectors: text, experiments: [{name: pod-delete, spec: {components: {env: text}}}]}",
        "spec: {experiments: [{name: pod-delete, spec: {components: {env: [a, {name: {a: b}}, {value: 1}]}}}]}",
        "spec: {experiments: [{name: x, spec: {probe: [a, {}, {type: promProbe, promProbe/inputs: [x]}]}}]}",
        "spec: &a {b: *a}",
        "spec: &a {<<: *a}",
        "spec: {<<: [1, {experiments: []}]}",
        "? {a: b}\n: c\nspec: {? [a, b] : c}",
        "spec: !!python/object/apply:os.system ['echo harm']",
        "spec: &a\n  experiments:\n    - *a",
        BOMB + "spec: {experiments: *a29, appinfo: *a29}",
        f"spec: {{<<: [{', '.join(['{a: b}'] * 5000)}]}}",
    ],
)
def test_an_engine_of_any_shape_is_looked_through_and_mended(spec: str) -> None:
    began = time.monotonic()
    text = f"{ENGINE}{spec}\n"
    findings = lint(text, "mine.yaml")
    assert findings
    assert all("\n" not in finding.line_text() for finding in findings)
    mend(text, "mine.yaml")
    assert time.monotonic() - began < 30


@pytest.mark.parametrize("value", ["x" * 100_000, "\\n\\n", "\\u2028", "'\\\"`$(id)", "{{" * 1000, "🌍"])
def test_a_hostile_value_stays_on_the_line_of_its_finding(value: str) -> None:
    text = f'{ENGINE}spec: {{appinfo: {{appns: a, applabel: "a,{value}", appkind: "A{value}"}}}}\n'
    found = [finding.line_text() for finding in lint(text, "mine.yaml")]
    assert found
    assert all(len(line) < 500 and line.isprintable() for line in found)


SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.text(max_size=20), st.sampled_from(["60s", "a,b", "{{x}}"])
)
NAMES = st.sampled_from(
    ["spec", "appinfo", "appkind", "experiments", "name", "env", "value", "components", "probe", "type", "mode"]
) | st.sampled_from(
    ["rank", "runProperties", "interval", "promProbe/inputs", "query", "comparator", "selectors", "status"]
)
TREES = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(NAMES, below, max_size=4), max_leaves=20
)


@settings(max_examples=60, deadline=None)
@given(spec=st.dictionaries(NAMES, TREES, max_size=5), style=st.sampled_from([None, '"', "'", "|"]), flow=st.booleans())
def test_mending_any_engine_ends_and_leaves_an_engine(spec: dict[str, object], style: str | None, flow: bool) -> None:
    document = {"apiVersion": "litmuschaos.io/v1alpha1", "kind": "ChaosEngine", "spec": spec}
    text = yaml.safe_dump(document, default_style=style, default_flow_style=flow, allow_unicode=True)
    mended = mend(text, "mine.yaml")
    assert mended.report.engines == 1
    assert yaml.safe_load(mended.text)["kind"] == "ChaosEngine"
    assert mend(mended.text, "mine.yaml").text == mended.text
