"""Do the intervals hold what they promise? On simulated requests whose truth is known, through the judge's own code.

    python -m benchmarks.coverage            # the table; about two minutes on one core
    python -m benchmarks.coverage --share 0.1

Each line says what was simulated, the figure, the target, and whether it was reached; the last line sums up. The exit
code is 0 only if every target was reached. Rows without a target are there to be known, not promised.

Dependent requests are a first-order autoregression of their normal scores with coefficient 0.6. Intervals of quantiles
rest on ranks, so the shape of the distribution hardly matters to coverage; it matters to what is detected.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from aftershock.exposition import BOUNDS
from aftershock.slo.decision import decide
from aftershock.slo.objective import Objective, Op, QuantileIndicator
from aftershock.slo.recorded import with_interval
from aftershock.slo.resampling import SeriesEstimate, mean_of_series, quantile_of_series
from aftershock.slo.statistics import Bucket, quantile_of_buckets
from aftershock.slo.verdict import PhaseValue, Reason, Verdict

SEED = 20_260_101
RHO = 0.6
FEWEST = 20
"""Repetitions."""
QUANTILES = (0.5, 0.95, 0.99)
SHIFT = 1.15
INDEPENDENT = (0.93, 0.97)
DEPENDENT = (0.93, 1.0)
FALSE_FAIL = (0.0, 0.05)
DETECTED = (0.8, 1.0)

Values = NDArray[np.float64]
FromScores = Callable[[Values], Values]


def lognormal(sigma: float) -> FromScores:
    """Latencies around 100 ms."""
    return lambda scores: 0.1 * np.exp(sigma * scores)


def exponential(scores: Values) -> Values:
    """Latencies with a mean of 100 ms."""
    return np.asarray(-0.1 * special.log_ndtr(-scores))


def two_humps(scores: Values) -> Values:
    """Nine of ten requests are quick, the tenth takes ten times as long: a cache that misses."""
    return np.asarray(0.05 * np.exp(0.2 * scores) * np.where(scores > special.ndtri(0.9), 10, 1))


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    what: str
    figure: float
    target: tuple[float, float] | None = None
    width: float = math.nan
    """Of the interval, as a share of the truth."""
    effective_n: float = math.nan

    @property
    def reached(self) -> bool:
        """Whether the figure is what was promised; also where nothing was."""
        return self.target is None or self.target[0] <= self.figure <= self.target[1]

    @property
    def text(self) -> str:
        """The row as it is printed."""
        width, worth = (
            "" if math.isnan(number) else form.format(number)
            for number, form in ((self.width, "{:.1%}"), (self.effective_n, "{:.0f}"))
        )
        wanted = "" if self.target is None else _wanted(self.target)
        word = "" if self.target is None else "yes" if self.reached else "NO"
        return f"{self.what:<62}{self.figure:>8.1%}{width:>9}{worth:>8}  {wanted:<13}{word}"


def _wanted(target: tuple[float, float]) -> str:
    low, high = target
    if low == high:
        return "all"
    if low == 0:
        return f"<= {high:.0%}"
    return f">= {low:.0%}" if high == 1 else f"{low:.0%} to {high:.0%}"


@dataclass(frozen=True)
class Covered:
    """What came of intervals over many series."""

    share: float
    """Of the intervals, that hold the truth."""
    width: float
    effective_n: float


def scores(rng: np.random.Generator, series: int, n: int, rho: float) -> Values:
    """Standard normal scores, a row a series, each depending on the one before by `rho`."""
    drawn = rng.standard_normal((n, series))
    if rho:
        for index in range(1, n):
            drawn[index] = rho * drawn[index - 1] + math.sqrt(1 - rho * rho) * drawn[index]
    return np.ascontiguousarray(drawn.T)


def coverage(series: Values, quantile: float, truth: float, narrowed: float = 1.0) -> Covered:
    """Of the judge's intervals of a quantile, a row of `series` each; `narrowed` makes each that much narrower."""
    return _covered([quantile_of_series(row, quantile) for row in series], truth, narrowed)


def _covered(found: Sequence[SeriesEstimate], truth: float, narrowed: float = 1.0) -> Covered:
    lows = np.array([-math.inf if one.low is None else one.value - narrowed * (one.value - one.low) for one in found])
    highs = np.array([math.inf if one.high is None else one.value + narrowed * (one.high - one.value) for one in found])
    worth = [one.dependence.effective_n for one in found]
    widths = (highs - lows)[np.isfinite(highs - lows)]
    width = float(widths.mean()) / truth if len(widths) else math.nan
    return Covered(float(((lows <= truth) & (truth <= highs)).mean()), width, float(np.mean(worth)))


def verdict(row: Values, quantile: float, bound_s: float) -> tuple[Verdict, Reason]:
    """What the judge says of a phase with these latencies and the objective that the quantile is at most `bound_s`."""
    indicator = QuantileIndicator('aftershock_request_duration_seconds{phase="{{ phase }}"}', quantile)
    objective = Objective("latency", "Latency", "s", Op.LTE, bound_s, indicator)
    counts = np.searchsorted(np.sort(row), BOUNDS, side="right")
    buckets = [Bucket(bound, float(count)) for bound, count in zip(BOUNDS, counts, strict=True)]
    counted = quantile_of_buckets([*buckets, Bucket(math.inf, float(len(row)))], quantile)
    measured = with_interval(PhaseValue(counted.value, counted.low, counted.high, counted.n), row, indicator)
    return decide(objective, measured, "strict")


