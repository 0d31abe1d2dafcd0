"""Writes the compliance table and the report, and keeps them in the history."""

from kfp import dsl

from components.image import component


@component
def report(
    experiment: dsl.Input[dsl.Artifact],
    judgement: dsl.Input[dsl.Artifact],
    metrics: dsl.Input[dsl.Dataset],
    windows: dsl.Input[dsl.Artifact],
    outcome: dsl.Input[dsl.Artifact],
    baseline_records: dsl.Input[dsl.Dataset],
    chaos_records: dsl.Input[dsl.Dataset],
    recovery_records: dsl.Input[dsl.Dataset],
    table: dsl.Output[dsl.Dataset],
    scores: dsl.Output[dsl.Metrics],
    summary: dsl.Output[dsl.Markdown],
    page: dsl.Output[dsl.HTML],
):
    """Write the SLO compliance table in the four forms that the UI shows.

    Args:
        experiment: The checked experiment.
        judgement: The verdicts.
        metrics: What Prometheus answered.
        windows: The windows of the phases.
        outcome: What the fault did.
        baseline_records: Requests of the baseline phase.
        chaos_records: Requests of the chaos phase.
        recovery_records: Requests of the recovery phase.
        table: SLO compliance table, CSV.
        scores: Its finite numbers.
        summary: The table as Markdown.
        page: The report as one self-contained page.
    """
    from pathlib import Path

    from aftershock import steps

    values = steps.report(
        Path(experiment.path),
        judgement=Path(judgement.path),
        metrics=Path(metrics.path),
        windows=Path(windows.path),
        outcome=Path(outcome.path),
        records=[Path(baseline_records.path), Path(chaos_records.path), Path(recovery_records.path)],
        table_out=Path(table.path),
        summary_out=Path(summary.path),
        page_out=Path(page.path),
    )
    for name, value in values.items():
        scores.log_metric(name, value)
