"""The state document: what is written is what is read, and only its user can."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from aftershock.errors import StackError
from aftershock.processes import Identity
from aftershock.stack.private import private_folder, write_private
from aftershock.stack.state import (
    GatewayState,
    PartState,
    PodState,
    PrometheusState,
    StackState,
    StoreState,
    SupervisorState,
    read_state,
    state_path,
    write_state,
)

NOW = datetime(2026, 12, 1, 5, 30, tzinfo=UTC)
POD = PodState("model-server-0-x7k2f", 0, 12, 100.5, "http://127.0.0.1:3", "Running", True, 0, NOW, NOW)
STATE = StackState(
    run_id="r1",
    supervisor=SupervisorState(10, 99.5, "http://127.0.0.1:1", "secret-a"),
    gateway=GatewayState("http://127.0.0.1:2", "http://127.0.0.1:4", "secret-b"),
    prometheus=PrometheusState("http://127.0.0.1:5"),
    store=StoreState("127.0.0.1:6", "key", "secret-c"),
    metrics_port=7,
    pods=(POD,),
    parts=(PartState("gateway", 11, 100.0, "running", True), PartState("store", None, None, "exited", False, "gone")),
)


def test_round_trip_through_a_private_file(tmp_path: Path) -> None:
    path = state_path(tmp_path)
    private_folder(path.parent)
    write_state(path, STATE)
    assert read_state(path) == STATE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_document_has_the_names_others_read(tmp_path: Path) -> None:
    document = json.loads(json.dumps(STATE.to_dict()))
    assert document["version"] == 1
    assert (document["namespace"], document["labels"], document["kind"]) == (
        "inference",
        {"app": "model-server"},
        "deployment",
    )
    assert document["supervisor"] == {"pid": 10, "started": 99.5, "url": "http://127.0.0.1:1", "token": "secret-a"}
    assert document["prometheus"] == {"url": "http://127.0.0.1:5"}
    assert document["pods"][0]["created_at"] == "2026-12-01T05:30:00Z"


def test_a_stack_without_servers_has_no_gateway(tmp_path: Path) -> None:
    state = replace(STATE, gateway=None, pods=(), parts=())
    write_state(tmp_path / "state.json", state)
    assert read_state(tmp_path / "state.json") == state
    assert json.loads((tmp_path / "state.json").read_text())["gateway"] is None
    assert state.ready


def test_a_private_file_is_never_readable_for_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    modes = []
    replace_file = Path.replace

    def watched(self: Path, target: Path) -> Path:
        modes.append(stat.S_IMODE(self.stat().st_mode))
        return replace_file(self, target)

    monkeypatch.setattr(Path, "replace", watched)
    write_private(tmp_path / "secret", "s")
    assert modes == [0o600]
    assert stat.S_IMODE((tmp_path / "secret").stat().st_mode) == 0o600


def test_ready_is_everybody() -> None:
    assert not STATE.ready
    parts = (replace(STATE.parts[0]),)
    assert replace(STATE, parts=parts).ready
    assert not replace(STATE, parts=parts, pods=(replace(POD, ready=False),)).ready


def test_processes_are_those_that_run() -> None:
    assert STATE.processes == {
        Identity(10, 99.5): "supervisor",
        Identity(11, 100.0): "gateway",
        Identity(12, 100.5): "model-server-0-x7k2f",
    }


def test_secrets_do_not_show_in_logs() -> None:
    assert "secret-" not in repr(STATE)


@pytest.mark.parametrize(
    ("text", "why"), [(None, "no stack runs there"), ("{}", "run_id"), ("no json", "Invalid JSON")]
)
def test_what_is_no_state_is_said(tmp_path: Path, text: str | None, why: str) -> None:
    path = tmp_path / "state.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(StackError, match=why) as caught:
        read_state(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
