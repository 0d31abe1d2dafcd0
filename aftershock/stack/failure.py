"""How the supervisor fails a run that it is only a part of."""

from __future__ import annotations

from aftershock.errors import StackError
from aftershock.progress import emit


def emit_failure(message: str) -> None:
    """Say in the run's journal that the stack cannot do its work any more: the command ends the run with this error."""
    emit("error", type=StackError.__name__, message=message, exit_code=int(StackError.exit_code))
