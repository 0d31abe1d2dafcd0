"""OpenSLO documents: what is read from good ones, and where bad ones are said to be wrong."""

import logging
import re
from pathlib import Path

import pytest

from aftershock.errors import SpecError
from aftershock.files import data_folder
from aftershock.slo.catalog import known_specs
from aftershock.slo.decision import decide
from aftershock.slo.objective import (
    Compare,
    Objective,
    Op,
    QuantileIndicator,
    RatioIndicator,
    RecoveryIndicator,
    ScalarIndicator,
    StopCondition,
)
from aftershock.slo.openslo import load_slos, parse, read_slo_text
from aftershock.slo.promql import check, duration, fill_line, longest_range_s
from aftershock.slo.statistics import wilson
from aftershock.slo.verdict import PhaseValue, Verdict
from aftershock.windows import Phase

GOOD = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: latency
  displayName: P99 latency
  annotations:
    aftershock.io/unit: ms
spec:
  service: chat
  budgetingMethod: Occurrences
  indicator:
    metadata:
      name: duration
    spec:
      thresholdMetric:
        metricSource:
          type: Prometheus
          spec:
            histogram: duration_seconds{phase="{{ phase }}"}
            quantile: 0.99
            scale: 1000
  objectives:
    - op: lte
      value: 800
      target: 0.99
"""

RATIO = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: errors
spec:
  budgetingMethod: Occurrences
  indicator:
    metadata:
      name: failed
    spec:
      ratioMetric:
        counter: true
        bad:
          metricSource:
            spec:
              query: requests_total{code="500"}
        total:
          metricSource:
            spec:
              query: requests_total
  objectives:
    - target: 0.99
"""

SLI = """\
apiVersion: openslo/v1
kind: SLI
metadata:
  name: queue
  annotations:
    aftershock.io/unit: requests
spec:
  thresholdMetric:
    metricSource:
      metricSourceRef: prom
      spec:
        query: max_over_time(waiting[{{ window }}])
        samples: count_over_time(waiting[{{ window }}])
---
apiVersion: openslo/v1
kind: DataSource
metadata:
  name: prom
spec:
  type: prometheus
  connectionDetails:
    url: http://elsewhere:9090
---
apiVersion: openslo/v1
kind: SLO
metadata:
  name: queue
spec:
  budgetingMethod: Occurrences
  indicatorRef: queue
  objectives:
    - op: lt
      value: 1e1
"""

FORM = """            histogram: duration_seconds{phase="{{ phase }}"}
            quantile: 0.99
            scale: 1000
"""
"""The part of GOOD that says how the value is read."""


def read(text: str) -> Objective:
    (objective,) = parse(text, "x.yaml").objectives
    return objective


