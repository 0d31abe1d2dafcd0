"""The kinds of fault there are, by name. A new kind is one more name in `KINDS`."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from aftershock.errors import InputError
from aftershock.gateway.faults.http import HttpLatency, HttpStatus
from aftershock.gateway.faults.kind import FaultSpec
from aftershock.gateway.faults.network import NetworkLatency, NetworkLoss, NetworkPartition
from aftershock.gateway.settings import reasons


def registry(*kinds: type[FaultSpec]) -> dict[str, type[FaultSpec]]:
    """Kinds by the default of their `kind`. Two of the same name are a mistake in this file."""
    named: dict[str, type[FaultSpec]] = {}
    for kind in kinds:
        name = kind.model_fields["kind"].default
        if name in named:
            raise ValueError(f"two kinds of fault are called {name}: {named[name].__name__} and {kind.__name__}")
        named[name] = kind
    return named


KINDS = registry(NetworkLatency, NetworkLoss, NetworkPartition, HttpLatency, HttpStatus)


def parse_fault(document: Any) -> FaultSpec:
    """Check a fault as it came in. Raises InputError with a reason in one line."""
    if not isinstance(document, dict):
        raise InputError('a fault is a JSON object, such as {"kind": "network-latency", "duration_s": 30}')
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        raise InputError(f"kind: {kind!r} is unknown; known kinds: {', '.join(sorted(KINDS))}")
    try:
        return KINDS[kind].model_validate(document)
    except ValidationError as error:
        raise InputError(reasons(error)) from error
