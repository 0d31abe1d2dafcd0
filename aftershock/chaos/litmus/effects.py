"""When the fault began and ended, and how often it was seen to act: from what was seen, never from what was planned.

Kills (pod-delete, container-kill) are read off the pods themselves: Litmus writes no annotation for them, and its
ChaosInject Event precedes the first one. Other faults mark their targets in the annotations of the ChaosResult.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.targets import Kill

KILLS = ("pod-delete", "container-kill")

_SLACK = timedelta(seconds=2)
"""Views are not in order with each other, and a cluster dates Events to the second."""


@dataclass(frozen=True)
class Effects:
    """What the fault did."""

    injected_at: datetime | None
    reverted_at: datetime | None
    count: int
    evidence: tuple[str, ...]


def effects_of(ledger: Ledger) -> Effects:
    """Of all experiments together: from the first effect to the last revert."""
    first = ledger.first("ChaosInject")
    if first is None:
        return Effects(None, None, 0, ("no ChaosInject: the fault never began",))
    experiments = ledger.engine.experiments
    killers = [experiment for experiment in experiments if experiment.name.startswith(KILLS)]
    parts = [_killed(ledger, first.at)] if killers else []
    if len(killers) < len(experiments) or not parts[0].count:
        parts.append(_reported(ledger, first.at))
    ends = [part.reverted_at for part in parts if part.count]
    known = [end for end in ends or [parts[-1].reverted_at] if end]
    return Effects(
        injected_at=min((part.injected_at for part in parts if part.count and part.injected_at), default=first.at),
        reverted_at=max(known) if known and len(known) == len(ends or known) else None,
        count=sum(part.count for part in parts),
        evidence=tuple(sentence for part in parts for sentence in part.evidence),
    )


def _killed(ledger: Ledger, injected_at: datetime) -> Effects:
    if not ledger.engine.appinfo.label:
        told = [event.at for event in ledger.events if event.reason == "ChaosInject"]
        sentence = f"the target has no label to watch it by; Litmus reports {len(told)} rounds of kills"
        return Effects(told[0], told[-1], len(told), (sentence,))
    kills = _kills(ledger, injected_at)
    if not kills:
        return Effects(None, None, 0, ("no target pod was seen to be killed",))
    told_of = tuple(f"pod {kill.pod} was {kill.what} at {kill.at.isoformat()}" for kill in kills)
    return Effects(kills[0].at, kills[-1].at, len(kills), told_of)


def _kills(ledger: Ledger, injected_at: datetime) -> list[Kill]:
    """Those between the first injection and the final results; other deletions have nothing to do with the fault."""
    until = max(ledger.settled_at.values(), default=None) if ledger.all_final else None
    kills = [*ledger.targets.deletions.values(), *ledger.targets.restarts]
    own = (kill for kill in kills if kill.at >= injected_at - _SLACK and (until is None or kill.at <= until))
    return sorted(own, key=lambda kill: kill.at)


def _reported(ledger: Ledger, event_at: datetime) -> Effects:
    marked = [at for (_, _, status), at in ledger.marks.items() if status == "injected"]
    reverted = [at for (_, _, status), at in ledger.marks.items() if status == "reverted"]
    hit = {target for _, target, _ in ledger.marks} | _history(ledger)
    after = ledger.last("PostChaosCheck")
    complete = bool(marked) and len(reverted) >= len(marked)
    return Effects(
        injected_at=min(marked, default=event_at),
        reverted_at=max(reverted) if complete else after.at if after and not ledger.unreverted else None,
        count=len(hit),
        evidence=tuple(f"Litmus reports {target} as injected" for target in sorted(hit))
        or ("Litmus reports no target as injected",),
    )


def _history(ledger: Ledger) -> set[str]:
    return {
        f"{target.get('kind')}/{target.get('name')}"
        for result in ledger.results.values()
        for target in section(result, "status", "history").get("targets") or []
        if target.get("chaosStatus") in ("injected", "reverted")
    }
