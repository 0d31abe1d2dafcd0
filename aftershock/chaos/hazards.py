"""What a set of parameters would do that nobody means, or that somebody has to mean: refused before anything is sent.

Some hazards are mistakes, and are always refused. Others are harm that may be wanted: they are refused until the user
confirms them by name (`Confirmation`), and only where there is a cluster to harm:
the embedded stack belongs to the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from aftershock.chaos.choice import Choice
from aftershock.chaos.parameters import closest, shorten
from aftershock.errors import InputError, TemplateError

LONGEST_S = 3_600
"""Longer faults have to be confirmed: nobody watches a run for more than an hour by chance."""

LARGEST_SHARE = 50
"""Percent of the pods or nodes; hitting more has to be confirmed, for the rest may not carry the load."""

LOST_TO_SCRAPES = 20
"""Percent of lost packets from which TCP's time-outs are longer than a scrape may take."""

SCRAPE_BYTES = 100_000
"""What a scrape of a model server may weigh."""

NODES = ("TARGET_NODE", "TARGET_NODES", "NODE_LABEL")
FILTERS = ("SOURCE_PORTS", "DESTINATION_PORTS", "DESTINATION_IPS", "DESTINATION_HOSTS")
"""Each makes a network fault hit some of the pod's traffic only."""


class Confirmation(StrEnum):
    """The harm that a user may ask for."""

    SCRAPE_GAP = "scrape-gap"
    BLAST_RADIUS = "blast-radius"
    DURATION = "duration"


@dataclass(frozen=True)
class Scene:
    """What the parameters are held against."""

    kind: str
    scrape_interval_s: float
    cluster: bool
    """Whether it is a cluster that is hit, not the embedded stack."""


@dataclass(frozen=True)
class Hazard:
    """One thing that may be wanted, but not by chance."""

    confirmation: Confirmation
    what: str


def refuse_hazards(choices: Sequence[Choice], scene: Scene, confirmed: Collection[str]) -> None:
    """Raise InputError for the first hazard: what it is, what would come of it, and what to do."""
    _known(confirmed)
    for choice in choices:
        for mistake in MISTAKES:
            reason = mistake(choice, scene)
            if reason:
                raise TemplateError(f"{choice.name}: {reason}")
    if not scene.cluster:
        return
    for hazard in _hazards(choices, scene):
        if hazard.confirmation not in confirmed:
            raise TemplateError(f"{hazard.what}; if that is meant, give confirm={hazard.confirmation}")


def _known(confirmed: Collection[str]) -> None:
    known = [str(each) for each in Confirmation]
    for name in confirmed:
        if name not in known:
            raise InputError(f"confirmation {shorten(name)} is unknown{closest(name, known)}")


# --- mistakes: refused whatever is confirmed --------------------------------------------------------------------------


def _no_node(choice: Choice, scene: Scene) -> str | None:
    ways = [name for name in NODES if name in choice.template.parameters]
    if not choice.template.hits_nodes or choice.is_set(*ways):
        return None
    return f"names no node, and Litmus would take any; give {' or '.join(ways)}"


def _same_node(choice: Choice, scene: Scene) -> str | None:
    target, own = choice.values.get("TARGET_NODE"), choice.values.get("CHAOS_NODE")
    if not target or target != own:
        return None
    return f"CHAOS_NODE={shorten(own)} is the node that is hit, Litmus' own pods would go down with it; name another"


def _not_scalable(choice: Choice, scene: Scene) -> str | None:
    if choice.name != "pod-autoscaler" or scene.kind in ("deployment", "statefulset"):
        return None
    return f"kind={scene.kind}: Litmus scales a deployment or a statefulset only"


def _no_port(choice: Choice, scene: Scene) -> str | None:
    port = "TARGET_SERVICE_PORT"
    if not scene.cluster or port not in choice.template.parameters or port in choice.given:
        return None
    return f"{port} is not given: where nothing listens the fault does nothing and passes; give the CONTAINER's port"


def _port_in_use(choice: Choice, scene: Scene) -> str | None:
    proxy = choice.values.get("PROXY_PORT")
    if not proxy or proxy != choice.values["TARGET_SERVICE_PORT"]:
        return None
    return f"PROXY_PORT={proxy!r} is the server's own port; give one that is free in the pod"


