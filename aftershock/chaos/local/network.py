"""Network and HTTP faults: the gateway acts them out on its way to the targets' slots.

Each kind of the gateway's faults says how it differs from what Litmus does to packets or connections.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from aftershock.chaos.local.api import NoAnswerError, NobodyThereError
from aftershock.chaos.local.machine import Unlimited
from aftershock.chaos.local.scene import Scene
from aftershock.chaos.local.state import Pod
from aftershock.chaos.local.targets import EVERY_POD, Selection, read_selection
from aftershock.chaos.local.tunables import DAY_S, Tunables
from aftershock.errors import ChaosError

MARGIN_S = 2.0
"""How much longer than asked a fault may live in the gateway if nobody reverts it."""

SILENCE_S = 5.0
"""How long a busy gateway may be silent about a fault before the fault counts as lost."""

STATUS_CODES = (200, 201, 202, 204, 300, 301, 302, 304, 307, 400, 401, 403, 404, 500, 501, 502, 503, 504)
"""Those that Litmus accepts, and draws from where none is given."""

Parameters = Callable[[Random], dict[str, Any]]
"""A kind's parameters; ranges are drawn when the fault begins."""


class _GatewayFault(Unlimited):
    """One kind of fault, on the slots of the targets: a pod that is restarted meanwhile does not escape it."""

    def __init__(self, tunables: Tunables, selection: Selection, kind: str, parameters: Parameters) -> None:
        self.selection = selection
        self.duration_s = tunables.seconds("TOTAL_CHAOS_DURATION", 60, low=1)
        self._kind = kind
        self._parameters = parameters
        self._active: tuple[str, Sequence[Pod]] | None = None
        self._begun = False
        self._silent_since: float | None = None

    def inject(self, scene: Scene) -> None:
        """Post it, hold it, take it back; serially for each pod in turn, as Litmus does."""
        parameters = self._parameters(scene.random)
        for batch in scene.batches():
            scene.announce(batch)
            fault_id = self._post(scene, batch, parameters)
            scene.injected(batch)
            scene.hold(self.duration_s, partial(self._observe, scene, fault_id))
            self.revert(scene)

    def revert(self, scene: Scene) -> None:
        """Take it back, and count what it did."""
        if self._active is None:
            return
        (fault_id, pods), self._active = self._active, None
        fault = scene.gateway.revert(fault_id)
        if fault is None and not self._begun:
            return
        if fault is None:
            raise ChaosError(f"the gateway has forgotten {fault_id}: was it restarted?", code="CHAOS_REVERT_ERROR")
        where = ", ".join(pod.name for pod in pods)
        scene.record.effect(
            fault.injections,
            f"the gateway counted {fault.injections} injections of {self._kind} on its way to {where} "
            "(connections, requests, heads and chunks of answers; those of health probes too)",
        )
        scene.reverted(pods)

    def _post(self, scene: Scene, pods: Sequence[Pod], parameters: dict[str, Any]) -> str:
        fault_id = scene.gateway.new_id(scene.experiment.name)
        # Noted before the answer: if that is lost, the fault may be there all the same.
        self._active, self._begun = (fault_id, pods), False
        scene.gateway.add(
            {
                "id": fault_id,
                "kind": self._kind,
                "replicas": [str(pod.slot) for pod in pods],
                "duration_s": min(self.duration_s + MARGIN_S, DAY_S),
                "seed": scene.random.getrandbits(31),
                **parameters,
            }
        )
        self._begun = True
        return fault_id

    def _observe(self, scene: Scene, fault_id: str) -> None:
        """Raise ChaosError if it has ended before its time. A gateway that is slow for a while is just busy."""
        try:
            state = scene.gateway.get(fault_id).state
        except NobodyThereError:
            raise
        except NoAnswerError as error:
            self._silent_since = self._silent_since or time.monotonic()
            if time.monotonic() - self._silent_since > SILENCE_S:
                raise ChaosError(f"fault {fault_id} is out of sight: {error}", code="CHAOS_INJECT_ERROR") from error
            return
        self._silent_since = None
        if state != "active":
            raise ChaosError(f"fault {fault_id} ended before its time: it is {state}", code="CHAOS_INJECT_ERROR")


def latency(tunables: Tunables) -> _GatewayFault:
    """pod-network-latency."""
    delay = tunables.integer("NETWORK_LATENCY", 2000, 0, 3_600_000)
    jitter = tunables.integer("JITTER", 0, 0, 3_600_000)
    correlation = tunables.integer("CORRELATION", 0, 0, 100)
    return _build(
        tunables,
        "network-latency",
        lambda random: {"latency_ms": delay, "jitter_ms": jitter, "correlation_percent": correlation},
    )


def loss(tunables: Tunables) -> _GatewayFault:
    """pod-network-loss."""
    low, high = tunables.percentages("NETWORK_PACKET_LOSS_PERCENTAGE", 100)
    return _build(tunables, "network-loss", lambda random: {"percentage": random.randint(low, high)})


def partition(tunables: Tunables) -> _GatewayFault:
    """pod-network-partition; always of every pod, since Litmus' policy selects by label."""
    direction = tunables.choice("POLICY_TYPES", "all", ("ingress", "egress", "all"))
    return _GatewayFault(tunables, EVERY_POD, "network-partition", lambda random: {"direction": direction})


def http_latency(tunables: Tunables) -> _GatewayFault:
    """pod-http-latency."""
    delay = tunables.integer("LATENCY", 2000, 0, 3_600_000)
    toxicity = tunables.integer("TOXICITY", 100, 0, 100)
    return _build(tunables, "http-latency", lambda random: {"latency_ms": delay, "toxicity_percent": toxicity})


def http_status_code(tunables: Tunables) -> _GatewayFault:
    """pod-http-status-code; one code for the whole fault, drawn if several or none are given."""
    codes = [_status_code(tunables, text) for text in tunables.names("STATUS_CODE")] or list(STATUS_CODES)
    fixed = {
        "modify_body": tunables.boolean("MODIFY_RESPONSE_BODY", default=True),
        "response_body": tunables.text("RESPONSE_BODY"),
        "content_type": tunables.text("CONTENT_TYPE", "text/plain"),
        "toxicity_percent": tunables.integer("TOXICITY", 100, 0, 100),
    }
    return _build(tunables, "http-status", lambda random: {"status_code": random.choice(codes), **fixed})


def _build(tunables: Tunables, kind: str, parameters: Parameters) -> _GatewayFault:
    return _GatewayFault(tunables, read_selection(tunables), kind, parameters)


def _status_code(tunables: Tunables, text: str) -> int:
    if text not in {str(code) for code in STATUS_CODES}:
        raise tunables.refusal("STATUS_CODE", text, f"must be of {', '.join(map(str, STATUS_CODES))}")
    return int(text)
