"""What Prometheus sees of a phase: every series from zero on, and the page that shows them.

The page is written here and not by prometheus_client: its `generate_latest` takes 8 ms for our 500 buckets, and each
scrape would delay the very requests that are being measured. A test reads the page with prometheus_client's parser.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate

from aftershock.load.histogram import BOUNDS, Histogram
from aftershock.load.outcome import Outcome
from aftershock.windows import Phase

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_REQUESTS = "aftershock_requests_total"
_EVAL = "aftershock_eval_total"
_TOKENS = "aftershock_output_tokens_total"
_IN_FLIGHT = "aftershock_requests_in_flight"
_HELP = {
    "aftershock_request_duration_seconds": "From the scheduled time to the end of the answer; successful requests.",
    "aftershock_ttft_seconds": "From the scheduled time to the first non-empty token; successful requests.",
    "aftershock_inter_token_seconds": "Gaps between the arrivals of tokens; successful requests.",
    "aftershock_send_lag_seconds": "From the scheduled time to the send: the delay of the load generator itself.",
    _REQUESTS: "Finished requests by outcome.",
    _EVAL: "Graded answers of successful requests.",
    _TOKENS: "Tokens of successful answers, by the service's own count where it tells.",
    _IN_FLIGHT: "Requests sent and not yet finished.",
}


class PhaseMetrics:
    """The live numbers of one phase. Used from one event loop, so without locks."""

    def __init__(self, phase: Phase) -> None:
        self.phase = phase
        self.duration = Histogram()
        self.ttft = Histogram()
        self.inter_token = Histogram()
        self.send_lag = Histogram()
        self.requests = dict.fromkeys(Outcome, 0)
        self.graded = {True: 0, False: 0}
        self.output_tokens = 0
        self.in_flight = 0
        self._prefixes = {
            name: [f'{name}_bucket{{phase="{phase}",le="{le}"}} ' for le in (*map(repr, BOUNDS), "+Inf")]
            for name in self._histograms()
        }

    @property
    def sent(self) -> int:
        """Requests sent so far, whatever became of them."""
        return self.finished + self.in_flight

    @property
    def finished(self) -> int:
        """Requests that have an outcome."""
        return sum(self.requests.values())

    @property
    def ok(self) -> int:
        """Successful requests."""
        return self.requests[Outcome.OK]

    def page(self) -> bytes:
        """All series in Prometheus' text format."""
        lines: list[str] = []
        for name, histogram in self._histograms().items():
            lines += self._head(name, "histogram")
            cumulated = list(accumulate(histogram.counts))
            lines += [prefix + str(value) for prefix, value in zip(self._prefixes[name], cumulated, strict=True)]
            lines.append(f'{name}_sum{{phase="{self.phase}"}} {histogram.sum!r}')
            lines.append(f'{name}_count{{phase="{self.phase}"}} {cumulated[-1]}')
        lines += self._scalars()
        return "\n".join([*lines, ""]).encode()

    def _histograms(self) -> dict[str, Histogram]:
        return {
            "aftershock_request_duration_seconds": self.duration,
            "aftershock_ttft_seconds": self.ttft,
            "aftershock_inter_token_seconds": self.inter_token,
            "aftershock_send_lag_seconds": self.send_lag,
        }

    def _scalars(self) -> Iterator[str]:
        phase = self.phase
        yield from self._head(_REQUESTS, "counter")
        yield from (f'{_REQUESTS}{{phase="{phase}",outcome="{name}"}} {n}' for name, n in self.requests.items())
        yield from self._head(_EVAL, "counter")
        yield f'{_EVAL}{{phase="{phase}",result="correct"}} {self.graded[True]}'
        yield f'{_EVAL}{{phase="{phase}",result="wrong"}} {self.graded[False]}'
        yield from self._head(_TOKENS, "counter")
        yield f'{_TOKENS}{{phase="{phase}"}} {self.output_tokens}'
        yield from self._head(_IN_FLIGHT, "gauge")
        yield f'{_IN_FLIGHT}{{phase="{phase}"}} {self.in_flight}'

    @staticmethod
    def _head(name: str, kind: str) -> tuple[str, str]:
        return f"# HELP {name} {_HELP[name]}", f"# TYPE {name} {kind}"
