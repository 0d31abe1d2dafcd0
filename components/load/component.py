"""Sends the load of a phase without a fault and records every request."""

from kfp import dsl

from components.image import component


@component
def load(
    experiment: dsl.Input[dsl.Artifact],
    phase: str,
    records: dsl.Output[dsl.Dataset],
    window: dsl.Output[dsl.Artifact],
):
    """Run the open-loop load of `phase` (baseline or recovery).

    Args:
        experiment: The checked experiment.
        phase: baseline or recovery.
        records: One row a request, Parquet.
        window: The phase's window of time and how well the generator kept up, JSON.
    """
    from pathlib import Path

    from aftershock import steps

    steps.load(Path(experiment.path), phase, records_out=Path(records.path), window_out=Path(window.path))
