"""The live engine: who may write to it, and what the backend makes of that."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.local.live import LiveEngine, stop_engines
from aftershock.chaos.local.stop import StopRequestedError, StopSwitch


@pytest.fixture
def live(stack: Any, engine: Callable[..., ChaosEngine]) -> Iterator[LiveEngine]:
    """Accepted, with one experiment."""
    accepted = LiveEngine(stack.folder / "chaos", engine(("pod-delete", {})))
    accepted.accept(["pod-delete"])
    yield accepted
    accepted.close(stopped=True)


def asked(live: LiveEngine) -> bool:
    """Whether a stop is seen within a second."""
    end = time.monotonic() + 1
    while time.monotonic() < end:
        if live.stop_asked():
            return True
        time.sleep(0.02)
    return False


def document(live: LiveEngine) -> Any:
    """What the file holds."""
    return yaml.safe_load(live.path.read_text())


def test_an_accepted_engine_is_an_engine_with_a_uid(live: LiveEngine) -> None:
    parsed = parse_engine(live.path.read_text(), "live")
    assert parsed.uid == live.uid
    assert document(live)["status"]["engineStatus"] == "initialized"
    assert document(live)["status"]["experiments"][0]["status"] == "Waiting for Job Creation"


@pytest.mark.parametrize(
    "text",
    [
        "spec: {engineState: stop}",
        "spec:\n  engineState: 'stop'\n",
        "spec:\n  engineState: stop\n  experiments: [unclosed\n",  # broken, and yet clear enough
    ],
)
def test_a_stop_is_seen_in_whatever_shape(live: LiveEngine, text: str) -> None:
    live.path.write_text(text)
    assert asked(live)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "spec: {engineState: active}",
        "# engineState: stop\nspec: {engineState: active}",
        "- a list",
        "spec: [",
        "spec: no mapping",
        "2020-99-99: {",
        "\x00\xff",
    ],
)
def test_what_asks_for_no_stop_is_survived(live: LiveEngine, text: str) -> None:
    live.path.write_text(text)
    assert not asked(live)
    live.update("pod-delete", "Running", "Awaited")
    assert document(live)["status"]["experiments"][0]["verdict"] == "Awaited"


def test_a_deleted_engine_is_stopped(live: LiveEngine) -> None:
    live.path.unlink()
    assert not live.stop_asked()  # an editor may be at work
    assert asked(live)


def test_a_stop_is_not_lost_to_an_update(live: LiveEngine) -> None:
    live.path.write_text(live.path.read_text().replace("engineState: active", "engineState: stop"))
    live.update("pod-delete", "Running", "Awaited")
    assert document(live)["spec"]["engineState"] == "stop"
    assert asked(live)


def test_what_others_wrote_stays(live: LiveEngine) -> None:
    edited = document(live)
    edited["metadata"]["annotations"] = {"who": "me"}
    live.path.write_text(yaml.safe_dump(edited))
    live.update("pod-delete", "Completed", "Pass")
    live.close(stopped=False)
    assert document(live)["metadata"]["annotations"] == {"who": "me"}
    assert document(live)["status"]["engineStatus"] == "completed"
    assert document(live)["spec"]["engineState"] == "stop"


def test_a_stop_that_is_written_during_an_update_is_not_lost(live: LiveEngine) -> None:
    """The writer has the file open when the update replaces it, and writes into what is no longer there."""
    text = live.path.read_text()
    with live.path.open("r+") as theirs:
        live.update("pod-delete", "Running", "Awaited")
        theirs.write(text.replace("engineState: active", "engineState: stop  "))
    assert asked(live)


def test_a_deletion_during_an_update_is_not_lost(live: LiveEngine) -> None:
    live.path.unlink()
    live.update("pod-delete", "Running", "Awaited")
    assert not live.path.exists()
    assert asked(live)


def in_place(path: Path) -> None:
    path.write_text(path.read_text().replace("engineState: active", "engineState: stop"))


def by_renaming(path: Path) -> None:
    other = path.with_name("other")
    other.write_text(path.read_text().replace("engineState: active", "engineState: stop"))
    other.replace(path)


def by_command(path: Path) -> None:
    assert stop_engines(path.parent.parent) == [path]


@pytest.mark.parametrize("write_stop", [in_place, by_renaming, by_command])
def test_no_stop_is_lost_however_often_the_file_is_rewritten(
    stack: Any, engine: Callable[..., ChaosEngine], write_stop: Callable[[Path], None]
) -> None:
    """The backend updates as fast as it can while somebody writes a stop, again and again with a new engine."""
    for _ in range(40):
        live = LiveEngine(stack.folder / "chaos", engine(("pod-delete", {})))
        live.accept(["pod-delete"])
        done, started = threading.Event(), threading.Event()

        def hammer(live: LiveEngine = live, done: threading.Event = done, started: threading.Event = started) -> None:
            number = 0
            while not done.is_set():
                live.update("pod-delete", f"Running {(number := number + 1)}", "Awaited")
                started.set()

        thread = threading.Thread(target=hammer)
        thread.start()
        started.wait(10)
        write_stop(live.path)
        done.set()
        thread.join(10)
        assert asked(live)
        live.close(stopped=True)


def test_engines_that_are_live_can_be_stopped_from_outside(live: LiveEngine, stack: Any) -> None:
    (stack.folder / "chaos" / "broken.yaml").write_text("spec: {}\nstatus: broken")
    assert stop_engines(stack.folder) == [live.path]
    assert asked(live)
    live.close(stopped=True)
    assert stop_engines(stack.folder) == []


def test_the_engine_of_a_dead_stack_cannot_be_stopped(stack: Any, live: LiveEngine) -> None:
    with subprocess.Popen(["sleep", "60"]) as supervisor:
        stack.write_state(supervisor.pid)
        supervisor.kill()
    assert stop_engines(stack.folder) == []
    assert document(live)["spec"]["engineState"] == "active"
    stack.state_file.unlink()
    assert stop_engines(stack.folder) == []


def test_the_switch_is_thrown_by_either(live: LiveEngine) -> None:
    event = threading.Event()
    switch = StopSwitch(event, live)
    switch.wait(0.01)
    event.set()
    with pytest.raises(StopRequestedError, match="by the run"):
        switch.wait(60)
    live.path.write_text("spec: {engineState: stop}")
    with pytest.raises(StopRequestedError, match="engineState"):
        StopSwitch(threading.Event(), live).wait(60)