def complaint(text: str) -> str:
    with pytest.raises(SpecError) as caught:
        parse(text, "x.yaml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_quantile_is_read_in_full() -> None:
    objective = read(GOOD)
    assert objective == Objective(
        name="latency",
        display="P99 latency",
        unit="ms",
        op=Op.LTE,
        value=800,
        indicator=QuantileIndicator('duration_seconds{phase="{{ phase }}"}', 0.99, 1000),
        source="x.yaml:23",
    )
    assert objective.target == "<= 800 ms"


def test_a_share_of_bad_is_an_error_rate_of_the_increases() -> None:
    objective = read(RATIO)
    assert (objective.op, objective.value, objective.unit) == (Op.LTE, 1.0, "%")
    assert objective.indicator == RatioIndicator(
        total="sum(increase(requests_total[{{ window }}]))",
        bad='sum(increase(requests_total{code="500"}[{{ window }}]))',
    )


def test_a_share_of_good_is_held_against_the_target() -> None:
    objective = read(RATIO.replace("bad:", "good:").replace("target: 0.99", "targetPercent: 99.9"))
    assert (objective.op, objective.value) == (Op.GTE, 99.9)
    assert isinstance(objective.indicator, RatioIndicator) and objective.indicator.bad is None


def test_a_ratio_may_have_several_targets() -> None:
    text = RATIO + "    - displayName: Error rate, stretch goal\n      target: 0.999\n"
    first, second = parse(text, "x.yaml").objectives
    assert (first.name, first.value) == ("errors-1", 1.0)
    assert (second.name, second.display, second.value) == ("errors-2", "Error rate, stretch goal", 0.1)


@pytest.mark.parametrize(("kind", "op", "value"), [("success", Op.GTE, 99.0), ("failure", Op.LTE, 1.0)])
def test_a_raw_ratio_is_taken_as_it_is(kind: str, op: Op, value: float) -> None:
    start, end = RATIO.index("        counter"), RATIO.index("  objectives")
    raw = f"        rawType: {kind}\n        raw: {{metricSource: {{spec: {{query: ratio}}}}}}\n"
    objective = read(RATIO[:start] + raw + RATIO[end:])
    assert (objective.indicator, objective.op, objective.value) == (ScalarIndicator("100 * (ratio)"), op, value)


def test_counts_of_their_own_window_are_left_alone() -> None:
    own = 'sum(requests_total{phase="{{ phase }}"})'
    objective = read(RATIO.replace("query: requests_total\n", f"query: {own}\n"))
    assert isinstance(objective.indicator, RatioIndicator) and objective.indicator.total == own


def test_an_indicator_by_reference() -> None:
    objective = read(SLI)
    assert (objective.unit, objective.op, objective.value) == ("requests", Op.LT, 10)
    assert objective.indicator == ScalarIndicator(
        "max_over_time(waiting[{{ window }}])", "count_over_time(waiting[{{ window }}])"
    )


def test_a_drop_of_good_counts() -> None:
    form = "            good: right\n            total: answers\n"
    note = "    aftershock.io/compare: drop\n"
    objective = read(GOOD.replace(FORM, form).replace("    aftershock.io/unit: ms\n", note))
    assert objective.compare is Compare.DROP
    assert (objective.indicator, objective.unit) == (RatioIndicator(total="answers", good="right"), "%")


def test_a_recovery_time() -> None:
    form = (
        "            recovery:\n              query: errors\n              holds: '< 2.5'\n              step: 500ms\n"
    )
    objective = read(GOOD.replace(FORM, form).replace("    aftershock.io/unit: ms\n", "    aftershock.io/unit: s\n"))
    assert objective.indicator == RecoveryIndicator("errors", Op.LT, 2.5, windows=3, step_s=0.5)
    assert (objective.unit, objective.phases) == ("s", (Phase.RECOVERY,))


def test_annotations_of_an_slo() -> None:
    annotations = (
        "    aftershock.io/phases: recovery, chaos\n"
        "    aftershock.io/severity: info\n"
        "    aftershock.io/min-samples: 500\n"
        "    grafana.com/dashboard: https://example.org/d/1\n"
    )
    text = GOOD.replace("    aftershock.io/unit: ms\n", annotations) + "---\n" + RATIO
    objective = parse(text, "x.yaml").objectives[0]
    assert objective.phases == (Phase.CHAOS, Phase.RECOVERY)
    assert (objective.severity, objective.min_samples) == ("info", 500)


def test_everything_else_of_openslo_is_accepted_and_said() -> None:
    text = (
        GOOD.replace("Occurrences", "occurrences").replace("op: lte", "op: LTE")
        + "  timeWindow:\n    - duration: 4w\n      isRolling: true\n"
        + "  alertPolicies:\n    - alertPolicyRef: page\n"
        + "---\napiVersion: openslo/v1\nkind: AlertPolicy\nmetadata:\n  name: page\nspec:\n"
        + "  conditions: [{conditionRef: fast-burn}]\n  notificationTargets: [{targetRef: mail}]\n"
        + "---\napiVersion: openslo/v1\nkind: Service\nmetadata:\n  name: chat\nspec: {}\n"
        + "---\n"
    )
    specification = parse(text, "x.yaml")
    assert len(specification.objectives) == 1
    assert set(specification.notes) == {
        "x.yaml:29: left out: aftershock judges runs, it does not alert",
        "x.yaml:33: AlertPolicy is left out: aftershock judges runs, it does not alert",
        "x.yaml:37: spec.conditions[0].conditionRef: there is no AlertCondition 'fast-burn' in this text; nothing "
        "alerts here anyway",
        "x.yaml:38: spec.notificationTargets[0].targetRef: there is no AlertNotificationTarget 'mail' in this text; "
        "nothing alerts here anyway",
        "x.yaml: latency: 'LTE' is read as 'lte'",
        "x.yaml: latency: 'occurrences' is read as 'Occurrences'",
    }


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (GOOD, "kind: SLO", "kind: SLA", "x.yaml:2: kind: 'SLA' is no OpenSLO kind; allowed: SLO, SLI, DataSource,"),
        (GOOD, "openslo/v1", "openslo/v1alpha", "x.yaml:1: apiVersion: 'openslo/v1alpha' is not supported; allowed:"),
        (GOOD, "kind: SLO\n", "", "x.yaml:1: kind: is missing"),
        (GOOD, "  name: latency\n", "", "x.yaml:3: metadata.name: is missing: the object's name"),
        (GOOD, "name: latency", "name: P99_latency", "x.yaml:4: metadata.name: 'P99_latency' must be 1 to 63 of"),
        (
            GOOD,
            "displayName: P99",
            "displayname: P99",
            "x.yaml:5: metadata.displayname: unknown key; allowed: name, displayName, labels, annotations",
        ),
        (
            GOOD,
            "aftershock.io/unit",
            "aftershock.io/units",
            "x.yaml:7: metadata.annotations.aftershock.io/units: unknown annotation; allowed: aftershock.io/unit, ",
        ),
        (GOOD, "  budgetingMethod: Occurrences\n", "", "x.yaml:8: spec.budgetingMethod: is missing: Occurrences"),
        (
            GOOD,
            "Occurrences",
            "Minutes",
            "x.yaml:10: spec.budgetingMethod: 'Minutes' must be Occurrences, Timeslices or RatioTimeslices",
        ),
        (GOOD, "quantile: 0.99", "quantile: 99", "metricSource.spec.quantile: 99 must be less than 1"),
        (GOOD, "quantile: 0.99", "quantil: 0.99", "x.yaml:20: spec.indicator.spec.thresholdMetric.metricSource.spec.q"),
        (GOOD, "scale: 1000", "scale: .inf", "spec.scale: inf must be finite"),
        (GOOD, "duration_seconds{", "duration_seconds_bucket{", "x.yaml:19:"),
        (GOOD, "duration_seconds{", "rate(x){", "must be a histogram's name, perhaps with matchers"),
        (GOOD, "{{ phase }}", "{{ phas }}", "'phas' is undefined; allowed: {{ phase }}, {{ window }}"),
        (GOOD, "{{ phase }}", "{{ phase.__class__ }}", "access to attribute '__class__' of 'str' object is unsafe"),
        (GOOD, "{{ phase }}", "{{ phase", "x.yaml:19: "),
        (GOOD, FORM, "            histo: x\n", "x.yaml:18: spec.indicator.spec.thresholdMetric.metricSource.spec: g"),
        (GOOD, FORM, "            total: x\n", "give exactly one of good and bad, beside total"),
        (GOOD, "type: Prometheus", "type: Datadog", "metricSource.type: 'Datadog' must be Prometheus"),
        (GOOD, "type: Prometheus", "metricSourceRef: prom", "there is no DataSource 'prom' in this text"),
        (GOOD, "op: lte", "op: <=", "x.yaml:23: spec.objectives[0].op: '<=' must be lte, gte, lt or gt"),
        (GOOD, "value: 800", 'value: "800"', "x.yaml:24: spec.objectives[0].value: '800' must be a number"),
        (GOOD, "value: 800", "value: .nan", "x.yaml:24: spec.objectives[0].value: nan must be finite"),
        (GOOD, "    - op: lte\n      value", "    - value", "x.yaml:23: spec.objectives[0].op: is missing"),
        (GOOD, "value: 800", "value: 800\n      value: 900", "x.yaml:25: spec.objectives[0].value: given twice"),
        (GOOD, "target: 0.99", "target: 1", "x.yaml:25: spec.objectives[0].target: 1 must be less than 1"),
        (GOOD, "target: 0.99", "target: 0", "x.yaml:25: spec.objectives[0].target: 0 must be greater than 0"),
        (GOOD, "target: 0.99", "timeSliceTarget: 0.9", "x.yaml:25: spec.objectives[0].timeSliceTarget: goes with time"),
        (GOOD, "target: 0.99", "compositeWeight: 2", "x.yaml:25: spec.objectives[0].compositeWeight: goes with a comp"),
        (
            GOOD,
            "target: 0.99",
            "target: 0.99\n      targetPercent: 99",
            "x.yaml:26: spec.objectives[0].targetPercent: contradicts target",
        ),
        (GOOD, "  indicator:", "  indicatorRef: duration\n  indicator:", "x.yaml:8: spec: give exactly one of"),
        (GOOD, "  service: chat\n", "  timeWindow:\n    - duration: 30s\n", "spec.timeWindow[0].duration: '30s' must"),
        (GOOD, "spec:\n  service", "spec:\n  - service", "x.yaml:"),
        (GOOD, "  objectives:", "  objectives: []\n  x:", "x.yaml:23: spec.x: unknown key"),
        (GOOD, "kind: SLO", "kind: [SLO", "x.yaml:3: not YAML: "),
        (RATIO, "counter: true", "rawType: success", "x.yaml:11: spec.indicator.spec.ratioMetric: raw and rawType"),
        (RATIO, "        counter: true\n", "", "x.yaml:11: spec.indicator.spec.ratioMetric.counter: is missing"),
        (RATIO, "        total:", "        totals:", "x.yaml:17: spec.indicator.spec.ratioMetric.totals: unknown key"),
        (RATIO, "query: requests_total\n", "query: sum(requests_total)\n", "counts since the server started"),
        (RATIO, "target: 0.99", "op: lte", "x.yaml:22: spec.objectives[0].op: goes with a thresholdMetric"),
        (RATIO, "target: 0.99", "displayName: x", "x.yaml:22: spec.objectives[0].target: is missing"),
        (SLI, "indicatorRef: queue", "indicatorRef: queu", "x.yaml:30: spec.indicatorRef: there is no SLI 'queu'"),
        (SLI, "type: prometheus", "type: CloudWatch", "x.yaml:20: spec.type: 'CloudWatch' must be Prometheus"),
        (SLI, "metricSourceRef: prom", "metricSourceRef: pro", "x.yaml:10: spec.thresholdMetric.metricSource.m"),
        (SLI, "{{ window }}", "{{ selector }}", "x.yaml:12: spec.thresholdMetric.metricSource.spec.query: '"),
        (SLI, "kind: DataSource", "kind: SLI", "unknown key; allowed: description, thresholdMetric, ratioMetric"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(text: str, old: str, new: str, expected: str) -> None:
    assert old in text
    assert expected in complaint(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (
            "phases: chaos, calm",
            "x.yaml:7: metadata.annotations.aftershock.io/phases: 'calm' is no phase; allowed: base",
        ),
        ("severity: warning", "'warning' is no severity; allowed: critical, info"),
        ("compare: rise", "'rise' is no comparison; allowed: value, drop"),
        ("compare: drop", "a drop is of a share of good events; give good and total"),
        ("min-samples: many", "'many' must be a whole number"),
    ],
)
def test_annotations_are_checked(annotation: str, expected: str) -> None:
    assert expected in complaint(GOOD.replace("aftershock.io/unit: ms", f"aftershock.io/{annotation}"))


def test_what_annotations_cannot_be_together() -> None:
    recovery = GOOD.replace(FORM, "            recovery: {query: errors, holds: '<= 1'}\n")
    assert "a recovery time is in s" in complaint(recovery)
    phases = recovery.replace("unit: ms", "phases: chaos")
    assert "a recovery time belongs to the recovery phase" in complaint(phases)
    assert "a recovery time has no samples" in complaint(recovery.replace("unit: ms", "min-samples: 5"))
    scalar = GOOD.replace(FORM, "            query: up\n").replace("unit: ms", "min-samples: 5")
    assert "give PromQL for it under metricSource.spec.samples" in complaint(scalar)
    drop = GOOD.replace(FORM, "            good: right\n            total: answers\n")
    both = drop.replace("unit: ms", "compare: drop\n    aftershock.io/phases: baseline,chaos")
    assert complaint(both).startswith("x.yaml:8: metadata.annotations.aftershock.io/phases: the baseline cannot be")


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ("", None),
        ("\n    aftershock.io/stop: 5000", StopCondition(5000.0, 5.0)),
        ("\n    aftershock.io/stop: 800.5\n    aftershock.io/stop-for: 2m", StopCondition(800.5, 120.0)),
        ("\n    aftershock.io/stop: 1e4\n    aftershock.io/stop-for: 500ms", StopCondition(10_000.0, 0.5)),
    ],
)
def test_a_stop_condition(annotations: str, expected: StopCondition | None) -> None:
    assert read(GOOD.replace("unit: ms", f"unit: ms{annotations}")).stop == expected


