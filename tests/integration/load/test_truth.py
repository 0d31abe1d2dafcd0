"""Measured times against the server's own: never better than the truth, and worse by no more than the bounds here.

The server runs in a process of its own and tells its times by the monotonic clock. Lower bounds are strict, because a
client that reports less than the truth is wrong; upper bounds leave room for a busy machine.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from aftershock.load.dataset import Item
from aftershock.load.plan import LoadPlan, LoadResult
from aftershock.load.records import read_records
from aftershock.load.runner import run_load
from aftershock.testing.model_server import FakeModelServer

pytestmark = pytest.mark.integration

MakePlan = Callable[..., LoadPlan]

TTFT_S, INTER_TOKEN_S, TOKENS = 0.05, 0.01, 10


def run(plan: LoadPlan) -> tuple[LoadResult, pd.DataFrame]:
    result = asyncio.run(run_load(plan))
    return result, read_records(plan.records_path)


def distinct(n: int) -> list[Item]:
    return [Item(str(i), f"question {i}") for i in range(n)]


@pytest.mark.parametrize("protocol", ["completions", "chat"])
def test_latency_and_ttft_are_those_of_the_server(make_plan: MakePlan, protocol: str) -> None:
    settings = {"ttft_s": TTFT_S, "inter_token_s": INTER_TOKEN_S, "tokens": TOKENS}
    with FakeModelServer(process=True, **settings) as server:
        plan = make_plan(server.url, protocol=protocol, rate=40, seconds=3, items=distinct(400), arrivals="poisson")
        result, records = run(plan)
        served = {entry.prompt: entry for entry in server.served()}
    assert list(records["outcome"].unique()) == ["ok"]
    assert len(records) == result.sent == result.ok > 80
    truth = [served[f"question {seq}"] for seq in records["seq"]]
    true_ttft = np.array([entry.first_token_s - entry.received_s for entry in truth if entry.first_token_s])
    true_latency = np.array([entry.finished_s - entry.received_s for entry in truth if entry.finished_s])
    assert (true_ttft >= TTFT_S).all()

    for measured, true in (("ttft_s", true_ttft), ("latency_s", true_latency)):
        error = records[measured].to_numpy() - true
        assert error.min() > 0, measured
        for q, bound_s in ((0.5, 0.020), (0.99, 0.250)):
            assert np.quantile(error, q) < bound_s, (measured, q)
            assert 0 < np.quantile(records[measured], q) - np.quantile(true, q) < bound_s, (measured, q)

    gaps = np.concatenate(list(records["inter_token_s"]))
    assert len(gaps) == len(records) * (TOKENS - 1)
    assert np.quantile(gaps, 0.5) == pytest.approx(INTER_TOKEN_S, rel=0.3)
    assert (records["output_tokens"] == TOKENS).all()


def test_the_columns_of_a_record_agree(make_plan: MakePlan) -> None:
    with FakeModelServer() as server:
        result, records = run(make_plan(server.url))

    def since_scheduled(column: str) -> pd.Series[float]:
        return (records[column] - records["scheduled_at"]).dt.total_seconds()

    for column, instant in (("latency_s", "finished_at"), ("ttft_s", "first_token_at"), ("send_lag_s", "sent_at")):
        assert np.allclose(records[column], since_scheduled(instant), atol=3e-6), column
    assert (records["send_lag_s"] >= 0).all()
    assert (records["phase"] == "baseline").all()
    offsets = (records["scheduled_at"] - records["scheduled_at"].iloc[0]).dt.total_seconds()
    assert np.allclose(offsets, records["seq"] / 50, atol=3e-6)
    assert abs((records["scheduled_at"].iloc[0] - pd.Timestamp(result.window.start)).total_seconds()) < 3e-6
    assert (records["scheduled_at"] < result.window.end).all()
    assert (records["finished_at"] <= result.window.settled_at).all()
    assert result.offered_rate == pytest.approx(50)
    # The upper bound of a bucket of 10 %, or of the first one.
    assert np.quantile(records["send_lag_s"], 0.99) <= result.send_lag_p99_s + 1e-3


def test_a_pause_of_the_server_is_seen_by_all_that_was_due_in_it(make_plan: MakePlan) -> None:
    """Coordinated omission: a client that waits for the server would send one request meanwhile, and count one."""
    rate, pause_s = 100, 1.0
    pause: dict[str, float] = {}
    with FakeModelServer(process=True, ttft_s=0.005, inter_token_s=0.001) as server:

        def stop_and_go() -> None:
            deadline = time.monotonic() + 10
            while len(server.served()) < 50 and time.monotonic() < deadline:
                time.sleep(0.05)
            os.kill(server.pid, signal.SIGSTOP)
            pause["begin"] = time.time()
            time.sleep(pause_s)
            pause["end"] = time.time()
            os.kill(server.pid, signal.SIGCONT)

        pausing = threading.Thread(target=stop_and_go)
        pausing.start()
        result, records = run(make_plan(server.url, rate=rate, seconds=3))
        pausing.join()
    assert list(records["outcome"].unique()) == ["ok"]
    assert len(records) == result.sent == 3 * rate
    begin, end = (pd.Timestamp(pause[name], unit="s", tz="UTC") for name in ("begin", "end"))
    due_in_it = records[records["scheduled_at"].between(begin, end)]
    assert len(due_in_it) >= rate * pause_s - 1
    # No answer could come before the pause ended, and each request says how long that was from when it was due.
    remaining = (end - due_in_it["scheduled_at"]).dt.total_seconds()
    assert (due_in_it["latency_s"] > remaining - 0.001).all()
    assert due_in_it["latency_s"].max() > 0.97 * pause_s
    # They were sent while the server stood still, not after.
    assert (due_in_it["sent_at"] < end).mean() > 0.8


def test_phases_ask_the_same_items_in_the_same_order_at_the_same_times(make_plan: MakePlan) -> None:
    frames = []
    with FakeModelServer() as server:
        for name, seconds in (("baseline", 1.0), ("chaos", 1.3)):
            path = make_plan(server.url).records_path.with_name(f"{name}.parquet")
            plan = make_plan(server.url, phase=name, seconds=seconds, arrivals="poisson", records_path=path)
            frames.append(run(plan)[1])
    short, long = frames
    assert 20 < len(short) < len(long)
    assert list(short["item_id"]) == list(long["item_id"])[: len(short)]
    assert list(short["item_id"]) == [f"item-{seq % 7}" for seq in range(len(short))]
    offsets = [(frame["scheduled_at"] - frame["scheduled_at"].iloc[0]).dt.total_seconds() for frame in frames]
    assert np.allclose(offsets[0], offsets[1][: len(short)], atol=3e-6)


def test_answers_are_graded_where_there_is_one(make_plan: MakePlan) -> None:
    items = [
        Item("right", "France", "Paris", "first-word"),
        Item("wrong", "Spain", "Madrid", "first-word"),
        Item("free", "Tell me"),
    ]
    answers = {"France": "Paris it is", "Spain": "Lisbon", "Tell me": "a tale"}
    with FakeModelServer(answers=answers, error_rate=0.3) as server:
        _, records = run(make_plan(server.url, items=items, rate=100))
    answered = records[records["outcome"] == "ok"]
    failed = records[records["outcome"] == "http_5xx"]
    assert min(len(answered), len(failed)) > 10
    assert failed["correct"].isna().all()
    assert failed["answer"].isna().all()
    by_item = answered.groupby("item_id")["correct"]
    assert by_item.apply(lambda values: values.isna().all()).to_dict() == {"free": True, "right": False, "wrong": False}
    assert set(by_item.get_group("right")) == {True}
    assert set(by_item.get_group("wrong")) == {False}
    assert dict(zip(answered["item_id"], answered["answer"], strict=True)) == {
        "right": "Paris it is",
        "wrong": "Lisbon",
        "free": "a tale",
    }
