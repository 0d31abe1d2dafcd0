"""Watching stop conditions: whatever answers, or does not, an alarm comes in time."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from aftershock.metrics.prometheus import PrometheusClient
from aftershock.metrics.watch import Pace, ask, watch
from aftershock.slo.objective import Objective, Op, ScalarIndicator, StopCondition
from aftershock.slo.watch import Alarm, StopReason
from aftershock.windows import utc_now

QUICK = Pace(every_s=0.1, lookback_s=10.0, blind_s=0.5)


def condition(name: str = "error-rate", for_s: float = 0.25) -> Objective:
    query = f"{name.replace('-', '_')}[{{{{ window }}}}]"
    return Objective(name, "Error rate", "%", Op.LTE, 1.0, ScalarIndicator(query), stop=StopCondition(50.0, for_s))


class FakePrometheus:
    """Answers every instant query with `samples`, or refuses it with `refusal`."""

    def __init__(self) -> None:
        self.samples: list[str] = ["63"]
        self.refusal = ""
        self.queries: list[str] = []
        stub = self

        class Api(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                stub.queries += parse_qs(urlsplit(self.path).query)["query"]
                result = [{"metric": {"n": str(n)}, "value": [0, value]} for n, value in enumerate(stub.samples)]
                answer: dict[str, Any] = {"status": "success", "data": {"resultType": "vector", "result": result}}
                if stub.refusal:
                    answer = {"status": "error", "errorType": "bad_data", "error": stub.refusal}
                body = json.dumps(answer).encode()
                self.send_response(400 if stub.refusal else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def prometheus() -> Iterator[FakePrometheus]:
    stub = FakePrometheus()
    yield stub
    stub.close()


@contextmanager
def silent_server() -> Iterator[str]:
    """Takes connections, and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listening:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def alarm_of(url: str, *conditions: Objective, pace: Pace = QUICK, within_s: float = 10.0) -> Alarm:
    began = utc_now() - timedelta(seconds=3)
    return asyncio.run(asyncio.wait_for(watch(conditions, url, load_began=began, pace=pace), within_s))


def test_a_breach_that_lasts_ends_the_watch(prometheus: FakePrometheus) -> None:
    before = utc_now()
    alarm = alarm_of(prometheus.url, condition())
    assert (alarm.reason, alarm.value) == (StopReason.SLO_BREACHED, 63.0)
    assert before <= alarm.began_at <= utc_now() - timedelta(seconds=0.25)
    assert len(prometheus.queries) >= 3, "it has asked again and again"


def test_no_question_looks_back_to_before_the_load(prometheus: FakePrometheus) -> None:
    alarm_of(prometheus.url, condition())
    ranges = [int(query.partition("[")[2].removesuffix("ms]")) for query in prometheus.queries]
    assert 3000 <= ranges[0] < 10_000 and ranges == sorted(ranges)
    prometheus.queries.clear()
    alarm_of(prometheus.url, condition(), pace=Pace(every_s=0.1, lookback_s=2.0))
    assert set(prometheus.queries) == {"error_rate[2000ms]"}


def test_while_all_is_well_the_watch_goes_on_and_can_be_ended(prometheus: FakePrometheus) -> None:
    prometheus.samples = ["12"]
    with pytest.raises(TimeoutError):
        alarm_of(prometheus.url, condition(), within_s=1.0)


@pytest.mark.parametrize(
    ("samples", "refusal", "why"),
    [
        ([], "", "no data"),
        (["NaN"], "", "the answer is nan"),
        (["99", "99"], "", "Prometheus has 2 samples for it, where one is needed"),
        ([], "parse error: no", "parse error: no"),
    ],
)
def test_what_is_no_value_blinds_and_never_breaches(
    prometheus: FakePrometheus, samples: list[str], refusal: str, why: str
) -> None:
    prometheus.samples, prometheus.refusal = samples, refusal
    alarm = alarm_of(prometheus.url, condition(for_s=0.1))
    assert alarm.reason is StopReason.WATCH_BLIND
    assert alarm.message.endswith(f"s ({why})")


def test_a_dead_prometheus_is_an_alarm() -> None:
    alarm = alarm_of("http://127.0.0.1:9", condition())
    assert alarm.reason is StopReason.WATCH_BLIND
    assert "cannot be reached" in alarm.message


def test_a_hung_prometheus_is_an_alarm_before_its_time_out_and_keeps_nobody_waiting() -> None:
    with silent_server() as url:
        began = time.monotonic()
        alarm = alarm_of(url, condition())
        assert time.monotonic() - began < 4, "the end of the loop does not wait for the question either"
    assert alarm.reason is StopReason.WATCH_BLIND
    assert "there was no answer" in alarm.message


def test_a_round_of_questions_has_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aftershock.metrics.watch.DEADLINE_S", 0.3)
    began = time.monotonic()
    with silent_server() as url, PrometheusClient(url, timeout_s=0.3) as client:
        readings = ask(client, [condition("a"), condition("b"), condition("c")], utc_now(), 10.0)
    assert time.monotonic() - began < 2
    assert [reading.value for reading in readings.values()] == [None] * 3
    assert "took too long over all" in readings["c"].why


def test_a_defect_ends_the_watch_with_its_error(monkeypatch: pytest.MonkeyPatch, prometheus: FakePrometheus) -> None:
    monkeypatch.setattr("aftershock.metrics.watch.live_query", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        alarm_of(prometheus.url, condition())


@pytest.mark.parametrize(
    ("scrape_interval_s", "rate", "request_timeout_s", "expected"),
    [
        (1.0, 60.0, 10.0, Pace(1.0, 10.0, 30.0)),
        (0.1, 60.0, 10.0, Pace(1.0, 10.0, 30.0)),
        (15.0, 60.0, 10.0, Pace(15.0, 60.0, 30.0)),
        (1.0, 0.2, 120.0, Pace(1.0, 50.0, 120.0)),
    ],
)
def test_the_pace_fits_the_scrapes_and_the_load(
    scrape_interval_s: float, rate: float, request_timeout_s: float, expected: Pace
) -> None:
    assert Pace.of(scrape_interval_s=scrape_interval_s, rate=rate, request_timeout_s=request_timeout_s) == expected
