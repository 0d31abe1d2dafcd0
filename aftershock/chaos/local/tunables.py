"""The environment of one experiment, read with types. Litmus reads a bad number as 0 and an unknown name not at all;
here both are refused, because a fault that is not the one that was meant gives a verdict on nothing.
"""

from __future__ import annotations

import re

from aftershock.chaos.engine import EngineExperiment
from aftershock.errors import EngineError

DAY_S = 86_400

IRRELEVANT = frozenset(
    {
        "CONTAINER_RUNTIME",
        "SOCKET_PATH",
        "LIB_IMAGE",
        "LIB_IMAGE_PULL_POLICY",
        "TC_IMAGE",
        "STRESS_IMAGE",
        "CONTAINER_API_TIMEOUT",
        "SET_HELPER_DATA",
        "NETWORK_INTERFACE",
        "TARGET_SERVICE_PORT",
        "PROXY_PORT",
        "TERMINATION_GRACE_PERIOD_SECONDS",
        "STATUS_CHECK_DELAY",
        "STATUS_CHECK_TIMEOUT",
        "JOB_CLEANUP_POLICY",
        "INSTANCE_ID",
    }
)
"""Tunables that tell a cluster where to find things, or that Litmus overwrites from the engine (STATUS_CHECK_*)."""

NEUTRAL = {
    "INTER_POD_KILL_INTERVAL_SECONDS": "0",
    "POD_TERMINATION_ORDER": "random",
    "RANDOMNESS": "false",
    "CORRELATION": "0",
    "CPU_CORES": "0",
}
"""Tunables with a value that asks for nothing; only that value is accepted from a fault that does not read them."""


class Tunables:
    """Typed reading of an experiment's environment. Remembers what was read, so that `refuse_the_rest` knows."""

    def __init__(self, experiment: EngineExperiment) -> None:
        self._experiment = experiment
        self._read: set[str] = set()

    def text(self, name: str, default: str = "") -> str:
        """As it stands; one that is set to the empty string is not set."""
        self._read.add(name)
        return self._experiment.value(name, default).strip()

    def names(self, name: str) -> tuple[str, ...]:
        """A comma list."""
        return tuple(part.strip() for part in self.text(name).split(",") if part.strip())

    def integer(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number. "500ms" is refused: Litmus would silently take it for 0."""
        text = self.text(name, str(default))
        if not re.fullmatch(r"[+-]?\d{1,12}", text) or not low <= int(text) <= high:
            raise self.refusal(name, text, f"must be a whole number from {low} to {high}, without a unit")
        return int(text)

    def seconds(self, name: str, default: int, low: int = 0) -> int:
        """A length of time, at most a day."""
        return self.integer(name, default, low, DAY_S)

    def percentages(self, name: str, default: int) -> tuple[int, int]:
        """A percentage, or a range "a-b" of them out of which one is drawn."""
        text = self.text(name, str(default))
        match = re.fullmatch(r"(\d{1,3})(?:-(\d{1,3}))?", text)
        low, high = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not low <= high <= 100:
            raise self.refusal(name, text, "must be a percentage from 0 to 100, or a range of them such as 30-60")
        return low, high

    def boolean(self, name: str, default: bool) -> bool:
        """true or false."""
        return self.choice(name, "true" if default else "false", ("true", "false")) == "true"

    def choice(self, name: str, default: str, allowed: tuple[str, ...]) -> str:
        """One of `allowed`; Litmus does not mind the case."""
        text = self.text(name, default)
        for choice in allowed:
            if text.lower() == choice.lower():
                return choice
        raise self.refusal(name, text, f"must be one of {', '.join(allowed)}")

    def refuse_the_rest(self) -> None:
        """Raise EngineError for a tunable that is set, and that nothing here has read."""
        for name in self._experiment.env:
            value = self._experiment.value(name)
            if name in self._read or name in IRRELEVANT or value in ("", NEUTRAL.get(name, "")):
                continue
            raise self.refusal(name, value, "the local backend does not know how; leave it empty, or use a cluster")

    def refusal(self, name: str, value: str, why: str) -> EngineError:
        """The error for a value that cannot be honoured; for the caller to raise."""
        return EngineError(f"experiment {self._experiment.name}: {name}={value!r}: {why}")
