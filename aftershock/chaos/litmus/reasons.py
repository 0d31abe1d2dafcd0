"""Why a run ended as it did, in one sentence that says what to do, and under which errorCode."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.machine import Ending, Machine, failed_probes
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sightings import Topic

_START_TROUBLE = ("ChaosResourcesOperationFailed", "FailedCreate")


def reason(machine: Machine, ending: Ending) -> str | None:
    """The sentence; None for a Pass."""
    explain = _REASONS.get(ending)
    if explain is None:
        return None
    left = machine.ledger.unreverted if ending is not Ending.STOP_NOT_VERIFIED else []
    return "; ".join(
        [explain(machine), *(f"{target} was not reverted; delete it to be rid of the fault" for target in left)]
    )


def error_code(ledger: Ledger, ending: Ending) -> str:
    """Litmus' own code where Litmus has one; else the name of the ending."""
    if ending is Ending.FAILED_IN_LITMUS:
        return str(_error(ledger).get("errorCode") or "GENERIC_ERROR")
    return "TIMEOUT" if ending is Ending.OVERDUE else ending.value


def _probe_failed(machine: Machine) -> str:
    return "; ".join(failed_probes(machine.ledger)) or "a probe failed, and Litmus does not say which"


def _stopped_by_probe(machine: Machine) -> str:
    return f"stopped by the engine's own {'; '.join(failed_probes(machine.ledger))}"


def _failed_in_litmus(machine: Machine) -> str:
    return _readable(str(_error(machine.ledger).get("reason") or "Litmus says Error and no more"))


def _no_result(machine: Machine) -> str:
    ledger = machine.ledger
    experiments = ledger.engine.experiments
    names = ", ".join(each.name for each in [e for e in experiments if not ledger.final(e)] or experiments)
    unseen = ledger.blind.get(Topic.RESULT)
    why = f"results were out of sight ({unseen})" if unseen else _latest(ledger, "see the pods' logs")
    return f"the engine is {ledger.status or 'gone'}, but {names} left no final ChaosResult; {why}"


def _not_started(machine: Machine) -> str:
    return f"nothing ran within {machine.deadlines.start_s:.0f} s: {_why_not_started(machine.ledger)}"


def _why_not_started(ledger: Ledger) -> str:
    if not ledger.status:
        return "no chaos-operator has touched the engine; is it running, and does it watch this namespace?"
    troubles = [event.message for event in ledger.events if event.reason in _START_TROUBLE]
    if troubles:
        return (
            f"the operator says {troubles[-1]!r}: the ChaosExperiment or the service account is missing from the "
            "engine's namespace, or the runner's pod is refused"
        )
    why = _latest(ledger, "can its image be pulled?")
    return f"the operator took the engine up, but its runner did not begin; {why}"


def _overdue(machine: Machine) -> str:
    parts = [f"not over {machine.run_limit_s:.0f} s after its start", "it was stopped", _latest(machine.ledger)]
    return "; ".join(part for part in parts if part)


def _latest(ledger: Ledger, otherwise: str = "") -> str:
    """What Kubernetes had to say against its Jobs and pods."""
    return f"the latest warning: {ledger.warning}" if ledger.warning else otherwise


def _restarted(machine: Machine) -> str:
    ledger = machine.ledger
    verdicts = ", ".join(sorted({str(status.get("verdict")) for status in _finals(ledger)}))
    return f"the window is invalid, though Litmus says {verdicts}: {'; '.join(ledger.restarts.signs)}"


def _api_lost(machine: Machine) -> str:
    why = "; ".join(sorted(set(machine.ledger.blind.values()))) or "it came back too late"
    return (
        f"the API server was lost for more than {machine.deadlines.blind_s:.0f} s ({why}); the fault ends by itself "
        "after its set duration; run `aftershock cleanup` once the server is back"
    )


def _stop_not_verified(machine: Machine) -> str:
    ledger = machine.ledger
    parts = [] if ledger.over else [f"the engine is {ledger.status or 'without a status'}"]
    parts += [f"pod {pod} is there" for pod in ledger.live_pods]
    parts += [f"{target} is still injected" for target in ledger.unreverted]
    parts += [f"{topic} are out of sight ({ledger.blind[topic]})" for topic in machine.unseen]
    return (
        f"not verifiably stopped within {machine.deadlines.stop_s:.0f} s ({', '.join(parts)}); "
        "is the chaos-operator running? then run `aftershock cleanup`"
    )


def _error(ledger: Ledger) -> Mapping[str, Any]:
    """errorOutput of the first experiment that has an Error."""
    for status in _finals(ledger):
        if status.get("verdict") not in ("Pass", "Fail", "Stopped"):
            return section(status, "errorOutput")
    return {}


def _readable(text: str) -> str:
    """Litmus' reason is JSON within JSON: phase, reason and target of each error."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return " ".join(text.split())
    parts = parsed if isinstance(parsed, list) else [parsed]
    return "; ".join(_one(part) for part in parts)


def _one(part: object) -> str:
    if not isinstance(part, dict):
        return str(part)
    return ": ".join(str(part[key]) for key in ("phase", "reason", "target") if part.get(key))


def _finals(ledger: Ledger) -> list[Mapping[str, Any]]:
    finals = (ledger.final(experiment) for experiment in ledger.engine.experiments)
    return [status for status in finals if status]


_REASONS: Mapping[Ending, Callable[[Machine], str]] = {
    Ending.PROBE_FAILED: _probe_failed,
    Ending.STOPPED_BY_US: lambda _: "stopped on request",
    Ending.STOPPED_BY_PROBE: _stopped_by_probe,
    Ending.STOPPED_BY_OTHERS: lambda _: "somebody else set engineState to stop",
    Ending.DELETED_BY_OTHERS: lambda _: "somebody else deleted the ChaosEngine while it ran",
    Ending.FAILED_IN_LITMUS: _failed_in_litmus,
    Ending.NO_RESULT: _no_result,
    Ending.NO_EXPERIMENTS: lambda _: (
        "the operator stopped the engine before any experiment: its target is incomplete; "
        "give appns, applabel and appkind"
    ),
    Ending.NOT_STARTED: _not_started,
    Ending.OVERDUE: _overdue,
    Ending.FAULT_RESTARTED: _restarted,
    Ending.API_LOST: _api_lost,
    Ending.STOP_NOT_VERIFIED: _stop_not_verified,
}
