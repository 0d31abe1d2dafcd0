"""Asks Prometheus for every objective over every phase."""

from kfp import dsl

from components.image import component


@component
def collect(
    experiment: dsl.Input[dsl.Artifact],
    baseline: dsl.Input[dsl.Artifact],
    chaos: dsl.Input[dsl.Artifact],
    recovery: dsl.Input[dsl.Artifact],
    metrics: dsl.Output[dsl.Dataset],
    windows: dsl.Output[dsl.Artifact],
):
    """Evaluate the objectives' PromQL over the true windows of the phases.

    Args:
        experiment: The checked experiment.
        baseline: Window of the baseline phase.
        chaos: Window of the chaos phase.
        recovery: Window of the recovery phase.
        metrics: One tidy frame of all answers, Parquet; what is missing stays missing.
        windows: The three windows, JSON.
    """
    from pathlib import Path

    from aftershock import steps

    steps.collect(
        Path(experiment.path),
        [Path(baseline.path), Path(chaos.path), Path(recovery.path)],
        metrics_out=Path(metrics.path),
        windows_out=Path(windows.path),
    )
