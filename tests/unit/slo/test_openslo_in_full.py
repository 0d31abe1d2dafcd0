"""The rest of OpenSLO v1: time slices, composites, alert objects, the selector, and what contradicts what."""

from __future__ import annotations

import pytest

from aftershock.errors import SpecError
from aftershock.slo.objective import (
    Compare,
    CompositeIndicator,
    Objective,
    Op,
    QuantileIndicator,
    RatioIndicator,
    ScalarIndicator,
    SliceCondition,
    SliceIndicator,
    StopCondition,
)
from aftershock.slo.openslo import load_slos, parse
from aftershock.windows import Phase

LATENCY = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: latency
  displayName: P99 latency
  annotations:
    aftershock.io/unit: ms
spec:
  description: The slowest of a hundred.
  service: chat
  budgetingMethod: Timeslices
  indicator:
    metadata: {name: duration}
    spec:
      thresholdMetric:
        metricSource:
          spec:
            histogram: duration_seconds
            quantile: 0.99
            scale: 1000
  timeWindow:
    - duration: 4w
      isRolling: true
  objectives:
    - op: lte
      value: 800
      target: 0.9
      timeSliceTarget: 0.95
      timeSliceWindow: 1m
"""

ERRORS = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: errors
  displayName: Availability
spec:
  budgetingMethod: Timeslices
  indicator:
    metadata: {name: good}
    spec:
      ratioMetric:
        counter: true
        good: {metricSource: {spec: {query: ok_total}}}
        total: {metricSource: {spec: {query: requests_total}}}
  objectives:
    - target: 0.9
      timeSliceTarget: 0.99
      timeSliceWindow: 0.1
"""

COMPOSITE = """\
apiVersion: openslo/v1
kind: SLO
metadata:
  name: journey
  displayName: Journey
  annotations:
    aftershock.io/phases: chaos, recovery
spec:
  budgetingMethod: Occurrences
  objectives:
    - displayName: Failed requests
      indicatorRef: failed
      target: 0.99
      compositeWeight: 3
    - indicator:
        metadata: {name: right}
        spec:
          ratioMetric:
            counter: true
            good: {metricSource: {spec: {query: right_total}}}
            total: {metricSource: {spec: {query: answers_total}}}
      targetPercent: 95
---
apiVersion: openslo/v1
kind: SLI
metadata:
  name: failed
spec:
  ratioMetric:
    counter: true
    bad: {metricSource: {spec: {query: bad_total}}}
    total: {metricSource: {spec: {query: requests_total}}}
"""

RIGHT = """\
          ratioMetric:
            counter: true
            good: {metricSource: {spec: {query: right_total}}}
            total: {metricSource: {spec: {query: answers_total}}}
      targetPercent: 95
"""
"""The part of COMPOSITE that says what its second objective is."""

POLICY = """\
---
apiVersion: openslo/v1
kind: AlertPolicy
metadata:
  name: page
  labels: {team: [a, b]}
spec:
  alertWhenBreaching: true
  conditions:
    - conditionRef: fast-burn
  notificationTargets:
    - kind: AlertNotificationTarget
      metadata: {name: mail}
      spec: {target: email}
---
apiVersion: openslo/v1
kind: AlertCondition
metadata:
  name: fast-burn
spec:
  severity: page
  condition:
    kind: burnrate
    op: gte
    threshold: 14
    lookbackWindow: 1h
    alertAfter: 0m
---
apiVersion: openslo/v1
kind: AlertNotificationTarget
metadata:
  name: chat-room
spec:
  target: chat
"""


def read(text: str, matchers: str = "") -> list[Objective]:
    return list(parse(text, "x.yaml", matchers).objectives)


def complaint(text: str, matchers: str = "") -> str:
    with pytest.raises(SpecError) as caught:
        parse(text, "x.yaml", matchers)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def notes(text: str, matchers: str = "") -> tuple[str, ...]:
    return parse(text, "x.yaml", matchers).notes


