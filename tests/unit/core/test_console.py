"""Progress: the journal survives torn lines, and each event is one line that can be read."""

import io
from pathlib import Path

import pytest

from aftershock.console import Console, Journal
from aftershock.errors import ExitCode
from aftershock.progress import JOURNAL_VARIABLE, emit


@pytest.fixture
def journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "events.jsonl"
    monkeypatch.setenv(JOURNAL_VARIABLE, str(path))
    return path


def test_events_arrive_once_and_whole(journal: Path) -> None:
    reader = Journal(journal)
    assert reader.new_events() == []
    emit("phase", phase="baseline", seconds=20.0)
    with journal.open("a") as file:
        file.write('{"event": "load", "sent": ')
    assert [event["event"] for event in reader.new_events()] == ["phase"]
    with journal.open("a") as file:
        file.write("12}\nnot json\n")
    assert [event["sent"] for event in reader.new_events()] == [12]
    assert reader.error is None


def test_the_first_error_counts_and_a_closed_gate_is_none(journal: Path) -> None:
    reader = Journal(journal)
    emit("error", type="GateError", message="verdict FAIL", exit_code=1)
    emit("error", type="SpecError", message="slo.yaml:3: wrong", exit_code=2)
    emit("error", type="ChaosError", message="later", exit_code=4)
    reader.new_events()
    assert reader.gate_closed
    assert reader.error == ("slo.yaml:3: wrong", ExitCode.BAD_INPUT)


def test_a_full_disk_does_not_end_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(JOURNAL_VARIABLE, "/dev/full")
    emit("phase", phase="baseline", seconds=float("nan"))


def test_lines(journal: Path) -> None:
    out = io.StringIO()
    console = Console(out)
    for elapsed in (1.0, 2.0, 6.0):
        console.show(
            {"event": "load", "phase": "chaos", "seconds": 30.0, "elapsed_s": elapsed, "sent": 60, "ok": 59,
             "failed": 1, "p99_ms": 9.14, "send_lag_p99_ms": None}
        )  # fmt: skip
    console.show({"event": "chaos", "reason": "ChaosInject", "message": "killed model-server-0", "type": "Normal"})
    console.show({"event": "something new"})
    lines = out.getvalue().splitlines()
    assert len(lines) == 2, "a log gets a load line every 5 s"
    assert " ".join(lines[0].split()) == "chaos 24 s left 60 sent 59 ok 1 failed p99 9.1 ms send lag p99 -"
    assert lines[1] == "  fault    ChaosInject: killed model-server-0"


def test_a_stop_by_the_slo_watch_is_told_in_two_lines() -> None:
    out = io.StringIO()
    console = Console(out)
    message = "error-rate 63 % is beyond 50 % since 5 s: stopping the fault"
    console.show({"event": "stop", "by": "slo-watch", "reason": "SLO_BREACHED", "message": message})
    console.show({"event": "stopped", "message": "4.2 s after the breach began, verified"})
    assert out.getvalue().splitlines() == [
        "stop       error-rate 63 % is beyond 50 % since 5 s: stopping the fault",
        "stopped    4.2 s after the breach began, verified",
    ]
