"""The judge: each reason by a run that has it, and what no run may ever get."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftershock.errors import ExitCode, InputError, SpecError
from aftershock.slo.circumstances import LoadHealth
from aftershock.slo.decision import decide
from aftershock.slo.judge import judge
from aftershock.slo.objective import Objective, Op, QuantileIndicator, RatioIndicator, ScalarIndicator
from aftershock.slo.verdict import Judgement, PhaseValue, Reason, Status, Verdict, VerdictRow
from aftershock.windows import Phase

from .conftest import ERRORS, LATENCY, RECOVERY, TOTAL, WINDOWS, Run, objective, window

SCALAR = objective(ScalarIndicator("up"))
LATE = {Phase.CHAOS: LoadHealth(False, send_lag_p99_s=0.24, offered_rate=60.0, achieved_rate=41.0)}
WATCHED = [float(second) for second in range(50, 81)]
"""Seconds of the run between the end of the fault and that of the recovery phase."""

Case = Callable[[Run], VerdictRow]


def said(phase: Phase = Phase.CHAOS, **load: Any) -> dict[Phase, LoadHealth]:
    """What the load generator says of a phase in which it kept up."""
    return {phase: LoadHealth.from_dict({"keeping_up": True} | load)}


def latency(run: Run, values: list[float], baseline: list[float] | None = None, **given: Any) -> VerdictRow:
    run.histogram("latency", "baseline", baseline or [0.4] * 1200).histogram("latency", "chaos", values)
    return run.row(LATENCY, **given)


def scalar(run: Run, value: float | None = None, status: str = "ok", **given: Any) -> VerdictRow:
    return run.add("o", "value", "chaos", value, status=status).row(SCALAR, **given)


def errors(run: Run, bad: float, total: float = 1800, before: float = 0, **given: Any) -> VerdictRow:
    return run.share("errors", "baseline", before, 1200).share("errors", "chaos", bad, total).row(ERRORS, **given)


def sick(run: Run, sick_until: float, **given: Any) -> VerdictRow:
    run.sick([(second, 100.0 if second < sick_until else 0.0) for second in WATCHED])
    return run.row(replace(RECOVERY, value=given.pop("value", 15.0)), **given)


CASES: dict[Reason, tuple[Verdict, Case]] = {
    Reason.COMPLIES: (Verdict.PASS, lambda run: errors(run, 2)),
    Reason.POINT_COMPLIES: (Verdict.PASS, lambda run: errors(run, 15, policy="point")),
    Reason.BREACHES: (Verdict.FAIL, lambda run: latency(run, [0.4] * 1700 + [2.0] * 100)),
    Reason.POINT_BREACHES: (Verdict.FAIL, lambda run: errors(run, 19, policy="point")),
    Reason.NOT_RECOVERED: (Verdict.FAIL, lambda run: sick(run, 999)),
    Reason.STRADDLES: (Verdict.INCONCLUSIVE, lambda run: errors(run, 18)),
    Reason.TOO_FEW_SAMPLES: (Verdict.INCONCLUSIVE, lambda run: latency(run, [0.4] * 300)),
    Reason.SATURATED: (Verdict.INCONCLUSIVE, lambda run: latency(run, [0.4] * 1780 + [99.0] * 20)),
    Reason.CENSORED: (Verdict.INCONCLUSIVE, lambda run: sick(run, 999, value=60.0)),
    Reason.BASELINE_NOT_STEADY: (Verdict.INCONCLUSIVE, lambda run: errors(run, 90, before=60)),
    Reason.LOAD_FELL_BEHIND: (Verdict.INCONCLUSIVE, lambda run: errors(run, 90, load_health=LATE)),
    Reason.LAST_SCRAPE_MISSED: (Verdict.INCONCLUSIVE, lambda run: errors(run, 0, load_health=said(settled=False))),
    Reason.COUNTS_DISAGREE: (Verdict.INCONCLUSIVE, lambda run: errors(run, 0, load_health=said(sent=1801))),
    Reason.NO_EFFECT: (Verdict.INCONCLUSIVE, lambda run: errors(run, 0, fault_effects=0)),
    Reason.STOPPED: (Verdict.INCONCLUSIVE, lambda run: errors(run, 0, fault_verdict="Stopped")),
    Reason.EMPTY: (Verdict.NO_DATA, lambda run: scalar(run, status="empty")),
    Reason.NAN: (Verdict.NO_DATA, lambda run: scalar(run, status="nan")),
    Reason.INFINITE: (Verdict.NO_DATA, lambda run: scalar(run, math.inf, status="inf")),
    Reason.NO_OBSERVATIONS: (Verdict.NO_DATA, lambda run: errors(run, 0, total=0)),
    Reason.UNREACHABLE: (Verdict.NO_DATA, lambda run: scalar(run, status="unreachable")),
    Reason.MISSING: (Verdict.NO_DATA, lambda run: run.row(LATENCY)),
    Reason.NOT_REVERTED: (
        Verdict.NO_DATA,
        lambda run: sick(run, 0, windows=[replace(window, reverted_at=None) for window in run.windows]),
    ),
    Reason.QUERY_ERROR: (Verdict.ERROR, lambda run: scalar(run, status="error")),
    Reason.INCONSISTENT: (Verdict.ERROR, lambda run: errors(run, 2000)),
    Reason.FAULT_ERROR: (Verdict.ERROR, lambda run: errors(run, 90, fault_verdict="Error")),
}


def test_every_reason_has_a_case() -> None:
    assert set(CASES) == set(Reason)


@pytest.mark.parametrize("reason", Reason)
def test_each_reason_has_its_verdict_and_its_sentence(run: Run, reason: Reason) -> None:
    verdict, case = CASES[reason]
    row = case(run)
    assert (row.verdict, row.reason) == (verdict, reason), row.explanation
    assert row.explanation.startswith(row.display) and row.explanation.endswith(".")
    assert row.target in row.explanation and "{" not in row.explanation and "\n" not in row.explanation


def test_a_sentence_can_be_quoted(run: Run) -> None:
    assert errors(run, 90).explanation == (
        "Error rate was 5 % in the chaos phase (95 % interval 4.086 to 6.106, n = 1800); the whole interval breaches "
        "<= 1 %."
    )
    assert errors(Run(), 90, load_health=LATE).explanation == (
        "Error rate was 5 % in the chaos phase (95 % interval 4.086 to 6.106, n = 1800), but the load generator fell "
        "behind (chaos: send lag P99 240 ms, 41 of 60 requests/s), so <= 1 % was not put to the test."
    )
    assert errors(Run(), 90, before=60).explanation == (
        "Error rate was 5 % in the chaos phase (95 % interval 4.086 to 6.106, n = 1800); <= 1 % was not met before the "
        "fault either (Error rate was 5 % before the fault, against <= 1 %), so this is not attributable to the fault."
    )
    assert latency(Run(), [0.4] * 300).explanation.endswith("that is too few samples to judge <= 800 ms; it takes 368.")
    assert sick(Run(), 52).explanation == (
        "Recovery time was 2 s from the end of the fault (1 to 2); the whole interval complies with <= 15 s."
    )
    assert sick(Run(), 999).explanation == (
        "Recovery time: last broken 30 s after the end of the fault, not back when watching ended, which breaches "
        "<= 15 s."
    )
    assert scalar(Run(), status="unreachable").explanation == (
        "Measured thing, chaos phase: Prometheus did not answer; <= 1 cannot be judged."
    )


def test_a_healthy_run_passes(healthy: Run) -> None:
    judgement = healthy.judge(LATENCY, ERRORS, RECOVERY)
    assert [row.verdict for row in judgement.rows] == [Verdict.PASS] * 3
    assert (judgement.verdict, judgement.exit_code, judgement.notes) == (Verdict.PASS, ExitCode.PASS, ())
    latency = judgement.rows[0]
    assert [value.n for value in latency.phases.values()] == [1200, 1800, 1200]
    assert latency.delta is not None and latency.delta.value == pytest.approx(0)


def test_a_control_run_is_judged_and_says_so(healthy: Run) -> None:
    windows = [replace(window, injected_at=None, reverted_at=None) for window in healthy.windows]
    judgement = healthy.judge(LATENCY, ERRORS, RECOVERY, fault="none", fault_effects=None, windows=windows)
    assert judgement.verdict is Verdict.PASS
    assert judgement.notes == ("Control run: no fault was injected.",)


def test_without_prometheus_every_row_is_no_data_and_the_exit_code_3(run: Run) -> None:
    for phase in Phase:
        run.add("latency", "bucket", phase, None, status="unreachable", detail="connection refused")
        run.add("errors", "bad", phase, None, status="unreachable")
        run.add("errors", "total", phase, None, status="unreachable")
    run.add("recovery", "recovery", "", None, status="unreachable")
    judgement = run.judge(LATENCY, ERRORS, RECOVERY)
    assert {row.reason for row in judgement.rows} == {Reason.UNREACHABLE}
    assert (judgement.verdict, judgement.exit_code) == (Verdict.NO_DATA, ExitCode.INCONCLUSIVE)
    assert judgement.notes == ("Prometheus did not answer, so nothing was measured.",)
    assert "connection refused" in judgement.rows[0].explanation


@pytest.mark.parametrize(
    ("verdicts", "expected", "code"),
    [
        (["ERROR", "FAIL", "NO_DATA"], "ERROR", 4),
        (["PASS", "FAIL", "NO_DATA", "INCONCLUSIVE"], "FAIL", 1),
        (["PASS", "NO_DATA", "INCONCLUSIVE"], "NO_DATA", 3),
        (["PASS", "INCONCLUSIVE"], "INCONCLUSIVE", 3),
        (["PASS"], "PASS", 0),
    ],
)
def test_the_worst_row_decides(verdicts: list[str], expected: str, code: int) -> None:
    worst = max(map(Verdict, verdicts), key=lambda verdict: verdict.rank)
    assert (worst, worst.exit_code) == (expected, code)


def test_rows_for_information_decide_nothing(healthy: Run) -> None:
    healthy.add("o", "value", "chaos", 5)
    judgement = healthy.judge(ERRORS, replace(SCALAR, severity="info"))
    assert [row.verdict for row in judgement.rows] == [Verdict.PASS, Verdict.FAIL]
    assert judgement.verdict is Verdict.PASS


def test_something_must_decide(run: Run) -> None:
    for objectives in ((), (replace(SCALAR, severity="info"),)):
        with pytest.raises(SpecError, match="no objective decides anything"):
            run.judge(*objectives)


def test_bad_calls_are_refused(run: Run) -> None:
    with pytest.raises(InputError, match="policy='lax': allowed: strict, point"):
        run.judge(SCALAR, policy="lax")
    with pytest.raises(InputError, match=r"metrics: there is no column 'role'"):
        judge([SCALAR], pd.DataFrame({"objective": []}), [], policy="strict", fault="none")


def test_the_worst_phase_decides(run: Run) -> None:
    run.share("errors", "baseline", 0, 1200).share("errors", "chaos", 0, 1800).share("errors", "recovery", 60, 1200)
    row = run.row(replace(ERRORS, phases=(Phase.CHAOS, Phase.RECOVERY)))
    assert (row.verdict, row.judged) == (Verdict.FAIL, (Phase.CHAOS, Phase.RECOVERY))
    assert "in the recovery phase" in row.explanation


def test_a_judged_phase_that_did_not_run_is_no_data(healthy: Run) -> None:
    healthy.rows = [row for row in healthy.rows if row["phase"] != "chaos"]
    row = healthy.row(ERRORS, windows=[window for window in healthy.windows if window.phase is not Phase.CHAOS])
    assert (row.verdict, row.reason) == (Verdict.NO_DATA, Reason.MISSING)


def test_an_unsteady_baseline_is_told_even_if_chaos_passes(run: Run) -> None:
    judgement = run.share("errors", "baseline", 60, 1200).share("errors", "chaos", 0, 1800).judge(ERRORS)
    assert judgement.verdict is Verdict.PASS
    assert judgement.notes == ("Baseline not steady: Error rate was 5 % before the fault, against <= 1 %.",)


def test_a_breach_stands_though_the_fault_was_not_seen_to_act(run: Run) -> None:
    judgement = run.share("errors", "chaos", 90, 1800).judge(ERRORS, fault_effects=0, fault_verdict="Stopped")
    assert judgement.verdict is Verdict.FAIL
    assert judgement.notes == (
        "No effect: pod-delete was not seen to act on anything, so its phases prove nothing.",
        "pod-delete was stopped before its time, so no row of the phases it disturbed passes.",
    )


def test_a_baseline_objective_passes_whatever_the_fault_did(run: Run) -> None:
    before = replace(ERRORS, phases=(Phase.BASELINE,))
    run.share("errors", "baseline", 0, 1200).share("errors", "chaos", 0, 1800)
    assert run.row(before, fault_effects=0, fault_verdict="Error").verdict is Verdict.PASS


def test_a_late_baseline_does_not_spoil_the_chaos_phase(run: Run) -> None:
    assert errors(run, 0, load_health={Phase.BASELINE: LoadHealth(False)}).verdict is Verdict.PASS


def test_load_health_is_what_the_load_says_of_itself() -> None:
    document = {"keeping_up": False, "send_lag_p99_s": 0.5, "loop_lag_p99_s": 0.2, "sent": 12, "warnings": ["x"]}
    health = LoadHealth.from_dict(document)
    assert health == LoadHealth(False, send_lag_p99_s=0.5, loop_lag_p99_s=0.2, sent=12, settled=True)
    assert health.text == "send lag P99 500 ms, loop lag P99 200 ms"
    assert health.delay_s == pytest.approx(0.7)
    assert not LoadHealth.from_dict(document | {"settled": False}).settled


@pytest.mark.parametrize("op", [Op.GTE, Op.GT])
def test_objectives_that_want_more_are_judged_from_below(run: Run, op: Op) -> None:
    good = objective(RatioIndicator(total="t", good="g"), op, 99.0)
    for count, verdict in ((1799, Verdict.PASS), (1700, Verdict.FAIL), (1782, Verdict.INCONCLUSIVE)):
        row = Run().share("o", "chaos", count, 1800, role="good").row(good)
        assert row.verdict is verdict


def test_a_saturated_histogram_fails_if_its_last_bound_breaches(run: Run) -> None:
    row = latency(run, [99.0] * 1800)
    assert (row.verdict, row.reason) == (Verdict.FAIL, Reason.BREACHES)
    value = row.phases[Phase.CHAOS]
    assert value.status is Status.AT_LEAST and value.high is None and value.text.startswith(">= 6")
    assert row.delta is None
    assert "was above" in row.explanation


@pytest.mark.parametrize("policy", ["strict", "point"])
@pytest.mark.parametrize("op", Op)
def test_a_saturated_histogram_never_passes(policy: str, op: Op) -> None:
    run = Run().histogram("o", "chaos", [99.0] * 1800)
    quantile = objective(QuantileIndicator("h", 0.99), op, 10.0 if op in (Op.GTE, Op.GT) else 1e6)
    assert run.row(quantile, policy=policy).verdict is Verdict.INCONCLUSIVE


def test_a_p99_fails_with_few_samples_and_cannot_pass(run: Run) -> None:
    assert latency(run, [2.0] * 100).verdict is Verdict.FAIL
    assert latency(Run(), [0.4] * 367).reason is Reason.TOO_FEW_SAMPLES
    assert latency(Run(), [0.4] * 368).verdict is Verdict.PASS


def test_the_median_of_five_is_not_judged_by_its_point() -> None:
    run = Run().histogram("o", "chaos", [0.4] * 5)
    assert run.row(objective(QuantileIndicator("h", 0.5))).reason is Reason.TOO_FEW_SAMPLES


@pytest.mark.parametrize("policy", ["strict", "point"])
def test_min_samples_hold_under_any_policy(policy: str) -> None:
    run = Run().add("o", "value", "chaos", 0.5).add("o", "samples", "chaos", 99)
    counted = objective(ScalarIndicator("q", samples="n"), min_samples=100)
    row = run.row(counted, policy=policy)
    assert (row.reason, row.phases[Phase.CHAOS].n) == (Reason.TOO_FEW_SAMPLES, 99)
    assert row.explanation.endswith("it takes 100.")
    assert run.row(replace(counted, min_samples=99), policy=policy).verdict is Verdict.PASS


def test_a_scalar_without_observations_is_no_data() -> None:
    run = Run().add("o", "value", "chaos", 0.0).add("o", "samples", "chaos", 0)
    assert run.row(objective(ScalarIndicator("q", samples="n"))).reason is Reason.NO_OBSERVATIONS


@pytest.mark.parametrize(
    ("run", "complaint"),
    [
        (Run().add("o", "value", "chaos", 1).add("o", "value", "chaos", 2), "2 series where one is needed"),
        (Run().add("o", "value", "chaos", 1, status="what"), "contradict"),
    ],
)
def test_contradictions_are_errors(run: Run, complaint: str) -> None:
    row = run.row(SCALAR)
    assert row.verdict is Verdict.ERROR and complaint in row.explanation


@pytest.mark.parametrize(
    ("buckets", "reason", "complaint"),
    [
        ({"0.5": 10, "1.0": 20}, Reason.INCONSISTENT, "needs finite buckets"),
        ({"0.5": 10, "what": 20}, Reason.INCONSISTENT, "no bucket bound in the labels"),
        ({"0.5": 90, "1.0": 20, "+Inf": 90}, Reason.INCONSISTENT, "bucket counts fall"),
        ({"0.5": 0, "+Inf": 0}, Reason.NO_OBSERVATIONS, "counted nothing"),
        ({"0.5": math.nan, "+Inf": 5}, Reason.NAN, "NaN"),
    ],
)
def test_histograms_that_are_none(buckets: dict[str, float], reason: Reason, complaint: str) -> None:
    run = Run()
    for bound, count in buckets.items():
        run.add("o", "bucket", "chaos", count, le=bound)
    row = run.row(objective(QuantileIndicator("h", 0.5)))
    assert row.reason is reason and complaint in row.explanation


def test_buckets_of_several_servers_are_added_if_they_are_alike() -> None:
    run = Run()
    for pod in ("a", "b"):
        for bound, count in (("0.5", 500), ("+Inf", 500)):
            run.add("o", "bucket", "chaos", count, le=bound, pod=pod)
    assert run.row(objective(QuantileIndicator("h", 0.5))).phases[Phase.CHAOS].n == 1000
    run.add("o", "bucket", "chaos", 1, le="0.1", pod="b")
    assert "different buckets" in run.row(objective(QuantileIndicator("h", 0.5))).explanation


def test_an_objective_on_a_bucket_bound_is_met_by_that_bucket() -> None:
    run = Run().histogram("o", "chaos", [0.06] * 1000, bounds=[0.05, 0.07, 0.1])  # 0.07 * 1000 is not 70 in floats
    assert run.row(objective(QuantileIndicator("h", 0.99, scale=1000), value=70)).verdict is Verdict.PASS


def test_a_point_on_the_objective_complies() -> None:
    run = Run().share("o", "baseline", 1000, 1000, role="good").share("o", "chaos", 995, 1000, role="good")
    right = objective(RatioIndicator(total="t", good="g"), Op.GTE, 99.5)
    assert run.row(right, policy="point").verdict is Verdict.PASS


def test_the_time_line_of_the_report_is_not_judged(healthy: Run) -> None:
    healthy.add("errors", "timeline", "chaos", 9.0).add("_timeline", "timeline", "", math.nan)
    assert healthy.judge(ERRORS).verdict is Verdict.PASS


def test_a_frame_from_parquet_is_judged_the_same(healthy: Run, tmp_path: Any) -> None:
    objectives = [LATENCY, ERRORS, RECOVERY]
    path = tmp_path / "metrics.parquet"
    healthy.frame(*objectives).to_parquet(path)
    facts = {"policy": "strict", "fault": "pod-delete", "fault_effects": 1, "fault_verdict": "Pass"}
    assert judge(objectives, pd.read_parquet(path), healthy.windows, **facts) == healthy.judge(*objectives)


finite = st.floats(-1e6, 1e6)
maybe = st.none() | finite


@given(finite, maybe, maybe, st.none() | st.integers(0, 10_000), finite, st.sampled_from(Op), st.sampled_from(Status))
def test_pass_and_fail_need_evidence(
    value: float, low: float | None, high: float | None, n: int | None, bound: float, op: Op, status: Status
) -> None:
    low = None if low is None else min(low, value)
    high = None if high is None else max(high, value)
    measured = PhaseValue(value if status.known else None, low, high, n, status)
    for indicator in (QuantileIndicator("h", 0.99), RatioIndicator(total="t", bad="b"), ScalarIndicator("q")):
        given_objective = objective(indicator, op, bound)
        for policy in ("strict", "point"):
            verdict, _ = decide(given_objective, measured, policy)
            if not status.known:
                assert verdict in (Verdict.NO_DATA, Verdict.ERROR)
            if verdict is Verdict.PASS:
                assert status is Status.OK and op.holds(value, bound)
            if verdict is Verdict.FAIL:
                assert not op.holds(value, bound)
        strict, point = decide(given_objective, measured, "strict")[0], decide(given_objective, measured, "point")[0]
        assert {strict, point} != {Verdict.PASS, Verdict.FAIL}


@given(
    st.sampled_from(["ok", "empty", "nan", "inf", "error", "unreachable"]),
    st.sampled_from([math.nan, math.inf, -math.inf]),
    st.sampled_from(["strict", "point"]),
    st.sampled_from(Op),
)
def test_what_is_no_number_never_passes(status: str, value: float, policy: str, op: Op) -> None:
    run = Run()
    for role in ("value", "bad", "total"):
        run.add("o", role, "chaos", value, status=status)
    run.add("o", "bucket", "chaos", value, status=status, le="+Inf")
    run.add("o", "recovery", "", value, seconds=55, status=status)
    for indicator in (ScalarIndicator("q"), RatioIndicator(total="t", bad="b"), QuantileIndicator("h", 0.99)):
        row = run.row(objective(indicator, op, 0.0), policy=policy)
        assert row.verdict in (Verdict.NO_DATA, Verdict.ERROR)
    assert run.row(objective(RECOVERY.indicator, op, 0.0), policy=policy).verdict is not Verdict.PASS


@given(
    st.integers(0, 500), st.integers(0, 500), st.integers(0, 500), st.sampled_from(["strict", "point"]), st.booleans()
)
def test_circumstances_never_better_a_verdict(bad: int, good: int, before: int, policy: str, late: bool) -> None:
    def judged(**given: Any) -> Judgement:
        run = Run().share("errors", "baseline", before, 500).share("errors", "chaos", bad, bad + good)
        return run.judge(ERRORS, policy=policy, **given)

    plain = judged()
    for given_facts in (
        {"fault_effects": 0},
        {"fault_verdict": "Stopped"},
        {"fault_verdict": "Error"},
        {"load_health": {Phase.CHAOS: LoadHealth(not late)}},
    ):
        verdict = judged(**given_facts).verdict
        assert verdict is plain.verdict or verdict in (Verdict.INCONCLUSIVE, Verdict.ERROR)


def test_objective_values_are_shown_with_their_target() -> None:
    row = Run().add("o", "value", "chaos", 0.25).row(Objective("o", "Queue", "requests", Op.LT, 5, SCALAR.indicator))
    assert row.target == "< 5 requests"
    assert row.phases[Phase.CHAOS].text == "0.25"


def test_what_was_not_scraped_to_the_end_proves_nothing(healthy: Run) -> None:
    for phase, spoilt in (
        (Phase.BASELINE, []),
        (Phase.CHAOS, ["latency", "errors", "recovery"]),
        (Phase.RECOVERY, ["recovery"]),
    ):
        judgement = healthy.judge(LATENCY, ERRORS, RECOVERY, load_health=said(phase, settled=False))
        assert [row.objective for row in judgement.rows if row.reason is Reason.LAST_SCRAPE_MISSED] == spoilt
        assert judgement.verdict is (Verdict.INCONCLUSIVE if spoilt else Verdict.PASS)
        assert judgement.notes == (f"Prometheus missed the last values of: {phase}.",)
    assert errors(Run(), 90, load_health=said(settled=False)).verdict is Verdict.INCONCLUSIVE  # a FAIL is none either


def test_counts_must_be_those_of_the_load_generator(healthy: Run) -> None:
    assert healthy.judge(LATENCY, ERRORS, load_health=said(sent=1800)).verdict is Verdict.PASS
    judgement = healthy.judge(LATENCY, ERRORS, load_health=said(sent=1801))
    assert {row.reason for row in judgement.rows} == {Reason.COUNTS_DISAGREE}  # the histogram lacks them too
    assert "Prometheus counted 1800 requests, the load generator sent 1801" in judgement.rows[0].explanation
    assert len(judgement.notes) == 1
    part = replace(ERRORS, indicator=RatioIndicator(total=TOTAL.replace('}}"', '}}",pod="1"'), bad="bad"))
    assert healthy.row(part, load_health=said(sent=1801)).verdict is Verdict.PASS  # counts only some of the requests


@pytest.mark.parametrize("verdict", [None, "Error"])
def test_a_fault_without_an_outcome_is_an_error(healthy: Run, verdict: str | None) -> None:
    judgement = healthy.judge(ERRORS, fault_verdict=verdict, fault_effects=None)
    assert (judgement.verdict, judgement.rows[0].reason) == (Verdict.ERROR, Reason.FAULT_ERROR)
    assert len(judgement.notes) == 1
    assert judge([ERRORS], healthy.frame(ERRORS), WINDOWS, policy="strict", fault="pod-delete").verdict is Verdict.ERROR
    assert healthy.judge(ERRORS, fault="none", fault_verdict=None).verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("fault", "reverted", "notes"),
    [
        ("pod-cpu-hog", 49.5, ("The fault acted for 24 of 30 s of the chaos phase.",)),
        ("pod-cpu-hog", 51.0, ()),
        ("pod-cpu-hog", 30.0, ("The fault acted for 4 of 30 s of the chaos phase.",)),
        ("pod-delete", 30.0, ()),
        ("none", 30.0, ("Control run: no fault was injected.",)),
    ],
)
def test_an_undisturbed_part_of_the_chaos_phase_is_told(
    healthy: Run, fault: str, reverted: float, notes: tuple[str, ...]
) -> None:
    windows = [WINDOWS[0], window(Phase.CHAOS, 25, 55, reverted=reverted), WINDOWS[2]]
    assert healthy.judge(ERRORS, fault=fault, windows=windows).notes == notes


DUE = replace(LATENCY, indicator=QuantileIndicator("aftershock_request_duration_seconds{x='y'}", 0.99, scale=1000))


@pytest.mark.parametrize("policy", ["strict", "point"])
def test_a_breach_within_the_load_generators_own_delay_is_none(policy: str) -> None:
    def judged(objective: Objective, send_s: float, loop_s: float) -> VerdictRow:
        run = Run().histogram("latency", "chaos", [0.88] * 1800)  # in the bucket from 839 to 923 ms
        lags = said(send_lag_p99_s=send_s, loop_lag_p99_s=loop_s)
        return run.row(objective, policy=policy, load_health=lags)

    row = judged(DUE, 0.1, 0.04)
    assert (row.verdict, row.reason) == (Verdict.INCONCLUSIVE, Reason.LOAD_FELL_BEHIND)
    assert "the breach is within its own delay, chaos: send lag P99 100 ms, loop lag P99 40 ms" in row.explanation
    assert judged(DUE, 0.02, 0.01).verdict is Verdict.FAIL
    assert judged(LATENCY, 0.1, 0.04).verdict is Verdict.FAIL  # the server's own histogram does not hold that delay


def test_the_phase_that_decided_gives_the_row_its_numbers(run: Run) -> None:
    run.share("errors", "baseline", 0, 1200).share("errors", "chaos", 0, 1800).share("errors", "recovery", 60, 1200)
    row = run.row(replace(ERRORS, phases=(Phase.CHAOS, Phase.RECOVERY)))
    assert (row.decided_by, row.decisive.value) == (Phase.RECOVERY, 5.0)
    assert row.delta is not None and row.delta.value == 5.0


def test_answers_belong_to_queries_and_not_to_names(healthy: Run) -> None:
    collected = healthy.frame(LATENCY, ERRORS, RECOVERY)

    def again(objective: Objective) -> VerdictRow:
        facts = {"policy": "strict", "fault": "pod-delete", "fault_effects": 3, "fault_verdict": "Pass"}
        return judge([objective], collected, WINDOWS, **facts).rows[0]

    for one in (LATENCY, ERRORS, RECOVERY):
        assert again(one).verdict is Verdict.PASS
        assert again(replace(one, name="renamed")).phases == again(one).phases
    p50 = replace(LATENCY, indicator=QuantileIndicator("duration_seconds", quantile=0.5, scale=1000))
    assert again(p50).verdict is Verdict.PASS  # another quantile of the same buckets
    for other in (
        QuantileIndicator("ttft_seconds", quantile=0.99, scale=1000),
        RatioIndicator(total="all", bad="bad"),
        replace(RECOVERY.indicator, query="other"),
        replace(RECOVERY.indicator, step_s=0.5),
    ):
        name = {QuantileIndicator: "latency", RatioIndicator: "errors"}.get(type(other), "recovery")
        row = again(replace(LATENCY, name=name, indicator=other))
        assert (row.verdict, row.reason) == (Verdict.NO_DATA, Reason.MISSING)
        assert "this run asked another query" in row.explanation


def test_two_objectives_of_one_query_are_not_added_up(healthy: Run) -> None:
    twin = replace(LATENCY, name="twin")
    for phase, count in (("baseline", 1200), ("chaos", 1800), ("recovery", 1200)):
        healthy.histogram("twin", phase, [0.4] * count)
    frame = healthy.frame(LATENCY, twin)
    for name in ("latency", "twin", "third"):
        row = judge([replace(LATENCY, name=name)], frame, WINDOWS, policy="strict", fault="none").rows[0]
        assert row.decisive.n == 1800
