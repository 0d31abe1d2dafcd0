"""Client of the gateway's fault API: the network of the embedded stack."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, ValidationError

from aftershock.chaos.local.api import JsonApi, NoAnswerError, NobodyThereError, RefusedError
from aftershock.chaos.local.state import GatewayAddress, first_reason
from aftershock.errors import ChaosError

OBSERVE_TIMEOUT_S = 1.0
"""Looking at a fault must not hold up a stop for longer."""

REVERT_S = 5.0
"""How long a gateway that does not answer is asked again to take a fault back."""


class GatewayFault(BaseModel):
    """A fault as the gateway tells of it, as far as we read it."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    id: str
    kind: str
    state: str
    injections: int
    expires_at: str

    @property
    def active(self) -> bool:
        """Whether it still acts."""
        return self.state == "active"


class Gateway:
    """Posts faults, lists them, takes them back."""

    def __init__(self, address: GatewayAddress) -> None:
        self._api = JsonApi("gateway", address.admin_url, address.token)

    def new_id(self, experiment: str) -> str:
        """An id no fault has had. Chosen here, so that a fault can be taken back even if the answer to it was lost."""
        return f"{experiment}-{uuid4().hex[:8]}"

    def add(self, fault: dict[str, Any]) -> None:
        """Begin a fault. Raises ChaosError (CHAOS_INJECT_ERROR) where the gateway does not take it."""
        try:
            self._api.call("POST", "/faults", fault)
        except (NoAnswerError, RefusedError) as error:
            raise ChaosError(f"{fault['kind']} could not be injected: {error}", code="CHAOS_INJECT_ERROR") from error

    def faults(self) -> Sequence[GatewayFault]:
        """All faults, also those that have ended."""
        answer = self._api.call("GET", "/faults")
        try:
            items = answer["faults"]
        except (KeyError, TypeError) as error:
            raise ChaosError("gateway: GET /faults lists no faults; is something else on its port?") from error
        return [_parse(item) for item in items]

    def get(self, fault_id: str) -> GatewayFault:
        """The fault of this id, active or ended. Raises RefusedError if the gateway does not know it."""
        return _parse(self._api.call("GET", f"/faults/{fault_id}", timeout_s=OBSERVE_TIMEOUT_S))

    def revert(self, fault_id: str) -> GatewayFault | None:
        """End the fault; what it did, as the gateway tells it then. None if it had never begun.

        Raises ChaosError (CHAOS_REVERT_ERROR) if the gateway says no such thing in REVERT_S.
        """
        end = time.monotonic() + REVERT_S
        while True:
            try:
                return _parse(self._api.call("DELETE", f"/faults/{fault_id}"))
            except RefusedError as error:
                if error.status == 404:
                    return None
                raise _unreverted(fault_id, error) from error
            except NobodyThereError as error:
                raise ChaosError(f"fault {fault_id} went with the gateway: {error}", "CHAOS_REVERT_ERROR") from error
            except ChaosError as error:
                if time.monotonic() > end:
                    raise _unreverted(fault_id, error) from error
            time.sleep(0.1)


def _parse(item: Any) -> GatewayFault:
    try:
        return GatewayFault.model_validate(item)
    except ValidationError as error:
        raise ChaosError(f"gateway: it tells of a fault that is none ({first_reason(error)})") from error


def _unreverted(fault_id: str, error: ChaosError) -> ChaosError:
    reason = f"fault {fault_id} could not be reverted ({error}); it ends by itself after its duration"
    return ChaosError(reason, code="CHAOS_REVERT_ERROR")