def annotated(text: str, annotations: str) -> str:
    """With these annotations in place of the unit."""
    assert "    aftershock.io/unit: ms\n" in text
    return text.replace("    aftershock.io/unit: ms\n", "".join(f"    {one}\n" for one in annotations.split("; ")))


def test_slices_of_a_threshold_are_good_where_its_value_is() -> None:
    (objective,) = read(LATENCY)
    assert objective == Objective(
        name="latency",
        display="P99 latency: slices <= 800 ms",
        unit="%",
        op=Op.GTE,
        value=90.0,
        indicator=SliceIndicator(
            QuantileIndicator("duration_seconds", 0.99, 1000), 60.0, SliceCondition(Op.LTE, 800.0)
        ),
        source="x.yaml:25",
    )


@pytest.mark.parametrize(
    ("part", "condition", "display"),
    [
        ("good", SliceCondition(Op.GTE, 99.0), "Availability: slices >= 99 %"),
        ("bad", SliceCondition(Op.LTE, 1.0), "Availability: slices <= 1 %"),
    ],
)
def test_slices_of_a_ratio_are_good_from_the_slices_target_on(
    part: str, condition: SliceCondition, display: str
) -> None:
    (objective,) = read(ERRORS.replace("        good: ", f"        {part}: "))
    indicator = objective.indicator
    assert isinstance(indicator, SliceIndicator) and isinstance(indicator.each, RatioIndicator)
    assert (indicator.slice_s, indicator.condition) == (6.0, condition)
    assert (objective.display, objective.op, objective.value, objective.unit) == (display, Op.GTE, 90.0, "%")


def test_ratio_timeslices_hold_the_mean_against_the_target() -> None:
    text = ERRORS.replace("Timeslices", "RatioTimeslices").replace("      timeSliceTarget: 0.99\n", "")
    (objective,) = read(text)
    assert isinstance(objective.indicator, SliceIndicator) and objective.indicator.condition is None
    assert (objective.display, objective.op, objective.value) == ("Availability: mean of slices", Op.GTE, 90.0)
    (bad,) = read(text.replace("        good: ", "        bad: "))
    assert (bad.op, bad.value) == (Op.LTE, 10.0), "the mean share of bad"
    start, end = text.index("        counter"), text.index("  objectives")
    raw = "        rawType: success\n        raw: {metricSource: {spec: {query: ratio}}}\n"
    (ready,) = read(text[:start] + raw + text[end:])
    assert ready.indicator == SliceIndicator(ScalarIndicator("100 * (ratio)"), 6.0)


def test_several_targets_of_slices() -> None:
    more = "    - targetPercent: 99\n      timeSliceTarget: 1.0\n      timeSliceWindow: 2h\n"
    first, second = read(ERRORS + more)
    assert (first.name, second.name, second.value) == ("errors-1", "errors-2", 99.0)
    assert isinstance(second.indicator, SliceIndicator)
    assert (second.indicator.slice_s, second.indicator.condition) == (7200.0, SliceCondition(Op.GTE, 100.0))


@pytest.mark.parametrize("written", ["timeslices", "TimeSlices", "TIMESLICES"])
def test_the_casing_of_time_slices_is_read_leniently_and_told(written: str) -> None:
    assert notes(ERRORS.replace("Timeslices", written)) == (f"x.yaml: errors: '{written}' is read as 'Timeslices'",)
    ratio = ERRORS.replace("Timeslices", "RatioTimeSlices").replace("      timeSliceTarget: 0.99\n", "")
    assert notes(ratio) == ("x.yaml: errors: 'RatioTimeSlices' is read as 'RatioTimeslices'",)


