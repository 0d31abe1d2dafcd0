"""Label matchers: what may go into a query, and nothing else."""

import pytest

from aftershock.errors import ExperimentError
from aftershock.experiment import Experiment, resolve
from aftershock.matchers import checked_matchers


@pytest.mark.parametrize(
    ("text", "matchers"),
    [
        ("", ""),
        (" {} ", ""),
        ('job="vllm"', 'job="vllm"'),
        ('{job="vllm", namespace=~"a|b.*"}', 'job="vllm", namespace=~"a|b.*"'),
        ('job = "vllm", pod !~ "x{2}", zone != ""', 'job = "vllm", pod !~ "x{2}", zone != ""'),
        ('job="a",', 'job="a"'),
        (r'job="say \"hi\", {all}"', r'job="say \"hi\", {all}"'),
    ],
)
def test_matchers_are_read(text: str, matchers: str) -> None:
    assert checked_matchers(text) == matchers


@pytest.mark.parametrize(
    "text",
    [
        "vllm",
        "job=vllm",
        "job='vllm'",
        'job="a" zone="b"',
        '{job="a"',
        'job="a"}',
        'job="a"} or up{job="b"',
        'job="a"}[5m]) # ',
        'job="{{ phase }}"',
        'job="{% if 1 %}"',
        'job=="a"',
        '1job="a"',
        'job="a\nb"',
    ],
)
def test_what_is_more_than_matchers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be label matchers in double quotes, such as"):
        checked_matchers(text)


def test_the_selector_of_an_experiment() -> None:
    assert (Experiment().selector, Experiment().matchers) == ("none", "")
    given = resolve(flags={"selector": '{job="vllm"}'}, environment={"AFTERSHOCK_SELECTOR": 'job="other"'})
    assert (given.selector, given.matchers) == ('job="vllm"', 'job="vllm"')
    assert resolve(flags={"selector": ""}, environment={}).selector == "none"
    with pytest.raises(ExperimentError, match="experiment: selector='job=vllm': must be label matchers"):
        resolve(flags={"selector": "job=vllm"}, environment={})
