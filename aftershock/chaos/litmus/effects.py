"""When the fault began and ended, and how often it was seen to act: from what was seen, never from what was planned.

Kills (pod-delete, container-kill) are read off the pods themselves: Litmus writes no annotation for them, and its
ChaosInject Event precedes the first one. Other faults mark their targets in the ChaosResult. Where nobody could look,
what Litmus reports has to do, and the evidence says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from aftershock.chaos.litmus.faults import KILLS, ONLY_TARGETED
from aftershock.chaos.litmus.ledger import Ledger
from aftershock.chaos.litmus.read import last_words
from aftershock.chaos.litmus.sightings import Topic
from aftershock.chaos.litmus.targets import Kill

LONG_S = 5.0
"""Without sight; what happens in a shorter gap is seen by the next look."""

_SLACK = timedelta(seconds=2)
"""Views are not in order with each other, and a cluster dates Events to the second."""


@dataclass(frozen=True)
class Effects:
    """What the fault did."""

    injected_at: datetime | None
    reverted_at: datetime | None
    count: int
    evidence: tuple[str, ...]


def effects_of(ledger: Ledger, unseen_s: Mapping[Topic, float]) -> Effects:
    """Of all experiments together: from the first effect to the last revert. `unseen_s`: longest gap of each view."""
    first = ledger.first("ChaosInject")
    if first is None:
        return _unannounced(ledger, unseen_s)
    experiments = ledger.engine.experiments
    killers = [experiment for experiment in experiments if experiment.name.startswith(KILLS)]
    parts = [_killed(ledger, first.at, unseen_s)] if killers else []
    if len(killers) < len(experiments) or not parts[0].count:
        parts.append(_reported(ledger, first.at))
    ends = [part.reverted_at for part in parts if part.count]
    known = [end for end in ends or [parts[-1].reverted_at] if end]
    presumed = first in ledger.presumption.made
    return Effects(
        injected_at=min(
            (part.injected_at for part in parts if part.count and part.injected_at),
            default=None if presumed else first.at,
        ),
        reverted_at=max(known) if known and len(known) == len(ends or known) else None,
        count=sum(part.count for part in parts),
        evidence=(
            *((first.message,) if presumed else ()),
            *(sentence for part in parts for sentence in part.evidence),
        ),
    )


def _unannounced(ledger: Ledger, unseen_s: Mapping[Topic, float]) -> Effects:
    """Without a ChaosInject, only what Litmus says of its targets is left."""
    reported = _reported(ledger, None)
    if reported.count:
        sentence = "no ChaosInject was seen, so the beginning is known from the targets at best"
        return Effects(reported.injected_at, reported.reverted_at, reported.count, (sentence, *reported.evidence))
    gap_s = unseen_s.get(Topic.EVENT, 0.0)
    sentence = (
        f"no ChaosInject was seen, but events were out of sight for {gap_s:.0f} s: whether the fault began is not known"
        if gap_s >= LONG_S
        else "no ChaosInject: the fault never began"
    )
    return Effects(None, None, 0, (sentence,))


def _killed(ledger: Ledger, injected_at: datetime, unseen_s: Mapping[Topic, float]) -> Effects:
    if not ledger.engine.appinfo.label:
        return _told(ledger, "the target has no label to watch it by")
    kills = _kills(ledger, injected_at)
    gap_s = unseen_s.get(Topic.TARGET, 0.0)
    if not kills and gap_s >= LONG_S:
        return _told(ledger, f"{Topic.TARGET} were out of sight for {gap_s:.0f} s, and no kill was seen")
    if not kills:
        return Effects(None, None, 0, ("no target pod was seen to be killed",))
    told_of = tuple(f"pod {kill.pod} was {kill.what} at {kill.at.isoformat()}" for kill in kills)
    return Effects(kills[0].at, kills[-1].at, len(kills), told_of)


def _told(ledger: Ledger, why: str) -> Effects:
    """Kills as Litmus announces them."""
    told = [event.at for event in ledger.events if event.reason == "ChaosInject"]
    return Effects(min(told), max(told), len(told), (f"{why}; Litmus reports {len(told)} rounds of kills",))


def _kills(ledger: Ledger, injected_at: datetime) -> list[Kill]:
    """Those between the first injection and the final results; other deletions have nothing to do with the fault."""
    until = max(ledger.settled_at.values(), default=None) if ledger.all_final else None
    kills = [*ledger.targets.deletions.values(), *ledger.targets.restarts]
    own = (kill for kill in kills if kill.at >= injected_at - _SLACK and (until is None or kill.at <= until))
    return sorted(own, key=lambda kill: kill.at)


def _reported(ledger: Ledger, event_at: datetime | None) -> Effects:
    marked = [at for (_, _, status), at in ledger.marks.items() if status == "injected"]
    reverted = [at for (_, _, status), at in ledger.marks.items() if status == "reverted"]
    hit = dict.fromkeys((target for _, target, _ in ledger.marks), "injected") | _hit(ledger)
    after = ledger.last("PostChaosCheck")
    complete = bool(marked) and len(reverted) >= len(marked)
    left = ledger.unreverted or ledger.doubtful
    return Effects(
        injected_at=min(marked, default=event_at),
        reverted_at=max(reverted) if complete else after.at if after and not left else None,
        count=len(hit),
        evidence=tuple(f"Litmus reports {target} as {word}" for target, word in sorted(hit.items()))
        or ("Litmus reports no target as injected",),
    )


def _hit(ledger: Ledger) -> dict[str, str]:
    """Target -> the word by which Litmus says that it was hit."""
    hit = {}
    for name, result in ledger.results.items():
        only_targeted = ledger.fault_of(name).startswith(ONLY_TARGETED)
        for target, word in last_words(result).items():
            if word in ("injected", "reverted"):
                hit[target] = "injected"
            elif only_targeted:
                hit[target] = "targeted, as this fault does once its helper runs"
    return hit
