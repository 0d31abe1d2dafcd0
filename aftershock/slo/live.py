"""What an objective is at this moment, as PromQL: for whoever must know while the fault goes on. No I/O.

The judge counts over whole phases, from samples (see `metrics/increase.py`). Here one number over the last seconds is
enough, so Prometheus' own `rate` and `increase` do: both sides of a share are extrapolated alike.
"""

from __future__ import annotations

from aftershock.slo import promql
from aftershock.slo.frame import Role
from aftershock.slo.objective import (
    Compare,
    CompositeIndicator,
    Objective,
    QuantileIndicator,
    RatioIndicator,
    RecoveryIndicator,
    ScalarIndicator,
    SliceIndicator,
    templates,
)
from aftershock.windows import Phase

LOOKBACK_S = 10.0
LOOKBACK_SCRAPES = 4
LOOKBACK_REQUESTS = 10
"""At the rate offered: a share of fewer requests says nothing, and often there would be none at all."""


def lookback(*, scrape_interval_s: float, rate: float) -> float:
    """How far a live query looks back, seconds, under a load of `rate` requests per second."""
    return max(LOOKBACK_S, LOOKBACK_SCRAPES * scrape_interval_s, LOOKBACK_REQUESTS / rate)


def live_query(objective: Objective, *, lookback_s: float, phase: Phase = Phase.CHAOS) -> str:
    """PromQL of what `objective` was over the last `lookback_s` seconds of `phase`, in the objective's unit.

    Its answer is one sample without labels where there is data (for a plain query: what that query answers), and none,
    or NaN, where nothing was observed. A share whose counted part has no series is 0: nothing of it has happened.
    Raises ValueError for what has no value at one moment: a comparison with the baseline, a recovery time, time slices
    and a composite.
    """
    if objective.compare is not Compare.VALUE:
        what = "drop" if objective.compare is Compare.DROP else "change"
        raise ValueError(f"{objective.name}: a {what} has no value at one moment, it needs the baseline's")
    indicator = objective.indicator
    filled = {
        role: promql.fill(template, phase=phase, window_s=lookback_s) for role, template in templates(indicator).items()
    }
    match indicator:
        case ScalarIndicator():
            return filled[Role.VALUE]
        case QuantileIndicator():
            buckets = f"sum by (le) (rate({filled[Role.BUCKET]}[{promql.duration(lookback_s)}]))"
            return _scaled(indicator.scale, f"histogram_quantile({indicator.quantile!r}, {buckets})")
        case RatioIndicator():
            part, total = filled.get(Role.GOOD) or filled[Role.BAD], filled[Role.TOTAL]
            return _scaled(indicator.scale, f"sum(({part}) or 0 * ({total})) / sum({total})")
        case RecoveryIndicator():
            raise ValueError(f"{objective.name}: a recovery time has no value at one moment")
        case SliceIndicator() | CompositeIndicator():
            raise ValueError(f"{objective.name}: it has a value over a whole phase only")


def _scaled(scale: float, query: str) -> str:
    return query if scale == 1 else f"{scale:.15g} * {query}"