def failed(rng: np.random.Generator, draw: FromScores, quantile: float, z: Values, shift: float) -> float:
    """Share of phases that FAIL where the quantile is `shift` times the objective, wherever that lies in its bucket."""
    unit = float(draw(np.array([special.ndtri(quantile)]))[0])
    found = 0
    for row in z:
        bound_s = math.exp(rng.uniform(math.log(0.2), math.log(2.0)))
        found += verdict(draw(row) / unit * bound_s * shift, quantile, bound_s)[0] is Verdict.FAIL
    return found / len(z)


def coverage_lines(rng: np.random.Generator, share: float) -> Iterator[Line]:
    """Quantiles and means, independent and not."""
    for name, draw in (("lognormal 0.5", lognormal(0.5)), ("two humps", two_humps)):
        for rho in (0.0, RHO):
            for n, repeats in ((300, 4000), (1000, 4000), (10_000, 2000)):
                series = draw(scores(rng, max(FEWEST, round(repeats * share)), n, rho))
                for quantile in QUANTILES:
                    truth = float(draw(np.array([special.ndtri(quantile)]))[0])
                    if n == 300 and quantile == 0.99:
                        yield _undecided(name, rho, series)
                        continue
                    found = coverage(series, quantile, truth)
                    what = f"P{quantile * 100:g} covered, {name}, rho {rho:g}, n {n}"
                    yield Line(what, found.share, _target(rho, n, quantile), found.width, found.effective_n)
    for rho in (0.0, RHO):
        series = exponential(scores(rng, max(FEWEST, round(2000 * share)), 1000, rho))
        found = _covered([mean_of_series(row) for row in series], 0.1)
        target = DEPENDENT if rho else INDEPENDENT
        yield Line(
            f"mean covered, exponential, rho {rho:g}, n 1000", found.share, target, found.width, found.effective_n
        )


def _target(rho: float, n: int, quantile: float) -> tuple[float, float] | None:
    """What is promised of a quantile's interval."""
    if not rho:
        return INDEPENDENT
    return DEPENDENT if n == 10_000 or (n == 1000 and quantile < 0.99) else None


def _undecided(name: str, rho: float, series: Values) -> Line:
    """Where no upper bound exists, nothing passes, however roomy the objective."""
    said = [verdict(row, 0.99, 50.0) for row in series[:200]]
    share = sum(one == (Verdict.INCONCLUSIVE, Reason.TOO_FEW_SAMPLES) for one in said) / len(said)
    return Line(f"P99 said to have too few samples, {name}, rho {rho:g}, n 300", share, (1.0, 1.0))


def verdict_lines(rng: np.random.Generator, share: float) -> Iterator[Line]:
    """How often the judge says FAIL, without an effect and with one."""
    repeats = max(FEWEST, round(1500 * share))
    for n, quantile in ((1000, 0.95), (1000, 0.99), (3000, 0.99)):
        for rho in (0.0, RHO):
            false = failed(rng, lognormal(0.5), quantile, scores(rng, repeats, n, rho), 1.0)
            yield Line(f"FAIL without an effect, P{quantile * 100:g}, rho {rho:g}, n {n}", false, FALSE_FAIL)
    for name, draw, rho, target in (
        ("lognormal 0.5", lognormal(0.5), 0.0, DETECTED),
        ("exponential", exponential, 0.0, DETECTED),
        ("lognormal 0.5", lognormal(0.5), RHO, DETECTED),
        ("lognormal 1 (heavy tail)", lognormal(1.0), 0.0, None),
    ):
        power = failed(rng, draw, 0.99, scores(rng, repeats, 3000, rho), SHIFT)
        yield Line(f"P99 shift of 15 % found, {name}, rho {rho:g}, n 3000", power, target)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; 0 if every target was reached."""
    parser = argparse.ArgumentParser(description="Coverage of the judge's intervals on data with a known truth.")
    parser.add_argument("--share", type=float, default=1.0, help="of the repetitions; below 1 targets may be missed")
    share = parser.parse_args(arguments).share
    began, lines = time.monotonic(), []
    rng = np.random.default_rng(SEED)
    _say(f"{'What':<62}{'figure':>8}{'width':>9}{'eff. n':>8}  {'target':<13}reached")
    for source in (coverage_lines, verdict_lines):
        for line in source(rng, share):
            lines.append(line)
            _say(line.text)
    promised = [line for line in lines if line.target is not None]
    missed = [line for line in promised if not line.reached]
    _say(
        f"{len(promised) - len(missed)} of {len(promised)} targets reached, {_range(promised)}, "
        f"in {time.monotonic() - began:.0f} s"
    )
    return 1 if missed else 0


def _range(lines: Sequence[Line]) -> str:
    """The worst figures of each kind against their targets."""
    told = []
    for name, target in (("independent", INDEPENDENT), ("dependent", DEPENDENT)):
        figures = [line.figure for line in lines if line.target == target]
        told.append(f"coverage {name} {min(figures):.1%} to {max(figures):.1%} (target {_wanted(target)})")
    false = max(line.figure for line in lines if line.target == FALSE_FAIL)
    found = min(line.figure for line in lines if line.target == DETECTED)
    told += [f"false FAIL at most {false:.1%} (target <= 5%)", f"detection at least {found:.1%} (target >= 80%)"]
    return ", ".join(told)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