@pytest.mark.parametrize(
    ("text", "old", "new", "expected"),
    [
        (LATENCY, "      timeSliceWindow: 1m\n", "", "x.yaml:25: spec.objectives[0].timeSliceWindow: is missing: Time"),
        (LATENCY, "1m", "30s", "x.yaml:29: spec.objectives[0].timeSliceWindow: '30s' must be a number of minutes"),
        (LATENCY, "1m", "0", "x.yaml:29: spec.objectives[0].timeSliceWindow: 0 must be a number of minutes"),
        (LATENCY, "1m", "2d", "'2d' must be a number of minutes (0.1: six seconds), or such as 1m or 2h, at most 1d"),
        (LATENCY, "1m", "1M", "'1M' must be a number of minutes"),
        (LATENCY, "1m", "true", "True must be a number of minutes"),
        (LATENCY, "      target: 0.9\n", "", "x.yaml:25: spec.objectives[0].target: is missing: time slices are held"),
        (LATENCY, "    - op: lte\n      value", "    - value", "x.yaml:25: spec.objectives[0].op: is missing: a thres"),
        (LATENCY, "Timeslices", "RatioTimeslices", "x.yaml:28: spec.objectives[0].timeSliceTarget: goes with Timeslic"),
        (LATENCY, "Timeslices", "Occurrences", "x.yaml:28: spec.objectives[0].timeSliceTarget: goes with time slices"),
        (
            LATENCY,
            "      timeSliceTarget: 0.95\n",
            "      timeSliceTarget: 1.5\n",
            "x.yaml:28: spec.objectives[0].timeSliceTarget: 1.5 must be less than or equal to 1",
        ),
        (ERRORS, "      timeSliceTarget: 0.99\n", "", "spec.objectives[0].timeSliceTarget: is missing: from which"),
        (ERRORS, "    - target: 0.9\n", "    - op: gt\n", "x.yaml:16: spec.objectives[0].op: goes with a thresholdMet"),
        (
            LATENCY,
            "            histogram: duration_seconds\n            quantile: 0.99\n            scale: 1000\n",
            "            recovery: {query: up, holds: '>= 1'}\n",
            "x.yaml:23: spec.objectives[0]: a recovery time is of the whole run; give budgetingMethod: Occurrences",
        ),
    ],
)  # fmt: skip
def test_slices_are_checked(text: str, old: str, new: str, expected: str) -> None:
    assert old in text
    assert expected in complaint(text.replace(old, new, 1))


def test_a_threshold_has_no_mean_of_ratios() -> None:
    text = LATENCY.replace("Timeslices", "RatioTimeslices").replace("      timeSliceTarget: 0.95\n", "")
    assert complaint(text).startswith("x.yaml:25: spec.objectives[0]: RatioTimeslices takes the mean of ratios: give")


def test_what_slices_cannot_have() -> None:
    assert "a share of time slices is known after the fault only" in complaint(
        annotated(LATENCY, "aftershock.io/stop: 5")
    )
    assert "a drop is of a share of good events" in complaint(annotated(LATENCY, "aftershock.io/compare: drop"))


def test_a_composite_is_its_parts_and_what_they_spend_together() -> None:
    failed, right, journey = read(COMPOSITE)
    assert [one.name for one in (failed, right, journey)] == ["journey-1", "journey-2", "journey"]
    assert [one.severity for one in (failed, right, journey)] == ["info", "info", "critical"]
    assert (failed.display, failed.target) == ("Failed requests", "<= 1 %")
    assert (right.display, right.target) == ("right", ">= 95 %")
    assert (journey.display, journey.target) == ("Journey: error budget spent", "<= 100 %")
    assert {one.phases for one in (failed, right, journey)} == {(Phase.CHAOS, Phase.RECOVERY)}
    assert isinstance(journey.indicator, CompositeIndicator)
    assert [(part.objective.name, part.weight) for part in journey.indicator.parts] == [
        ("journey-1", 3.0),
        ("journey-2", 1.0),
    ]
    assert (failed.source, right.source, journey.source) == ("x.yaml:11", "x.yaml:15", "x.yaml:10")


