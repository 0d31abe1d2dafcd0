"""Holds what was measured against the SLO."""

from kfp import dsl

from components.image import component


@component
def judge(
    experiment: dsl.Input[dsl.Artifact],
    metrics: dsl.Input[dsl.Dataset],
    windows: dsl.Input[dsl.Artifact],
    outcome: dsl.Input[dsl.Artifact],
    baseline_records: dsl.Input[dsl.Dataset],
    chaos_records: dsl.Input[dsl.Dataset],
    recovery_records: dsl.Input[dsl.Dataset],
    judgement: dsl.Output[dsl.Artifact],
) -> str:
    """Give each objective one of five verdicts, with its reason, and the run the worst of them.

    Args:
        experiment: The checked experiment.
        metrics: What Prometheus answered.
        windows: The windows of the phases.
        outcome: What the fault did.
        baseline_records: Requests of the baseline phase.
        chaos_records: Requests of the chaos phase.
        recovery_records: Requests of the recovery phase.
        judgement: The verdicts, JSON.

    Returns:
        PASS, FAIL, INCONCLUSIVE, NO_DATA or ERROR.
    """
    from pathlib import Path

    from aftershock import steps

    return steps.judge(
        Path(experiment.path),
        metrics=Path(metrics.path),
        windows=Path(windows.path),
        outcome=Path(outcome.path),
        records=[Path(baseline_records.path), Path(chaos_records.path), Path(recovery_records.path)],
        judgement_out=Path(judgement.path),
    )
