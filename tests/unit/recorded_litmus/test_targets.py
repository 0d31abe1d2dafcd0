"""The TARGETS grammar of the recorded Litmus, and its choice among pods."""

from __future__ import annotations

import random

import pytest

from tests.cluster.recorded_litmus.targets import (
    IncompleteTargetError,
    Target,
    choose,
    describe,
    from_range,
    parse_targets,
    render_targets,
)


@pytest.mark.parametrize(
    ("spec", "wanted"),
    [
        ({"appinfo": {"appns": "a", "applabel": "app=x", "appkind": "deployment"}}, "deployment:a:[app=x]"),
        ({"appinfo": {"appns": "a"}}, "KIND:a:[]"),
        ({"appinfo": {"appns": "", "applabel": "", "appkind": ""}}, ""),
        ({}, ""),
        (
            {"selectors": {"pods": [{"namespace": "a", "names": "p,q"}]}, "appinfo": {"appkind": "rollout"}},
            "pod:a:[p,q]",
        ),
        (
            {
                "selectors": {
                    "workloads": [
                        {"kind": "deployment", "namespace": "a", "labels": "app=x"},
                        {"kind": "statefulset", "namespace": "b", "names": "db"},
                    ]
                }
            },
            "deployment:a:[app=x];statefulset:b:[db]",
        ),
    ],
)
def test_targets_are_rendered(spec: dict[str, object], wanted: str) -> None:
    assert render_targets(spec) == wanted


@pytest.mark.parametrize(
    "spec",
    [
        {"appinfo": {"appns": "a", "applabel": "app=x"}},
        {"appinfo": {"appns": "a", "appkind": "deployment"}},
        {"selectors": {"pods": []}},
    ],
)
def test_an_incomplete_target_is_refused(spec: dict[str, object]) -> None:
    with pytest.raises(IncompleteTargetError):
        render_targets(spec)


def test_targets_are_parsed() -> None:
    assert parse_targets("") == ()
    assert parse_targets("deployment:a:[app=x,tier=y];pod:b:[p,q];KIND:c:[]") == (
        Target("deployment", "a", labels=("app=x", "tier=y")),
        Target("pod", "b", names=("p", "q")),
        Target("KIND", "c"),
    )


def test_a_set_is_read_as_names() -> None:
    assert parse_targets("deployment:a:[app in (x,y)]")[0].names == ("app in (x", "y)")


def test_a_target_is_described_as_recorded() -> None:
    targets = parse_targets("deployment:chaos-test:[app=doesnotexist]")
    assert describe(targets) == "[{namespace: chaos-test, kind: deployment, labels: [app=doesnotexist]}]"


@pytest.mark.parametrize(
    ("total", "percentage", "wanted"),
    [(2, 0, 1), (2, 50, 1), (2, 99, 1), (2, 100, 2), (3, 67, 2), (3, 500, 3), (1, 1, 1)],
)
def test_the_share_is_rounded_down_and_at_least_one(total: int, percentage: int, wanted: int) -> None:
    pods = list(range(total))
    for seed in range(20):
        chosen = choose(pods, percentage, random.Random(seed))
        assert len(chosen) == len(set(chosen)) == wanted


def test_all_pods_have_their_turn() -> None:
    assert {choose([1, 2, 3], 0, random.Random(seed))[0] for seed in range(50)} == {1, 2, 3}


@pytest.mark.parametrize(("text", "wanted"), [("", {0}), ("50", {50}), ("2-4", {2, 3, 4}), ("some", {0})])
def test_a_range_gives_a_number_in_it(text: str, wanted: set[int]) -> None:
    assert {from_range(text, random.Random(seed)) for seed in range(50)} == wanted