def test_a_stop_condition_of_a_share_is_in_the_unit_shown() -> None:
    text = RATIO.replace("  name: errors\n", "  name: errors\n  annotations: {aftershock.io/stop: 50}\n", 1)
    assert read(text).stop == StopCondition(50.0)
    good = text.replace("        bad:", "        good:")
    assert read(good).stop == StopCondition(50.0), "less than 50 % good"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ("stop: 800", "x.yaml:7: metadata.annotations.aftershock.io/stop: 800 must be worse than the objective, <="),
        ("stop: 20", "20 must be worse than the objective, <= 800"),
        ("stop: 5 s", "'5 s' must be a number, in the unit shown (none)"),
        ("stop: .inf", "must be a number"),
        ("stop: 900\n    aftershock.io/phases: recovery", "only what is judged in the phase chaos can stop the fault"),
        ("stop-for: 5s", "x.yaml:7: metadata.annotations.aftershock.io/stop-for: says how long a breach of stop has"),
        ("stop: 900\n    aftershock.io/stop-for: 5", "x.yaml:8: metadata.annotations.aftershock.io/stop-for: '5' must"),
        ("stop: 900\n    aftershock.io/stop-for: 0s", "'0s' must be a time such as 500ms, 5s or 1m, at most 600s"),
        ("stop: 900\n    aftershock.io/stop-for: 11m", "'11m' must be a time"),
    ],
)  # fmt: skip
def test_stop_conditions_are_checked(annotations: str, expected: str) -> None:
    assert expected in complaint(GOOD.replace("aftershock.io/unit: ms", f"aftershock.io/{annotations}"))


