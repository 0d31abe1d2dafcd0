"""How a phase of load begins, ends and fails."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from aftershock.load.client import open_client
from aftershock.load.clock import Clock
from aftershock.load.metrics import PhaseMetrics
from aftershock.load.plan import LoadPlan, LoadProgress
from aftershock.load.protocol import get_protocol
from aftershock.load.records import RecordWriter, parts_folder, read_records
from aftershock.load.runner import run_load
from aftershock.load.sender import Sender, request_bodies
from aftershock.testing.model_server import FakeModelServer
from aftershock.windows import utc_now

pytestmark = pytest.mark.integration

MakePlan = Callable[..., LoadPlan]


def test_a_stop_ends_the_schedule_and_what_is_in_flight_is_drained(make_plan: MakePlan) -> None:
    async def main(plan: LoadPlan) -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        result = await run_load(plan, stop=stop, on_start=lambda: loop.call_later(0.5, stop.set))
        assert result.window.seconds < 5
        records = read_records(plan.records_path)
        assert list(records["outcome"].unique()) == ["ok"]
        assert len(records) == result.sent == result.ok == pytest.approx(result.window.seconds * 50, abs=1)
        # The answers came after the end of the schedule, and are in the phase all the same.
        assert (records["finished_at"] > result.window.end).sum() >= 5
        assert result.window.settled_at >= records["finished_at"].max()

    with FakeModelServer(ttft_s=0.4) as server:
        asyncio.run(main(make_plan(server.url, seconds=600)))


def test_a_stop_before_the_start_sends_nothing(make_plan: MakePlan) -> None:
    async def main(plan: LoadPlan) -> None:
        stop = asyncio.Event()
        stop.set()
        result = await run_load(plan, stop=stop)
        assert result.sent == len(read_records(plan.records_path)) == 0
        assert result.window.start < result.window.end

    asyncio.run(main(make_plan("http://127.0.0.1:1")))


def test_the_drain_is_bounded_by_the_time_out_of_each_request(make_plan: MakePlan) -> None:
    begin = time.monotonic()
    with FakeModelServer(misbehaviour="hang") as server:
        plan = make_plan(server.url, seconds=0.5, request_timeout_s=1.0)
        result = asyncio.run(run_load(plan))
    assert time.monotonic() - begin < 10
    records = read_records(plan.records_path)
    assert (result.sent, result.ok, result.failed) == (25, 0, 25)
    assert list(records["outcome"].unique()) == ["timeout"]
    assert (records["latency_s"] >= 1.0).all()
    assert np.quantile(records["latency_s"], 0.5) < 1.5


def test_a_time_out_counts_from_the_scheduled_time(make_plan: MakePlan, tmp_path: Path) -> None:
    async def main(plan: LoadPlan) -> None:
        writer = RecordWriter(plan.records_path)
        async with open_client(plan.target_url, get_protocol("completions")) as client:
            now = asyncio.get_running_loop().time
            sender = Sender(plan, client, PhaseMetrics(plan.phase), writer, Clock.read())
            begin = now()
            await sender.send(0, begin - 1.5)  # a generator that is 1.5 s late has half a second left
            assert 0.5 <= now() - begin < 1.5
        writer.flush()

    with FakeModelServer(misbehaviour="hang") as server:
        plan = make_plan(server.url, request_timeout_s=2.0)
        asyncio.run(main(plan))
    (record,) = read_records(plan.records_path).to_dict("records")
    assert record["outcome"] == "timeout"
    assert record["latency_s"] >= 2.0
    assert record["send_lag_s"] >= 1.5


def test_a_load_that_is_cancelled_keeps_its_records(make_plan: MakePlan) -> None:
    async def main(plan: LoadPlan) -> None:
        load = asyncio.create_task(run_load(plan))
        while len(await asyncio.to_thread(server.served)) < 40:
            await asyncio.sleep(0.05)
        load.cancel()
        with pytest.raises(asyncio.CancelledError):
            await load
        assert asyncio.all_tasks() == {asyncio.current_task()}

    with FakeModelServer(ttft_s=0.2) as server:
        plan = make_plan(server.url, seconds=600)
        asyncio.run(main(plan))
    records = read_records(plan.records_path)
    counts = records["outcome"].value_counts()
    assert counts["ok"] > 10
    assert counts["cancelled"] > 0
    assert list(records["seq"]) == list(range(len(records)))
    assert parts_folder(plan.records_path).is_dir()


def test_a_phase_that_is_tried_again_keeps_what_the_first_attempt_left(make_plan: MakePlan) -> None:
    async def cut_off(plan: LoadPlan) -> None:
        load = asyncio.create_task(run_load(plan))
        while not any(parts_folder(plan.records_path).glob("*.parquet")):
            await asyncio.sleep(0.05)
        load.cancel()
        await asyncio.gather(load, return_exceptions=True)

    told: list[str] = []
    with FakeModelServer() as server:
        asyncio.run(cut_off(make_plan(server.url, seconds=600)))
        plan = make_plan(server.url, seconds=0.2)
        result = asyncio.run(run_load(plan, on_warning=told.append))
    aside = parts_folder(plan.records_path).with_name("baseline.parquet.parts.1")
    assert f"an earlier attempt at this phase left records; they are in {aside} now" in told
    assert len(read_records(aside)) > 10
    assert len(read_records(plan.records_path)) == result.sent == 10


def test_progress_is_told_about_once_a_second(make_plan: MakePlan) -> None:
    told: list[LoadProgress] = []
    with FakeModelServer(error_rate=0.5) as server:
        result = asyncio.run(run_load(make_plan(server.url, seconds=2.5), on_progress=told.append))
    assert [round(entry.elapsed_s) for entry in told] == [1, 2]
    assert all(entry.sent >= entry.ok + entry.failed for entry in told)
    assert told[0].sent == pytest.approx(50, abs=10)
    assert told[0].sent < told[1].sent < result.sent == result.ok + result.failed == 125
    last = told[-1]
    assert min(last.ok, last.failed) > 10
    assert last.p99_s is not None
    assert 0.02 < last.p99_s < 2
    assert last.send_lag_p99_s is not None


def test_the_start_is_told_before_the_first_request_is_due(make_plan: MakePlan) -> None:
    started: list[datetime] = []
    with FakeModelServer() as server:
        plan = make_plan(server.url, seconds=0.2)
        result = asyncio.run(run_load(plan, on_start=lambda: started.append(utc_now())))
    assert len(started) == 1
    assert started[0] < result.window.start


def test_a_subscriber_that_fails_does_not_end_the_load(make_plan: MakePlan, caplog: pytest.LogCaptureFixture) -> None:
    def fail(progress: LoadProgress) -> None:
        raise ValueError("no terminal")

    with FakeModelServer() as server:
        result = asyncio.run(run_load(make_plan(server.url, seconds=1.2), on_progress=fail))
    assert result.ok == 60
    assert "progress could not be told" in caplog.text


def test_no_success_is_no_percentile(make_plan: MakePlan) -> None:
    told: list[LoadProgress] = []
    with FakeModelServer(error_rate=1) as server:
        asyncio.run(run_load(make_plan(server.url, seconds=1.2), on_progress=told.append))
    assert told[0].p99_s is None
    assert told[0].failed > 0


def test_a_generator_that_falls_behind_says_so(make_plan: MakePlan) -> None:
    def hold_up(progress: LoadProgress) -> None:
        time.sleep(0.6)

    with FakeModelServer() as server:
        result = asyncio.run(run_load(make_plan(server.url, seconds=2), on_progress=hold_up))
    assert not result.keeping_up
    assert result.send_lag_p99_s > 0.3
    assert result.loop_lag_p99_s > 0.3
    assert any("the load generator fell behind" in warning for warning in result.warnings)


IN_A_SMALL_WORLD = """
import asyncio, resource, sys
from pathlib import Path
from aftershock.errors import AftershockError
from aftershock.load.dataset import Item
from aftershock.load.plan import LoadPlan
from aftershock.load.runner import run_load
from aftershock.windows import Phase