def test_a_composite_of_time_slices() -> None:
    slices = "      timeSliceTarget: 0.9\n      timeSliceWindow: 1m\n"
    text = COMPOSITE.replace("Occurrences", "Timeslices").replace(
        "      targetPercent: 95\n", "      targetPercent: 95\n" + slices
    )
    text = text.replace("      target: 0.99\n", "      target: 0.99\n" + slices)
    failed, right, journey = read(text)
    assert [one.target for one in (failed, right, journey)] == [">= 99 %", ">= 95 %", "<= 100 %"]
    assert isinstance(failed.indicator, SliceIndicator) and isinstance(right.indicator, SliceIndicator)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  objectives:", "  indicatorRef: failed\n  objectives:", "x.yaml:10: spec.indicatorRef: contradicts the ind"),
        ("      indicatorRef: failed\n", "", "x.yaml:11: spec.objectives[0]: has no indicator, and others have"),
        ("indicatorRef: failed", "indicatorRef: fail", "x.yaml:12: spec.objectives[0].indicatorRef: there is no SLI '"),
        ("compositeWeight: 3", "compositeWeight: 0", "x.yaml:14: spec.objectives[0].compositeWeight: 0 must be greate"),
        ("    - indicator:", "    - indicatorRef: failed\n      indicator:", "x.yaml:15: spec.objectives[1].indicator"),
        ("      target: 0.99\n", "", "x.yaml:11: spec.objectives[0].target: is missing: a ratioMetric is held against"),
        (
            "    aftershock.io/phases: chaos, recovery",
            "    aftershock.io/stop: 50",
            "x.yaml:7: metadata.annotations.aftershock.io/stop: a composite SLO takes aftershock.io/unit, aftershock.i",
        ),
        (
            RIGHT,
            "          thresholdMetric: {metricSource: {spec: {query: up}}}\n      op: gte\n      value: 1\n",
            "x.yaml:15: spec.objectives[1]: has no error budget: in a composite SLO give a ratioMetric, or good or bad",
        ),
        (
            RIGHT,
            "          thresholdMetric: {metricSource: {spec: {bad: a, total: b}}}\n      op: lte\n      value: 0\n",
            "x.yaml:15: spec.objectives[1]: <= 0 % leaves no error budget to spend",
        ),
    ],
)  # fmt: skip
def test_composites_are_checked(old: str, new: str, expected: str) -> None:
    assert old in COMPOSITE
    assert expected in complaint(COMPOSITE.replace(old, new, 1))


