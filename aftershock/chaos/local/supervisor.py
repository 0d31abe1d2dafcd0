"""Client of the stack's supervisor: the kubelet and the Deployment of the embedded pods."""

from __future__ import annotations

from urllib.parse import quote

from aftershock.chaos.local.api import JsonApi, NoAnswerError
from aftershock.chaos.local.state import Pod, SupervisorAddress, parse_pods


class Supervisor:
    """Lists pods, deletes them, sends signals to them. Every method raises ChaosError where it does not answer."""

    def __init__(self, address: SupervisorAddress) -> None:
        self._process = address
        self._api = JsonApi("supervisor", address.url, address.token)

    def pods(self) -> tuple[Pod, ...]:
        """All pods, by slot; each call asks again."""
        return parse_pods(self._api.call("GET", "/state"))

    def delete(self, pod: str, grace_s: float) -> None:
        """Kill the pod (SIGTERM first if there is a grace); another of a new name takes its slot."""
        self._api.call("POST", f"/pods/{quote(pod, safe='')}/delete", {"grace_s": grace_s})

    def kill(self, pod: str, signal: str) -> None:
        """Send the signal to the pod's process; it is started again under the same name."""
        self._api.call("POST", f"/pods/{quote(pod, safe='')}/kill", {"signal": signal})

    def check_alive(self) -> None:
        """Raise NoAnswerError if its process is gone. Costs no request, so that it can be asked often."""
        if not self._process.alive():
            raise NoAnswerError(f"supervisor (pid {self._process.pid}) is gone, and the stack with it")