def test_what_can_stop_nothing_is_refused() -> None:
    share = RATIO.replace("  name: errors\n", "  name: errors\n  annotations: {aftershock.io/stop: 100}\n", 1)
    assert "100 is never passed: a share is at worst 100 %" in complaint(share)
    good = share.replace("stop: 100", "stop: 0").replace("        bad:", "        good:")
    assert "0 is never passed: a share is at worst 0 %" in complaint(good)
    recovery = GOOD.replace(FORM, "            recovery: {query: errors, holds: '<= 1'}\n")
    assert "a recovery time is known after the fault only" in complaint(recovery.replace("unit: ms", "stop: 900"))
    drop = GOOD.replace(FORM, "            good: right\n            total: answers\n").replace("value: 800", "value: 1")
    drop = drop.replace("unit: ms", "stop: 50\n    aftershock.io/compare: drop")
    assert "a drop is known after the fault only" in complaint(drop)


def test_the_spec_for_real_services_has_a_brake_and_that_for_showing_faults_has_none() -> None:
    stops = {spec: {one.name: one.stop for one in load_slos(spec) if one.stop} for spec in known_specs()}
    assert stops.pop("canary") == {}
    assert all(stop == {"error-rate": StopCondition(50.0, 5.0)} for stop in stops.values()), stops


