"""What the fault did, read out of `chaos_result.json`, whichever backend wrote it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from aftershock.experiment import NO_FAULT
from aftershock.report.wording import clock, duration
from aftershock.windows import Phase, Window

STRIKE = "ChaosInject"
"""Litmus' word for: the fault acts now."""
MOST = 60
"""Of events and of sentences; the files of the run have all."""
LONGEST = 300
"""Characters of one message."""


@dataclass(frozen=True)
class Event:
    """Something that happened to the engine."""

    at: datetime
    reason: str
    message: str
    warning: bool


@dataclass(frozen=True)
class Target:
    """What the fault was aimed at, and what was last done to it."""

    name: str
    kind: str
    status: str


@dataclass(frozen=True)
class FaultStory:
    """The fault of a run; for a run without one, `sentence` says so and the rest is empty."""

    name: str
    sentence: str
    injected_at: datetime | None = None
    reverted_at: datetime | None = None
    evidence: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    events: tuple[Event, ...] = ()
    left_out: int = 0
    """Events and sentences beyond what is shown."""

    @property
    def strikes(self) -> tuple[Event, ...]:
        """Instants at which it acted."""
        return tuple(event for event in self.events if event.reason == STRIKE)


def read_fault(fault: str, outcome: Mapping[str, Any] | None, windows: Sequence[Window]) -> FaultStory:
    """The story of `fault`. Instants come from the backend, else from the window of the chaos phase."""
    if fault == NO_FAULT:
        return FaultStory(fault, "This was a control run: no fault was injected.")
    if not outcome:
        return FaultStory(fault, "What the fault did was not recorded: the chaos phase did not end.")
    window = next((one for one in windows if one.phase is Phase.CHAOS), None)
    injected = instant(outcome.get("injected_at")) or (window.injected_at if window else None)
    reverted = instant(outcome.get("reverted_at")) or (window.reverted_at if window else None)
    evidence = [_cut(sentence) for sentence in outcome.get("evidence") or ()]
    events = list(_events(outcome))
    return FaultStory(
        fault,
        _sentence(fault, outcome, injected, reverted),
        injected,
        reverted,
        tuple(evidence[:MOST]),
        tuple(_targets(outcome.get("result") or {}))[:MOST],
        tuple(events[:MOST]),
        max(0, len(events) - MOST) + max(0, len(evidence) - MOST),
    )


def instant(text: Any) -> datetime | None:
    """An RFC 3339 instant of a document, in UTC; None where there is none."""
    try:
        value = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        return None
    return value.astimezone(UTC) if value.tzinfo else None


def _sentence(fault: str, outcome: Mapping[str, Any], injected: datetime | None, reverted: datetime | None) -> str:
    effects = outcome.get("effects")
    parts = []
    if injected is None:
        parts.append(f"{fault} was never seen to act")
    elif reverted is None:
        parts.append(f"{fault} began at {clock(injected, tenths=True)} UTC; its end was not seen")
    elif reverted == injected:
        parts.append(f"{fault} struck once, at {clock(injected, tenths=True)} UTC")
    else:
        lasted = duration((reverted - injected).total_seconds())
        times = f"{clock(injected, tenths=True)} to {clock(reverted, tenths=True)} UTC"
        parts.append(f"{fault} acted from {times} ({lasted})")
    if isinstance(effects, int) and injected is not None:
        parts.append(f"effects seen: {effects}")
    why = f" ({_cut(outcome['reason'])})" if outcome.get("reason") else ""
    parts.append(f"verdict of the injector: {_cut(outcome.get('verdict', 'unknown'))}{why}")
    if early := early_stop(outcome):
        parts.append(early)
    return "; ".join(parts) + "."


def early_stop(outcome: Mapping[str, Any]) -> str:
    """How the run itself ended the fault; empty if it did not.

    `stopped by the SLO watch (error-rate 63 % is beyond 50 % since 5 s), verified 5.6 s after that began`
    """
    stop = outcome.get("stop")
    if not isinstance(stop, Mapping):
        return ""
    seconds = stop.get("seconds_to_stop")
    verified = f"verified {seconds:.1f} s after that began" if isinstance(seconds, int | float) else "not verified"
    return f"stopped by the SLO watch ({_cut(stop.get('message'))}), {verified}"


def _events(outcome: Mapping[str, Any]) -> Iterator[Event]:
    for event in outcome.get("events") or ():
        at = instant(event.get("at"))
        if at is not None:
            yield Event(at, _cut(event.get("reason")), _cut(event.get("message")), event.get("type") == "Warning")


def _targets(result: Mapping[str, Any]) -> Iterator[Target]:
    """Of one ChaosResult, or of a List of them."""
    for document in result.get("items") or [result]:
        history = (document.get("status") or {}).get("history") or {}
        for target in history.get("targets") or ():
            yield Target(*(_cut(target.get(name)) for name in ("name", "kind", "chaosStatus")))


def _cut(text: Any) -> str:
    words = " ".join(str(text or "").split())
    return words if len(words) <= LONGEST else f"{words[:LONGEST]}…"
