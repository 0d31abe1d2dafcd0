"""Ask Prometheus for everything that a verdict needs, and keep the answers as what they are.

Nothing in here raises for a Prometheus that does not answer: its rows say so, and the judge makes NO_DATA of them.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from aftershock.errors import PrometheusError, SpecError
from aftershock.metrics import increase
from aftershock.metrics.prometheus import PrometheusClient, QueryRefusedError
from aftershock.metrics.questions import (
    Buckets,
    Count,
    Line,
    Question,
    SlicedCount,
    Subject,
    Value,
    queries,
    questions,
)
from aftershock.slo.frame import Answer, Row, labels_text, to_frame
from aftershock.slo.objective import Objective, RecoveryIndicator
from aftershock.windows import Window, from_timestamp, utc_now

if TYPE_CHECKING:
    import pandas as pd

PARALLEL = 8
DEADLINE_S = 60.0
CHECK_WINDOW_S = 60.0

log = logging.getLogger(__name__)


def check_queries(objectives: Sequence[Objective], client: PrometheusClient) -> None:
    """Have Prometheus look at every query before anything is started.

    Raises SpecError, with the place of the objective and the server's words, for the first one that it refuses. A
    Prometheus that does not answer is no mistake of the spec: that is logged.
    """
    now = utc_now()
    try:
        for objective in objectives:
            for query in queries(objective, CHECK_WINDOW_S):
                _check(objective, query, client, now)
    except PrometheusError as error:
        log.warning("queries were not checked: %s", error)


def _check(objective: Objective, query: str, client: PrometheusClient, now: datetime) -> None:
    try:
        if isinstance(objective.indicator, RecoveryIndicator):
            client.query_range(query, now, now, 1.0)
        else:
            client.query(query, now)
    except QueryRefusedError as error:
        place = objective.source or "SLO"
        raise SpecError(f"{place}: {objective.name}: Prometheus refuses the query {query!r}: {error}") from error


def collect(
    objectives: Sequence[Objective],
    windows: Sequence[Window],
    client: PrometheusClient,
    *,
    scrape_interval_s: float,
    deadline_s: float = DEADLINE_S,
) -> pd.DataFrame:
    """Every objective over every window, and the time line of the run: a tidy frame with the columns of `Row`.

    Takes `deadline_s` at most; what was not answered by then is unreachable.
    """
    asked = questions(objectives, windows, scrape_interval_s=scrape_interval_s)
    with client.limited(deadline_s):
        try:
            client.probe()
        except PrometheusError as error:
            return to_frame([_without_answer(question, Answer.UNREACHABLE, str(error)) for question in asked])
        with ThreadPoolExecutor(PARALLEL, thread_name_prefix="promql") as pool:
            answers = pool.map(partial(_ask, client), asked)
            return to_frame([row for rows in answers for row in rows])


def _ask(client: PrometheusClient, question: Question) -> list[Row]:
    """The rows of one question: at least one, whatever happens."""
    try:
        rows = list(_answer(client, question))
    except QueryRefusedError as error:
        return [_without_answer(question, Answer.ERROR, str(error))]
    except PrometheusError as error:
        return [_without_answer(question, Answer.UNREACHABLE, str(error))]
    return rows or [_without_answer(question, Answer.EMPTY, "no series matched the query")]


def _answer(client: PrometheusClient, question: Question) -> Iterator[Row]:
    match question:
        case Value():
            for series in client.query(question.query, question.at):
                for _, value in series.samples:
                    yield _row(question, value, question.at, labels_text(series.labels))
        case Count():
            yield from _count(client, question)
        case SlicedCount():
            yield from _sliced_count(client, question)
        case Line():
            for series in client.query_range(question.query, question.start, question.at, question.step_s):
                labels = labels_text({"name": question.name} if question.name else series.labels)
                for at, value in series.samples:
                    yield _row(question, value, from_timestamp(at), labels)


def _count(client: PrometheusClient, question: Count) -> Iterator[Row]:
    known = increase.fetch(client, question.selector, question.start, question.at)
    if known is None:
        return
    if isinstance(question, Buckets):
        yield from _buckets(question, known, question.at)
    else:
        yield _row(question, known.total(), question.at, labels_text({}))


def _sliced_count(client: PrometheusClient, question: SlicedCount) -> Iterator[Row]:
    for end, known in increase.fetch_slices(client, question.selector, question.edges):
        if question.bucketed:
            yield from _buckets(question, known, end)
        else:
            yield _row(question, known.total(), end, labels_text({}))


def _buckets(question: Count | SlicedCount, known: increase.Growth, at: datetime) -> Iterator[Row]:
    try:
        buckets = known.by_bucket()
    except KeyError as error:
        raise QueryRefusedError(f"{question.selector} has series without the label le: no classic histogram") from error
    for bound, value in buckets.items():
        yield _row(question, value, at, labels_text({"le": bound}))


def _row(question: Question, value: float, at: datetime, labels: str) -> Row:
    status = Answer.of(value)
    detail = "" if status is Answer.OK else f"the answer is {'NaN' if status is Answer.NAN else f'{value:+}'}"
    return _of(question.subject, question.query, at, labels, value, status, detail)


def _without_answer(question: Question, status: Answer, detail: str) -> Row:
    name = question.name if isinstance(question, Line) else ""
    labels = labels_text({"name": name} if name else {})
    return _of(question.subject, question.query, question.at, labels, float("nan"), status, detail)


def _of(subject: Subject, query: str, at: datetime, labels: str, value: float, status: Answer, detail: str) -> Row:
    return Row(
        objective=subject.objective,
        role=subject.role,
        phase=subject.phase,
        at=at,
        labels=labels,
        value=value,
        status=status.value,
        detail=detail,
        template=subject.template,
        query=query,
        range_s=subject.range_s,
    )
