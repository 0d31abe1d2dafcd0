"""The requests of one phase: each is sent when it is told, and its end becomes one record and live metrics."""

from __future__ import annotations

import asyncio

from aftershock.load.client import Client, Exchange
from aftershock.load.clock import Clock
from aftershock.load.metrics import PhaseMetrics
from aftershock.load.outcome import Outcome
from aftershock.load.plan import LoadPlan
from aftershock.load.protocol import get_protocol
from aftershock.load.records import Record, RecordWriter


def request_bodies(plan: LoadPlan) -> list[bytes]:
    """One body an item, made before the load starts.

    Where sampling is random, each item gets its own seed, the same in every phase: with one seed for all, every
    question would draw the same numbers, and without any, phases would differ by chance alone.
    """
    protocol = get_protocol(plan.protocol)
    fixed = {"model": plan.model, "max_tokens": plan.max_tokens, "temperature": plan.temperature}
    return [
        protocol.body(item.prompt, **fixed, **({"seed": plan.seed + index} if plan.temperature > 0 else {}))
        for index, item in enumerate(plan.items)
    ]


class Sender:
    """Sends request after request and forgets each once it is recorded."""

    def __init__(
        self, plan: LoadPlan, client: Client, metrics: PhaseMetrics, writer: RecordWriter, clock: Clock
    ) -> None:
        self.last_sent = clock.monotonic_s
        self._plan = plan
        self._client = client
        self._metrics = metrics
        self._writer = writer
        self._clock = clock
        self._bodies = request_bodies(plan)
        self._grades = [item.grade() for item in plan.items]
        self._now = asyncio.get_running_loop().time

    async def send(self, seq: int, due: float) -> None:
        """Request number `seq`, due at `due` of the loop's clock, from its send to its record."""
        exchange = Exchange(sent=self._now())
        self.last_sent = exchange.sent
        self._metrics.send_lag.observe(exchange.sent - due)
        self._metrics.in_flight += 1
        index = seq % len(self._bodies)
        try:
            await self._client.exchange(exchange, self._bodies[index], due + self._plan.request_timeout_s)
        finally:
            exchange.end(Outcome.CANCELLED, self._now(), "the load ended by an error of its own")
            self._metrics.in_flight -= 1
            self._finish(seq, due, exchange)

    def _finish(self, seq: int, due: float, exchange: Exchange) -> None:
        answer = exchange.answer
        grade = self._grades[seq % len(self._grades)]
        ok = exchange.outcome is Outcome.OK
        correct = grade(answer) if ok and grade is not None and answer is not None else None
        self._count(due, exchange, correct)
        first, at = exchange.first_token, self._clock.microseconds
        self._writer.append(
            Record(
                phase=self._plan.phase,
                seq=seq,
                item_id=self._plan.items[seq % len(self._plan.items)].id,
                scheduled_at=at(due),
                sent_at=at(exchange.sent),
                first_token_at=None if first is None else at(first),
                finished_at=at(exchange.finished),
                latency_s=exchange.finished - due,
                ttft_s=None if first is None else first - due,
                send_lag_s=exchange.sent - due,
                inter_token_s=exchange.gaps,
                output_tokens=exchange.output_tokens,
                outcome=exchange.outcome or Outcome.CANCELLED,
                http_status=exchange.status,
                error=exchange.error,
                answer=answer,
                correct=correct,
            )
        )

    def _count(self, due: float, exchange: Exchange, correct: bool | None) -> None:
        """Times and tokens are of successes only: a refusal in a millisecond must not make a service look fast."""
        metrics = self._metrics
        metrics.requests[exchange.outcome or Outcome.CANCELLED] += 1
        if exchange.outcome is not Outcome.OK:
            return
        metrics.duration.observe(exchange.finished - due)
        if exchange.first_token is not None:
            metrics.ttft.observe(exchange.first_token - due)
        for gap in exchange.gaps:
            metrics.inter_token.observe(gap)
        metrics.output_tokens += exchange.output_tokens
        if correct is not None:
            metrics.graded[correct] += 1
