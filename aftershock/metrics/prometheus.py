"""Prometheus over HTTP: PromQL in, series out, foreign errors mapped here and nowhere else.

`prometheus_api_client` has the connection, but cuts the ends of a range to whole seconds, hides the server's words in a
bytes literal and knows neither the limit of points nor a total time. So it is used underneath, with those four mended.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Self
from urllib.parse import urlsplit

import requests
from prometheus_api_client.exceptions import PrometheusApiClientException
from prometheus_api_client.prometheus_connect import PrometheusConnect
from urllib3.util.retry import Retry

from aftershock.errors import PrometheusError
from aftershock.slo.promql import duration, parse_duration
from aftershock.windows import utc_now

MAX_POINTS = 11_000
"""Prometheus refuses a range query with more points a series."""

CONNECT_TIMEOUT_S = 3.0


class QueryRefusedError(PrometheusError):
    """Prometheus answered that it cannot evaluate the query: a mistake in the query. The message is the server's."""


@dataclass(frozen=True)
class Series:
    """One series of an answer: an instant query gives one sample, a range several. Times are seconds since the epoch.

    Values are what Prometheus said, NaN and infinities too.
    """

    labels: Mapping[str, str]
    samples: tuple[tuple[float, float], ...]

    @property
    def identity(self) -> frozenset[tuple[str, str]]:
        """The labels without the metric's name: what stays the same through PromQL functions."""
        return frozenset(item for item in self.labels.items() if item[0] != "__name__")

    @property
    def values(self) -> tuple[float, ...]:
        """The samples without their times."""
        return tuple(value for _, value in self.samples)


@dataclass(frozen=True)
class ScrapeTarget:
    """One address that Prometheus scrapes."""

    url: str
    labels: Mapping[str, str]
    up: bool
    error: str
    """Why its last scrape failed; empty where it did not."""
    interval_s: float | None
    """As configured; None where the server does not say."""

    @property
    def port(self) -> int | None:
        """Of its address."""
        return urlsplit(self.url).port


class PrometheusClient:
    """One Prometheus, open for a `with` block. May be used from several threads.

    `timeout_s` bounds each request. Every method raises PrometheusError if no answer comes, and QueryRefusedError if
    the answer is that the query is wrong.
    """

    def __init__(self, url: str, *, timeout_s: float = 10.0) -> None:
        session = requests.Session()
        session.hooks["response"].append(_check)
        session.trust_env = not is_loopback(url)  # a proxy of the environment cannot reach this machine's loopback
        # Any: its annotations say that time-outs are whole numbers, while it hands them to requests as they are.
        self._session, self._url = session, url.rstrip("/")
        self._connection: Any = PrometheusConnect(
            self._url,
            session=session,
            retry=Retry(total=1, read=False, status=0, other=0, backoff_factor=0.1, allowed_methods=None),
        )
        self.shown = without_password(url)
        """Its address, for messages."""
        self._timeout_s = timeout_s
        self._deadline = math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the connections."""
        self._connection.close()

    @contextmanager
    def limited(self, seconds: float) -> Iterator[None]:
        """Let all requests of the block together take at most this long: a hung Prometheus must not hang the run."""
        self._deadline = time.monotonic() + seconds
        try:
            yield
        finally:
            self._deadline = math.inf

    def probe(self) -> None:
        """Ask something trivial; PromQL, since not everything that speaks it has Prometheus' health endpoints."""
        self.query("vector(1)", utc_now())

    def version(self) -> str | None:
        """Its version; None where it keeps that to itself."""
        told = self._status("/api/v1/status/buildinfo")
        return str(told["version"]) if told and told.get("version") else None

    def targets(self) -> list[ScrapeTarget] | None:
        """All that it scrapes now; None where it does not say so: not allowed, or not of its API."""
        told = self._status("/api/v1/targets", state="active")
        return None if told is None else [_target(each) for each in told.get("activeTargets") or []]

    def now(self) -> float:
        """What time it takes it to be, seconds since the epoch."""
        timeout_s = self._time_left_s()
        with self._mapped(timeout_s):
            answer = self._connection.custom_query("time()", {}, timeout=_timeouts(timeout_s))
            return _series(answer)[0].values[0]

    def query(self, query: str, at: datetime) -> list[Series]:
        """What `query` is at one instant. A range selector gives the raw samples of its range."""
        timeout_s = self._time_left_s()
        params = {"time": _timestamp(at.timestamp()), "timeout": duration(timeout_s)}
        with self._mapped(timeout_s):
            return _series(self._connection.custom_query(query, params, timeout=_timeouts(timeout_s)))

    def query_range(self, query: str, start: datetime, end: datetime, step_s: float) -> list[Series]:
        """What `query` is at `start` and each `step_s` after it, up to `end`; asked in parts if it is long."""
        merged: dict[frozenset[tuple[str, str]], Series] = {}
        for first, last in _parts(start, end, step_s):
            for series in self._query_range_part(query, first, last, step_s):
                key = frozenset(series.labels.items())
                earlier = merged[key].samples if key in merged else ()
                merged[key] = Series(series.labels, earlier + series.samples)
        return list(merged.values())

    def _query_range_part(self, query: str, start: datetime, end: datetime, step_s: float) -> list[Series]:
        timeout_s = self._time_left_s()
        params = {
            "start": _timestamp(start.timestamp()),  # the library's own are rounded to seconds; these take their place
            "end": _timestamp(end.timestamp()),
            "timeout": duration(timeout_s),
        }
        with self._mapped(timeout_s):
            answer = self._connection.custom_query_range(
                query, start, end, duration(step_s), params, timeout=_timeouts(timeout_s)
            )
            return _series(answer)

    def _status(self, path: str, **params: str) -> dict[str, Any] | None:
        """The data of one of the endpoints that not everything has which speaks PromQL; None where it is refused."""
        timeout_s = self._time_left_s()
        with self._mapped(timeout_s):
            try:
                answer = self._session.get(self._url + path, params=params, timeout=_timeouts(timeout_s))
                data: dict[str, Any] = answer.json()["data"]
            except (QueryRefusedError, requests.HTTPError, ValueError, LookupError):
                return None
            return data

    def _time_left_s(self) -> float:
        left_s = min(self._timeout_s, self._deadline - time.monotonic())
        if left_s <= 0:
            raise PrometheusError(f"Prometheus at {self.shown} took too long over all; is it overloaded or stopped?")
        return left_s

    @contextmanager
    def _mapped(self, timeout_s: float) -> Iterator[None]:
        """Foreign errors as ours."""
        where = f"Prometheus at {self.shown}"
        try:
            yield
        except requests.Timeout as error:
            raise PrometheusError(
                f"{where} does not answer within {timeout_s:.3g} s; is it overloaded or stopped?"
            ) from error
        except requests.ConnectionError as error:
            raise PrometheusError(
                f"{where} cannot be reached ({_cause(error)}); check its address with --prometheus-url"
            ) from error
        except requests.HTTPError as error:
            raise PrometheusError(f"{where} answers {error}; check its address with --prometheus-url") from error
        except (requests.RequestException, PrometheusApiClientException, ValueError, LookupError, TypeError) as error:
            raise PrometheusError(
                f"{where} gives no answer of Prometheus ({error}); check its address with --prometheus-url"
            ) from error


