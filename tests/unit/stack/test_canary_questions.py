"""The shipped data set is the one that the canary was taught, and fit to be asked."""

from __future__ import annotations

import hashlib

import pytest

from aftershock.load.dataset import Item, load_dataset
from aftershock.load.grading import GRADERS
from aftershock.stack.canary.questions import KINDS, Question, questions
from aftershock.stack.models import model_path


def test_the_data_set_holds_what_the_model_was_taught() -> None:
    taught = [Item(q.id, q.prompt, q.expected, q.grader) for q in questions()]
    assert load_dataset("canary") == taught


def test_the_order_is_always_the_same() -> None:
    assert questions() == questions()


def test_ids_and_prompts_are_unique_and_there_are_a_few_hundred() -> None:
    items = load_dataset("canary")
    assert 300 <= len(items) <= 400
    assert len({item.id for item in items}) == len({item.prompt for item in items}) == len(items)


def test_every_grader_is_in_use() -> None:
    assert {item.grader for item in load_dataset("canary")} == set(GRADERS)


def test_kinds_are_mixed() -> None:
    """A short load, and each stretch of a long one, asks of most kinds."""
    kind_of = {question.id: kind.__name__ for kind in KINDS for question in kind()}
    asked = [kind_of[question.id] for question in questions()]
    assert all(len(set(asked[i : i + 60])) >= len(KINDS) - 3 for i in range(0, len(asked) - 60, 60))


@pytest.mark.parametrize("question", questions(), ids=lambda question: question.id)
def test_only_the_right_answer_of_its_kind_is_right(question: Question) -> None:
    grade = GRADERS[question.grader](question.expected)
    siblings = next(list(kind()) for kind in KINDS if question in list(kind()))
    assert grade(f" {question.answer}")
    assert not grade("")
    assert not all(grade(other.answer) for other in siblings)


def test_the_readme_names_the_model_that_ships() -> None:
    path = model_path("canary")
    assert hashlib.sha256(path.read_bytes()).hexdigest() in path.with_name("README.md").read_text()
