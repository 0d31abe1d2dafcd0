"""The wheel, which is what an image holds: everything that a step needs travels in it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]

LOOK = """
import sys
from pathlib import Path
import aftershock
from aftershock.chaos.lint.linter import lint
from aftershock.chaos.template import list_faults
from aftershock.experiment import Experiment
from aftershock.files import data_folder
from aftershock.load.dataset import load_dataset
from aftershock.slo.openslo import load_slos
from aftershock.stack.models import model_path
from aftershock.steps import render_engine

here = Path(sys.argv[1])
assert here in Path(aftershock.__file__).parents, aftershock.__file__
assert len(list_faults()) == 26
engine = render_engine(Experiment(run_id="r1"))
assert lint(engine, "rendered") == []
assert load_slos("canary") and load_slos("chat-vllm") and load_dataset("canary")
for path in (model_path("canary"), data_folder("pipelines") / "slo_chaos" / "pipeline.yaml"):
    assert path.is_file() and here in path.parents, path
"""


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = f"import hatchling.build; print(hatchling.build.build_wheel({str(folder)!r}))"
    built = subprocess.run([sys.executable, "-c", build], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    with zipfile.ZipFile(folder / built.stdout.strip()) as wheel:
        wheel.extractall(folder / "site")
    return folder / "site"


def test_everything_travels_in_the_wheel(unpacked: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(unpacked)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(unpacked)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr


def test_the_report_s_page_travels_too(unpacked: Path) -> None:
    for name in ("report.html.j2", "report.css"):
        assert (unpacked / "aftershock" / "report" / name).is_file()
