"""What must be true of the inference service for a load to mean anything. Sends one request, as a run does first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from aftershock.checkup import Check, NotCheckedError
from aftershock.load.plan import LoadPlan
from aftershock.load.preflight import check_target, served_models

GROUP = "target"
MARGIN_S = 10.0
"""Beyond the request's own time-out: looking up the host, and asking what models there are."""


def checks(plan: Callable[[], LoadPlan], request_timeout_s: float, dataset: Check) -> list[Check]:
    """All checks of the service. `dataset`: the check that there are questions to ask; without, there is no plan."""
    answers = Check(GROUP, "answers", lambda: _answers(plan()), (dataset,), request_timeout_s + MARGIN_S)
    return [answers, Check(GROUP, "model", lambda: _model(plan()), (answers,))]


def _answers(plan: LoadPlan) -> str:
    began = time.monotonic()
    asyncio.run(check_target(plan, patience_s=0))
    return f"{plan.target_url} answered a {plan.protocol} request in {time.monotonic() - began:.2g} s"


def _model(plan: LoadPlan) -> str:
    served = asyncio.run(served_models(plan.target_url))
    if not served:
        raise NotCheckedError(f"the service lists no models; it answered a request for {plan.model}")
    if plan.model not in served:
        return f"{plan.model} is answered, although the service lists only {', '.join(served)}"
    return f"{plan.model} is one that it serves"