@pytest.mark.parametrize(
    ("recovery", "expected"),
    [
        ("{query: 'e{phase=\"{{ phase }}\"}', holds: '<= 1'}", "allowed: {{ lookback }}"),
        ("{query: errors, holds: '== 1'}", "spec.recovery.holds: '== 1' must be <=, >=, < or > and a number"),
        ("{query: errors}", "spec.recovery.holds: is missing: the condition, such as '<= 1'"),
        ("{query: errors, holds: '<= 1', step: 1h}", "spec.recovery.step: '1h' must be a number"),
        ("{query: errors, holds: '<= 1', windows: 0}", "spec.recovery.windows: 0 must be greater than or equal to 1"),
        (
            "soon",
            "x.yaml:19: spec.indicator.spec.thresholdMetric.metricSource.spec.recovery: must be a mapping, not 's",
        ),
    ],
)
def test_recovery_is_checked(recovery: str, expected: str) -> None:
    assert expected in complaint(GOOD.replace(FORM, f"            recovery: {recovery}\n"))


def test_names_are_unique() -> None:
    assert complaint(GOOD + "---\n" + GOOD) == (
        "x.yaml:30: metadata.name: there is another SLO 'latency', at x.yaml:4; rename one"
    )
    several = RATIO + "    - target: 0.999\n"
    clash = several + "---\n" + GOOD.replace("name: latency", "name: errors-1")
    assert "objective 'errors-1' is also at x.yaml:22" in complaint(clash)


