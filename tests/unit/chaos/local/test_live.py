"""The live engine: who may write to it, and what the backend makes of that."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.local.live import LiveEngine, stop_engines
from aftershock.chaos.local.stop import StopRequestedError, StopSwitch


@pytest.fixture
def live(tmp_path: Path, engine: Callable[..., ChaosEngine]) -> LiveEngine:
    """Accepted, with one experiment."""
    accepted = LiveEngine(tmp_path, engine(("pod-delete", {})))
    accepted.accept(["pod-delete"])
    return accepted


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


def test_engines_that_are_live_can_be_stopped_from_outside(live: LiveEngine) -> None:
    folder = live.path.parent
    (folder / "chaos").mkdir()
    (folder / "chaos" / "broken.yaml").write_text("spec: {}\nstatus: broken")
    there = live.path = live.path.rename(folder / "chaos" / live.path.name)
    assert stop_engines(folder) == [there]
    assert asked(live)
    live.close(stopped=True)
    assert stop_engines(folder) == []


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
