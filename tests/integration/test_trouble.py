"""What goes wrong: one clear line, the right exit code, nothing left running, the records so far kept."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path

import pandas as pd
import psutil
import pytest
from command import SHORT, Command, Start, assert_nothing_left, wait_for

pytestmark = pytest.mark.integration

BROKEN_PROMQL = """
apiVersion: openslo/v1
kind: SLO
metadata: {name: broken}
spec:
  service: x
  budgetingMethod: Occurrences
  timeWindow: [{duration: 1d, isRolling: true}]
  indicator:
    metadata: {name: broken}
    spec:
      thresholdMetric:
        metricSource: {type: Prometheus, spec: {query: "sum(rate(up[1m])"}}
  objectives: [{op: lte, value: 1}]
"""


def one_error_line(command: Command) -> str:
    """The only line on standard error."""
    lines = command.errors.strip().splitlines()
    assert len(lines) == 1, command.errors
    assert lines[0].startswith("error: ")
    return lines[0]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"fault": "pod-explode"}, ["pod-explode", "pod-delete"]),
        ({"fault": "pod-delete", "fault_parameters": '{"PODS_AFFECTED_PERC": 150}'}, ["PODS_AFFECTED_PERC", "150"]),
        ({"fault": "pod-network-latency", "fault_parameters": '{"NETWORK_LATENCY": "500ms"}'}, ["500ms", "500"]),
        ({"rate": "-1"}, ["rate", "-1"]),
        ({"slo": "no-such-spec"}, ["no-such-spec", "canary"]),
        ({"slo": "broken.yaml"}, ["broken.yaml:3", "not YAML"]),
        ({"dataset": "broken.jsonl"}, ["broken.jsonl:2"]),
        ({"fault": "pod-delete", "target_url": "http://127.0.0.1:9"}, ["pod-delete", "127.0.0.1:9"]),
        ({"backend": "litmus"}, ["litmus", "a cluster", "--target-url"]),
        ({"model": "gpt-17"}, ["gpt-17", "canary"]),
        ({"file": "missing.yaml"}, ["missing.yaml"]),
    ],
    ids=lambda value: next(iter(value.items()))[1] if isinstance(value, dict) else "",
)
def test_bad_input_is_refused_before_anything_starts(
    start: Start, tmp_path: Path, flags: dict[str, str], words: list[str]
) -> None:
    (tmp_path / "broken.yaml").write_text("apiVersion: openslo/v1\nkind: [\n")
    (tmp_path / "broken.jsonl").write_text('{"id":"a","prompt":"x","expected":"y","grader":"exact"}\n{"id": 3\n')
    command = start("run", **flags)
    assert command.finish(30) == 2, command.output + command.errors
    line = one_error_line(command)
    for word in words:
        assert word in line
    assert not list(command.runs.glob("*/artifacts")), "nothing half done"
    assert_nothing_left(command)


def test_unknown_flag_is_one_line(start: Start) -> None:
    command = start("run", "--speed", "9")
    assert command.finish(30) == 2
    assert "--speed" in one_error_line(command)


def test_a_query_the_server_refuses_is_bad_input(start: Start, tmp_path: Path) -> None:
    (tmp_path / "slo.yaml").write_text(BROKEN_PROMQL)
    command = start("run", slo="slo.yaml", **SHORT)
    assert command.finish() == 2, command.output + command.errors
    assert "slo.yaml" in one_error_line(command) or "broken" in one_error_line(command)
    assert not [event for event in command.events() if event["event"] == "phase"], "refused before the baseline"
    assert_nothing_left(command)


def test_a_target_that_refuses_is_named(start: Start) -> None:
    command = start("run", fault="none", target_url="http://127.0.0.1:9", store_endpoint="none", **SHORT)
    assert command.finish() == 4, command.output + command.errors
    assert "127.0.0.1:9" in one_error_line(command)
    assert_nothing_left(command)


def test_a_taken_port_is_named(start: Start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = start("run", gateway_port=port, **SHORT)
        assert command.finish() == 2, command.output + command.errors
        assert port in one_error_line(command)
    assert_nothing_left(command)


def test_prometheus_killed_in_mid_run_is_no_data(start: Start) -> None:
    command = start("run", fault="none", **{**SHORT, "recovery_s": "6"})
    command.wait_for_event(event="phase", phase="chaos")
    (prometheus,) = [part for part in command.state()["parts"] if part["name"] == "prometheus"]
    psutil.Process(prometheus["pid"]).kill()
    assert command.finish() == 3, command.output + command.errors
    assert "prometheus" in command.output.lower()
    assert len(pd.read_parquet(command.run / "records" / "recovery.parquet")) > 300
    assert_nothing_left(command)


def test_the_gateway_killed_in_mid_run_is_no_fail_of_the_service(start: Start) -> None:
    command = start("run", fault="none", **SHORT)
    command.wait_for_event(event="load", phase="chaos")
    (gateway,) = [part for part in command.state()["parts"] if part["name"] == "gateway"]
    psutil.Process(gateway["pid"]).kill()
    assert command.finish() == 4, command.output + command.errors
    assert "gateway" in one_error_line(command)
    assert len(pd.read_parquet(command.run / "records" / "baseline.parquet")) > 200
    assert_nothing_left(command)


def test_a_model_server_that_never_becomes_ready_is_named(start: Start) -> None:
    command = start("run", model_server="sh -c 'sleep 600'", ready_timeout_s="4", **SHORT)
    assert command.finish(60) == 4, command.output + command.errors
    assert "model-server-0" in one_error_line(command) and "4 s" in one_error_line(command)
    assert_nothing_left(command)


def test_stop_ends_the_fault_and_the_run_goes_on(start: Start) -> None:
    command = start("run", fault="pod-network-latency", **{**SHORT, "chaos_s": "12"})
    command.wait_for_event(event="chaos", reason="ChaosInject")
    stop = [sys.executable, "-m", "aftershock.cli", "stop", str(command.run)]
    done = subprocess.run(stop, capture_output=True, text=True)
    assert done.returncode == 0 and "engineState: stop" in done.stdout, done.stderr
    command.wait_for_event(event="chaos", reason="ChaosEngineStopped", seconds=10)
    assert command.finish() in (1, 3), command.output + command.errors
    assert command.verdict()["verdict"] != "PASS"
    assert_nothing_left(command)


def test_cleanup_leaves_a_live_run_alone(start: Start) -> None:
    command = start("run", fault="none", **SHORT)
    command.wait_for_event(event="load", phase="baseline")
    cleanup = [sys.executable, "-m", "aftershock.cli", "cleanup", "--runs", str(command.runs)]
    done = subprocess.run(cleanup, capture_output=True, text=True)
    assert (done.returncode, done.stdout.strip()) == (0, "nothing was left"), done.stderr
    assert command.finish() in (0, 1, 3), command.output + command.errors
    sent = pd.read_parquet(command.run / "records" / "baseline.parquet")
    assert sorted(sent["seq"]) == list(range(len(sent))), "no record was lost"


def test_a_replica_that_never_comes_back_is_an_error_of_the_experiment(start: Start) -> None:
    command = start("run", restart_delay_s="600", fault_parameters='{"STATUS_CHECK_TIMEOUT": 3}', **SHORT)
    assert command.finish() == 4, command.output + command.errors
    assert "STATUS_CHECKS_ERROR" in one_error_line(command)
    for phase in ("baseline", "chaos"):
        assert len(pd.read_parquet(command.run / "records" / f"{phase}.parquet")) > 300
    assert_nothing_left(command)


@pytest.mark.parametrize("phase", ["baseline", "chaos", "recovery"])
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["int", "term"])
def test_interrupted_in_a_phase(start: Start, phase: str, number: signal.Signals, code: int) -> None:
    command = start("run", fault="pod-cpu-hog", baseline_s="2", chaos_s="4", recovery_s="4", rate="50")
    command.wait_for_event(event="load", phase=phase)
    command.tell(number)
    assert command.finish(30) == code, command.output + command.errors
    assert command.errors == ""
    assert_nothing_left(command)
    assert len(pd.read_parquet(command.run / "records" / f"{phase}.parquet")) > 0


def test_interrupted_while_the_stack_starts(start: Start) -> None:
    command = start("run", **SHORT)

    def supervisor() -> bool:
        return any("aftershock.stack.supervisor" in process.cmdline() for process in command.processes())

    wait_for(supervisor, 30, "the supervisor")
    command.tell(signal.SIGINT)
    assert command.finish(30) == 130, command.output + command.errors
    assert_nothing_left(command)


def test_kill_9_in_the_chaos_phase_leaves_nothing(start: Start) -> None:
    command = start("run", fault="pod-network-partition", baseline_s="2", chaos_s="60", recovery_s="2", rate="50")
    command.wait_for_event(event="chaos", reason="ChaosInject")
    command.wait_for_event(event="load", phase="chaos")
    command.tell(signal.SIGKILL)
    command.finish(30)
    assert_nothing_left(command)
    kept = subprocess.run(
        [sys.executable, "-m", "aftershock.cli", "cleanup", "--runs", str(command.runs)],
        capture_output=True,
        text=True,
    )
    assert kept.returncode == 0, kept.stderr
    for phase in ("baseline", "chaos"):
        assert len(pd.read_parquet(command.run / "records" / f"{phase}.parquet")) > 0


def test_kill_9_of_everything_that_could_clean_up(start: Start) -> None:
    """The command, the pipeline and the supervisor die at one instant; what they started must not outlive them."""
    command = start("run", fault="pod-cpu-hog", baseline_s="2", chaos_s="60", recovery_s="2", rate="50")
    command.wait_for_event(event="chaos", reason="ChaosInject")
    supervisor = psutil.Process(command.state()["supervisor"]["pid"])
    pipeline = [child for child in psutil.Process(command.process.pid).children() if child.pid != supervisor.pid]
    for process in (supervisor, *pipeline, psutil.Process(command.process.pid)):
        process.kill()
    command.finish(30)
    cleanup = [sys.executable, "-m", "aftershock.cli", "cleanup", "--runs", str(command.runs)]
    assert subprocess.run(cleanup, capture_output=True, text=True).returncode == 0
    assert_nothing_left(command)


def test_a_full_disk_is_one_clear_line(start: Start, tmp_path: Path) -> None:
    """A run directory on a file system of a few megabytes, in a name space of its own (no root needed)."""
    unshare = ("unshare", "--user", "--map-root-user", "--mount")
    if subprocess.run([*unshare, "true"], capture_output=True).returncode:
        pytest.skip("this kernel allows no user name spaces, so no small file system can be made")
    (tmp_path / "small").mkdir()
    # The file system ends with its name space: what the command kept is copied out first.
    keep = f"cp -r {tmp_path}/small/runs {tmp_path}/kept"
    mount = f'mount -t tmpfs -o size=48m none {tmp_path}/small && {{ "$@"; code=$?; {keep}; exit $code; }}'
    filler = "head -c 60000000 /dev/zero > {path} 2>/dev/null; true"
    command = start(
        "run", "--fault", "none",
        prefix=(*unshare, "sh", "-c", mount, "sh"),
        runs=tmp_path / "small" / "runs",
        baseline_s="30", chaos_s="4", recovery_s="4", rate="50", store_endpoint="none",
    )  # fmt: skip

    def inside(shell: str) -> subprocess.CompletedProcess[str]:
        enter = ["nsenter", "--preserve-credentials", "-U", "-m", "-t", str(command.process.pid), "sh", "-c", shell]
        return subprocess.run(enter, capture_output=True, text=True)

    journal = f"cat {command.runs}/*/events.jsonl"
    wait_for(lambda: inside(journal).stdout.count('"load"') >= 5, 60, "the first records on the disk")
    inside(filler.format(path=tmp_path / "small" / "filler"))
    assert command.finish(90) == 4, command.output + command.errors
    assert "No space left" in one_error_line(command)
    assert_nothing_left(command)
    # There was no room to put them together; where there is, `cleanup` does.
    cleanup = [sys.executable, "-m", "aftershock.cli", "cleanup", "--runs", str(tmp_path / "kept")]
    assert "kept records/baseline.parquet" in subprocess.run(cleanup, capture_output=True, text=True).stdout
    (records,) = (tmp_path / "kept").glob("*/records/baseline.parquet")
    assert len(pd.read_parquet(records)) > 0


def test_two_runs_at_once_do_not_disturb_each_other(start: Start, tmp_path: Path) -> None:
    quick = {"fault": "none", "baseline_s": "2", "chaos_s": "2", "recovery_s": "2", "rate": "20", "policy": "point"}
    both = [start("run", **quick), start("run", **quick)]
    codes = [command.process.wait(120) for command in both]
    for command in both:
        command.output, command.errors = command.process.communicate()
    assert all(code in (0, 1, 3) for code in codes), [command.output + command.errors for command in both]
    assert len(list(both[0].runs.glob("*/report.html"))) == 2
    for command in both:
        assert_nothing_left(command)