def test_a_threshold_takes_one_objective() -> None:
    text = GOOD + "    - op: lte\n      value: 900\n"
    assert complaint(text).startswith("x.yaml:23: spec.objectives[0]: a thresholdMetric takes exactly one objective")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- apiVersion: openslo/v1\n", "x.yaml:1: document: must be a mapping"),
        ("\n", "x.yaml: holds no object of kind SLO"),
        (SLI.partition("---")[0], "x.yaml: holds no object of kind SLO"),
        ("a: &a [*a]\n", "x.yaml:1: apiVersion: is missing"),
        ("[" * 5000, "x.yaml: nested too deeply"),
        ("a: \x00\n", "x.yaml:1: not YAML: special characters are not allowed (0x0)"),
        ("{1: 2}: 3\n", "x.yaml:1: not YAML: "),
        (GOOD.replace("unit: ms", "severity: info"), "x.yaml: every SLO is of severity info"),
    ],
)
def test_texts_without_objectives_are_refused(text: str, expected: str) -> None:
    assert expected in complaint(text)


def test_every_shipped_spec_stands_where_it_says() -> None:
    for name in known_specs():
        lines = (data_folder("slo_specs") / f"{name}.yaml").read_text().splitlines()
        for objective in load_slos(name):
            source, _, line = objective.source.rpartition(":")
            assert source == f"slo_specs/{name}.yaml"
            assert lines[int(line) - 1].lstrip().startswith("- ")


