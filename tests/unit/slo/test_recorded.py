"""What the records add to the histograms of the load generator: intervals, contradictions, and failures as slow."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aftershock.slo.objective import Objective, Op, QuantileIndicator
from aftershock.slo.recorded import column_of, failures_counted
from aftershock.slo.resampling import quantile_of_series
from aftershock.slo.verdict import Judgement, PhaseValue, Reason, Status, Verdict, VerdictRow
from aftershock.windows import Phase

from .conftest import LATENCY, Run

OWN = QuantileIndicator('aftershock_request_duration_seconds{phase="{{ phase }}"}', quantile=0.99, scale=1000)
SLOW = replace(LATENCY, indicator=OWN)
RNG = np.random.default_rng(12)
QUICK = (0.1 * np.exp(0.4 * RNG.standard_normal(2000))).tolist()


def records(phase: str, times: Sequence[float | None], **given: Any) -> pd.DataFrame:
    """Requests in the order in which they finished, that is reversed; None failed."""
    answered = [time is not None for time in times]
    frame = pd.DataFrame(
        {
            "phase": phase,
            "seq": range(len(times)),
            "latency_s": [0.001 if time is None else time for time in times],
            "ttft_s": [None if time is None else time / 2 for time in times],
            "outcome": ["ok" if ok else "http_5xx" for ok in answered],
            "output_tokens": 8,
        }
        | given
    )
    return frame.iloc[::-1].reset_index(drop=True)


def judged(
    chaos: Sequence[float | None], objective: Objective = SLOW, baseline: Sequence[float | None] = QUICK, **given: Any
) -> Judgement:
    """A run whose histogram has the times that the records have."""
    run, frames = Run(), []
    for phase, times in (("baseline", baseline), ("chaos", chaos)):
        run.histogram(objective.name, phase, [time for time in times if time is not None])
        frames.append(records(phase, times))
    return run.judge(objective, **{"records": pd.concat(frames)} | given)


def chaos_of(judgement: Judgement, row: int = 0) -> PhaseValue:
    return judgement.rows[row].phases[Phase.CHAOS]


def test_the_interval_is_that_of_the_records_and_the_value_that_of_prometheus() -> None:
    value = chaos_of(judged(QUICK))
    without = chaos_of(judged(QUICK, records=None))
    exact = quantile_of_series(np.array(QUICK) * 1000, 0.99)
    assert value.value == without.value
    assert (value.low, value.high) == (
        pytest.approx(min(exact.low or 0, value.value or 0)),
        pytest.approx(max(exact.high or 0, value.value or 0)),
    )
    assert without.low is not None and (value.low or 0) > without.low  # by up to a bucket
    assert (value.n, value.effective_n) == (2000, exact.dependence.effective_n)
    assert value.detail == f"interval from 2000 records, effective n {value.effective_n}"
    assert without.effective_n is None


def test_the_order_is_that_in_which_requests_were_due() -> None:
    shuffled = pd.concat([records("chaos", QUICK)]).sample(frac=1, random_state=1)
    run = Run().histogram("latency", "chaos", QUICK)
    assert chaos_of(run.judge(SLOW, records=shuffled)) == chaos_of(judged(QUICK))


def test_requests_that_share_their_fate_prove_less_and_that_is_said() -> None:
    spread, burst = list(QUICK), list(QUICK)
    for index in range(60):
        spread[33 * index] = burst[900 + index] = 2.0
    assert not any("independent" in note for note in judged(spread).notes)
    told = judged(burst)
    (row, _) = told.rows
    assert row.decisive.effective_n is not None and row.decisive.effective_n < 200
    assert row.evidence == {"effective_n": row.decisive.effective_n}
    assert "the interval takes requests as independent" in row.decisive.detail
    (note,) = [note for note in told.notes if "independent" in note]
    assert f"{row.display} {row.decisive.effective_n} of 2000 (it takes 368)" in note


def test_the_time_to_the_first_token_has_its_own_column() -> None:
    ttft = replace(SLOW, indicator=replace(OWN, histogram='aftershock_ttft_seconds{phase="{{ phase }}"}'))
    run = Run().histogram("latency", "chaos", [time / 2 for time in QUICK])
    value = chaos_of(run.judge(ttft, records=records("chaos", QUICK)))
    assert value.effective_n is not None and value.low == pytest.approx((chaos_of(judged(QUICK)).low or 0) / 2, rel=0.1)
    unstreamed = run.judge(ttft, records=records("chaos", QUICK, ttft_s=None)).rows
    assert [row.objective for row in unstreamed] == ["latency"] and unstreamed[0].decisive.effective_n is None


@pytest.mark.parametrize(
    "histogram",
    [
        "duration_seconds",
        "aftershock_request_duration_seconds",
        'aftershock_request_duration_seconds{phase="{{ phase }}", pod="a"}',
        'aftershock_inter_token_seconds{phase="{{ phase }}"}',
    ],
)
def test_records_say_nothing_of_other_histograms(histogram: str) -> None:
    other = replace(SLOW, indicator=replace(OWN, histogram=histogram))
    assert column_of(other.indicator) is None
    judgement = judged(QUICK, other)
    assert len(judgement.rows) == 1 and chaos_of(judgement).effective_n is None


def test_spaces_in_a_selector_mean_nothing() -> None:
    assert column_of(replace(OWN, histogram='aftershock_ttft_seconds{ phase="{{phase}}" }')) == "ttft_s"


def test_times_that_prometheus_did_not_count_are_a_contradiction() -> None:
    run = Run().histogram("latency", "chaos", QUICK[:-1])
    judgement = run.judge(SLOW, records=records("chaos", QUICK))
    assert {row.reason for row in judgement.rows} == {Reason.COUNTS_DISAGREE}
    assert "Prometheus counted the times of 1999 answers, the records have 2000" in judgement.rows[0].explanation


def test_a_quantile_in_another_bucket_is_a_contradiction() -> None:
    run = Run().histogram("latency", "chaos", [time * 1.5 for time in QUICK])
    row = run.judge(SLOW, records=records("chaos", QUICK)).rows[0]
    assert row.reason is Reason.COUNTS_DISAGREE
    assert "the 0.99 quantile is between" in row.explanation and "not in the records" in row.explanation


def test_times_on_the_bounds_of_buckets_are_none() -> None:
    run = Run().histogram("latency", "chaos", [0.07] * 1000, bounds=[0.05, 0.07, 0.1])
    row = run.judge(SLOW, records=records("chaos", [0.07] * 1000)).rows[0]
    assert (row.verdict, row.reason) == (Verdict.PASS, Reason.COMPLIES)


def beside(judgement: Judgement) -> VerdictRow:
    row = judgement.rows[1]
    assert (row.objective, row.severity) == ("latency-failures-slow", "info")
    assert row.display == "P99 latency, failures counted as slow"
    return row


def with_failures(every: int) -> list[float | None]:
    return [None if index % every == 0 else time for index, time in enumerate(QUICK)]


def test_without_failures_both_rows_agree() -> None:
    judgement = judged(QUICK)
    assert beside(judgement).verdict is judgement.rows[0].verdict is Verdict.PASS
    assert "0 of 2000 requests failed" in beside(judgement).decisive.detail


def test_failures_that_are_more_than_the_tail_breach_whatever_they_took() -> None:
    judgement = judged(with_failures(20))
    assert judgement.rows[0].verdict is Verdict.PASS  # the answers are as fast as ever
    row = beside(judgement)
    assert (row.verdict, row.reason) == (Verdict.FAIL, Reason.BREACHES)
    assert row.decisive.status is Status.AT_LEAST and row.decisive.text == ">= 800"
    assert row.decisive.detail.startswith("100 of 2000 requests failed")
    assert judgement.verdict is Verdict.PASS  # it informs


@pytest.mark.parametrize("policy", ["strict", "point"])
def test_the_load_generators_delay_does_not_explain_a_failure(policy: str) -> None:
    from aftershock.slo.circumstances import LoadHealth

    health = {Phase.CHAOS: LoadHealth(True, send_lag_p99_s=0.5, loop_lag_p99_s=0.5)}
    assert beside(judged(with_failures(20), load_health=health, policy=policy)).verdict is Verdict.FAIL


def test_failures_about_as_many_as_the_tail_prove_neither_side() -> None:
    for every in (90, 110):
        row = beside(judged(with_failures(every)))
        assert (row.verdict, row.reason) == (Verdict.INCONCLUSIVE, Reason.STRADDLES), every
        assert row.decisive.high is None


def test_few_failures_comply() -> None:
    assert beside(judged(with_failures(500))).verdict is Verdict.PASS


def test_failures_count_among_few_requests_too() -> None:
    row = beside(judged(with_failures(20)[:200]))
    assert row.reason in (Reason.BREACHES, Reason.STRADDLES, Reason.TOO_FEW_SAMPLES)
    assert row.verdict is not Verdict.PASS


def test_a_phase_of_failures_alone_has_no_value_and_no_second_one() -> None:
    judgement = judged([None] * 500)
    assert [row.reason for row in judgement.rows] == [Reason.NO_OBSERVATIONS] * 2


def test_requests_that_we_gave_up_say_nothing() -> None:
    frame = records("chaos", with_failures(20))
    frame["outcome"] = frame["outcome"].replace("http_5xx", "cancelled")
    run = Run().histogram("latency", "chaos", [time for time in with_failures(20) if time is not None])
    assert beside(run.judge(SLOW, records=frame)).decisive.detail.startswith("0 of 1900 requests failed")


def test_without_records_there_is_one_row() -> None:
    assert len(judged(QUICK, records=None).rows) == 1
    assert len(judged(QUICK, records=records("baseline", QUICK)).rows) == 1  # none of the judged phase


def test_a_quantile_that_must_be_large_has_no_second_row() -> None:
    assert failures_counted(replace(SLOW, op=Op.GTE)) is None


def test_a_value_beyond_the_last_bucket_stays_a_lower_bound() -> None:
    value = chaos_of(judged([99.0] * 1000))
    assert value.status is Status.AT_LEAST and value.effective_n is None


def test_the_worth_of_a_value_is_in_the_document() -> None:
    value = chaos_of(judged(QUICK))
    assert PhaseValue.from_dict(value.to_dict()) == value
    assert value.to_dict()["effective_n"] == value.effective_n
    assert math.isfinite(value.to_dict()["low"])
