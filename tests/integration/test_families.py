"""What is asked of servers, asked of the stack's Prometheus, which scrapes the very pages of these servers.

A page is frozen, so it is served as a server that counted nothing first, and then all at once what the page says.
"""

from __future__ import annotations

import math
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from aftershock.errors import PrometheusError
from aftershock.metrics.collect import check_queries, collect
from aftershock.metrics.families.describe import examine
from aftershock.metrics.families.registry import detect
from aftershock.metrics.families.signal import Signal
from aftershock.metrics.prometheus import PrometheusClient
from aftershock.slo import promql
from aftershock.slo.catalog import known_uses
from aftershock.slo.objective import Objective
from aftershock.slo.openslo import load_slos
from aftershock.slo.samples import Samples
from aftershock.slo.values import measure
from aftershock.slo.verdict import PhaseValue, Status
from aftershock.stack.ports import PortPool
from aftershock.stack.prometheus import Prometheus, Target, find_binary
from aftershock.windows import Phase, Window, utc_now

pytestmark = pytest.mark.integration

PAGES = Path(__file__).parents[1] / "unit" / "metrics"
REAL = sorted((PAGES / "pages").glob("*.txt"))
DOCUMENTED = sorted((PAGES / "documented").glob("*.txt"))
SCRAPE_S = 0.5

COUNTED_NOTHING = {
    "vllm": {Signal.LORA},  # when an adapter was last at work: no request came while the page was scraped
    "llamacpp": {Signal.SPECULATION},  # started without a draft model
}
"""Signals of real pages whose counts are zero, so that there is no value."""