what, limit, url, path = resource.__dict__[sys.argv[1]], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])

def shrink(progress=None):
    if progress is not None and progress.elapsed_s < 1.9:
        return
    resource.setrlimit(what, (limit, limit))

items = [Item("a", "b")]
plan = LoadPlan(Phase.CHAOS, url, "fake", "completions", 100.0, "constant", 60.0, items, 16, 0.0, 30.0, 1, path)
if what == resource.RLIMIT_NOFILE:
    shrink()
try:
    asyncio.run(run_load(plan, on_progress=shrink if what == resource.RLIMIT_FSIZE else None))
except AftershockError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""


def run_in_a_small_world(limit: str, value: int, url: str, path: Path) -> str:
    command = [sys.executable, "-W", "error", "-c", IN_A_SMALL_WORLD, limit, str(value), url, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=50)
    assert done.returncode == 1, done.stderr
    return done.stderr


def test_a_full_disk_ends_the_load_and_what_was_written_stays_readable(tmp_path: Path) -> None:
    path = tmp_path / "chaos.parquet"
    with FakeModelServer() as server:
        # From the second second on no file may grow beyond 1 kB: the first part is there, the next fails.
        stderr = run_in_a_small_world("RLIMIT_FSIZE", 1_000, server.url, path)
        asked = len(server.served())
    assert stderr.startswith(f"RunDirectoryError: cannot write {parts_folder(path)}"), stderr
    assert "File too large" in stderr
    assert stderr.count("\n") == 1
    records = read_records(path)
    assert 0 < len(records) < asked < 100 * 30
    assert list(records["seq"]) == list(range(len(records)))
    assert all(entry.suffix == ".parquet" for entry in parts_folder(path).iterdir())


def test_running_out_of_files_is_not_blamed_on_the_service(tmp_path: Path) -> None:
    with FakeModelServer(misbehaviour="hang") as server:
        stderr = run_in_a_small_world("RLIMIT_NOFILE", 60, server.url, tmp_path / "chaos.parquet")
    assert stderr.startswith("InfrastructureError: the load generator cannot open more connections"), stderr
    assert "ulimit -n" in stderr
    records = read_records(tmp_path / "chaos.parquet")
    assert list(records["outcome"].unique()) == ["cancelled"]


def test_random_sampling_gets_a_seed_of_its_own_for_each_item(make_plan: MakePlan) -> None:
    warm = request_bodies(make_plan("http://x", temperature=0.7, seed=10))
    assert [b'"seed": %d' % (10 + i) in body for i, body in enumerate(warm)] == [True] * 7
    assert not any(b"seed" in body for body in request_bodies(make_plan("http://x")))
