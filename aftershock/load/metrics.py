"""What Prometheus sees of a phase: every series from zero on, and the page that shows them."""

from __future__ import annotations

from collections.abc import Iterator

from aftershock.exposition import HistogramSeries, family, page, sample
from aftershock.load.outcome import Outcome
from aftershock.windows import Phase

_DURATION = "aftershock_request_duration_seconds"
_TTFT = "aftershock_ttft_seconds"
_INTER_TOKEN = "aftershock_inter_token_seconds"
_SEND_LAG = "aftershock_send_lag_seconds"
_REQUESTS = "aftershock_requests_total"
_EVAL = "aftershock_eval_total"
_TOKENS = "aftershock_output_tokens_total"
_IN_FLIGHT = "aftershock_requests_in_flight"


class PhaseMetrics:
    """The live numbers of one phase. Used from one event loop, so without locks."""

    def __init__(self, phase: Phase) -> None:
        self._labels = {"phase": str(phase)}
        self.duration = HistogramSeries(_DURATION, self._labels)
        self.ttft = HistogramSeries(_TTFT, self._labels)
        self.inter_token = HistogramSeries(_INTER_TOKEN, self._labels)
        self.send_lag = HistogramSeries(_SEND_LAG, self._labels)
        self.requests = dict.fromkeys(Outcome, 0)
        self.graded = {True: 0, False: 0}
        self.output_tokens = 0
        self.in_flight = 0

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
        return page(self._lines())

    def _lines(self) -> Iterator[str]:
        labels = self._labels
        yield from family(_DURATION, "histogram", "From the scheduled time to the end of the answer; successes only.")
        yield from self.duration.lines()
        yield from family(_TTFT, "histogram", "From the scheduled time to the first non-empty token; successes only.")
        yield from self.ttft.lines()
        yield from family(_INTER_TOKEN, "histogram", "Gaps between the arrivals of tokens; successful requests.")
        yield from self.inter_token.lines()
        yield from family(_SEND_LAG, "histogram", "From the scheduled time to the send: the generator's own delay.")
        yield from self.send_lag.lines()
        yield from family(_REQUESTS, "counter", "Finished requests by outcome.")
        yield from (sample(_REQUESTS, {**labels, "outcome": name}, n) for name, n in self.requests.items())
        yield from family(_EVAL, "counter", "Graded answers of successful requests.")
        yield sample(_EVAL, {**labels, "result": "correct"}, self.graded[True])
        yield sample(_EVAL, {**labels, "result": "wrong"}, self.graded[False])
        yield from family(_TOKENS, "counter", "Tokens of successful answers, as the service counts where it tells.")
        yield sample(_TOKENS, labels, self.output_tokens)
        yield from family(_IN_FLIGHT, "gauge", "Requests sent and not yet finished.")
        yield sample(_IN_FLIGHT, labels, self.in_flight)
