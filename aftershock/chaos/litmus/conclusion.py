"""What it all means: an ending and a ledger in, a ChaosOutcome out.

ok                     Pass     PASSED
probe failure          Fail     PROBE_FAILED
aborted                Stopped  STOPPED_BY_US, STOPPED_BY_PROBE, STOPPED_BY_OTHERS, DELETED_BY_OTHERS
infrastructure error   Error    all others; never an SLO verdict
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aftershock.chaos.backend import ChaosOutcome, Verdict
from aftershock.chaos.litmus.effects import LONG_S, Effects, effects_of
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.machine import Ending, Machine
from aftershock.chaos.litmus.reasons import error_code, reason

_VERDICTS: Mapping[Ending, tuple[Verdict, str]] = {
    Ending.PASSED: ("Pass", "Completed"),
    Ending.PROBE_FAILED: ("Fail", "Completed_With_Probe_Failure"),
    Ending.STOPPED_BY_US: ("Stopped", "Stopped"),
    Ending.STOPPED_BY_PROBE: ("Stopped", "Stopped"),
    Ending.STOPPED_BY_OTHERS: ("Stopped", "Stopped"),
    Ending.DELETED_BY_OTHERS: ("Stopped", "Stopped"),
}


def conclude(machine: Machine) -> ChaosOutcome:
    """Of a machine that is done."""
    ledger, ending = machine.ledger, machine.ending
    assert ending is not None, "the machine is not done"
    verdict, phase = _VERDICTS.get(ending, ("Error", "Error"))
    effects = effects_of(ledger, machine.sight.longest_s)
    return ChaosOutcome(
        verdict=verdict,
        phase=phase,
        error_code=error_code(ledger, ending) if verdict == "Error" else None,
        reason=reason(machine, ending),
        injected_at=effects.injected_at,
        reverted_at=effects.reverted_at,
        effects=effects.count,
        evidence=_evidence(machine, effects),
        result=_result(ledger),
        events=tuple(ledger.events),
        backend="litmus",
    )


def without_engine(code: str, why: str, *, stopped: bool = False) -> ChaosOutcome:
    """Of a run that came to no engine."""
    return ChaosOutcome(
        verdict="Stopped" if stopped else "Error",
        phase="Stopped" if stopped else "Error",
        error_code=None if stopped else code,
        reason=why,
        injected_at=None,
        reverted_at=None,
        effects=0,
        evidence=(),
        result={},
        events=(),
        backend="litmus",
    )


def _evidence(machine: Machine, effects: Effects) -> tuple[str, ...]:
    ledger = machine.ledger
    found = [*effects.evidence, *ledger.restarts.signs]
    found += [f"{target} was never reported as reverted" for target in ledger.unreverted]
    found += [
        f"{target} is not known to be reverted: this fault may write its last word before its own revert"
        for target in ledger.doubtful
    ]
    found += [
        f"{topic} were out of sight for {seconds:.0f} s"
        for topic, seconds in machine.sight.longest_s.items()
        if seconds >= LONG_S and topic not in ledger.blind
    ]
    found += [f"{topic} were out of sight at the end: {why}" for topic, why in ledger.blind.items()]
    if machine.stop_seconds is not None:
        found.append(f"the stop was verified after {machine.stop_seconds:.1f} s")
    if machine.left:
        found.append(f"left behind: {', '.join(machine.left)}; run `aftershock cleanup`")
    return tuple(found)


def _result(ledger: Ledger) -> dict[str, Any]:
    results = [dict(result) for result in ledger.results.values()]
    if len(results) == 1 and len(ledger.engine.experiments) == 1:
        return results[0]
    return {"apiVersion": "v1", "kind": "List", "items": results}
