"""For how long each view has been in sight, or out of it: what nobody could see did not therefore not happen."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field

from aftershock.chaos.litmus.sightings import Topic


@dataclass
class Sight:
    """All times are seconds on the monotonic clock."""

    longest_s: dict[Topic, float] = field(default_factory=dict)
    """The longest time that a view was out of sight; only of those that ever were."""
    _lost_s: dict[Topic, float] = field(default_factory=dict)
    """Since when it is out of sight; only of those that are."""
    _back_s: dict[Topic, float] = field(default_factory=dict)
    """Since when it is in sight again; only of those that are."""

    def note(self, blind: Collection[Topic], now_s: float) -> None:
        """These views are out of sight now, and all others are not."""
        for topic in Topic:
            if topic in blind:
                self._back_s.pop(topic, None)
                self._lost_s.setdefault(topic, now_s)
                self.longest_s[topic] = max(self.longest_s.get(topic, 0.0), self.lost_for(topic, now_s))
            elif topic in self._lost_s:
                self.longest_s[topic] = max(self.longest_s[topic], self.lost_for(topic, now_s))
                del self._lost_s[topic]
                self._back_s[topic] = now_s

    def lost_for(self, topic: Topic, now_s: float) -> float:
        """Seconds without sight; 0 with it."""
        return now_s - self._lost_s.get(topic, now_s)

    def seen_for(self, topic: Topic, now_s: float) -> float:
        """Seconds with sight; 0 without it, infinite where it was never lost."""
        if topic in self._lost_s:
            return 0.0
        return now_s - self._back_s.get(topic, -math.inf)
