"""Collecting from a real Prometheus, which scrapes a real exporter whose true counts are known."""

from __future__ import annotations

import json
import math
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from aftershock.errors import PrometheusError, SpecError
from aftershock.metrics.collect import check_queries, collect
from aftershock.metrics.increase import fetch_slices
from aftershock.metrics.prometheus import MAX_POINTS, PrometheusClient, QueryRefusedError
from aftershock.slo.judge import judge
from aftershock.slo.live import live_query
from aftershock.slo.objective import (
    Indicator,
    Objective,
    Op,
    QuantileIndicator,
    RatioIndicator,
    RecoveryIndicator,
    ScalarIndicator,
    SliceCondition,
    SliceIndicator,
    StopCondition,
)
from aftershock.slo.slices import slices_in
from aftershock.slo.verdict import Verdict
from aftershock.stack.prometheus import find_binary
from aftershock.windows import Phase, Window, utc_now

pytestmark = pytest.mark.integration

SCRAPE_S = 0.25


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {seconds:g} s"
        time.sleep(0.02)


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Exporter:
    """A process that is scraped, as far as Prometheus can tell: it has a port, and counters that a restart clears."""

    def __init__(self) -> None:
        self.port = free_port()
        self.begin()

    def begin(self) -> None:
        """Listen, with no series yet."""
        self.registry = CollectorRegistry()
        self.scrapes = 0
        exporter = self

        class Page(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                exporter.scrapes += 1
                body = generate_latest(exporter.registry)
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Page)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def end(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def scraped(self) -> datetime:
        """Wait until Prometheus has what the series are now; the instant at which it does.

        The next scrape sees it. The one after begins when the next is stored.
        """
        wanted = self.scrapes + 2
        wait_for(lambda: self.scrapes >= wanted, "a scrape")
        return utc_now()


class Server:
    """A Prometheus process."""

    def __init__(self, folder: Path, *exporters: Exporter) -> None:
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        configuration = folder / "prometheus.json"
        targets = [f"127.0.0.1:{exporter.port}" for exporter in exporters]
        configuration.write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": f"{SCRAPE_S * 1000:.0f}ms", "scrape_timeout": "250ms"},
                    "scrape_configs": [{"job_name": "test", "static_configs": [{"targets": targets}]}],
                }
            )
        )
        with (folder / "prometheus.log").open("wb") as output:
            self.process = subprocess.Popen(
                [
                    str(find_binary()),
                    f"--config.file={configuration}",
                    f"--storage.tsdb.path={folder / 'data'}",
                    f"--web.listen-address=127.0.0.1:{self.port}",
                    "--scrape.discovery-reload-interval=1s",
                ],
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        self.client = PrometheusClient(self.url, timeout_s=5)
        wait_for(self.answers, "Prometheus")

    def answers(self) -> bool:
        """Whether it is up."""
        try:
            self.client.probe()
        except PrometheusError:
            return False
        return True

    def kill(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=10)
        self.client.close()


@pytest.fixture(scope="module")
def exporter() -> Iterator[Exporter]:
    it = Exporter()
    yield it
    it.end()


@pytest.fixture(scope="module")
def server(exporter: Exporter, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    it = Server(tmp_path_factory.mktemp("prometheus"), exporter)
    wait_for(lambda: exporter.scrapes, "the first scrape")
    yield it
    it.kill()


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Server]:
    """A Prometheus that a test may harm; it scrapes nothing."""
    it = Server(tmp_path)
    yield it
    it.kill()


def window(start: datetime, settled_at: datetime, phase: Phase = Phase.CHAOS) -> Window:
    return Window(phase, start, settled_at - timedelta(milliseconds=1), settled_at)


def objective(indicator: Indicator, name: str = "it") -> Objective:
    return Objective(name, "It", "", Op.LTE, 1.0, indicator, source="slo.yaml:7")


def ask(server: Server, indicator: Indicator, *windows: Window, **options: Any) -> pd.DataFrame:
    """Rows of one objective, without the time line."""
    frame = collect([objective(indicator)], windows, server.client, scrape_interval_s=SCRAPE_S, **options)
    return frame[frame["objective"] == "it"].reset_index(drop=True)


def value_of(server: Server, query: str, *windows: Window) -> pd.Series[Any]:
    """The only row of a scalar."""
    rows = ask(server, ScalarIndicator(query), *(windows or (window(utc_now() - timedelta(seconds=5), utc_now()),)))
    assert len(rows) == 1
    row: pd.Series[Any] = rows.iloc[0]
    return row


def counted(metric: str) -> RatioIndicator:
    """Counts as a spec asks for them."""
    return RatioIndicator(
        bad=f'sum(increase({metric}_total{{phase="{{{{ phase }}}}",outcome!="ok"}}[{{{{ window }}}}]))',
        total=f'sum(increase({metric}_total{{phase="{{{{ phase }}}}"}}[{{{{ window }}}}]))',
    )


def counts(frame: pd.DataFrame) -> dict[str, float]:
    assert set(frame["status"]) == {"ok"}
    return dict(zip(frame["role"], frame["value"], strict=True))


def test_requests_are_counted_one_by_one(server: Server, exporter: Exporter) -> None:
    requests = Counter("a_requests", "?", ["phase", "outcome"], registry=exporter.registry)
    ok, failed = requests.labels("chaos", "ok"), requests.labels("chaos", "timeout")
    start = exporter.scraped()
    for _ in range(3):
        ok.inc(11)
        failed.inc()
        exporter.scraped()
    chaos = window(start, exporter.scraped())
    ok.inc(1_000)  # too late for the window
    exporter.scraped()
    assert counts(ask(server, counted("a_requests"), chaos)) == {"bad": 3, "total": 36}


def test_one_phase_does_not_count_for_the_next(server: Server, exporter: Exporter) -> None:
    requests = Counter("b_requests", "?", ["phase", "outcome"], registry=exporter.registry)
    requests.labels("chaos", "ok")
    start = exporter.scraped()
    requests.labels("chaos", "ok").inc(5)
    between = exporter.scraped()
    requests.labels("chaos", "ok").inc(7)
    end = exporter.scraped()
    later = window(between, end)
    total = RatioIndicator(total='sum(increase(b_requests_total{outcome="ok"}[{{ window }}]))', good="vector(0)")
    assert counts(ask(server, total, window(start, between)))["total"] == 5
    assert counts(ask(server, total, later))["total"] == 7


def test_a_restarted_server_loses_nothing_and_a_new_one_counts_from_zero(server: Server, exporter: Exporter) -> None:
    requests = Counter("c_requests", "?", ["phase", "outcome"], registry=exporter.registry)
    requests.labels("chaos", "ok").inc(100)  # long before the window
    start = exporter.scraped()
    requests.labels("chaos", "ok").inc(10)
    exporter.scraped()
    exporter.end()
    exporter.begin()
    requests = Counter("c_requests", "?", ["phase", "outcome"], registry=exporter.registry)
    requests.labels("chaos", "ok").inc(4)  # before anybody saw it at 0
    exporter.scraped()
    requests.labels("chaos", "timeout").inc(6)  # a series that is born with 6
    exporter.scraped()
    requests.labels("chaos", "timeout").inc(2)
    chaos = window(start, exporter.scraped())
    assert counts(ask(server, counted("c_requests"), chaos)) == {"bad": 8, "total": 22}


def test_buckets_are_counted_one_by_one_through_a_restart(server: Server, exporter: Exporter) -> None:
    def histogram() -> Histogram:
        bounds = (0.1, 0.5, 2.0)
        made = Histogram("d_seconds", "?", ["phase", "pod"], registry=exporter.registry, buckets=bounds)
        return made

    seconds = histogram()
    seconds.labels("chaos", "1").observe(0.05)
    start = exporter.scraped()
    for value in (0.05, 0.3, 0.3, 9.0):
        seconds.labels("chaos", "1").observe(value)
    exporter.scraped()
    exporter.end()
    exporter.begin()
    seconds = histogram()
    for value in (0.3, 1.0):
        seconds.labels("chaos", "1").observe(value)
    seconds.labels("chaos", "2").observe(0.01)
    seconds.labels("baseline", "1").observe(0.01)
    rows = ask(server, QuantileIndicator('d_seconds{phase="{{ phase }}"}', 0.99), window(start, exporter.scraped()))
    assert set(rows["role"]) == {"bucket"}
    assert set(rows["phase"]) == {"chaos"}
    found = {json.loads(labels)["le"]: value for labels, value in zip(rows["labels"], rows["value"], strict=True)}
    assert found == {"0.1": 2, "0.5": 5, "2.0": 6, "+Inf": 7}


def test_a_histogram_without_requests_has_zeros_and_one_that_is_not_there_has_nothing(
    server: Server, exporter: Exporter
) -> None:
    Histogram("e_seconds", "?", registry=exporter.registry)
    start = exporter.scraped()
    now = window(start, exporter.scraped())
    rows = ask(server, QuantileIndicator("e_seconds", 0.99), now)
    assert set(rows["status"]) == {"ok"}
    assert set(rows["value"]) == {0.0}
    (missing,) = ask(server, QuantileIndicator("not_there_seconds", 0.99), now).to_dict("records")
    assert (missing["status"], missing["role"]) == ("empty", "bucket")
    assert math.isnan(missing["value"])


def test_a_count_that_is_no_histogram_is_an_error(server: Server, exporter: Exporter) -> None:
    Counter("f_bucket", "?", registry=exporter.registry)
    start = exporter.scraped()
    rows = ask(server, QuantileIndicator('{__name__="f_bucket_total"}', 0.99), window(start, exporter.scraped()))
    assert list(rows["status"]) == ["error"]


def test_missing_nan_and_infinite_stay_what_they_are(server: Server) -> None:
    found = {query: value_of(server, query) for query in ("vector(7)", "not_there", "vector(0)/0", "vector(-1)/0", "3")}
    assert [row["status"] for row in found.values()] == ["ok", "empty", "nan", "inf", "ok"]
    assert found["vector(7)"]["value"] == 7
    assert math.isnan(found["not_there"]["value"])
    assert math.isnan(found["vector(0)/0"]["value"])
    assert found["vector(-1)/0"]["value"] == -math.inf
    assert found["3"]["value"] == 3
    assert all(bool(row["detail"]) == (row["status"] != "ok") for row in found.values())


def test_a_refused_query_says_what_the_server_says(server: Server) -> None:
    row = value_of(server, "sum(")
    assert row["status"] == "error"
    assert "parse error" in row["detail"]
    assert math.isnan(row["value"])


def test_several_series_are_several_rows(server: Server, exporter: Exporter) -> None:
    gauge = Gauge("g_value", "?", ["pod"], registry=exporter.registry)
    gauge.labels("1").set(1)
    gauge.labels("2").set(2)
    start = exporter.scraped()
    rows = ask(server, ScalarIndicator("g_value", samples="count(g_value)"), window(start, exporter.scraped()))
    assert [json.loads(labels)["pod"] for labels in rows[rows["role"] == "value"]["labels"]] == ["1", "2"]
    assert list(rows[rows["role"] == "samples"]["value"]) == [2]


def test_every_phase_is_asked_where_it_settled(server: Server) -> None:
    now = utc_now().replace(microsecond=123_000)
    windows = [
        window(now - timedelta(seconds=9), now - timedelta(seconds=6), Phase.BASELINE),
        window(now - timedelta(seconds=5), now - timedelta(seconds=2)),
    ]
    rows = ask(server, ScalarIndicator("time()"), *windows)
    assert list(rows["phase"]) == ["baseline", "chaos"]
    assert list(rows["value"]) == [pytest.approx(one.settled_at.timestamp(), abs=1e-3) for one in windows]
    assert [at.to_pydatetime() for at in rows["at"]] == [one.settled_at for one in windows]


def test_a_recovery_is_followed_over_the_whole_run(server: Server, exporter: Exporter) -> None:
    gauge = Gauge("h_value", "?", registry=exporter.registry)
    gauge.set(1)
    start = exporter.scraped()
    gauge.set(5)
    between = exporter.scraped()
    recovery = window(between, exporter.scraped(), Phase.RECOVERY)
    indicator = RecoveryIndicator("max_over_time(h_value[{{ lookback }}])", Op.LTE, 2.0, step_s=0.1)
    rows = ask(server, indicator, window(start, between), recovery)
    assert set(rows["role"]) == {"recovery"}
    assert set(rows["phase"]) == {""}
    assert rows["at"].iloc[0].to_pydatetime() == pytest.approx(start, abs=timedelta(milliseconds=1))
    assert rows["at"].is_monotonic_increasing
    assert [rows["value"].iloc[0], rows["value"].iloc[-1]] == [1, 5]
    assert set(rows["range_s"]) == {3 * SCRAPE_S}
    assert set(rows["query"]) == {f"max_over_time(h_value[{3 * SCRAPE_S * 1000:.0f}ms])  # each 0.1 s"}
    assert set(rows["template"]) == {"max_over_time(h_value[{{ lookback }}])  # each 0.1 s"}


def test_the_time_line_of_a_load(server: Server, exporter: Exporter) -> None:
    requests = Counter("aftershock_requests", "?", ["phase", "outcome"], registry=exporter.registry)
    seconds = Histogram("aftershock_request_duration_seconds", "?", ["phase"], registry=exporter.registry)
    ok, failed = requests.labels("chaos", "ok"), requests.labels("chaos", "timeout")
    start = exporter.scraped()
    for _ in range(8):
        ok.inc(3)
        failed.inc()
        seconds.labels("chaos").observe(0.2)
        exporter.scraped()
    frame = collect([], [window(start, exporter.scraped())], server.client, scrape_interval_s=SCRAPE_S)
    assert set(frame["objective"]) == {"_timeline"}
    lines = {json.loads(labels)["name"]: rows for labels, rows in frame.groupby("labels")}
    assert set(lines) == {"p50_ms", "p90_ms", "p99_ms", "ttft_p99_ms", "error_percent", "requests_per_s"}
    errors = lines["error_percent"]
    assert errors[errors["status"] == "ok"]["value"].iloc[-1] == pytest.approx(25, abs=1)
    slowest = lines["p99_ms"]
    assert slowest[slowest["status"] == "ok"]["value"].iloc[-1] == pytest.approx(250, abs=10)  # bucket of 100 to 250 ms
    assert slowest["status"].iloc[-1] == "nan"  # no request lately
    assert list(lines["ttft_p99_ms"]["status"]) == ["empty"]


def test_a_long_range_is_asked_in_parts_without_gap_or_overlap(server: Server) -> None:
    start = datetime.fromisoformat("2026-01-02T03:04:05.678+00:00")
    step_s, steps = 0.5, 2 * MAX_POINTS + 500
    (series,) = server.client.query_range("time()", start, start + timedelta(seconds=steps * step_s), step_s)
    wanted = [start.timestamp() + i * step_s for i in range(steps + 1)]
    assert list(series.values) == pytest.approx(wanted, abs=1e-3)
    assert [at for at, _ in series.samples] == pytest.approx(wanted, abs=1e-3)


def test_broken_queries_are_refused_before_the_run(server: Server) -> None:
    good = [
        objective(QuantileIndicator('x_seconds{phase="{{ phase }}"}', 0.99)),
        objective(RatioIndicator(good="sum(increase(x[{{ window }}]))", total="sum(x)")),
        objective(RecoveryIndicator("x", Op.LTE, 1.0)),
    ]
    check_queries(good, server.client)
    for bad in (
        ScalarIndicator("sum(rate(x))"),
        ScalarIndicator("1", samples="count("),
        RatioIndicator(good="1", total="increase(x)"),
        QuantileIndicator("x{phase=}", 0.5),
        RecoveryIndicator("x[5m]", Op.LTE, 1.0),
    ):
        with pytest.raises(SpecError, match=r"^slo\.yaml:7: it: Prometheus refuses the query .*: ."):
            check_queries([*good, objective(bad)], server.client)


def test_a_refused_query_is_told_apart_from_no_answer(server: Server, exporter: Exporter) -> None:
    with pytest.raises(QueryRefusedError, match="parse error"):
        server.client.query("sum(", utc_now())
    for url in (f"http://127.0.0.1:{exporter.port}", f"http://127.0.0.1:{free_port()}"):
        with PrometheusClient(url) as other:
            with pytest.raises(PrometheusError, match=f"Prometheus at {url} .*--prometheus-url") as caught:
                other.probe()
            assert not isinstance(caught.value, QueryRefusedError)
            check_queries([objective(ScalarIndicator("sum("))], other)


def test_a_password_is_not_shown(server: Server) -> None:
    with (
        PrometheusClient(f"http://me:secret@127.0.0.1:{free_port()}") as client,
        pytest.raises(PrometheusError) as caught,
    ):
        client.probe()
    assert "secret" not in str(caught.value)


INDICATORS: list[Indicator] = [
    ScalarIndicator("vector(1)", samples="vector(1)"),
    QuantileIndicator("x_seconds", 0.99),
    RatioIndicator(good="vector(1)", total="sum(increase(x_total[{{ window }}]))"),
    RecoveryIndicator("vector(1)", Op.LTE, 1.0),
]


def unreachable_rows(server: Server, **options: Any) -> pd.DataFrame:
    """What is collected of a Prometheus that does not answer."""
    now = utc_now()
    windows = [
        window(now - timedelta(seconds=9), now - timedelta(seconds=6), Phase.BASELINE),
        window(now - timedelta(seconds=5), now - timedelta(seconds=2)),
    ]
    objectives = [objective(indicator, f"it{i}") for i, indicator in enumerate(INDICATORS)]
    return collect(objectives, windows, server.client, scrape_interval_s=1.0, **options)


def test_a_killed_prometheus_makes_every_row_unreachable(own: Server) -> None:
    alive = unreachable_rows(own)
    assert "unreachable" not in set(alive["status"])
    own.kill()
    begin = time.monotonic()
    rows = unreachable_rows(own)
    assert time.monotonic() - begin < 10
    assert set(rows["status"]) == {"unreachable"}
    assert rows["value"].isna().all()
    assert rows["detail"].str.contains("Connection refused").all()
    key = ["objective", "role", "phase"]
    assert set(map(tuple, rows[key].to_numpy())) == set(map(tuple, alive[key].to_numpy()))


def hang(server: Server) -> None:
    """Stop every thread of it; the signal takes a moment to reach them all."""
    os.kill(server.process.pid, signal.SIGSTOP)
    process = psutil.Process(server.process.pid)
    wait_for(lambda: process.status() == psutil.STATUS_STOPPED, "the stop")


def test_a_hung_prometheus_does_not_hang_the_run(own: Server) -> None:
    hang(own)
    begin = time.monotonic()
    rows = unreachable_rows(own, deadline_s=2.0)
    assert time.monotonic() - begin < 20
    assert set(rows["status"]) == {"unreachable"}


def test_a_prometheus_that_hangs_in_the_middle_does_not_hang_the_run(
    own: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    probe = own.client.probe

    def stop_after_probe() -> None:
        probe()
        hang(own)

    monkeypatch.setattr(own.client, "probe", stop_after_probe)
    begin = time.monotonic()
    rows = unreachable_rows(own, deadline_s=2.0)
    assert time.monotonic() - begin < 20
    assert set(rows["status"]) == {"unreachable"}


def test_a_live_query_has_one_sample_in_the_unit_shown(server: Server, exporter: Exporter) -> None:
    requests = Counter("live_requests", "?", ["phase", "outcome"], registry=exporter.registry)
    seconds = Histogram("live_seconds", "?", ["phase"], buckets=[0.1, 0.2, 0.4], registry=exporter.registry)
    ok, slow = requests.labels("chaos", "ok"), seconds.labels("chaos")
    requests.labels("baseline", "timeout").inc(1_000)  # of a phase that is over
    quantile = QuantileIndicator('live_seconds{phase="{{ phase }}"}', 0.5, scale=1000)

    def live(indicator: Indicator) -> float:
        (series,) = server.client.query(live_query(objective(indicator), lookback_s=60), utc_now())
        (value,) = series.values
        assert series.labels == {}
        return value

    exporter.scraped()
    assert math.isnan(live(counted("live_requests"))), "nothing was observed yet"
    assert math.isnan(live(quantile))
    for _ in range(3):
        ok.inc(30)
        slow.observe(0.15)
        exporter.scraped()
    assert live(counted("live_requests")) == 0, "nothing bad has a series yet"
    assert live(quantile) == pytest.approx(150)
    bad = requests.labels("chaos", "timeout")
    exporter.scraped()
    bad.inc(30)
    exporter.scraped()
    assert 20 < live(counted("live_requests")) < 40, "30 of 120, as far as Prometheus extrapolates"


def test_a_stop_condition_that_the_server_refuses_is_bad_input(server: Server) -> None:
    shares = RatioIndicator(total="1", bad="sum(up)")  # a number, which cannot be summed
    check_queries([objective(shares)], server.client)
    with pytest.raises(SpecError, match=r"slo.yaml:7: it: Prometheus refuses the query '100 \* sum"):
        check_queries([replace(objective(shares), stop=StopCondition(50.0))], server.client)


def sliced(each: RatioIndicator | QuantileIndicator | ScalarIndicator, slice_s: float) -> SliceIndicator:
    return SliceIndicator(each, slice_s, SliceCondition(Op.LTE, 10.0))


def by_slice(frame: pd.DataFrame, role: str) -> list[float]:
    """What was answered of each slice, in their order."""
    assert set(frame["status"]) == {"ok"}
    return list(frame.loc[frame["role"] == role].sort_values("at")["value"])


def test_each_slice_has_its_own_events_also_of_a_series_that_is_born_in_it(server: Server, exporter: Exporter) -> None:
    requests = Counter("s_requests", "?", ["phase", "outcome"], registry=exporter.registry)
    requests.labels("chaos", "ok").inc(100)  # before the phase
    start = exporter.scraped()
    requests.labels("chaos", "ok").inc(9)
    middle = exporter.scraped()
    requests.labels("chaos", "timeout").inc(4)
    chaos = window(start, exporter.scraped())
    requests.labels("chaos", "ok").inc(1_000)  # too late
    exporter.scraped()
    edges = (start, middle, chaos.settled_at)
    bad, total = (f's_requests_total{{phase="chaos"{more}}}' for more in (',outcome!="ok"', ""))
    assert [known.total() for _, known in fetch_slices(server.client, bad, edges)] == [0, 4]
    assert [known.total() for _, known in fetch_slices(server.client, total, edges)] == [9, 4]
    assert list(fetch_slices(server.client, "not_there_total", edges)) == []


def test_slices_together_count_what_the_phase_counts_through_a_restart(server: Server, exporter: Exporter) -> None:
    requests = Counter("t_requests", "?", ["phase", "outcome"], registry=exporter.registry)
    start = exporter.scraped()
    requests.labels("chaos", "ok").inc(10)
    exporter.scraped()
    exporter.end()
    exporter.begin()
    requests = Counter("t_requests", "?", ["phase", "outcome"], registry=exporter.registry)
    seconds = Histogram("t_seconds", "?", ["phase"], registry=exporter.registry, buckets=(1.0,))
    requests.labels("chaos", "timeout").inc(6)
    seconds.labels("chaos").observe(0.5)
    exporter.scraped()
    requests.labels("chaos", "ok").inc(4)
    wait_for(lambda: utc_now() >= start + timedelta(seconds=1.6), "the third slice")
    chaos = window(start, exporter.scraped())
    slices = slices_in(chaos.seconds, 0.5)
    assert slices > 2
    rows = ask(server, sliced(counted("t_requests"), 0.5), chaos)
    assert [len(by_slice(rows, role)) for role in ("bad", "total")] == [slices, slices]
    assert (sum(by_slice(rows, "bad")), sum(by_slice(rows, "total"))) == (6, 20)
    assert set(rows["phase"]) == {"chaos"} and rows["at"].max() == chaos.settled_at
    buckets = ask(server, sliced(QuantileIndicator('t_seconds{phase="{{ phase }}"}', 0.5), 0.5), chaos)
    assert sum(value for value, labels in zip(buckets["value"], buckets["labels"], strict=True) if "Inf" in labels) == 1


def test_slices_of_a_plain_query_are_judged_one_by_one(server: Server, exporter: Exporter) -> None:
    queue = Gauge("u_queue", "?", registry=exporter.registry)
    queue.set(3)
    start = exporter.scraped()
    wait_for(lambda: utc_now() >= start + timedelta(seconds=3.1), "the end of the third slice")
    queue.set(30)
    chaos = window(start, exporter.scraped())
    objective = Objective(
        "queue", "Queue", "%", Op.GTE, 40.0, sliced(ScalarIndicator("max_over_time(u_queue[{{ window }}])"), 1.0)
    )
    frame = collect([objective], [chaos], server.client, scrape_interval_s=SCRAPE_S)
    row = judge([objective], frame, [chaos], policy="point", fault="none").rows[0]
    slices = slices_in(chaos.seconds, 1.0)
    value = row.phases[Phase.CHAOS]
    assert value.n == slices, value
    assert value.detail.endswith("slices good")
    assert 2 <= int(value.detail.split()[0]) < slices, "the first two were over before it grew, the last was not"
    assert row.verdict is (Verdict.PASS if (value.value or 0) >= 40 else Verdict.FAIL)