def test_alert_objects_are_read_and_left_out() -> None:
    text = ERRORS.replace("  objectives:", "  alertPolicies:\n    - alertPolicyRef: page\n  objectives:") + POLICY
    assert len(read(text)) == 1
    left_out = "is left out: aftershock judges runs, it does not alert"
    assert notes(text) == (
        f"x.yaml:23: AlertPolicy {left_out}",
        f"x.yaml:37: AlertCondition {left_out}",
        f"x.yaml:50: AlertNotificationTarget {left_out}",
        "x.yaml:15: left out: aftershock judges runs, it does not alert",
    )
    assert notes(text.replace("alertPolicyRef: page", "alertPolicyRef: pages"))[-1] == (
        "x.yaml:16: spec.alertPolicies[0].alertPolicyRef: there is no AlertPolicy 'pages' in this text; nothing alerts "
        "here anyway"
    )
    inline = (
        "  alertPolicies:\n    - kind: AlertPolicy\n      metadata: {name: own}\n      spec:\n"
        "        conditions: [{conditionRef: slow-burn}]\n        notificationTargets: [{targetRef: chat-room}]\n"
    )
    assert notes(ERRORS.replace("  objectives:", f"{inline}  objectives:") + POLICY)[-1].startswith(
        "x.yaml:19: spec.alertPolicies[0].spec.conditions[0].conditionRef: there is no AlertCondition 'slow-burn'"
    )
    assert len(read(ERRORS + "  alertPolicies:\n")) == 1, "nothing after the key, as in OpenSLO's own examples"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  alertWhenBreaching: true", "  alertWhenBroken: true", "x.yaml:26: spec.alertWhenBroken: unknown key; allo"),
        ("alertWhenBreaching: true", "alertWhenBreaching: often", "spec.alertWhenBreaching: 'often' must be true or f"),
        ("    - conditionRef: fast-burn\n", "    - conditionRef: a\n    - conditionRef: b\n", "spec.conditions: "),
        ("    - conditionRef: fast-burn", "    - condition: fast-burn", "x.yaml:28: spec.conditions[0].condition: unk"),
        ("      spec: {target: email}", "      spec: {targets: email}", "x.yaml:32: spec.notificationTargets[0].spec."),
        ("  severity: page\n", "", "x.yaml:38: spec.severity: is missing: such as page"),
        ("kind: burnrate", "kind: forecast", "x.yaml:41: spec.condition.kind: 'forecast' must be burnrate"),
        ("lookbackWindow: 1h", "lookbackWindow: 90s", "x.yaml:44: spec.condition.lookbackWindow: '90s' must be a posi"),
        ("threshold: 14", "threshold: many", "x.yaml:43: spec.condition.threshold: 'many' must be a number"),
        ("    alertAfter: 0m", "    alertAfter: 0", "x.yaml:45: spec.condition.alertAfter: 0 must be text"),
        ("op: gte", "op: above", "x.yaml:42: spec.condition.op: 'above' must be lte, gte, lt or gt"),
        ("  target: chat", "  description: x", "x.yaml:51: spec.target: is missing: such as email"),
        ("name: chat-room", "name: Chat_Room", "'Chat_Room' must be 1 to 63 of"),
        ("labels: {team: [a, b]}", "labels: {team: [1]}", "x.yaml:24: metadata.labels.team: [1] must be text or a lis"),
        ("labels: {team: [a, b]}", "labels: {-team: a}", "x.yaml:24: metadata.labels.-team: '-team' must be at most 6"),
    ],
)  # fmt: skip
def test_alert_objects_are_checked(old: str, new: str, expected: str) -> None:
    assert old in POLICY
    assert expected in complaint(ERRORS + POLICY.replace(old, new, 1))


@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("{duration: 1M, calendar: {startTime: 2026-01-01 00:00:00, timeZone: Europe/Berlin}}", ""),
        ("{duration: 1M, isRolling: false, calendar: {startTime: '2026-01-01 00:00:00', timeZone: UTC}}", ""),
        ("{duration: 1M, isRolling: true, calendar: {startTime: 2026-01-01 00:00:00, timeZone: UTC}}", "give either i"),
        ("{duration: 1M}", "x.yaml:22: spec.timeWindow[0]: give either isRolling: true or calendar"),
        ("{duration: 1M, calendar: {startTime: 2026-01-01, timeZone: UTC}}", "must be YYYY-MM-DD HH:MM:SS"),
        ("{duration: 1M, calendar: {startTime: 2026-01-01T00:00:00Z, timeZone: UTC}}", "without a time zone"),
        ("{duration: 1M, calendar: {startTime: '2026-13-01 00:00:00', timeZone: UTC}}", "startTime"),
        ("{duration: 1M, calendar: {startTime: 2026-01-01 00:00:00, timeZone: Berlin}}", "'Berlin' is no time zone of"),
        ("{duration: 1M, calendar: {startTime: 2026-01-01 00:00:00}}", "spec.timeWindow[0].calendar.timeZone: is miss"),
        ("{duration: 4w, isRolling: true}\n    - {duration: 4w, isRolling: true}", "spec.timeWindow: "),
    ],
)  # fmt: skip
def test_time_windows_are_checked(window: str, expected: str) -> None:
    text = LATENCY.replace("    - duration: 4w\n      isRolling: true\n", f"    - {window}\n")
    if expected:
        assert expected in complaint(text)
    else:
        assert len(read(text)) == 1


