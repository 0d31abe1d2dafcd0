"""How a signal is asked for: metric names -> PromQL, or the `metricSource.spec` of an OpenSLO document. No I/O.

Both are made of the same ingredients, so what `aftershock metrics` shows is what an SLO asks. PromQL in here is a
template: `{{ window }}` is the phase's length. A server knows nothing of phases, so there is no `{{ phase }}`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from aftershock.metrics.families.page import Page

_EQUAL = re.compile(r'(\w+)="([^"]*)"')
_OVER = "[{{ window }}]"


@dataclass(frozen=True)
class Metric:
    """The series of one name, or those of them that `matchers` select."""

    name: str
    matchers: str = ""

    def select(self, selector: str, part: str = "") -> str:
        """A vector selector; `part` goes behind the name, as `_bucket`."""
        matchers = ",".join(each for each in (self.matchers, selector) if each)
        return f"{self.name}{part}{{{matchers}}}" if matchers else f"{self.name}{part}"

    def on(self, page: Page) -> bool:
        """Whether the page has it. Where it has series of the name, one must have the labels that are asked for."""
        asked = dict(_EQUAL.findall(self.matchers))
        seen = self.name in page.samples
        return page.labelled(self.name, asked) if asked and seen else page.exposes(self.name)


@dataclass(frozen=True)
class Measure:
    """A way to get the value of a signal. `scale` converts to the unit that is shown."""

    scale: float = 1.0

    def promql(self, selector: str = "") -> str:
        """A query whose answer is the value over the window: one sample, or none where nothing was counted."""
        raise NotImplementedError

    def source(self, selector: str = "") -> dict[str, Any]:
        """The same as `metricSource.spec`."""
        return {"query": self.promql(selector)}

    def metrics(self) -> Iterator[Metric]:
        """All that it needs."""
        raise NotImplementedError

    def renamed(self, old: str, new: str) -> Measure:
        """The same where each name begins with `new` in place of `old`."""

        def rename(value: Any) -> Any:
            if isinstance(value, Metric):
                return replace(value, name=new + value.name.removeprefix(old))
            return tuple(map(rename, value)) if isinstance(value, tuple) else value

        return replace(self, **{name: rename(value) for name, value in vars(self).items()})

    def _scaled(self, query: str) -> str:
        return query if self.scale == 1 else f"{self.scale:.15g} * {query}"


@dataclass(frozen=True, kw_only=True)
class Quantile(Measure):
    """A quantile of a classic histogram."""

    histogram: Metric
    quantile: float = 0.99

    def promql(self, selector: str = "") -> str:
        buckets = f"sum by (le) (rate({self.histogram.select(selector, '_bucket')}{_OVER}))"
        return self._scaled(f"histogram_quantile({self.quantile:g}, {buckets})")

    def source(self, selector: str = "") -> dict[str, Any]:
        found = {"histogram": self.histogram.select(selector), "quantile": self.quantile}
        return found if self.scale == 1 else {**found, "scale": int(self.scale) or self.scale}

    def metrics(self) -> Iterator[Metric]:
        yield Metric(f"{self.histogram.name}_bucket", self.histogram.matchers)


@dataclass(frozen=True, kw_only=True)
class Mean(Measure):
    """A mean, from a counter of sums and a counter of how many: all that a summary without quantiles tells."""

    total: Metric
    count: Metric

    def promql(self, selector: str = "") -> str:
        return self._scaled(f"{_grown(self.total, selector)} / {_grown(self.count, selector)}")

    def source(self, selector: str = "") -> dict[str, Any]:
        return {"query": self.promql(selector), "samples": _grown(self.count, selector)}

    def metrics(self) -> Iterator[Metric]:
        yield from (self.total, self.count)


@dataclass(frozen=True, kw_only=True)
class Share(Measure):
    """What was good of everything, in percent. Everything is the sum of `total`; good is `good`, or what is not `bad`.

    `bad` is for servers that count only failures: before the first one there is no series, and none is none.
    """

    total: tuple[Metric, ...]
    good: Metric | None = None
    bad: Metric | None = None
    scale: float = 100.0

    def promql(self, selector: str = "") -> str:
        good, total = self._counts(selector)
        return self._scaled(f"{good} / {total}")

    def source(self, selector: str = "") -> dict[str, Any]:
        good, total = self._counts(selector)
        return {"good": good, "total": total}

    def metrics(self) -> Iterator[Metric]:
        yield from self.total
        if self.good is not None:
            yield self.good

    def _counts(self, selector: str) -> tuple[str, str]:
        """A plain `sum(increase())` is counted exactly by the collector, anything in parentheses by Prometheus.

        Of a share both must be counted alike, or the good could be more than all.
        """
        total = " + ".join(_grown(each, selector) for each in self.total)
        if self.bad is not None:
            return f"({total} - ({_grown(self.bad, selector)} or 0 * {total}))", f"({total})"
        assert self.good is not None, "a share has good or bad"
        good = _grown(self.good, selector)
        return (good, total) if len(self.total) == 1 else (f"({good})", f"({total})")


@dataclass(frozen=True, kw_only=True)
class Rate(Measure):
    """Growth of a counter per second, of all series together."""

    counter: Metric

    def promql(self, selector: str = "") -> str:
        return self._scaled(f"sum(rate({self.counter.select(selector)}{_OVER}))")

    def metrics(self) -> Iterator[Metric]:
        yield self.counter


@dataclass(frozen=True, kw_only=True)
class Level(Measure):
    """A gauge: `mean` is that of the window, summed over the servers; `peak` is the highest of any of them."""

    gauge: Metric
    of: Literal["mean", "peak"]

    def promql(self, selector: str = "") -> str:
        series = f"{self.gauge.select(selector)}{_OVER}"
        return self._scaled(f"max(max_over_time({series}))" if self.of == "peak" else f"sum(avg_over_time({series}))")

    def metrics(self) -> Iterator[Metric]:
        yield self.gauge


@dataclass(frozen=True, kw_only=True)
class Average(Measure):
    """A gauge that is a share already: the mean of the window, and of the servers."""

    gauge: Metric
    scale: float = 100.0

    def promql(self, selector: str = "") -> str:
        return self._scaled(f"avg(avg_over_time({self.gauge.select(selector)}{_OVER}))")

    def metrics(self) -> Iterator[Metric]:
        yield self.gauge


@dataclass(frozen=True, kw_only=True)
class Active(Measure):
    """How many values of `label` were at work in the window, of a metric whose value is when that last was so."""

    info: Metric
    label: str

    def promql(self, selector: str = "") -> str:
        series = Metric(self.info.name, f'{self.label}!=""').select(
            ",".join(filter(None, (self.info.matchers, selector)))
        )
        return f"count(count by ({self.label}) (changes({series}{_OVER}) > 0))"

    def metrics(self) -> Iterator[Metric]:
        yield self.info


def p99_ms(histogram: str, matchers: str = "", *, unit_ms: float = 1000.0) -> Quantile:
    """P99 in milliseconds of a histogram whose unit is `unit_ms` milliseconds: seconds, if nothing is said."""
    return Quantile(histogram=Metric(histogram, matchers), scale=unit_ms)


def good_of(counter: str, good: str, all_of_it: str = "") -> Share:
    """The share of a counter that the matchers `good` select, of what `all_of_it` does."""
    both = ",".join(each for each in (all_of_it, good) if each)
    return Share(total=(Metric(counter, all_of_it),), good=Metric(counter, both))


def _grown(counter: Metric, selector: str) -> str:
    return f"sum(increase({counter.select(selector)}{_OVER}))"
