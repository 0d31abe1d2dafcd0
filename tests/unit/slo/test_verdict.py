"""verdict.json: there and back, with finite numbers only."""

import json
import math

import pytest

from aftershock.slo.verdict import Judgement, Reason, Status, Verdict, number
from aftershock.windows import Phase

from .conftest import ERRORS, LATENCY, RECOVERY, Run


def judgement() -> Judgement:
    """One row each with an interval, a saturated value, NaN, and nothing at all."""
    run = Run().share("errors", "baseline", 0, 1200).share("errors", "chaos", 90, 1800)
    run.histogram("latency", "baseline", [0.4] * 1200).histogram("latency", "chaos", [99.0] * 1800)
    run.sick([(float(second), math.nan) for second in range(81)])
    return run.judge(LATENCY, ERRORS, RECOVERY, fault_effects=0)


def test_there_and_back() -> None:
    made = judgement()
    text = json.dumps(made.to_dict(), allow_nan=False)
    assert Judgement.from_dict(json.loads(text)) == made


def test_the_document() -> None:
    document = judgement().to_dict()
    assert (document["version"], document["verdict"], document["exit_code"]) == (1, "FAIL", 1)
    assert (document["policy"], document["fault"]) == ("strict", "pod-delete")
    assert document["notes"][0].startswith("No effect: ")
    latency, errors, recovery = document["rows"]
    assert set(latency) == {
        "objective",
        "display",
        "unit",
        "op",
        "bound",
        "phases",
        "judged",
        "decided_by",
        "verdict",
        "reason",
        "explanation",
        "delta",
        "severity",
        "evidence",
    }
    assert (latency["op"], latency["bound"], latency["decided_by"]) == ("lte", 800, "chaos")
    assert latency["phases"]["chaos"]["status"] == "at_least"
    assert latency["phases"]["recovery"] == {
        "value": None,
        "low": None,
        "high": None,
        "n": None,
        "status": "missing",
        "detail": "no bucket was asked of Prometheus",
    }
    assert errors["delta"]["percent"] is None  # of a baseline of 0
    assert recovery["reason"] == "NAN"


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="has version 2; this aftershock reads 1"):
        Judgement.from_dict({"version": 2})


def test_every_status_without_a_value_has_its_reason() -> None:
    for status in Status:
        if not status.known:
            assert status.reason in Reason


def test_verdicts_are_a_closed_set_with_an_order() -> None:
    assert sorted(Verdict, key=lambda verdict: verdict.rank) == ["PASS", "INCONCLUSIVE", "NO_DATA", "FAIL", "ERROR"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (940.123, "940.1"),
        (60000.4, "60000"),
        (0.5, "0.5"),
        (1.6666666, "1.667"),
        (0.00002, "0.00002"),
        (1e-12, "0"),
        (-0.0, "0"),
        (-1e-9, "0"),
        (999.99, "1000"),
        (800.0000000000001, "800"),
    ],
)
def test_numbers_as_people_read_them(value: float, text: str) -> None:
    assert number(value) == text


def test_a_value_that_is_not_there_is_a_dash() -> None:
    rows = judgement().rows
    assert rows[0].phases[Phase.RECOVERY].text == "-"
    assert rows[0].phases[Phase.CHAOS].text.startswith(">= ")
