"""Rewriting a file in which others write at the same moment: nothing of theirs goes unseen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from aftershock.chaos.local.rewrite import rewrite

Write = Callable[[Path, str], None]


def in_place(path: Path, text: str) -> None:
    """As `echo`, or an editor that keeps the file."""
    path.write_text(text)


def by_renaming(path: Path, text: str) -> None:
    """As `sed -i`, or an editor that writes another file."""
    path.with_name("other").write_text(text)
    path.with_name("other").replace(path)


@pytest.fixture(params=[in_place, by_renaming])
def write(request: pytest.FixtureRequest) -> Write:
    """One of both ways."""
    chosen: Write = request.param
    return chosen


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "engine.yaml"
    path.write_text("first")
    return path


def test_the_old_version_is_given_back(file: Path) -> None:
    (old,) = rewrite(file, str.upper)
    with old:
        old.seek(0)
        assert old.read() == "first"
    assert file.read_text() == "FIRST"
    assert file.stat().st_mode & 0o777 == 0o644
    assert [path.name for path in file.parent.iterdir()] == [file.name]


def test_what_is_right_already_is_not_written(file: Path) -> None:
    before = file.stat()
    assert rewrite(file, lambda text: text) == []
    assert file.stat() == before


def test_no_file_is_made(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        rewrite(tmp_path / "missing", str.upper)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_deleted_meanwhile_stays_away(file: Path) -> None:
    def change(text: str) -> str:
        file.unlink()
        return text.upper()

    with pytest.raises(FileNotFoundError):
        rewrite(file, change)
    assert list(file.parent.iterdir()) == []


def test_the_change_is_made_to_what_somebody_writes_in_between(file: Path, write: Write) -> None:
    bases = []

    def change(text: str) -> str:
        bases.append(text)
        if len(bases) == 1:
            write(file, "theirs")
        return f"{text} and ours"

    for version in rewrite(file, change):
        version.close()
    assert bases == ["first", "theirs"]
    assert file.read_text() == "theirs and ours"


def test_their_version_comes_back_if_there_is_nothing_to_change_in_it(file: Path, write: Write) -> None:
    def change(text: str) -> str:
        if text == "first":
            write(file, "theirs")
            return "ours"
        return text

    for version in rewrite(file, change):
        version.close()
    assert file.read_text() == "theirs"


def test_who_had_the_old_version_open_can_still_be_read(file: Path) -> None:
    with file.open("r+") as theirs:
        (old,) = rewrite(file, str.upper)
        theirs.write("theirs")
        theirs.flush()
        with old:
            old.seek(0)
            assert old.read() == "theirs"


def test_where_files_cannot_be_exchanged_they_are_replaced(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("aftershock.chaos.local.rewrite._LIBC", object())  # as on another system
    (old,) = rewrite(file, str.upper)
    with old:
        assert file.read_text() == "FIRST"
        old.seek(0)
        assert old.read() == "first"
