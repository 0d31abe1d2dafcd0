"""Sends the load and drives the ChaosEngine in one process, on one clock."""

from kfp import dsl

from components.image import component


@component
def chaos(
    experiment: dsl.Input[dsl.Artifact],
    engine: dsl.Input[dsl.Artifact],
    records: dsl.Output[dsl.Dataset],
    window: dsl.Output[dsl.Artifact],
    outcome: dsl.Output[dsl.Artifact],
):
    """Run the chaos phase: load and fault together; the fault is reverted before this ends, whatever happens.

    Args:
        experiment: The checked experiment.
        engine: The rendered ChaosEngine.
        records: One row a request, Parquet.
        window: The phase's window, with the instants of injection and revert, JSON.
        outcome: ChaosResult and events, JSON.
    """
    from pathlib import Path

    from aftershock import steps

    steps.chaos(
        Path(experiment.path),
        Path(engine.path),
        records_out=Path(records.path),
        window_out=Path(window.path),
        outcome_out=Path(outcome.path),
    )
