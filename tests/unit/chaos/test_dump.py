"""Documents written as YAML: whoever reads them reads the same."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from aftershock.chaos.dump import to_yaml
from aftershock.errors import EngineError

SCALARS = st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(st.characters(exclude_categories=["Cs"]))
TREES = st.recursive(
    SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=9), below, max_size=3)
)


@given(TREES)
def test_what_is_written_is_read_back_by_each_loader(document: Any) -> None:
    try:
        text = to_yaml(document, "test")
    except EngineError as error:
        assert "\n" not in str(error)
        return
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        assert yaml.load(text, Loader=loader) == document


@pytest.mark.parametrize(
    "word", ["yes", "On", "n", "y", "1e3", "0x10", "010", "1:30", ".5", "null", "~", "2026-01-01", "="]
)
def test_what_some_reader_takes_for_no_text_is_in_quotes(word: str) -> None:
    assert to_yaml({"a": word}, "test").rstrip().endswith(f'"{word}"')


def test_words_are_plain_and_nothing_is_folded_or_shared() -> None:
    shared = ["x " * 500]
    text = to_yaml({"first": shared, "second": shared, "name": "pod-delete", "on": "v1/pods"}, "test")
    assert text.count("\n") == 6
    assert "&" not in text
    assert 'name: pod-delete\n"on": v1/pods\n' in text


def test_half_a_character_is_refused() -> None:
    with pytest.raises(EngineError, match=r"^mine: "):
        to_yaml({"a": "\ud800"}, "mine")
