"""Fails the run where the verdict is not PASS, after everything is written."""

from components.image import component


@component
def gate(verdict: str, enabled: bool):
    """Fail if asked to and the verdict is not PASS.

    Args:
        verdict: The run's verdict.
        enabled: Whether to fail at all.
    """
    from aftershock import steps

    steps.gate(verdict, enabled)
