"""How long is waited for engines whose targets are hit one after the other, and for numbers that are none."""

from __future__ import annotations

import math

import pytest

from aftershock.chaos.litmus.deadlines import MANY, deadlines_of, serial_s

from .story import engine


@pytest.mark.parametrize(
    ("fault", "env", "pods", "needed_s"),
    [
        ("pod-network-latency", {"TOTAL_CHAOS_DURATION": "300", "PODS_AFFECTED_PERC": "100"}, 4, 4 * 300),
        ("pod-network-latency", {"TOTAL_CHAOS_DURATION": "300", "PODS_AFFECTED_PERC": "10-50"}, 4, 2 * 300),
        ("pod-network-latency", {"TOTAL_CHAOS_DURATION": "300", "TARGET_PODS": "a,b,c"}, 0, 3 * 300),
        ("node-cpu-hog", {"TOTAL_CHAOS_DURATION": "300", "TARGET_NODES": "a,b,c"}, 0, 3 * 300),
        ("node-cpu-hog", {"TOTAL_CHAOS_DURATION": "60", "NODES_AFFECTED_PERC": "100"}, 0, MANY * 60),
        (
            "pod-delete",  # all in one round, each with an interval and up to a full load of the model
            {"TOTAL_CHAOS_DURATION": "30", "PODS_AFFECTED_PERC": "100", "CHAOS_INTERVAL": "10"},
            8,
            8 * (10 + 120),
        ),
    ],
)
@pytest.mark.parametrize("sequence", ["serial", "random"])
def test_serial_targets_get_their_time(
    fault: str, env: dict[str, str], pods: int, needed_s: float, sequence: str
) -> None:
    serial = engine(fault, SEQUENCE=sequence, **env)
    assert deadlines_of(serial).run_s + serial_s(serial, pods) >= needed_s + 180


def test_one_target_and_parallel_ones_get_no_more() -> None:
    assert serial_s(engine(SEQUENCE="serial"), 4) == 0  # no PODS_AFFECTED_PERC: one pod
    assert serial_s(engine(SEQUENCE="serial", PODS_AFFECTED_PERC="0"), 4) == 0
    assert serial_s(engine(SEQUENCE="parallel", PODS_AFFECTED_PERC="100"), 4) == 0
    assert serial_s(engine(PODS_AFFECTED_PERC="100"), 4) == 0


def test_pods_that_are_selected_by_name_are_counted() -> None:
    serial = engine(SEQUENCE="serial", TOTAL_CHAOS_DURATION="60")
    selectors = {"pods": [{"namespace": "n", "names": "a,b"}, {"namespace": "m", "names": "c"}]}
    serial.document["spec"]["selectors"] = selectors
    assert serial_s(serial, 0) == 2 * (60 + 180)


@pytest.mark.parametrize("text", ["inf", "nan", "1e999", "long"])
def test_what_is_no_number_is_no_deadline(text: str) -> None:
    limits = deadlines_of(engine(TOTAL_CHAOS_DURATION=text, RAMP_TIME=text))
    assert math.isfinite(limits.run_s)