def test_what_all_objects_have_is_checked() -> None:
    long = complaint(LATENCY.replace("The slowest of a hundred.", "x" * 1051))
    assert long.startswith("x.yaml:9: spec.description: 'xxx") and long.endswith(" must have at most 1050 characters")
    assert len(long) < 200
    assert "metadata.annotations.aftershock.io/" in complaint(LATENCY.replace("aftershock.io/unit", "aftershock.io/"))


def test_where_a_data_source_is_does_not_matter_and_that_is_told() -> None:
    source = (
        "---\napiVersion: openslo/v1\nkind: DataSource\nmetadata: {name: prom}\n"
        "spec:\n  type: Prometheus\n  connectionDetails: {url: 'http://elsewhere:9090'}\n"
    )
    text = ERRORS.replace("good: {metricSource: {spec", "good: {metricSource: {metricSourceRef: prom, spec") + source
    assert notes(text) == ("x.yaml:25: left out: the run's prometheus_url says where Prometheus is",)


SELECTED = LATENCY.replace(
    "histogram: duration_seconds", 'histogram: duration_seconds{phase="{{ phase }}", {{ selector }}}'
)


@pytest.mark.parametrize(
    ("matchers", "histogram"),
    [
        ("", 'duration_seconds{phase="{{ phase }}"}'),
        ('job="vllm"', 'duration_seconds{phase="{{ phase }}", job="vllm"}'),
        ('job="vllm",pod=~"a|b{2}"', 'duration_seconds{phase="{{ phase }}", job="vllm",pod=~"a|b{2}"}'),
    ],
)
def test_the_selector_is_filled_in_where_matchers_are(matchers: str, histogram: str) -> None:
    (objective,) = read(SELECTED, matchers)
    assert isinstance(objective.indicator, SliceIndicator)
    assert objective.indicator.each == QuantileIndicator(histogram, 0.99, 1000)
    assert notes(SELECTED, matchers) == ()


def test_the_selector_is_for_every_kind_of_query() -> None:
    text = ERRORS.replace("query: ok_total", "query: 'ok_total{ {{ selector }} }'")
    (objective,) = read(text, 'job="a"')
    assert isinstance(objective.indicator, SliceIndicator)
    assert objective.indicator.each == RatioIndicator(
        good='sum(increase(ok_total{ job="a" }[{{ window }}]))', total="sum(increase(requests_total[{{ window }}]))"
    )
    recovery = (
        LATENCY.replace("Timeslices", "Occurrences").replace("timeSlice", "#").replace("aftershock.io/unit: ms", "a: b")
    )
    recovery = recovery.replace(
        "            histogram: duration_seconds\n            quantile: 0.99\n            scale: 1000\n",
        "            recovery: {query: 'rate(x{ {{ selector }} }[{{ lookback }}])', holds: '<= 1'}\n",
    )
    (back,) = read(recovery, 'job="a"')
    assert 'rate(x{ job="a" }[{{ lookback }}])' in str(back.indicator)


def test_a_selector_that_selects_nothing_is_told() -> None:
    assert notes(LATENCY, 'job="a"') == (
        'x.yaml: no query has {{ selector }}, so the selector job="a" selects nothing here; put it there',
    )


@pytest.mark.parametrize(
    "query", ["duration_seconds{ a='b' {{ selector }} }", "duration_seconds{ {{ selector }} a='b' }", "x{{ selector }}"]
)
def test_a_selector_elsewhere_is_refused(query: str) -> None:
    text = LATENCY.replace("histogram: duration_seconds", f'histogram: "{query}"')
    for matchers in ("", 'job="a"'):
        assert complaint(text, matchers).startswith(
            "x.yaml:18: spec.indicator.spec.thresholdMetric.metricSource.spec.histogram: "
        )
        assert "{{ selector }} stands between the braces of a selector, with commas" in complaint(text, matchers)


