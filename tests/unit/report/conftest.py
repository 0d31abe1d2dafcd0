"""Runs as they look in life, made from a seed: a service that is simulated request by request, and what was seen of it.

The frames have the columns that the load generator and the collector write, so a report of a simulated run shows what a
report of a real one does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

from aftershock.experiment import Experiment
from aftershock.report.html import render_html
from aftershock.report.markdown import render_markdown
from aftershock.slo.objective import Op
from aftershock.slo.verdict import Delta, Judgement, PhaseValue, Reason, Status, Verdict, VerdictRow
from aftershock.windows import Phase, Window

START = datetime(2026, 12, 1, 5, 30, 4, 300_000, tzinfo=UTC)
LENGTHS_S = {Phase.BASELINE: 20.0, Phase.CHAOS: 30.0, Phase.RECOVERY: 20.0}
BETWEEN_PHASES_S = 3.4
"""A pipeline needs that long to start its next task; nobody sends load then."""
RATE = 60.0
TIMELINE = ("p50_ms", "p90_ms", "p99_ms", "error_percent", "requests_per_s", "ttft_p99_ms")


@dataclass(frozen=True)
class Run:
    """Everything a report is made of."""

    judgement: Judgement
    metrics: pd.DataFrame
    windows: list[Window]
    outcome: dict[str, Any] | None
    experiment: dict[str, Any]
    records: pd.DataFrame | None = None

    def html(self) -> str:
        return render_html(self.judgement, self.metrics, self.windows, self.outcome, self.experiment, self.records)

    def markdown(self) -> str:
        return render_markdown(self.judgement, self.windows, self.outcome, self.experiment)

    def but(self, **changes: Any) -> Run:
        return replace(self, **changes)


@dataclass(frozen=True)
class Service:
    """Two replicas. While one is gone the other does all the work, slower, and what was in flight is lost."""

    kills_s: Sequence[float] = ()
    outage_s: float = 4.0
    median_s: float = 0.0142
    slowdown: float = 6.0
    lost: float = 0.3
    seed: int = 7
    random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "random", np.random.default_rng(self.seed))

    def ask(self, at_s: float) -> tuple[float, str]:
        """Latency and outcome of a request that is scheduled at `at_s` of the run."""
        since = min((at_s - kill for kill in self.kills_s if at_s >= kill), default=math.inf)
        latency = self.median_s * float(self.random.lognormal(0, 0.22))
        if since > self.outage_s:
            return latency, "ok"
        if since < 0.6 and self.random.random() < self.lost:
            return 0.002, "http_5xx"
        backlog = 1 + (self.slowdown - 1) * (1 - since / self.outage_s)
        return latency * backlog * float(self.random.lognormal(0, 0.3)), "ok"


def make_windows(injected_s: float | None = None, reverted_s: float | None = None) -> list[Window]:
    windows, start = [], START
    for phase, seconds in LENGTHS_S.items():
        end = start + timedelta(seconds=seconds)
        faulty = phase is Phase.CHAOS and injected_s is not None
        windows.append(
            Window(
                phase,
                start,
                end,
                end + timedelta(seconds=1.4),
                START + timedelta(seconds=injected_s) if faulty and injected_s is not None else None,
                START + timedelta(seconds=reverted_s) if faulty and reverted_s is not None else None,
            )
        )
        start = end + timedelta(seconds=BETWEEN_PHASES_S)
    return windows


def make_records(service: Service, windows: Sequence[Window]) -> pd.DataFrame:
    rows = []
    for window in windows:
        at, seq = window.start, 0
        while (at := at + timedelta(seconds=float(service.random.exponential(1 / RATE)))) < window.end:
            latency_s, outcome = service.ask((at - START).total_seconds())
            rows.append(
                {
                    "phase": window.phase.value,
                    "seq": seq,
                    "scheduled_at": at,
                    "latency_s": latency_s,
                    "ttft_s": latency_s * 0.35 if outcome == "ok" else None,
                    "outcome": outcome,
                    "error": None if outcome == "ok" else "HTTP 502 from the gateway",
                    "answer": "Paris",
                }
            )
            seq += 1
    return pd.DataFrame(rows)


def make_timeline(records: pd.DataFrame, windows: Sequence[Window], step_s: float = 1.0) -> list[dict[str, Any]]:
    """What Prometheus would answer: each step looks back over two, and where no request ended there is no value."""
    rows = []
    finished = records["scheduled_at"] + pd.to_timedelta(records["latency_s"], unit="s")
    at = windows[0].start + timedelta(seconds=step_s)
    while at <= windows[-1].settled_at:
        recent = records[(finished > at - timedelta(seconds=2 * step_s)) & (finished <= at)]
        values = summarize(recent, 2 * step_s)
        for name in TIMELINE:
            rows.append(timeline_row(name, at, values.get(name)))
        at += timedelta(seconds=step_s)
    return rows


def summarize(recent: pd.DataFrame, seconds: float) -> dict[str, float]:
    if recent.empty:
        return {}
    good = recent[recent["outcome"] == "ok"]
    out = {"requests_per_s": len(recent) / seconds, "error_percent": 100 * (1 - len(good) / len(recent))}
    if len(good):
        for share in (50, 90, 99):
            out[f"p{share}_ms"] = float(np.percentile(good["latency_s"], share)) * 1000
        out["ttft_p99_ms"] = float(np.percentile(good["ttft_s"].astype(float), 99)) * 1000
    return out


def timeline_row(name: str, at: datetime, value: float | None, status: str = "", detail: str = "") -> dict[str, Any]:
    return {
        "objective": "_timeline",
        "role": "timeline",
        "phase": "",
        "at": at,
        "labels": json.dumps({"name": name}),
        "value": math.nan if value is None else value,
        "status": status or ("empty" if value is None else "ok"),
        "detail": detail,
        "query": f'{name}(aftershock_request_duration_seconds_bucket{{phase=~"baseline|chaos|recovery"}}[2s])',
        "range_s": 71.8,
    }


def bucket_row(objective: str, window: Window, status: str = "ok", detail: str = "") -> dict[str, Any]:
    query = f'increase(aftershock_request_duration_seconds_bucket{{phase="{window.phase}"}}[21400ms])'
    return timeline_row("", window.settled_at, 1.0, status, detail) | {
        "objective": objective,
        "role": "bucket",
        "phase": window.phase.value,
        "labels": json.dumps({"le": "0.1"}),
        "query": query,
        "range_s": window.settled_seconds,
    }


def value(number: float, low: float | None = None, high: float | None = None, n: int | None = None) -> PhaseValue:
    return PhaseValue(number, low, high, n)


def phases(baseline: PhaseValue, chaos: PhaseValue, recovery: PhaseValue) -> dict[Phase, PhaseValue]:
    return {Phase.BASELINE: baseline, Phase.CHAOS: chaos, Phase.RECOVERY: recovery}


def latency_row(records: pd.DataFrame, limit: float = 60) -> VerdictRow:
    good = records[records["outcome"] == "ok"]
    values = {}
    for phase in Phase:
        latencies = np.sort(good.loc[good["phase"] == phase.value, "latency_s"].to_numpy()) * 1000
        low, mid, high = (float(np.quantile(latencies, share)) for share in (0.983, 0.99, 0.996))
        values[phase] = value(mid, low, high, len(latencies))
    base, chaos = values[Phase.BASELINE].value or 0, values[Phase.CHAOS].value or 0
    fails = chaos > limit
    return VerdictRow(
        "p99-latency",
        "P99 latency",
        "ms",
        Op.LTE,
        limit,
        values,
        (Phase.CHAOS,),
        Phase.CHAOS,
        Verdict.FAIL if fails else Verdict.PASS,
        Reason.BREACHES if fails else Reason.COMPLIES,
        f"P99 latency was {chaos:.4g} ms during chaos, {'over' if fails else 'within'} the SLO of {limit:g} ms, "
        f"with its whole 95 % interval ({values[Phase.CHAOS].low:.4g} to {values[Phase.CHAOS].high:.4g} ms).",
        Delta(chaos - base, percent=100 * (chaos - base) / base),
    )


def other_rows(records: pd.DataFrame) -> list[VerdictRow]:
    def failed(phase: Phase) -> tuple[float, int]:
        rows = records[records["phase"] == phase.value]
        return 100 * float((rows["outcome"] != "ok").mean()), len(rows)

    (base, n0), (chaos, n1), (after, n2) = (failed(phase) for phase in Phase)
    errors = VerdictRow(
        "error-rate",
        "Error rate",
        "%",
        Op.LTE,
        1,
        phases(value(base, 0, 0.32, n0), value(chaos, max(0, chaos - 0.41), chaos + 0.6, n1), value(after, 0, 0.3, n2)),
        (Phase.CHAOS,),
        Phase.CHAOS,
        Verdict.INCONCLUSIVE if chaos else Verdict.PASS,
        Reason.STRADDLES if chaos else Reason.COMPLIES,
        f"{chaos:.3g} % of requests failed during chaos; the SLO of 1 % lies inside the 95 % interval."
        if chaos
        else "No request failed during chaos; at most 0.21 % would have gone unseen.",
        Delta(chaos - base),
    )
    accuracy = VerdictRow(
        "accuracy-drop",
        "Accuracy drop",
        "points",
        Op.LTE,
        0.5,
        phases(value(0.0, n=n0), value(0.1, -0.2, 0.3, n0), value(-0.1, -0.4, 0.2, n0)),
        (Phase.CHAOS,),
        Phase.CHAOS,
        Verdict.PASS,
        Reason.COMPLIES,
        "Accuracy dropped by 0.1 points, at most 0.3 points with 95 % confidence (paired by question).",
        Delta(0.1, -0.2, 0.3),
    )
    recovery = VerdictRow(
        "recovery-time",
        "Recovery time",
        "s",
        Op.LTE,
        15,
        {Phase.RECOVERY: value(3.2)},
        (Phase.RECOVERY,),
        Phase.RECOVERY,
        Verdict.PASS,
        Reason.POINT_COMPLIES,
        "The P99 latency was back within its SLO 3.2 s after the last kill, for 3 steps in a row.",
    )
    return [errors, accuracy, recovery]


def make_outcome(kills_s: Sequence[float]) -> dict[str, Any]:
    names = ["model-server-0-x7k2f", "model-server-1-p9q4d", "model-server-0-m2c8t", "model-server-1-zz11a"]

    def event(at_s: float, reason: str, message: str, kind: str = "Normal") -> dict[str, str]:
        at = START + timedelta(seconds=at_s)
        return {"at": at.isoformat(), "reason": reason, "message": message, "type": kind}

    kills = list(zip(kills_s, names, strict=False))
    strikes = [event(at, "ChaosInject", f"Injecting pod-delete chaos on pods: {name}") for at, name in kills]
    return {
        "verdict": "Pass",
        "phase": "Completed",
        "error_code": None,
        "reason": None,
        "injected_at": (START + timedelta(seconds=kills_s[0])).isoformat(),
        "reverted_at": (START + timedelta(seconds=kills_s[-1])).isoformat(),
        "effects": len(kills),
        "evidence": [
            f"{START + timedelta(seconds=at):%H:%M:%S}.300 UTC: {name} (pid {41000 + 7 * index}) was killed; "
            f"{names[(index + 2) % 4]} (pid {41019 + 7 * index}) was ready in its place 3.{index} s later"
            for index, (at, name) in enumerate(kills)
        ],
        "result": {
            "kind": "ChaosResult",
            "status": {
                "history": {"targets": [{"name": name, "kind": "pod", "chaosStatus": "reverted"} for _, name in kills]}
            },
        },
        "events": [
            event(kills_s[0] - 0.9, "ChaosEngineInitialized", "Identifying app under test & launching pod-delete"),
            event(kills_s[0] - 0.5, "PreChaosCheck", "AUT: Running"),
            *strikes,
            event(kills_s[-1] + 6, "PostChaosCheck", "AUT: Running"),
            event(kills_s[-1] + 6.1, "Summary", "pod-delete experiment has been Passed"),
            event(kills_s[-1] + 6.4, "ChaosEngineStopped", "Chaos resources were deleted"),
        ],
        "backend": "local",
    }


def make_experiment(**changes: Any) -> dict[str, Any]:
    given = {"run_id": "20261201-053000-4f2a", "target_url": "http://127.0.0.1:18080"} | changes
    return Experiment.model_validate(given).model_dump(mode="json")


def make_run(service: Service, *, fault: str = "pod-delete", limit: float = 60) -> Run:
    kills = list(service.kills_s)
    windows = make_windows(kills[0], kills[-1]) if kills else make_windows()
    records = make_records(service, windows)
    rows = (latency_row(records, limit), *other_rows(records))
    verdict = max((row.verdict for row in rows), key=lambda verdict: verdict.rank)
    metrics = [bucket_row(row.objective, window) for row in rows for window in windows]
    metrics += make_timeline(records, windows)
    return Run(
        Judgement(rows, verdict, "strict", fault),
        pd.DataFrame(metrics),
        windows,
        make_outcome(kills) if kills else {},
        make_experiment(fault=fault, fault_parameters={"PODS_AFFECTED_PERC": "50"} if kills else {}),
        records,
    )


def without_data(run: Run, detail: str = "127.0.0.1:9090: connection refused") -> Run:
    """`run` with a Prometheus that never answered."""
    rows = tuple(
        replace(
            row,
            phases={phase: PhaseValue(status=Status.UNREACHABLE, detail=detail) for phase in row.phases},
            verdict=Verdict.NO_DATA,
            reason=Reason.UNREACHABLE,
            explanation=f"{row.display} is not known: Prometheus did not answer ({detail}).",
            delta=None,
        )
        for row in run.judgement.rows
    )
    metrics = [bucket_row(row.objective, window, "unreachable", detail) for row in rows for window in run.windows]
    metrics += [timeline_row(name, START, None, "unreachable", detail) for name in TIMELINE]
    return run.but(
        judgement=replace(run.judgement, rows=rows, verdict=Verdict.NO_DATA),
        metrics=pd.DataFrame(metrics),
        records=None,
    )


def made_hostile(run: Run, text: str) -> Run:
    """`run` with `text` wherever a string comes from outside."""

    def empty(row: VerdictRow) -> dict[Phase, PhaseValue]:
        return {phase: replace(one, value=None, status=Status.EMPTY, detail=text) for phase, one in row.phases.items()}

    rows = tuple(
        replace(row, objective=text, display=text, unit=text, explanation=text, phases=empty(row))
        for row in run.judgement.rows
    )
    outcome = dict(run.outcome or {})
    outcome |= {
        "evidence": [text] * 500,
        "verdict": text,
        "reason": text,
        "events": [event | {"message": text} for event in outcome["events"]] * 500,
        "result": {"status": {"history": {"targets": [{"name": text, "kind": text, "chaosStatus": text}]}}},
    }
    metrics = run.metrics.assign(query=text, detail=text, status=text)
    return run.but(
        judgement=replace(run.judgement, rows=rows, fault=text, policy=text, notes=(text,)),
        outcome=outcome,
        metrics=metrics,
        experiment={name: text for name in run.experiment} | {"rate": 60, "fault_parameters": {text: text}},
    )


@pytest.fixture(scope="session")
def failed() -> Run:
    """Two kills: the P99 latency breaks its SLO, the error rate cannot be decided."""
    return make_run(Service(kills_s=(25.3, 38.1)))


@pytest.fixture(scope="session")
def passed() -> Run:
    """A control run in which everything held."""
    return make_run(Service(), fault="none")


@pytest.fixture(scope="session")
def no_data(failed: Run) -> Run:
    """The same as `failed`, but Prometheus never answered and no records are there."""
    return without_data(failed)


@pytest.fixture(scope="session")
def hostile(failed: Run) -> Callable[[str], Run]:
    """Makes `failed` carry a text in every place that comes from outside."""
    return lambda text: made_hostile(failed, text)