def _check(response: requests.Response, **_: Any) -> None:
    """Raise the server's own words for an answer that is none."""
    if response.status_code < 400:
        return
    try:
        answer = response.json()
        words, kind = str(answer["error"]), str(answer["errorType"])
    except (ValueError, LookupError, TypeError) as error:
        raise requests.HTTPError(f"{response.status_code} {response.reason}", response=response) from error
    if kind in ("bad_data", "execution"):
        raise QueryRefusedError(" ".join(words.split()))
    raise requests.HTTPError(f"{response.status_code}: {words}", response=response)


def _series(result: Any) -> list[Series]:
    """The series of an answer's `result`, whose form depends on the type of the query."""
    if result and not isinstance(result[0], dict):
        return [Series({}, (_sample(result),))]  # a scalar: [time, value]
    return [Series(item["metric"], tuple(map(_sample, _raw_samples(item)))) for item in result]


def _raw_samples(item: dict[str, Any]) -> list[Any]:
    if "histogram" in item or "histograms" in item:
        raise ValueError("native histograms are not supported; ask for a number of them, such as histogram_quantile()")
    return item["values"] if "values" in item else [item["value"]]


def _target(told: Mapping[str, Any]) -> ScrapeTarget:
    return ScrapeTarget(
        url=str(told.get("scrapeUrl", "")),
        labels=dict(told.get("labels") or {}),
        up=told.get("health") == "up",
        error=str(told.get("lastError") or ""),
        interval_s=parse_duration(str(told.get("scrapeInterval", ""))) or None,
    )


def _sample(pair: Any) -> tuple[float, float]:
    return float(pair[0]), float(pair[1])


def _parts(start: datetime, end: datetime, step_s: float) -> Iterator[tuple[datetime, datetime]]:
    """Stretches of at most MAX_POINTS steps that together hit the same instants as the whole."""
    steps = math.floor((end - start).total_seconds() / step_s + 1e-9)
    for first in range(0, steps + 1, MAX_POINTS):
        last = min(first + MAX_POINTS - 1, steps)
        yield start + timedelta(seconds=first * step_s), start + timedelta(seconds=last * step_s)


def _timestamp(seconds: float) -> str:
    return f"{seconds:.3f}"


def _timeouts(timeout_s: float) -> tuple[float, float]:
    return min(CONNECT_TIMEOUT_S, timeout_s), timeout_s


def is_loopback(url: str) -> bool:
    """Whether it is on this machine."""
    return urlsplit(url).hostname in ("127.0.0.1", "localhost", "::1")


def without_password(url: str) -> str:
    """`url` without who asks, for messages."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def _cause(error: BaseException) -> str:
    """The system's word for it (`Connection refused`), which requests and urllib3 wrap several times."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, OSError) and seen.strerror:
            return seen.strerror
        seen = seen.__cause__ or seen.__context__
    return "no connection"
