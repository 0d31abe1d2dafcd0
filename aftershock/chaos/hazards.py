"""What a set of parameters would do that nobody means, or that somebody has to mean: refused before anything is sent.

Some hazards are mistakes, and are always refused. Others are harm that may be wanted: they are refused until the user
confirms them by name (`Confirmation`), and only where there is a cluster to harm:
the embedded stack belongs to the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from aftershock.chaos.choice import Choice
from aftershock.chaos.parameters import closest, shorten
from aftershock.chaos.template import DURATION
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
HOSTNAME = "kubernetes.io/hostname="
FILTERS = ("SOURCE_PORTS", "DESTINATION_PORTS", "DESTINATION_IPS", "DESTINATION_HOSTS")
"""Each makes a network fault hit some of the pod's traffic only; with several, what any of them names is hit."""

WIDEST_BLOCK = 16
"""Bits of its prefix. A wider block of addresses may well have Prometheus and the callers in it."""

RUNTIMES = {
    "containerd": "/run/containerd/containerd.sock",
    "crio": "/run/crio/crio.sock",
    "docker": "/var/run/docker.sock",
}
"""The usual socket of each container runtime."""


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
class ScrapeGap:
    """How a fault keeps Prometheus from scraping the pods."""

    what: str
    way_out: str
    tunables: tuple[str, ...]
    """What makes it so."""


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
    refuse_harm(choices, sum(choice.seconds for choice in choices), scene, confirmed)


def refuse_harm(choices: Sequence[Choice], seconds: int, scene: Scene, confirmed: Collection[str]) -> None:
    """Raise InputError for the first harm to a cluster that is not confirmed by name.

    `seconds` is how long it all takes, also what is none of `choices`.
    """
    _known(confirmed)
    if not scene.cluster:
        return
    for hazard in _hazards(choices, seconds, scene):
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
    own = choice.values.get("CHAOS_NODE", "")
    hit = (choice.values.get("TARGET_NODE"), choice.values.get("NODE_LABEL", "").removeprefix(HOSTNAME))
    if not own or own not in hit:
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


def _wrong_socket(choice: Choice, scene: Scene) -> str | None:
    runtime, socket = choice.values.get("CONTAINER_RUNTIME", ""), choice.values.get("SOCKET_PATH", "")
    kind = next((name for name in RUNTIMES if name in socket), runtime)
    if runtime not in RUNTIMES or kind == runtime:
        return None
    return (
        f"CONTAINER_RUNTIME={runtime} with the socket of {kind} ends as CONTAINER_RUNTIME_ERROR; "
        f"give SOCKET_PATH={RUNTIMES[runtime]}, or CONTAINER_RUNTIME={kind}"
    )


def _gone_after_the_first(choice: Choice, scene: Scene) -> str | None:
    if choice.name != "pod-delete" or not choice.is_set("TARGET_PODS"):
        return None
    if (scene.cluster and scene.kind == "statefulset") or choice.integer("CHAOS_INTERVAL") >= choice.integer(DURATION):
        return None
    return (
        "TARGET_PODS: after the first kill the pods come back under other names, and Litmus finds them no more; "
        f"give CHAOS_INTERVAL={choice.integer(DURATION)} for one kill, or no names"
    )


MISTAKES: tuple[Callable[[Choice, Scene], str | None], ...] = (
    _no_node,
    _same_node,
    _not_scalable,
    _no_port,
    _port_in_use,
    _wrong_socket,
    _gone_after_the_first,
)
"""A new one is a function and a name here."""


# --- harm that can be confirmed ---------------------------------------------------------------------------------------


