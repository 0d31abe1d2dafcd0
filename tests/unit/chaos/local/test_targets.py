"""Which pods are hit: Litmus' arithmetic, from a seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aftershock.chaos.engine import ChaosEngine, EngineExperiment
from aftershock.chaos.local.state import Pod, read_state
from aftershock.chaos.local.targets import EVERY_POD, Selection, affected, check_appinfo, read_selection
from aftershock.chaos.local.tunables import Tunables
from aftershock.errors import ChaosError, EngineError


def pods(count: int) -> list[Pod]:
    """Pods that serve."""
    return [Pod(name=f"pod-{slot}", slot=slot, phase="Running", ready=True) for slot in range(count)]


def selection(**env: str) -> Selection:
    """As read from an engine."""
    return read_selection(Tunables(EngineExperiment("pod-delete", env)))


@pytest.mark.parametrize(
    ("percentage", "count", "expected"),
    [(0, 2, 1), (50, 2, 1), (50, 3, 1), (67, 3, 2), (99, 2, 1), (100, 2, 2), (33, 10, 3), (1, 500, 5), (100, 1, 1)],
)
def test_a_percentage_is_rounded_down_but_hits_one_pod_at_least(percentage: int, count: int, expected: int) -> None:
    assert affected(percentage, count) == expected


@pytest.mark.parametrize("value", ["", "0"])
def test_no_percentage_is_one_pod(value: str) -> None:
    assert len(selection(PODS_AFFECTED_PERC=value).choose(pods(8), Random(1))) == 1


def test_targets_follow_each_other_in_a_circle_from_a_random_start() -> None:
    chosen = selection(PODS_AFFECTED_PERC="75")
    starts = set()
    for seed in range(40):
        slots = [pod.slot for pod in chosen.choose(pods(4), Random(seed))]
        assert slots == [(slots[0] + step) % 4 for step in range(3)]
        starts.add(slots[0])
    assert starts == {0, 1, 2, 3}


def test_the_same_seed_draws_the_same_targets() -> None:
    drawn = [selection(PODS_AFFECTED_PERC="20-80", SEQUENCE="random").drawn(Random(7)) for _ in range(2)]
    assert drawn[0] == drawn[1]
    assert drawn[0].choose(pods(9), Random(7)) == drawn[1].choose(pods(9), Random(7))


def test_a_range_is_drawn_within_its_ends() -> None:
    drawn = {selection(PODS_AFFECTED_PERC="40-42").drawn(Random(seed)).percentage for seed in range(40)}
    assert drawn == {(40, 40), (41, 41), (42, 42)}


@pytest.mark.parametrize("value", ["101", "60-40", "a-b", "-5", "50%", "1-2-3"])
def test_what_is_no_percentage_is_refused(value: str) -> None:
    with pytest.raises(EngineError, match="PODS_AFFECTED_PERC"):
        selection(PODS_AFFECTED_PERC=value)


def test_named_pods_win_over_the_percentage() -> None:
    chosen = selection(TARGET_PODS="pod-3, pod-1", PODS_AFFECTED_PERC="100").choose(pods(4), Random(1))
    assert [pod.name for pod in chosen] == ["pod-3", "pod-1"]


def test_a_named_pod_that_is_not_there_is_an_error() -> None:
    with pytest.raises(ChaosError, match="no pod 'pod-9'") as caught:
        selection(TARGET_PODS="pod-9").choose(pods(2), Random(1))
    assert caught.value.code == "TARGET_SELECTION_ERROR"


def test_pods_that_are_going_are_no_targets() -> None:
    going = [pod.model_copy(update={"phase": "Terminating"}) for pod in pods(2)]
    with pytest.raises(ChaosError) as caught:
        EVERY_POD.choose(going, Random(1))
    assert caught.value.code == "TARGET_SELECTION_ERROR"


def test_serial_is_one_at_a_time_and_parallel_all_at_once() -> None:
    assert [len(batch) for batch in selection(SEQUENCE="serial").batches(pods(3))] == [1, 1, 1]
    assert [len(batch) for batch in selection(SEQUENCE="parallel").batches(pods(3))] == [3]
    assert {selection(SEQUENCE="random").drawn(Random(seed)).sequence for seed in range(20)} == {"serial", "parallel"}


def test_the_most_that_can_be_hit_at_one_time() -> None:
    assert selection(PODS_AFFECTED_PERC="10-60").most(10) == 6
    assert selection(PODS_AFFECTED_PERC="100", SEQUENCE="serial").most(10) == 1
    assert selection(TARGET_PODS="a,b").most(10) == 2


@pytest.mark.parametrize(
    ("appinfo", "message"),
    [
        ({"appns": "other", "applabel": "app=model-server", "appkind": "deployment"}, "namespace 'other'"),
        ({"appns": "inference", "applabel": "app=vllm", "appkind": "deployment"}, "label 'app=vllm'"),
        ({"appns": "inference", "applabel": "tier=model-server", "appkind": "deployment"}, "label"),
        ({"appns": "inference", "applabel": "app=model-server", "appkind": "statefulset"}, "kind 'statefulset'"),
    ],
)
def test_appinfo_that_means_other_pods_is_an_error(
    stack: Any, engine: Callable[..., ChaosEngine], appinfo: dict[str, str], message: str
) -> None:
    with pytest.raises(ChaosError, match=message) as caught:
        check_appinfo(engine(("pod-delete", {}), appinfo=appinfo), (), read_state(stack.state_file))
    assert caught.value.code == "TARGET_SELECTION_ERROR"


def test_without_appinfo_only_named_pods_are_targets(stack: Any, engine: Callable[..., ChaosEngine]) -> None:
    state = read_state(stack.state_file)
    nobody = engine(("pod-delete", {}), appinfo={"appns": "", "applabel": "", "appkind": ""})
    check_appinfo(nobody, ("model-server-0-aaaaa",), state)
    with pytest.raises(ChaosError, match="provide one of"):
        check_appinfo(nobody, (), state)


def test_no_stack_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ChaosError, match="aftershock run"):
        read_state(tmp_path / "state.json")
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(ChaosError, match="not the state of a stack"):
        read_state(tmp_path / "state.json")
