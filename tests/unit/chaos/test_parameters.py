"""Values of parameters: what is taken, in which form, and what a user is told about the rest."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from aftershock.chaos.parameters import Parameter, resolve
from aftershock.errors import TemplateError


def parameter(**fields: Any) -> Parameter:
    return Parameter.model_validate({"help": "only for this test", **fields})


PARAMETERS = {
    "LATENCY": parameter(type="integer", default=200, minimum=1, maximum=60_000, unit="ms"),
    "JITTER": parameter(type="integer", default=50, minimum=0, maximum=60_000, unit="ms", at_most="LATENCY"),
    "SECONDS": parameter(type="integer", default=30, minimum=1, maximum=86_400, unit="s"),
    "PERCENTAGE": parameter(type="integer", default=5, minimum=1, maximum=100, unit="%"),
    "GIGABYTES": parameter(type="integer", default="", minimum=1, maximum=64, unit="GB", instead_of="PERCENTAGE"),
    "FORCE": parameter(type="boolean", default=True),
    "SEQUENCE": parameter(type="choice", default="parallel", choices=["parallel", "serial"]),
    "PODS": parameter(type="string", default="", pattern="[a-z-]+(,[a-z-]+)*", allowed="pod names"),
    "BODY": parameter(type="string", default="oops", pattern="[^$]*", allowed="text without $"),
}


def refused(given: dict[str, str]) -> str:
    with pytest.raises(TemplateError) as caught:
        resolve("some-fault", PARAMETERS, given)
    message = str(caught.value)
    assert message.startswith("some-fault: ")
    assert "\n" not in message
    return message


def test_defaults_fill_what_is_not_given() -> None:
    assert resolve("some-fault", PARAMETERS, {"LATENCY": "900"}) == {
        "LATENCY": "900",
        "JITTER": "50",
        "SECONDS": "30",
        "PERCENTAGE": "5",
        "GIGABYTES": "",
        "FORCE": "true",
        "SEQUENCE": "parallel",
        "PODS": "",
        "BODY": "oops",
    }


@pytest.mark.parametrize(
    ("name", "value", "canonical"),
    [
        ("LATENCY", "007", "7"),
        ("LATENCY", " 7 ", "7"),
        ("FORCE", "True", "true"),
        ("FORCE", "false", "false"),
        ("SEQUENCE", "serial", "serial"),
        ("PODS", "", ""),
        ("BODY", "", ""),
        ("BODY", " spaces are kept ", " spaces are kept "),
    ],
)
def test_values_take_one_form(name: str, value: str, canonical: str) -> None:
    assert resolve("some-fault", PARAMETERS, {name: value})[name] == canonical


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("LATENCY", "500ms", "must be a whole number of ms from 1 to 60000, without a unit; give 500"),
        ("LATENCY", "2s", "give 2000"),
        ("LATENCY", "1.5s", "give 1500"),
        ("SECONDS", "2 min", "give 120"),
        ("PERCENTAGE", "50%", "give 50"),
        ("GIGABYTES", "2048MB", "give 2"),
    ],
)
def test_a_unit_is_refused_with_what_to_write_instead(name: str, value: str, said: str) -> None:
    assert said in refused({name: value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LATENCY", "0"),
        ("LATENCY", "60001"),
        ("LATENCY", "-5"),
        ("LATENCY", ""),
        ("LATENCY", "1.5"),
        ("LATENCY", "1e3"),
        ("LATENCY", "0x10"),
        ("LATENCY", "1_000"),
        ("LATENCY", "٣"),
        ("LATENCY", "9" * 10_000),
        ("LATENCY", "5 apples"),
        ("LATENCY", "1500us"),
        ("SECONDS", "86401"),
        ("SECONDS", "999999999h"),
        ("PERCENTAGE", "101"),
        ("PERCENTAGE", "30-60"),
        ("FORCE", "yes"),
        ("FORCE", "1"),
        ("FORCE", ""),
        ("SEQUENCE", "Parallel"),
        ("SEQUENCE", ""),
        ("PODS", ","),
        ("PODS", "a,,b"),
        ("PODS", "a\n"),
        ("BODY", "$HOME"),
        ("BODY", "nul\x00"),
        ("BODY", "escape\x1b[2J"),
        ("BODY", "half \ud800"),
        ("BODY", "x" * 10_000),
    ],
)
def test_what_is_not_allowed_is_refused_by_name_and_value(name: str, value: str) -> None:
    message = refused({name: value})
    assert f"{name}=" in message
    assert len(message) < 250


def test_an_unknown_name_gets_a_suggestion_and_the_known_ones() -> None:
    message = refused({"LATENCI": "5"})
    assert "unknown parameter 'LATENCI'; did you mean LATENCY? known are LATENCY, JITTER" in message
    assert "did you mean FORCE?" in refused({"force": "true"})
    assert "did you mean" not in refused({"COMPLETELY_ELSE": "1"})


def test_a_bound_by_another_parameter_lowers_a_default_but_refuses_a_value() -> None:
    assert resolve("some-fault", PARAMETERS, {"LATENCY": "20"})["JITTER"] == "20"
    assert "JITTER='300': must be at most LATENCY, which is 200" in refused({"JITTER": "300"})
    assert resolve("some-fault", PARAMETERS, {"JITTER": "300", "LATENCY": "300"})["JITTER"] == "300"


def test_of_two_that_exclude_each_other_the_given_one_counts() -> None:
    values = resolve("some-fault", PARAMETERS, {"GIGABYTES": "2"})
    assert (values["GIGABYTES"], values["PERCENTAGE"]) == ("2", "")
    assert "give one of the two" in refused({"GIGABYTES": "2", "PERCENTAGE": "10"})
    assert resolve("some-fault", PARAMETERS, {"GIGABYTES": "", "PERCENTAGE": "10"})["PERCENTAGE"] == "10"


def test_a_required_one_that_is_not_given_is_refused_with_the_reason() -> None:
    replicas = parameter(type="integer", default="", minimum=1, maximum=9, required="no number is right everywhere")
    for given in ({}, {"REPLICAS": ""}):
        with pytest.raises(TemplateError, match="some-fault: REPLICAS is not given: no number is right everywhere"):
            resolve("some-fault", {"REPLICAS": replicas}, given)
    assert resolve("some-fault", {"REPLICAS": replicas}, {"REPLICAS": "3"}) == {"REPLICAS": "3"}


def test_not_set_is_written_as_litmus_takes_it() -> None:
    sizes = {
        "SHARE": parameter(type="integer", default=50, minimum=1, maximum=100, unset="0"),
        "SIZE": parameter(type="integer", default="", minimum=1, maximum=9, unset="0", instead_of="SHARE"),
    }
    assert resolve("some-fault", sizes, {}) == {"SHARE": "50", "SIZE": "0"}
    assert resolve("some-fault", sizes, {"SIZE": "2"}) == {"SHARE": "0", "SIZE": "2"}
    assert resolve("some-fault", sizes, {"SIZE": "0", "SHARE": "30"}) == {"SHARE": "30", "SIZE": "0"}
    with pytest.raises(TemplateError, match="SHARE='0': must be a whole number"):
        resolve("some-fault", sizes, {"SHARE": "0"})


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "integer", "default": 5},
        {"type": "integer", "default": 5, "minimum": 1},
        {"type": "integer", "default": 5, "minimum": 6, "maximum": 9},
        {"type": "choice", "default": "a"},
        {"type": "choice", "default": "c", "choices": ["a", "b"]},
        {"type": "string", "default": ""},
        {"type": "string", "default": "5", "pattern": "[a-z]*", "allowed": "letters"},
        {"type": "boolean", "default": "maybe"},
        {"type": "integer", "default": 5, "minimum": 1, "maximum": 9, "required": "because"},
        {"type": "boolean", "default": True, "help": "short"},
        {"type": "boolean", "default": True, "typo": 1},
        {"type": "float", "default": "1"},
    ],
)
def test_a_header_that_is_incomplete_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        parameter(**fields)