def _hazards(choices: Sequence[Choice], seconds: int, scene: Scene) -> Iterator[Hazard]:
    for choice in choices:
        gap = scrape_gap(choice.name, choice.values, scene.scrape_interval_s)
        if gap:
            reason = f"{choice.name}: {gap.what}, so that the phase has no data from the pods that are hit"
            yield Hazard(Confirmation.SCRAPE_GAP, f"{reason}; {gap.way_out}")
        what = _blast_radius(choice)
        if what:
            yield Hazard(Confirmation.BLAST_RADIUS, f"{choice.name}: {what}")
    if seconds > LONGEST_S:
        yield Hazard(Confirmation.DURATION, f"the chaos would take {seconds} s with its ramps, more than {LONGEST_S}")


def scrape_gap(fault: str, values: Mapping[str, str], interval_s: float) -> ScrapeGap | None:
    """How the fault would stop Prometheus from scraping the pods every `interval_s`; None if it would not.

    `values` are its tunables; of one that is a number, the most that it may be. Raises TemplateError for a rate that
    is none.
    """
    narrow = _is_narrow(values)
    if fault == "pod-network-partition":
        spared = narrow or values.get("NAMESPACE_SELECTOR") or values.get("PORTS")
        if spared or values.get("POLICY_TYPES", "").lower() == "egress":
            return None
        way_out = (
            "spare Prometheus with NAMESPACE_SELECTOR or PORTS (POD_SELECTOR: pods of the target's namespace only)"
        )
        return ScrapeGap("cuts Prometheus off too", way_out, ("POLICY_TYPES", "POD_SELECTOR"))
    found = _too_much(values, interval_s)
    if not found or (narrow and not values.get("SOURCE_PORTS")):
        return None
    name, effect = found
    if narrow:
        ports = values["SOURCE_PORTS"]
        what = (
            f"{name}={values[name]} on SOURCE_PORTS={ports} {effect} where the metrics are on that port, as vLLM's are"
        )
        return ScrapeGap(what, "nothing is lost where metrics have a port of their own", (name,))
    way_out = "give SOURCE_PORTS with the serving port, where the metrics have another one"
    return ScrapeGap(f"{name}={values[name]} on every port {effect}", way_out, (name,))


def _too_much(values: Mapping[str, str], interval_s: float) -> tuple[str, str] | None:
    """The tunable that is more than a scrape bears, and what it does to one."""
    for name in ("NETWORK_PACKET_LOSS_PERCENTAGE", "NETWORK_PACKET_CORRUPTION_PERCENTAGE"):
        if _integer(values, name) > LOST_TO_SCRAPES:
            return name, "loses Prometheus' scrapes too"
    # Two of a scrape's packets one after the other: the answer to the connection, and to the request.
    delay_s = 2 * (_integer(values, "NETWORK_LATENCY") + _integer(values, "JITTER")) / 1000
    if delay_s > interval_s:
        return "NETWORK_LATENCY", "delays a scrape by more than its interval"
    rate = values.get("NETWORK_BANDWIDTH", "")
    if rate and bytes_per_second(rate) * interval_s < SCRAPE_BYTES:
        return "NETWORK_BANDWIDTH", f"is too little for a scrape of {SCRAPE_BYTES} bytes in time"
    return None


def _integer(values: Mapping[str, str], name: str) -> int:
    value = values.get(name, "")
    return int(value) if re.fullmatch(r"[0-9]{1,18}", value) else 0


def _is_narrow(values: Mapping[str, str]) -> bool:
    """There are filters, and what they name is less than nearly everything."""
    given = {name: values[name] for name in FILTERS if values.get(name)}
    return bool(given) and not any(value.startswith("!") for value in given.values()) and not _is_wide(given)


def _is_wide(filters: Mapping[str, str]) -> bool:
    for block in filters.get("DESTINATION_IPS", "").split(","):
        _, slash, bits = block.partition("|")[0].partition("/")
        if slash and not (bits.isdecimal() and int(bits) >= WIDEST_BLOCK):
            return True
    return False


def _blast_radius(choice: Choice) -> str | None:
    """How much more than some of the target the fault hits; None if it is not more."""
    if choice.name == "pod-network-partition":
        return None if _is_narrow(choice.values) else "cuts off every pod with the label, a full outage"
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