MISTAKES: tuple[Callable[[Choice, Scene], str | None], ...] = (
    _no_node,
    _same_node,
    _not_scalable,
    _no_port,
    _port_in_use,
)
"""A new one is a function and a name here."""


# --- harm that can be confirmed ---------------------------------------------------------------------------------------


def _hazards(choices: Sequence[Choice], scene: Scene) -> Iterator[Hazard]:
    for choice in choices:
        what = _scrape_gap(choice, scene.scrape_interval_s)
        if what:
            reason = (
                f"{choice.name}: {what}, so that the phase has no data from the pods that are hit; {_way_out(choice)}"
            )
            yield Hazard(Confirmation.SCRAPE_GAP, reason)
        what = _blast_radius(choice)
        if what:
            yield Hazard(Confirmation.BLAST_RADIUS, f"{choice.name}: {what}")
    seconds = sum(choice.seconds for choice in choices)
    if seconds > LONGEST_S:
        yield Hazard(Confirmation.DURATION, f"the chaos would take {seconds} s with its ramps, more than {LONGEST_S}")


def _scrape_gap(choice: Choice, interval_s: float) -> str | None:
    """How the fault would stop Prometheus from scraping the pods; None if it would not."""
    values = choice.values
    if choice.is_set(*FILTERS):
        return None
    if choice.name == "pod-network-partition":
        spared = choice.is_set("POD_SELECTOR", "NAMESPACE_SELECTOR", "PORTS")
        return None if spared or values["POLICY_TYPES"] == "egress" else "cuts Prometheus off too"
    for name in ("NETWORK_PACKET_LOSS_PERCENTAGE", "NETWORK_PACKET_CORRUPTION_PERCENTAGE"):
        if choice.integer(name) > LOST_TO_SCRAPES:
            return f"{name}={values[name]} on every port loses Prometheus' scrapes too"
    # Two of a scrape's packets one after the other: the answer to the connection, and to the request.
    delay_s = 2 * (choice.integer("NETWORK_LATENCY") + choice.integer("JITTER")) / 1000
    if delay_s > interval_s:
        return f"NETWORK_LATENCY={values['NETWORK_LATENCY']} on every port delays a scrape by more than its interval"
    rate = values.get("NETWORK_BANDWIDTH", "")
    if rate and bytes_per_second(rate) * interval_s < SCRAPE_BYTES:
        return f"NETWORK_BANDWIDTH={rate} on every port is too little for a scrape of {SCRAPE_BYTES} bytes in time"
    return None


def _way_out(choice: Choice) -> str:
    if choice.name == "pod-network-partition":
        return "spare Prometheus with POD_SELECTOR, NAMESPACE_SELECTOR or PORTS"
    return "give SOURCE_PORTS with the serving port, where the metrics have another one"


def _blast_radius(choice: Choice) -> str | None:
    """How much more than some of the target the fault hits; None if it is not more."""
    if choice.name == "pod-network-partition":
        return None if choice.is_set(*FILTERS) else "cuts off every pod with the label, a full outage"
    for name, named in (
        ("PODS_AFFECTED_PERC", ("TARGET_PODS",)),
        ("NODES_AFFECTED_PERC", ("TARGET_NODE", "TARGET_NODES")),
    ):
        if choice.integer(name) > LARGEST_SHARE and not choice.is_set(*named):
            return f"{name}={choice.values[name]} is more than {LARGEST_SHARE} percent, the rest may not carry the load"
    return None


def bytes_per_second(rate: str) -> float:
    """A rate as tc writes it: 1mbit is a million bits, 1mbps a million bytes a second. Raises TemplateError."""
    match = re.fullmatch(r"([0-9]+)([kmg]?)(bit|bps)", rate)
    if not match:
        raise TemplateError(f"NETWORK_BANDWIDTH={shorten(rate)}: must be a whole number with a unit of tc, as 1mbit")
    factor = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9}[match[2]]
    return int(match[1]) * factor / (8 if match[3] == "bit" else 1)
