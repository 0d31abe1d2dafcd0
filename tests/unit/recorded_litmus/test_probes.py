"""Durations, comparisons, the shell's reading of queries, and the life of the recorded Litmus' probes."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tests.cluster.recorded_litmus.api import Api
from tests.cluster.recorded_litmus.durations import parse_duration
from tests.cluster.recorded_litmus.probes import ProbeError, evaluate, holds, panics, parse_probe, shell_reads
from tests.cluster.recorded_litmus.probing import ProbesStoppedError, Probing, Record, on_chaos_s, percentage, verdict

NO_API = cast(Api, None)
"""For probes that do not ask the API server."""


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10s", 10), ("500ms", 0.5), ("1m30s", 90), ("1.5h", 5400), ("0", 0), ("-2s", -2), (".5s", 0.5), ("1µs", 1e-6)],
)
def test_durations_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["10", "", "s", "1 s", "10s ", "ten", "1d"])
def test_what_go_does_not_read_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("kind", "criteria", "actual", "expected", "wanted"),
    [
        ("int", "==", "200", "200", True),
        ("int", "!=", "500", "200", True),
        ("int", "oneOf", "201", "200,201", True),
        ("int", "between", "250", "200,299", True),
        ("int", "between", "300", "200,299", False),
        ("int", "==", "many", "0", True),
        ("float", "<=", "2.5", "2.5", True),
        ("float", "<", "2.5", "2.5", False),
        ("float", "<=", "NaN", "2.5", False),
        ("float", ">=", "NaN", "2.5", False),
        ("float", "==", "NaN", "NaN", False),
        ("float", "<=", "+Inf", "2.5", False),
        ("float", "==", "nothing", "0", True),
        ("string", "equal", "ok", "ok", True),
        ("string", "notEqual", "ok", "ok", False),
        ("string", "contains", "it is ok", "ok", True),
        ("string", "matches", "abc", "^a.c$", True),
        ("string", "notMatches", "abc", "^a.c$", False),
        ("string", "oneOf", "b", "a,b", True),
    ],
)
def test_comparisons(kind: str, criteria: str, actual: str, expected: str, wanted: bool) -> None:
    assert holds(kind, criteria, actual, expected) is wanted


def test_an_unknown_criterion_is_an_error() -> None:
    with pytest.raises(ValueError, match="not supported"):
        holds("float", "~", "1", "1")


@pytest.mark.parametrize(
    ("query", "heard"),
    [
        ("rate(x{job='vllm'}[1m])", "rate(x{job='vllm'}[1m])"),
        ('up{job="x"}', "up{job=x}"),
        ("up{pod=~'a$'}", "up{pod=~'a$'}"),
        ("up{pod=~'a$HOME_THAT_IS_NOT_SET'}", "up{pod=~'a'}"),
        ("vector(`echo 3`)", "vector(3)"),
        ("%s %d", "%s %d"),
    ],
)
def test_the_shell_reads_the_query_first(query: str, heard: str) -> None:
    assert shell_reads(query) == heard


def test_a_query_that_breaks_the_shell_is_an_error() -> None:
    with pytest.raises(ValueError, match="unable to run command"):
        shell_reads('up{job="x')


def document(kind: str, mode: str, inputs: dict[str, Any], **run: Any) -> dict[str, Any]:
    properties = {"probeTimeout": "2s", "interval": "10ms", "probePollingInterval": "10ms", **run}
    return {"name": "p", "type": kind, "mode": mode, f"{kind}/inputs": inputs, "runProperties": properties}


def command(text: str, mode: str = "SOT", wanted: str = "ok", **run: Any) -> dict[str, Any]:
    comparator = {"type": "string", "criteria": "equal", "value": wanted}
    return document("cmdProbe", mode, {"command": text, "comparator": comparator}, **run)


def test_a_bare_number_is_no_duration() -> None:
    with pytest.raises(ValueError, match="'10'"):
        parse_probe(command("true", probeTimeout="10"))


@pytest.mark.parametrize(
    ("run", "attempts"), [({}, 1), ({"retry": 3}, 3), ({"attempt": 2, "retry": 3}, 2), ({"attempt": 0, "retry": 0}, 1)]
)
def test_attempts(run: dict[str, int], attempts: int) -> None:
    assert parse_probe(document("cmdProbe", "SOT", {}, **run)).attempts == attempts


def test_a_probe_that_posts_panics() -> None:
    post = {"url": "http://x", "method": {"post": {"criteria": "==", "responseCode": "200"}}}
    get = {"url": "http://x", "method": {"get": {"criteria": "==", "responseCode": "200"}}}
    assert panics(parse_probe(document("httpProbe", "SOT", post)))
    assert not panics(parse_probe(document("httpProbe", "SOT", get)))


@pytest.fixture
def prometheus() -> Iterator[tuple[str, dict[str, Any]]]:
    """Its address, and the answer that it is to give."""
    answer: dict[str, Any] = {}

    class FakePrometheus(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"data": answer}).encode()
            self.send_response(answer.get("status", 200))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), FakePrometheus)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", answer
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        ({"resultType": "vector", "result": [{"value": [0, "2"]}]}, None),
        ({"resultType": "scalar", "result": [0, "2"]}, None),
        ({"resultType": "vector", "result": [{"value": [0, "3"]}]}, "PROM_PROBE_FAILURE"),
        ({"resultType": "vector", "result": [{"value": [0, "NaN"]}]}, "PROM_PROBE_FAILURE"),
        ({"resultType": "vector", "result": []}, "PROM_PROBE_ERROR"),
        ({"resultType": "vector", "result": [{"value": [0, "2"]}, {"value": [0, "2"]}]}, "PROM_PROBE_ERROR"),
        ({"status": 400}, "PROM_PROBE_ERROR"),
    ],
)
def test_a_prometheus_probe_wants_one_sample(
    prometheus: tuple[str, dict[str, Any]], answer: dict[str, Any], code: str | None
) -> None:
    address, given = prometheus
    given |= answer
    inputs = {"endpoint": address, "query": "x", "comparator": {"criteria": "<=", "value": "2"}}
    assert code_of(document("promProbe", "SOT", inputs)) == code


def test_a_prometheus_that_is_not_there_is_an_error() -> None:
    inputs = {"endpoint": "http://127.0.0.1:1", "query": "x", "comparator": {"criteria": "<=", "value": "2"}}
    assert code_of(document("promProbe", "SOT", inputs)) == "PROM_PROBE_ERROR"


def test_an_http_server_that_is_not_there_is_a_failure() -> None:
    inputs = {"url": "http://127.0.0.1:1/", "method": {"get": {"criteria": "==", "responseCode": "200"}}}
    assert code_of(document("httpProbe", "SOT", inputs)) == "HTTP_PROBE_FAILURE"


@pytest.mark.parametrize(
    ("text", "code"), [("echo ok", None), ("echo no", "CMD_PROBE_FAILURE"), ("exit 1", "CMD_PROBE_ERROR")]
)
def test_a_command_probe(text: str, code: str | None) -> None:
    assert code_of(command(text)) == code


def code_of(given: dict[str, Any]) -> str | None:
    try:
        evaluate(parse_probe(given), NO_API)
    except ProbeError as error:
        return error.code
    return None


class Stops:
    """Whether the engine was stopped."""

    def __init__(self) -> None:
        self.happened = threading.Event()

    def __call__(self) -> None:
        self.happened.set()


def probing(*given: dict[str, Any], stops: Stops | None = None) -> Probing:
    return Probing([parse_probe(each) for each in given], NO_API, stops or Stops())


def verdicts(probes: Probing) -> list[str]:
    return [record.verdict for record in probes.records]


def test_each_mode_has_its_time() -> None:
    modes = ("SOT", "EOT", "Edge", "Continuous", "OnChaos")
    probes = probing(*(command("echo ok", mode) for mode in modes))
    probes.before()
    assert verdicts(probes) == ["Passed", "Awaited", "Awaited", "Awaited", "Awaited"]
    probes.during(0.01)
    probes.after()
    assert verdicts(probes) == ["Passed"] * 5
    assert verdict(probes.records, aborted=False) == ("Completed", "Pass")
    assert percentage(probes.records) == "100"


def test_a_failure_before_does_not_stop_the_fault_unless_asked_to() -> None:
    probes = probing(command("echo no"), command("echo ok", "EOT"))
    probes.before()
    probes.after()
    assert verdict(probes.records, aborted=False) == ("Completed_With_Probe_Failure", "Fail")
    assert percentage(probes.records) == "50"
    with pytest.raises(ProbesStoppedError):
        probing(command("echo no", stopOnFailure=True)).before()


def test_a_broken_probe_before_or_after_ends_the_experiment() -> None:
    for mode, phase in (("SOT", Probing.before), ("EOT", Probing.after), ("Edge", Probing.before)):
        with pytest.raises(ProbeError, match="unable to run command"):
            phase(probing(command("exit 1", mode)))


def test_edge_keeps_its_first_failure() -> None:
    probes = probing(command("echo no", "Edge"))
    probes.before()
    record = probes.records[0]
    record.probe = parse_probe(command("echo ok", "Edge"))
    probes.after()
    assert record.verdict == "Failed"


def test_a_continuous_breach_stops_the_engine_where_it_should(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECORDED_LITMUS_SPEED", "1000")
    stops = Stops()
    probes = probing(command("exit 1", "Continuous", stopOnFailure=True), stops=stops)
    probes.before()
    assert stops.happened.wait(10)
    probes.give_up()
    assert probes.records[0].verdict == "Failed"
    assert verdict(probes.records, aborted=True) == ("Stopped", "Stopped")


def test_a_user_abort_after_a_failed_probe_counts_as_its_failure() -> None:
    probes = probing(command("echo no"), command("echo ok", "EOT"))
    probes.before()
    probes.give_up()
    assert [record.verdict for record in probes.records] == ["Failed", "N/A"]
    assert verdict(probes.records, aborted=True) == ("Completed_With_Probe_Failure", "Fail")


def test_without_probes() -> None:
    assert verdict([], aborted=False) == ("Completed", "Pass")
    assert verdict([], aborted=True) == ("Stopped", "Stopped")
    assert percentage([]) == "100"


def test_a_prometheus_probe_on_chaos_with_a_delay_never_runs() -> None:
    probe = parse_probe(document("promProbe", "OnChaos", {}, initialDelay="5s"))
    assert on_chaos_s(probe, 30) == 0
    assert on_chaos_s(parse_probe(document("httpProbe", "OnChaos", {}, initialDelay="5s")), 30) == 30


def test_a_probe_status_is_written_as_recorded() -> None:
    record = Record(parse_probe(command("true", "Continuous")))
    assert record.document() == {
        "name": "p",
        "type": "cmdProbe",
        "mode": "Continuous",
        "status": {"verdict": "Awaited"},
    }
