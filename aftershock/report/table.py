"""The compliance table as CSV, as text for a terminal, and as numbers for Kubeflow's Metrics."""

from __future__ import annotations

import csv
import io
import math
import textwrap
from collections.abc import Iterator, Sequence

from aftershock.report.wording import compliant, headline, metric, paragraphs, signed, target_without_unit
from aftershock.slo.verdict import Judgement, Verdict, VerdictRow
from aftershock.windows import Phase

COLUMNS = (
    "metric", "pre_chaos", "chaos", "recovery", "delta", "slo", "unit", "compliant", "verdict", "reason",
    "low", "high", "n", "severity", "objective",
)  # fmt: skip
"""The KFP UI previews 255 bytes of a CSV, so what a reader looks for first comes first. `low`, `high` (95 % interval)
and `n` are of the phase that decided; `verdict.json` has those of every phase."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_LEAST_NAME = 16
_GAP = "  "


def to_csv(judgement: Judgement) -> str:
    """One row an objective, under COLUMNS. A value that is not known is an empty cell, never a zero."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in judgement.rows:
        writer.writerow(
            [
                _cell(row.display),
                *(_exact(row.phases[phase].value if phase in row.phases else None) for phase in Phase),
                _exact(row.delta.value if row.delta else None),
                _cell(target_without_unit(row)),
                _cell(row.unit),
                compliant(row.verdict),
                row.verdict.value,
                row.reason.value,
                _exact(row.decisive.low),
                _exact(row.decisive.high),
                "" if row.decisive.n is None else str(row.decisive.n),
                _cell(row.severity),
                _cell(row.objective),
            ]
        )
    return out.getvalue()


def to_text(judgement: Judgement, width: int = 100) -> str:
    """The table for a terminal of `width` columns, then why each row that did not pass did not, then the verdict."""
    body = [_columns(row) for row in judgement.rows]
    head = ("Metric", "Baseline", "Chaos", "Recovery", "Delta", "SLO", "Verdict")
    dropped = next((count for count in (0, 1, 2) if _name_width([head, *body], width, count) >= _LEAST_NAME), 2)
    lines = list(_grid([head, *body], width, dropped)) if body else []
    for verdict in Verdict:
        rows = [row for row in judgement.rows if row.verdict is verdict and verdict is not Verdict.PASS]
        for text in paragraphs(rows):
            lines += ["", *_wrapped(f"{verdict}: {text}", width)]
    for note in judgement.notes:
        lines += ["", *_wrapped(f"Note: {note}", width)]
    lines += ["", *_wrapped(f"Verdict: {judgement.verdict}. {headline(judgement)}", width)]
    return "\n".join(lines).lstrip("\n") + "\n"


def to_kfp_metrics(judgement: Judgement) -> dict[str, float]:
    """Finite numbers under keys that stay the same from run to run, so that the UI can compare runs.

    Counts and `<objective>.compliant` (1 or 0) are always there; a value that is not known has no key.
    """
    counts = {verdict: sum(row.verdict is verdict for row in judgement.rows) for verdict in Verdict}
    numbers: dict[str, float | None] = {
        "slo.pass": float(judgement.verdict is Verdict.PASS),
        "slo.objectives": float(len(judgement.rows)),
        "slo.passed": float(counts[Verdict.PASS]),
        "slo.failed": float(counts[Verdict.FAIL]),
        "slo.undecided": float(len(judgement.rows) - counts[Verdict.PASS] - counts[Verdict.FAIL]),
    }
    for row in judgement.rows:
        numbers[f"{row.objective}.compliant"] = float(row.verdict is Verdict.PASS)
        for phase in Phase:
            numbers[f"{row.objective}.{phase}"] = row.phases[phase].value if phase in row.phases else None
        numbers[f"{row.objective}.delta"] = row.delta.value if row.delta else None
    return {name: value for name, value in numbers.items() if value is not None and math.isfinite(value)}


def _exact(value: float | None) -> str:
    """Nine significant digits: more than any measurement here has."""
    return "" if value is None or not math.isfinite(value) else f"{value:.9g}"


def _cell(text: str) -> str:
    """A spreadsheet must not take text of a document from outside for a formula."""
    words = " ".join(text.split())
    return f"'{words}" if words.startswith(_FORMULA) else words


def _columns(row: VerdictRow) -> tuple[str, ...]:
    values = [row.phases[phase].text if phase in row.phases else "" for phase in Phase]
    return (metric(row), *values, signed(row.delta), target_without_unit(row), row.verdict.value)


def _kept(cells: Sequence[str], dropped: int) -> list[str]:
    """The cells but the delta, then also but the baseline, as the terminal gets narrower."""
    return [cell for index, cell in enumerate(cells) if index not in (4, 1)[:dropped]]


def _widths(table: Sequence[Sequence[str]], dropped: int) -> list[int]:
    return [max(map(len, column)) for column in zip(*(_kept(cells, dropped) for cells in table), strict=True)]


def _name_width(table: Sequence[Sequence[str]], width: int, dropped: int) -> int:
    """What the other columns leave for the names."""
    others = _widths(table, dropped)[1:]
    return width - sum(others) - len(_GAP) * len(others)


def _grid(table: Sequence[Sequence[str]], width: int, dropped: int) -> Iterator[str]:
    """Names to the left and cut where they must be, numbers to the right, the verdict to the left."""
    widths = _widths(table, dropped)
    widths[0] = min(widths[0], max(_LEAST_NAME, _name_width(table, width, dropped)))
    for index, cells in enumerate(table):
        first, *numbers, last = _kept(cells, dropped)
        name = first if len(first) <= widths[0] else f"{first[: widths[0] - 3]}..."
        middle = [number.rjust(size) for number, size in zip(numbers, widths[1:-1], strict=True)]
        yield _GAP.join([name.ljust(widths[0]), *middle, last])
        if index == 0:
            yield _GAP.join("-" * size for size in widths)


def _wrapped(text: str, width: int) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), max(width, 20), subsequent_indent="    ")
