"""`aftershock doctor` against real parts: a Prometheus, a model server and an object store that it did not start."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from aftershock.checkup import Check, Finding, Status, examine
from aftershock.errors import ExitCode
from aftershock.experiment import Experiment
from aftershock.load import doctor as load_doctor
from aftershock.metrics import doctor as metrics_doctor
from aftershock.metrics.prometheus import PrometheusClient
from aftershock.report import doctor as report_doctor
from aftershock.report.history import Store
from aftershock.slo.objective import Objective, Op, RecoveryIndicator, ScalarIndicator, SliceCondition, SliceIndicator
from aftershock.slo.openslo import load_slos
from aftershock.stack.settings import StackSettings
from aftershock.stack.stack import running_stack
from aftershock.stack.state import StackState
from aftershock.steps import load_plan
from aftershock.testing.model_server import FakeModelServer
from aftershock.windows import Phase, utc_now

pytestmark = pytest.mark.integration

SCRAPE_S = 0.5
OF_THE_TARGET = "llamacpp:requests_processing"


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackState]:
    """Real parts, scraped for long enough to see how often."""
    run_dir = tmp_path_factory.mktemp("runs") / "r1"
    run_dir.mkdir()
    settings = StackSettings(replicas=1, scrape_interval_s=SCRAPE_S)
    with running_stack(settings, run_dir, "r1") as state:
        assert state.prometheus
        with PrometheusClient(state.prometheus.url) as client:
            for port in (state.metrics_port, urlsplit(state.pods[0].url).port):
                wait_for_scrapes(client, port)
        yield state


def wait_for_scrapes(client: PrometheusClient, port: int | None) -> None:
    query = f'count_over_time(up{{instance=~".+:{port}"}}[1m]) >= 5'
    deadline = time.monotonic() + 60
    while not client.query(query, utc_now()):
        assert time.monotonic() < deadline, f"port {port} is not scraped"
        time.sleep(0.1)


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port that nobody listens on, nor will."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        port: int = holder.getsockname()[1]
        yield port


def doctor(folder: Path, *flags: str, **variables: str) -> tuple[int, dict[str, dict[str, dict[str, str]]]]:
    """The real command: its exit code, and what it found, by group and name."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("AFTERSHOCK_")}
    kept = {name: os.environ[name] for name in ("AFTERSHOCK_CACHE", "AFTERSHOCK_PROMETHEUS") if name in os.environ}
    done = subprocess.run(
        [sys.executable, "-m", "aftershock.cli", "doctor", "--format", "json", *flags],
        cwd=folder, env={**clean, **kept, **variables}, text=True, capture_output=True, timeout=150, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    document = json.loads(done.stdout)
    assert document["exit_code"] == done.returncode
    found: dict[str, dict[str, dict[str, str]]] = {}
    for check in document["checks"]:
        found.setdefault(check["group"], {})[check["name"]] = check
    return done.returncode, found


def statuses(found: dict[str, dict[str, dict[str, str]]]) -> set[str]:
    return {check["status"] for group in found.values() for check in group.values()}


def test_with_no_flags_it_says_that_a_laptop_is_ready(tmp_path: Path) -> None:
    code, found = doctor(tmp_path)
    assert code == 0, found
    assert set(found) == {"experiment", "this machine", "Kubeflow Pipelines"}
    assert statuses(found) == {"ok"}
    assert not list(tmp_path.iterdir())


def test_all_is_well_with_parts_that_run_elsewhere(stack: StackState, tmp_path: Path) -> None:
    assert stack.gateway and stack.prometheus and stack.store
    code, found = doctor(
        tmp_path,
        *("--target-url", stack.gateway.url, "--prometheus-url", stack.prometheus.url, "--fault", "none"),
        *("--store-endpoint", stack.store.endpoint, "--metrics-port", str(stack.metrics_port)),
        *("--scrape-interval-s", str(SCRAPE_S)),
        AFTERSHOCK_STORE_ACCESS_KEY=stack.store.access_key,
        AFTERSHOCK_STORE_SECRET_KEY=stack.store.secret_key,
    )
    assert code == 0, found
    assert statuses(found) == {"ok"}, found
    assert found["Prometheus"]["reachable"]["text"].startswith("version ")
    assert "no bucket aftershock yet" in found["object store"]["bucket"]["text"]
    store = Store(stack.store.endpoint, stack.store.access_key, stack.store.secret_key)
    assert not store.has_bucket()


def test_nothing_there_is_said_for_each_part(closed_port: int, tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{closed_port}"
    code, found = doctor(
        tmp_path,
        *("--target-url", url, "--prometheus-url", url, "--store-endpoint", url, "--kfp-endpoint", url),
        *("--backend", "litmus", "--slo", "canary"),
        KUBECONFIG=str(tmp_path / "none"),
    )
    assert code == 4
    roots = {
        ("target", "answers"), ("Prometheus", "reachable"), ("cluster", "API server"), ("object store", "reachable"),
        ("Kubeflow Pipelines", "API server"), ("Kubeflow Pipelines", "image"),
    }  # fmt: skip
    failed = {
        (group, name) for group, checks in found.items() for name, one in checks.items() if one["status"] == "fail"
    }
    assert failed == roots
    assert found["Prometheus"]["clock"]["status"] == "skipped"


def test_lines_for_people(closed_port: int, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "aftershock.cli", "doctor", "--store-endpoint", f"127.0.0.1:{closed_port}"],
        cwd=tmp_path, text=True, capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (4, "")
    lines = done.stdout.splitlines()
    assert "object store" in lines and lines[-1] == "1 of 12 checks failed, 1 skipped"
    (failure,) = [line for line in lines if line.startswith("  FAIL")]
    assert "--store-endpoint" in failure


# Prometheus


def of_prometheus(url: str, *objectives: Objective, **parameters: Any) -> dict[str, Finding]:
    fields = {"prometheus_url": url, "scrape_interval_s": SCRAPE_S, **parameters}
    slo = Check("experiment", "SLO", lambda: "read")
    checks = metrics_doctor.checks(
        Experiment.model_validate(fields), lambda: list(objectives) or load_slos("canary"), slo
    )
    return {finding.name: finding for finding in examine([slo, *checks]) if finding.group == metrics_doctor.GROUP}


def objective(query: str, name: str = "it") -> Objective:
    return Objective(name, "It", "", Op.LTE, 1.0, ScalarIndicator(query), source="slo.yaml:7")


@pytest.fixture
def url(stack: StackState) -> str:
    assert stack.prometheus
    return stack.prometheus.url


@pytest.fixture
def port(stack: StackState) -> int:
    return stack.metrics_port


def test_the_true_interval_is_read_from_the_samples(url: str, port: int) -> None:
    found = of_prometheus(url, metrics_port=port, scrape_interval_s=0.1)
    interval = found["scrape interval"]
    assert (interval.status, interval.exit_code) == (Status.FAIL, ExitCode.BAD_INPUT)
    (given,) = re.findall(r"give --scrape-interval-s ([0-9.]+)", interval.text)
    assert float(given) == pytest.approx(SCRAPE_S, rel=0.1)
    assert found["phases"].status is Status.OK
    assert found["load generator"].status is Status.OK and "down while no run goes on" in found["load generator"].text


def test_an_interval_that_is_given_too_long_is_only_slow(url: str, port: int) -> None:
    interval = of_prometheus(url, metrics_port=port, scrape_interval_s=5)["scrape interval"]
    assert interval.status is Status.OK and "would make the run quicker" in interval.text


def test_time_slices_that_prove_nothing_are_named(url: str, port: int) -> None:
    def of_slices(slice_s: float, severity: str = "critical") -> Finding:
        indicator = SliceIndicator(ScalarIndicator("up"), slice_s, SliceCondition(Op.GTE, 1.0))
        it = Objective("it", "It", "%", Op.GTE, 90.0, indicator, severity=severity)
        return of_prometheus(url, it, metrics_port=port, chaos_s=100)["phases"]

    assert of_slices(2.0).status is Status.OK
    assert of_slices(10.0, severity="info").status is Status.OK
    few = of_slices(10.0)
    assert few.status is Status.FAIL
    assert "it: >= 90 % takes 35 time slices of 10 s to prove, and chaos_s=100 has 10: give --chaos-s 350" in few.text


def test_phases_and_ranges_that_are_too_short_are_all_named(url: str, port: int) -> None:
    looks_back = Objective(
        "back", "Back", "s", Op.LTE, 5.0, RecoveryIndicator("rate(up[{{ lookback }}])", Op.LTE, 1.0, step_s=0.1)
    )
    found = of_prometheus(
        url, objective("sum(rate(up[600ms]))"), looks_back,
        metrics_port=port, baseline_s=2, chaos_s=30, recovery_s=1, scrape_interval_s=0.1,
    )["phases"]  # fmt: skip
    assert (found.status, found.exit_code) == (Status.FAIL, ExitCode.BAD_INPUT)
    for words in ("baseline_s=2", "recovery_s=1", "it: the range [0.6s]", "back: it looks back 0.3 s"):
        assert words in found.text
    assert "chaos_s" not in found.text


def test_a_load_generator_that_nobody_scrapes(url: str, closed_port: int) -> None:
    found = of_prometheus(url, metrics_port=closed_port)
    missing = found["load generator"]
    assert (missing.status, missing.exit_code) == (Status.FAIL, ExitCode.INFRASTRUCTURE)
    (snippet,) = re.findall(r"scrape_configs: (\{.*\});", missing.text)
    assert json.loads(snippet)["static_configs"] == [{"targets": [f"127.0.0.1:{closed_port}"]}]
    assert found["scrape interval"].status is Status.SKIPPED
    assert found["clock"].status is Status.OK


def test_series_of_the_target(url: str, port: int, stack: StackState) -> None:
    found = of_prometheus(url, objective(f"max({OF_THE_TARGET})"), metrics_port=port)
    assert found["target series"].status is Status.OK, found
    assert f"{OF_THE_TARGET} every" in found["scrape interval"].text
    missing = of_prometheus(url, objective("max(vllm:num_requests_running)"), metrics_port=port)
    assert missing["target series"].status is Status.FAIL
    assert "nothing matches vllm:num_requests_running" in missing["target series"].text
    assert missing["scrape interval"].status is Status.OK


def test_refused_queries_of_several_objectives(url: str, port: int) -> None:
    found = of_prometheus(
        url, objective("sum("), objective("vector(1)", "good"), objective("rate(up)", "other"), metrics_port=port
    )
    refused = found["queries"]
    assert (refused.status, refused.exit_code) == (Status.FAIL, ExitCode.BAD_INPUT)
    assert "slo.yaml:7: it: Prometheus refuses" in refused.text and "1 more" in refused.text
    assert found["scrape interval"].status is Status.OK
    assert found["target series"].status is Status.SKIPPED


@contextmanager
def silence() -> Iterator[str]:
    """A server that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def test_a_hung_prometheus_and_a_hung_store_are_failures_in_time() -> None:
    began = time.monotonic()
    with silence() as address:
        found = of_prometheus(f"http://{address}")
        assert found["reachable"].status is Status.FAIL and "does not answer within" in found["reachable"].text
        store = Check(
            "x", "y", lambda: report_doctor.checks(lambda: Store(address, "a", "b"))[0].look(), deadline_s=2.0
        )
        (hung,) = examine([store])
        assert hung.status is Status.FAIL and "no answer within 2 s" in hung.text
    assert time.monotonic() - began < 60


@contextmanager
def altered(url: str, change: Callable[[str, bytes], tuple[int, bytes]]) -> Iterator[str]:
    """The real Prometheus at `url`, its answers changed on the way: for clocks and rights that it does not have."""

    class ChangedPrometheus(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                with urlopen(url + self.path, timeout=10) as answer:
                    status, body = change(self.path, answer.read())
            except HTTPError as error:
                status, body = error.code, error.read()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), ChangedPrometheus)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_clock_that_is_off(url: str, port: int) -> None:
    def later(path: str, body: bytes) -> tuple[int, bytes]:
        if "query=time" not in path:
            return 200, body
        document = json.loads(body)
        at, value = document["data"]["result"]
        document["data"]["result"] = [at + 30, str(float(value) + 30)]
        return 200, json.dumps(document).encode()

    with altered(url, later) as other:
        found = of_prometheus(other, metrics_port=port)
    assert found["clock"].status is Status.FAIL
    assert "30 s ahead of ours" in found["clock"].text and "NTP" in found["clock"].text
    assert found["scrape interval"].status is Status.OK


def test_targets_that_may_not_be_listed(url: str, port: int, closed_port: int) -> None:
    def refuse(path: str, body: bytes) -> tuple[int, bytes]:
        hidden = path.startswith(("/api/v1/targets", "/api/v1/status"))
        return (403, b"no") if hidden else (200, body)

    with altered(url, refuse) as other:
        found = of_prometheus(other, metrics_port=port)
        unknown = of_prometheus(other, metrics_port=closed_port)
    assert "tells no version" in found["reachable"].text
    assert {finding.status for finding in found.values()} == {Status.OK}
    assert unknown["load generator"].status is Status.SKIPPED


def test_a_load_generator_out_of_reach(url: str, port: int) -> None:
    def firewall(path: str, body: bytes) -> tuple[int, bytes]:
        return 200, body.replace(b"connection refused", b"i/o timeout")

    with altered(url, firewall) as other:
        found = of_prometheus(other, metrics_port=port)["load generator"]
    assert found.status is Status.FAIL and "i/o timeout" in found.text


# Target and store


def of_the_target(url: str, **parameters: Any) -> dict[str, Finding]:
    experiment = Experiment.model_validate({"target_url": url, **parameters})
    data_set = Check("experiment", "data set", lambda: "read")
    plan = load_plan(experiment, Phase.BASELINE, Path("unused"))
    checks = load_doctor.checks(lambda: plan, experiment.request_timeout_s, data_set)
    return {finding.name: finding for finding in examine([data_set, *checks])}


def test_one_request_is_sent_and_no_more() -> None:
    with FakeModelServer(model="canary") as server:
        found = of_the_target(server.url)
        assert {finding.status for finding in found.values()} == {Status.OK}
        assert len(server.served()) == 1


def test_a_model_that_is_not_served() -> None:
    with FakeModelServer(model="canary") as server:
        found = of_the_target(server.url, model="gpt-9")
        assert len(server.served()) == 1
    assert found["answers"].status is Status.FAIL and "it serves canary" in found["answers"].text
    assert found["model"].status is Status.SKIPPED


def test_a_service_that_does_not_answer_fails_at_once() -> None:
    with FakeModelServer(ready=False) as server:
        found = of_the_target(server.url)
        assert len(server.served()) == 1
    assert found["answers"].status is Status.FAIL


def of_the_store(stack: StackState, secret: str | None = None, bucket: str = "other") -> dict[str, Finding]:
    assert stack.store
    endpoint, key = stack.store.endpoint, stack.store.access_key
    checks = report_doctor.checks(lambda: Store(endpoint, key, secret or stack.store.secret_key, bucket))  # type: ignore[union-attr]
    return {finding.name: finding for finding in examine(checks)}


def test_a_wrong_key_of_the_store(stack: StackState) -> None:
    found = of_the_store(stack, secret="guess")
    assert found["reachable"].status is Status.FAIL
    assert "AFTERSHOCK_STORE" in found["reachable"].text and "guess" not in found["reachable"].text


def test_a_history_that_is_there(stack: StackState) -> None:
    assert stack.store
    store = Store(stack.store.endpoint, stack.store.access_key, stack.store.secret_key, "filled")
    store.publish("r1", {"x": b"y"})
    assert "filled holds 1 runs" in of_the_store(stack, bucket="filled")["bucket"].text
