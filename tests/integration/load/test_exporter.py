"""What Prometheus scrapes is what the records hold, from the zeros to the last value."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pandas as pd
import pytest
from prometheus_client.parser import text_string_to_metric_families

from aftershock.errors import InfrastructureError
from aftershock.load.dataset import Item
from aftershock.load.outcome import Outcome
from aftershock.load.plan import LoadPlan, LoadResult
from aftershock.load.records import read_records
from aftershock.load.runner import run_load
from aftershock.testing.model_server import FakeModelServer

pytestmark = pytest.mark.integration

MakePlan = Callable[..., LoadPlan]
Page = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@contextmanager
def scraper(port: int, interval_s: float = 0.1) -> Iterator[list[tuple[float, Page]]]:
    """Scrapes on a schedule as Prometheus does; yields the pages with the time at which each was asked for."""
    pages: list[tuple[float, Page]] = []
    stopped = threading.Event()

    def scrape() -> None:
        begin = time.monotonic()
        while not stopped.wait(interval_s - (time.monotonic() - begin) % interval_s):
            asked = time.time()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as response:
                    assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
                    text = response.read().decode()
            except OSError:
                continue  # not yet there, or gone
            pages.append((asked, parse(text)))

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield pages
    finally:
        stopped.set()
        thread.join()


def parse(text: str) -> Page:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(page: Page, name: str, **labels: str) -> float:
    return page[name, tuple(sorted({"phase": "baseline", **labels}.items()))]


def scrape_warnings(result: LoadResult) -> list[str]:
    """Those that are not about a busy machine."""
    return [warning for warning in result.warnings if "scrape" in warning]


def assert_agrees(page: Page, records: pd.DataFrame) -> None:
    for outcome in Outcome:
        found = value(page, "aftershock_requests_total", outcome=outcome)
        assert found == (records["outcome"] == outcome).sum(), outcome
    ok = records[records["outcome"] == "ok"]
    assert value(page, "aftershock_request_duration_seconds_count") == len(ok)
    assert value(page, "aftershock_request_duration_seconds_sum") == pytest.approx(ok["latency_s"].sum())
    assert value(page, "aftershock_ttft_seconds_count") == ok["ttft_s"].notna().sum()
    assert value(page, "aftershock_ttft_seconds_sum") == pytest.approx(ok["ttft_s"].sum())
    assert value(page, "aftershock_inter_token_seconds_count") == ok["inter_token_s"].map(len).sum()
    assert value(page, "aftershock_send_lag_seconds_count") == len(records)
    assert value(page, "aftershock_output_tokens_total") == ok["output_tokens"].sum()
    assert value(page, "aftershock_eval_total", result="correct") == records["correct"].eq(True).sum()
    assert value(page, "aftershock_eval_total", result="wrong") == records["correct"].eq(False).sum()
    assert value(page, "aftershock_requests_in_flight") == 0
    for (name, labels), count in page.items():
        if name == "aftershock_request_duration_seconds_bucket":
            bound = float(dict(labels)["le"])
            assert count == (ok["latency_s"] <= bound).sum(), bound


def test_scrapes_see_zeros_first_and_at_the_end_exactly_the_records(make_plan: MakePlan, free_port: int) -> None:
    items = [Item("right", "France", "Paris"), Item("wrong", "Spain", "Madrid"), Item("free", "Tell me")]
    settings: dict[str, Any] = {
        "answers": {"France": "Paris", "Spain": "Lisbon"},
        "error_rate": 0.2,
        "error_status": 429,
    }
    with (
        FakeModelServer(misbehaviour="truncate", misbehaviour_rate=0.2, **settings) as server,
        scraper(free_port) as pages,
    ):
        plan = make_plan(server.url, items=items, rate=100, seconds=1.5, metrics_port=free_port)
        result = asyncio.run(run_load(plan))
    records = read_records(plan.records_path)
    assert scrape_warnings(result) == []
    assert set(pages[0][1].values()) == {0.0}
    assert pages[0][0] < result.window.start.timestamp()
    assert set(records["outcome"]) == {"ok", "rate_limited", "truncated"}
    seen = [page for asked, page in pages if asked <= result.window.settled_at.timestamp()]
    assert result.settled
    assert_agrees(seen[-1], records)
    in_flight = [value(page, "aftershock_requests_in_flight") for page in seen]
    assert max(in_flight) > 0


def test_a_load_that_nobody_scrapes_says_so_and_runs(make_plan: MakePlan, free_port: int) -> None:
    told: list[str] = []
    begin = time.monotonic()
    with FakeModelServer() as server:
        plan = make_plan(server.url, seconds=0.2, metrics_port=free_port)
        result = asyncio.run(run_load(plan, on_warning=told.append))
    assert result.ok == 10
    assert told == list(result.warnings)
    assert not result.settled
    assert f"nobody scrapes port {free_port} of host 127.0.0.1 " in told[0]
    assert "the last values were not scraped" in told[1]
    assert 3 * 0.2 + 2 + 2 * 0.2 + 1 <= time.monotonic() - begin < 15


def test_the_last_values_are_older_than_the_instant_they_are_asked_for(make_plan: MakePlan, free_port: int) -> None:
    """Also where the scrape is late: Prometheus' clock may be ahead of ours by a few milliseconds."""
    with FakeModelServer(ttft_s=0.1) as server, scraper(free_port, 0.6) as pages:
        plan = make_plan(server.url, seconds=0.4, metrics_port=free_port, scrape_interval_s=0.1)
        result = asyncio.run(run_load(plan))
    final = [asked for asked, page in pages if value(page, "aftershock_requests_total", outcome="ok") == result.sent]
    assert result.settled
    assert final[0] < result.window.settled_at.timestamp() - 0.04