def test_specs_take_the_selector_by_name() -> None:
    assert [one.name for one in load_slos("canary", "")] == [one.name for one in load_slos("canary", 'job="a"')]


PLAIN = LATENCY.replace("Timeslices", "Occurrences").replace(
    "      timeSliceTarget: 0.95\n      timeSliceWindow: 1m\n", ""
)


def test_a_relative_objective_is_a_row_beside_the_absolute_one() -> None:
    absolute, relative = read(
        annotated(PLAIN, "aftershock.io/unit: ms; aftershock.io/relative: <= +10%; aftershock.io/stop: 900")
    )
    assert (absolute.name, absolute.target, absolute.compare) == ("latency", "<= 800 ms", Compare.VALUE)
    assert absolute.stop == StopCondition(900.0)
    assert (relative.name, relative.display, relative.target) == ("latency-relative", "P99 latency, change", "<= 10 %")
    assert (relative.compare, relative.stop, relative.indicator) == (Compare.RELATIVE, None, absolute.indicator)
    assert relative.source == "x.yaml:8"


@pytest.mark.parametrize(
    ("written", "op", "value"),
    [("< 5 %", Op.LT, 5.0), ("<=-2.5%", Op.LTE, -2.5), ("<= 0%", Op.LTE, 0.0)],
)
def test_ways_to_write_a_relative_objective(written: str, op: Op, value: float) -> None:
    _, relative = read(annotated(PLAIN, f"aftershock.io/relative: '{written}'"))
    assert (relative.op, relative.value) == (op, value)


@pytest.mark.parametrize(("compare", "unit"), [("increase", "ms"), ("relative", "%")])
def test_the_objective_itself_may_be_a_comparison(compare: str, unit: str) -> None:
    (objective,) = read(annotated(PLAIN, f"aftershock.io/unit: ms; aftershock.io/compare: {compare}"))
    assert (objective.compare, objective.unit, objective.value) == (Compare(compare), unit, 800.0)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ("aftershock.io/relative: 10%", "x.yaml:7: metadata.annotations.aftershock.io/relative: '10%' must be <=, >=,"),
        ("aftershock.io/relative: '<= 10'", "'<= 10' must be <=, >=, < or > and a percentage of the baseline, such as"),
        ("aftershock.io/relative: '>= -10%'", "'>= -10%' contradicts <= 800: one of them takes for worse what is bett"),
        ("aftershock.io/relative: <= 1%; aftershock.io/compare: increase", "is a comparison itself (compare: increase"),
        ("aftershock.io/relative: <= 1%; aftershock.io/phases: baseline", "the baseline cannot be compared with itsel"),
        ("aftershock.io/compare: relative; aftershock.io/phases: baseline,chaos", "x.yaml:8: metadata.annotations.aft"),
        ("aftershock.io/compare: increase; aftershock.io/stop: 900", "a change is known after the fault only; leave t"),
        ("aftershock.io/compare: rise", "allowed: value, drop, increase, relative"),
        ("aftershock.io/baseline: last-5-passed", "x.yaml:7: metadata.annotations.aftershock.io/baseline: unknown ann"),
    ],
)  # fmt: skip
def test_comparisons_are_checked(annotations: str, expected: str) -> None:
    assert expected in complaint(annotated(PLAIN, annotations))


def test_a_recovery_time_is_compared_with_nothing() -> None:
    recovery = PLAIN.replace(
        "            histogram: duration_seconds\n            quantile: 0.99\n            scale: 1000\n",
        "            recovery: {query: up, holds: '>= 1'}\n",
    )
    for annotation in ("aftershock.io/relative: <= 10%", "aftershock.io/compare: relative"):
        assert "a recovery time has no baseline to be compared with" in complaint(annotated(recovery, annotation))
