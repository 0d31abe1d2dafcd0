"""What `kubectl kustomize` makes of deploy/, read without kubectl; where there is one, a test holds the two equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).parents[3] / "deploy"

Object = dict[str, Any]
Build = Callable[[str], list[Object]]


@pytest.fixture(scope="session")
def deploy() -> Path:
    """The folder of the manifests."""
    return DEPLOY


@pytest.fixture(scope="session")
def build() -> Build:
    """The objects of one kustomization, by the name of its folder; "" is the one at the top."""
    return lambda folder: list(_build(DEPLOY / folder))


@pytest.fixture(scope="session")
def everything(build: Build) -> list[Object]:
    """All objects that can be built without the network."""
    return [item for folder in ("", *OPTIONAL) for item in build(folder)]


OPTIONAL = ("cleanup", "faults-node", "kubeflow", "monitoring")


def _build(folder: Path) -> Iterator[Object]:
    """Of kustomize, what the files use: resources and labels."""
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    unknown = kustomization.keys() - {"apiVersion", "kind", "resources", "labels"}
    assert not unknown, f"{folder}: {unknown} is beyond this reader"
    for name in kustomization["resources"]:
        path = folder / name
        for item in _build(path) if path.is_dir() else yaml.safe_load_all(path.read_text()):
            labels = item["metadata"].setdefault("labels", {})
            for each in kustomization.get("labels", []):
                labels.update(each["pairs"])
            yield item