def wait_for(condition: Callable[[], Any], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not come within {seconds:g} s"
        time.sleep(0.02)


def without_counts(text: str) -> str:
    """The page of the same server before its first request."""
    kinds = dict(re.findall(r"^# TYPE (\S+) (\w+)$", text, re.MULTILINE))
    cumulative = {name for name, kind in kinds.items() if kind in ("counter", "histogram", "summary")}

    def zero(line: str) -> str:
        name = re.split(r"[{ ]", line, maxsplit=1)[0]
        counts = name in cumulative or re.sub(r"_(bucket|sum|count)$", "", name) in cumulative
        return f"{line.rpartition(' ')[0]} 0" if counts and "quantile=" not in line else line

    return "\n".join(line if line.startswith("#") else zero(line) for line in text.splitlines()) + "\n"


class FrozenServer:
    """A `/metrics` of a server that is not here, as it once was."""

    def __init__(self, page: Path, port: int) -> None:
        self.name, self.port, self.scrapes = page.stem, port, 0
        self.text = without_counts(page.read_text())
        frozen = self

        class Metrics(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = frozen.text.encode()
                self.send_response(200)
                self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                with suppress(ConnectionError):  # a Prometheus that is busy gives up
                    self.wfile.write(body)
                    frozen.scrapes += 1

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Metrics)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def end(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Rig:
    """Prometheus, and what it knows of each page: everything that is on it grew within `window`."""

    def __init__(self, client: PrometheusClient, servers: list[FrozenServer], window: Window) -> None:
        self.client, self.window = client, window
        self.servers = {server.name: server for server in servers}

    def answers(self, query: str) -> list[float]:
        filled = promql.fill(query, phase=Phase.CHAOS, window_s=self.window.settled_seconds)
        return [series.values[-1] for series in self.client.query(filled, self.window.settled_at)]

    def measured(self, objectives: list[Objective]) -> dict[str, PhaseValue]:
        frame = collect(objectives, [self.window], self.client, scrape_interval_s=SCRAPE_S)
        samples = Samples(frame)
        return {one.name: measure(one, Phase.CHAOS, samples.of(one)) for one in objectives}


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    folder = tmp_path_factory.mktemp("prometheus")
    pool = PortPool()
    servers = [FrozenServer(page, pool.take()) for page in (*REAL, *DOCUMENTED)]
    prometheus = Prometheus(find_binary(), folder, folder / "log", SCRAPE_S, pool)
    prometheus.scrape([Target(server.port, {"job": server.name}) for server in servers])
    command = prometheus.command()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command.argv, cwd=command.folder, stdout=log, stderr=subprocess.STDOUT)
    try:
        with PrometheusClient(prometheus.url, timeout_s=10) as client:
            wait_for(lambda: up(client) == len(servers), "the first scrape of all servers")
            yield Rig(client, servers, Window(Phase.CHAOS, *grow(servers)))
    finally:
        process.kill()
        process.wait(timeout=10)
        for server in servers:
            server.end()
        pool.close()


def up(client: PrometheusClient) -> int:
    try:
        return len(client.query("up == 1", utc_now()))
    except PrometheusError:
        return 0


def grow(servers: list[FrozenServer]) -> tuple[datetime, datetime, datetime]:
    """Let every server count all that is on its page; start, end and the instant at which Prometheus has it all."""
    start = utc_now()
    scraped_again(servers)  # as in a phase, there are scrapes before the first request too
    pages = {page.stem: page.read_text() for page in (*REAL, *DOCUMENTED)}
    for server in servers:
        server.text = pages[server.name]
    scraped_again(servers)
    settled = utc_now()
    return start, settled - timedelta(milliseconds=1), settled


def scraped_again(servers: list[FrozenServer]) -> None:
    """Wait until Prometheus has each page: the next scrape may be on its way, and one is stored when another begins."""
    wanted = {server.name: server.scrapes + 3 for server in servers}
    wait_for(lambda: all(server.scrapes >= wanted[server.name] for server in servers), "scrapes of all servers")


@pytest.mark.parametrize("page", REAL, ids=lambda page: page.stem)
def test_every_query_of_a_real_server_has_an_answer(rig: Rig, page: Path) -> None:
    (found,) = detect(page.read_text(), page.stem)
    for signal, way in found.measures.items():
        answers = rig.answers(way.promql(f'job="{page.stem}"'))
        if signal in COUNTED_NOTHING.get(page.stem, ()):
            assert not answers or all(map(math.isnan, answers)), signal
        else:
            assert len(answers) == 1 and math.isfinite(answers[0]), (signal, answers)


@pytest.mark.parametrize("page", DOCUMENTED, ids=lambda page: page.stem)
def test_every_query_of_a_documented_server_is_taken_and_answered_where_there_are_samples(rig: Rig, page: Path) -> None:
    text = page.read_text()
    for found in detect(text, page.stem):
        for signal, way in found.measures.items():
            answers = rig.answers(way.promql(f'job="{page.stem}"'))  # raises for what Prometheus refuses
            sampled = all(re.search(rf"^{metric.name}[{{ ]", text, re.MULTILINE) for metric in way.metrics())
            if sampled:
                assert len(answers) == 1 and math.isfinite(answers[0]), (signal, answers)
            else:
                assert answers == [], signal


def test_the_answers_are_what_the_pages_say(rig: Rig) -> None:
    def value(name: str, signal: Signal) -> float:
        found = detect(rig.servers[name].text, name)
        measures = next(each.measures for each in found if signal in each.measures)
        (answer,) = rig.answers(measures[signal].promql(f'job="{name}"'))
        return round(answer, 9)  # sums of floats

    assert value("vllm", Signal.CACHE_HITS) == pytest.approx(100 * 45056 / 52185)
    assert value("vllm", Signal.SUCCESS) == pytest.approx(100)
    assert value("vllm", Signal.CACHE_USAGE) == 0
    assert value("llamacpp", Signal.CACHE_HITS) == pytest.approx(100 * 12853 / (8378 + 12853))
    assert value("mlserver", Signal.SUCCESS) == pytest.approx(100)
    assert 0 < value("mlserver", Signal.LATENCY) <= 5, "1300 of 1301 took at most 5 ms"
    assert 0 < value("kserve", Signal.LATENCY) <= 5
    for name in ("tgi", "triton", "istio", "istio-source", "envoy", "inference-gateway", "sglang", "vllm-v0"):
        assert value(name, Signal.SUCCESS) == pytest.approx(75), name
    for name in ("vllm-v0", "vllm-ray", "sglang", "llamacpp-2024", "triton-llm", "inference-gateway"):
        assert value(name, Signal.CACHE_USAGE) == 50, name
        assert value(name, Signal.RUNNING) == 2 and value(name, Signal.WAITING) == 1, name
    assert value("sglang", Signal.SPECULATION) == 75
    assert value("inference-gateway", Signal.CACHE_HITS) == 25
    assert value("triton", Signal.LATENCY_MEAN) == 2 and value("triton", Signal.QUEUE_TIME_MEAN) == 1
    assert value("triton-llm", Signal.LATENCY) == 4 and value("triton-llm", Signal.QUEUE_TIME) == 1.5


@pytest.mark.parametrize("use", known_uses())
@pytest.mark.parametrize("page", REAL, ids=lambda page: page.stem)
def test_every_server_row_of_every_use_is_measured_on_the_real_page(rig: Rig, page: Path, use: str) -> None:
    text = examine(rig.servers[page.stem].url, f'job="{page.stem}"', use)
    objectives = [one for one in load_slos(text) if one.severity == "info"]
    assert objectives
    check_queries(objectives, rig.client)
    for name, value in rig.measured(objectives).items():
        assert value.status is Status.OK and value.value is not None, (name, value)
        assert value.value >= 0


def test_a_server_row_is_what_was_counted_with_its_interval(rig: Rig) -> None:
    text = examine(rig.servers["vllm"].url, 'job="vllm"', "chat")
    found = rig.measured([one for one in load_slos(text) if one.severity == "info"])
    ttft, success = found["server-ttft-p99"], found["server-success-rate"]
    assert ttft.n == 187 and ttft.low is not None and ttft.value is not None and ttft.low <= ttft.value
    assert success.n == 186 and success.value == 100
    assert success.low is not None and 97 < success.low < 99, "Wilson's interval of 186 of 186"


def test_the_clients_rows_of_every_use_are_taken_by_prometheus(rig: Rig) -> None:
    for use in known_uses():
        check_queries(load_slos(use), rig.client)