def test_a_second_scraper_does_not_stand_in_for_prometheus(make_plan: MakePlan, free_port: int) -> None:
    """One that scrapes all the time must not end the load before Prometheus has seen its last values.

    It may start it: what Prometheus meets later counts from zero (tests/integration/test_metrics.py).
    """
    with (
        FakeModelServer() as server,
        scraper(free_port, 0.02) as hasty,
        scraper(free_port, 0.8) as prometheus,
    ):
        plan = make_plan(server.url, rate=200, seconds=1.3, metrics_port=free_port, scrape_interval_s=1.0)
        result = asyncio.run(run_load(plan))
    assert result.settled
    assert scrape_warnings(result) == []
    assert len(hasty) > 2 * len(prometheus)
    asked, zeros = hasty[0]
    assert asked < result.window.start.timestamp() and set(zeros.values()) == {0.0}
    seen = [page for asked, page in prometheus if asked <= result.window.settled_at.timestamp()]
    assert value(seen[-1], "aftershock_requests_total", outcome="ok") == result.ok == 260
    assert value(seen[-1], "aftershock_requests_in_flight") == 0


def test_a_scraper_that_leaves_in_mid_phase_leaves_it_unsettled(make_plan: MakePlan, free_port: int) -> None:
    async def main(plan: LoadPlan) -> LoadResult:
        stop, started = asyncio.Event(), asyncio.Event()
        with scraper(free_port):
            load = asyncio.create_task(run_load(plan, stop=stop, on_start=started.set))
            await started.wait()
        stop.set()
        return await load

    with FakeModelServer() as server:
        result = asyncio.run(main(make_plan(server.url, seconds=60, metrics_port=free_port)))
    assert not result.settled
    assert result.window.settled_at > result.window.end
    (warning,) = scrape_warnings(result)
    assert "the last values were not scraped" in warning


def test_without_a_port_nothing_is_settled(make_plan: MakePlan) -> None:
    with FakeModelServer() as server:
        assert not asyncio.run(run_load(make_plan(server.url, seconds=0.2))).settled


def test_a_stop_ends_the_wait_for_the_first_scrape(make_plan: MakePlan, free_port: int) -> None:
    async def main(plan: LoadPlan) -> None:
        stop = asyncio.Event()
        asyncio.get_running_loop().call_later(0.2, stop.set)
        result = await asyncio.wait_for(run_load(plan, stop=stop), 15)
        assert result.sent == 0

    asyncio.run(main(make_plan("http://127.0.0.1:1", metrics_port=free_port, scrape_interval_s=0.5)))


def test_no_request_is_sent_before_the_first_scrape(make_plan: MakePlan, free_port: int) -> None:
    async def main(plan: LoadPlan) -> float:
        load = asyncio.create_task(run_load(plan))
        await asyncio.sleep(0.3)
        assert server.served() == []
        with scraper(free_port):
            result = await load
        assert scrape_warnings(result) == []
        return result.window.start.timestamp()

    with FakeModelServer() as server:
        asked_at = time.time()
        started_at = asyncio.run(main(make_plan(server.url, seconds=0.2, metrics_port=free_port)))
    assert started_at > asked_at + 0.3


def test_a_port_that_is_taken(make_plan: MakePlan) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        plan = make_plan("http://127.0.0.1:1", metrics_port=port)
        with pytest.raises(InfrastructureError) as caught:
            asyncio.run(run_load(plan))
    assert str(caught.value) == (
        f"port {port} of 127.0.0.1, where Prometheus scrapes the load generator, is taken; "
        "choose another with --metrics-port"
    )


def test_the_port_is_free_again_for_the_next_phase(make_plan: MakePlan, free_port: int) -> None:
    with FakeModelServer() as server, scraper(free_port):
        for name in ("baseline", "chaos"):
            path = make_plan(server.url).records_path.with_name(f"{name}.parquet")
            plan = make_plan(server.url, phase=name, seconds=0.2, metrics_port=free_port, records_path=path)
            assert scrape_warnings(asyncio.run(run_load(plan))) == []
