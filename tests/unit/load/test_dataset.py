"""Data sets are read strictly, and every mistake is named by file, line and field."""

from __future__ import annotations

from pathlib import Path

import pytest

from aftershock.errors import DatasetError
from aftershock.load.dataset import Item, load_dataset

GOOD = '{"id": "a", "prompt": "capital of France is", "expected": "Paris", "grader": "first-word"}'


def write(folder: Path, *lines: str) -> str:
    path = folder / "questions.jsonl"
    path.write_text("\n".join(lines), encoding="utf-8")
    return str(path)


def test_items_keep_the_order_of_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD, "", '{"id": "b", "prompt": "Tell me something"}', "")
    assert load_dataset(path) == [
        Item("a", "capital of France is", "Paris", "first-word"),
        Item("b", "Tell me something", None, "exact"),
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", ":2: line: Invalid JSON"),
        ("[]", ":2: line: "),
        ('{"prompt": "x"}', ":2: id: Field required"),
        ('{"id": "b"}', ":2: prompt: Field required"),
        ('{"id": "b", "prompt": ""}', ":2: prompt: String should have at least 1 character"),
        ('{"id": 3, "prompt": "x"}', ":2: id: Input should be a valid string"),
        ('{"id": "b", "prompt": "x", "expected": 4}', ":2: expected: Input should be a valid string"),
        ('{"id": "b", "prompt": "x", "answer": "y"}', ":2: answer: Extra inputs are not permitted"),
        ('{"id": "b", "prompt": "x", "grader": "vibes"}', ":2: grader: unknown; known are exact, first-word"),
        ('{"id": "b", "prompt": "x", "expected": "y", "grader": "numeric"}', ":2: expected: 'y' holds no number"),
        ('{"id": "b", "prompt": "x", "expected": "(", "grader": "regex"}', ":2: expected: '(' is no regular"),
        (GOOD, ":2: id: 'a' was already used in line 1"),
    ],
)
def test_mistakes_are_named_by_file_line_and_field(tmp_path: Path, line: str, complaint: str) -> None:
    path = write(tmp_path, GOOD, line)
    with pytest.raises(DatasetError) as caught:
        load_dataset(path)
    assert str(caught.value).startswith(path + complaint)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes('{"id": "a", "prompt": "Größe"}'.encode("latin-1"))
    with pytest.raises(DatasetError, match=r"latin.jsonl:1: line: "):
        load_dataset(str(path))


def test_an_empty_file(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="holds no item"):
        load_dataset(write(tmp_path, "", ""))


@pytest.mark.parametrize("name", ["no-such-set", "/no/such/file.jsonl", "/"])
def test_an_unknown_name_says_what_is_possible(name: str) -> None:
    with pytest.raises(DatasetError, match=f"^{name}: cannot be read .* give canary, or a JSON Lines file$"):
        load_dataset(name)


def test_the_shipped_questions_can_be_graded() -> None:
    items = load_dataset("canary")
    assert len(items) >= 100
    assert all(item.expected and item.grade() for item in items)
    assert len({item.prompt for item in items}) == len(items)
