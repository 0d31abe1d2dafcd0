"""Writes what is made of `aftershock/metrics/families`: slo_specs/servers and the golden queries beside this file.

    python tests/unit/metrics/write_specs.py

Look at the difference before you keep it: tests hold both to the code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aftershock.files import data_folder, write_text
from aftershock.metrics.families.family import Detected
from aftershock.metrics.families.openslo import file_text
from aftershock.metrics.families.registry import FAMILIES, detect

HERE = Path(__file__).parent
SELECTOR = 'job="model"'


def pages() -> list[Path]:
    """Pages of servers: real ones, and for servers that were not at hand the names that are public."""
    return sorted([*(HERE / "pages").glob("*.txt"), *(HERE / "documented").glob("*.txt")])


def shown(page: Path) -> list[Detected]:
    """What is found on a page."""
    return detect(page.read_text(), page.name)


def golden(found: list[Detected]) -> str:
    """The queries of a page, as the golden file has them."""
    return "\n".join(line for detected in found for line in _lines(detected))


def _lines(detected: Detected) -> Iterator[str]:
    yield f"# {detected.variant.name}"
    for signal, measure in detected.measures.items():
        yield f"# {signal} {signal.unit}".rstrip()
        yield measure.promql(SELECTOR)
    yield f"# missing: {', '.join(detected.missing) or 'nothing'}\n"


def main() -> None:
    """Write all of them."""
    for family in FAMILIES:
        for variant in family.variants:
            write_text(data_folder("slo_specs") / "servers" / f"{variant.name}.yaml", file_text(family, variant))
    for page in pages():
        write_text(HERE / "golden" / f"{page.stem}.promql", golden(shown(page)))


if __name__ == "__main__":
    main()