def test_the_specs_of_no_special_use_have_these_rows() -> None:
    for name in ("canary", "llm-inference"):
        objectives = load_slos(name)
        assert [objective.name for objective in objectives] == [
            "latency-p99",
            "ttft-p99",
            "error-rate",
            "accuracy-drop",
            "recovery-time",
        ]
    targets = {objective.name: objective.target for objective in load_slos("llm-inference")}
    assert targets == {
        "latency-p99": "<= 800 ms",
        "ttft-p99": "<= 400 ms",
        "error-rate": "<= 1 %",
        "accuracy-drop": "<= 0.5 points",
        "recovery-time": "<= 15 s",
    }


@pytest.mark.parametrize("spec", known_specs())
def test_recovered_means_within_the_objectives_of_the_spec(spec: str) -> None:
    """The bounds of the recovery query are written again in PromQL; they must be those of the rows above it."""
    found = {objective.name: objective for objective in load_slos(spec)}
    recovery = found["recovery-time"].indicator
    assert isinstance(recovery, RecoveryIndicator)
    (errors, bad), (other, slow) = re.findall(r"/ ([0-9.]+),\s*\"sli\", \"(\w+)\"", recovery.query)
    assert bad == "errors"
    assert float(errors) * 100 == pytest.approx(found["error-rate"].value)
    assert float(other) * 1000 == pytest.approx(found[f"{slow}-p99"].value)
    assert re.findall(r"\[([^]]+)\]", recovery.query) == ["{{ lookback }}"] * 3


def test_the_canary_tells_a_clean_run_from_one_of_two_kills() -> None:
    errors = {objective.name: objective for objective in load_slos("canary")}["error-rate"]
    for failed, verdict in ((0, Verdict.PASS), (3, Verdict.PASS), (25, Verdict.FAIL), (45, Verdict.FAIL)):
        low, high = wilson(failed, 1789)
        value = PhaseValue(100 * failed / 1789, 100 * low, 100 * high, 1789)
        assert decide(errors, value, "strict")[0] is verdict


def test_a_spec_is_a_name_a_file_or_its_text(tmp_path: Path) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(GOOD)
    assert load_slos(str(file))[0].source == f"{file}:23"
    assert load_slos(GOOD)[0].source == "slo:23"
    assert read_slo_text(str(file)) == read_slo_text(GOOD) == GOOD
    assert read_slo_text("canary") == (data_folder("slo_specs") / "canary.yaml").read_text()


@pytest.mark.parametrize("ref", ["canaries", "", "two\nlines"])
def test_an_unknown_name_lists_the_known(ref: str) -> None:
    with pytest.raises(
        SpecError,
        match="no such SLO spec; known are agent, batch, canary, chat, code-completion, llm-inference, rag, and",
    ):
        load_slos(ref)


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_bytes(b"\xff\xfe\x00")
    for ref, reason in (
        (tmp_path / "none.yaml", "No such file"),
        (tmp_path, "Is a dir"),
        (tmp_path / "bad.yaml", "UTF"),
    ):
        with pytest.raises(SpecError, match=reason):
            load_slos(str(ref))


def test_notes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        load_slos(GOOD.replace("op: lte", "op: LTE"))
    assert "'LTE' is read as 'lte'" in caplog.text


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ range(10) }}", "'range' is undefined"),
        ("{% for i in range(9) %}x{% endfor %}", "'range' is undefined"),
        ("{{ phase() }}", "not callable"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{% include 'x' %}", "no loader"),
        ("   ", "PromQL is empty"),
    ],
)
def test_templates_have_nothing_but_phase_and_window(template: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check(template)


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ("up", 0),
        ("sum(rate(a[3000ms])) / sum(rate(b[5s]))", 5),
        ("rate(a[1h30m] offset 2d)", 5400),
        ('max_over_time(rate(a{x="[9h]"}[1m])[10m:1s])', 600),
    ],
)
def test_how_far_a_query_looks_back(query: str, seconds: float) -> None:
    assert longest_range_s(query) == seconds


def test_the_look_back_is_filled_in() -> None:
    assert fill_line("rate(a[{{ lookback }}])", lookback_s=1.5) == "rate(a[1500ms])"
    assert duration(0.0001) == "1ms"
