"""Stop conditions of an SLO as promProbes: Litmus itself then watches them beside the fault, and stops it.

Litmus runs `sh -c 'promql --host ENDPOINT "QUERY" --output csv'` and takes the one number of the answer. What it was
given must reach Prometheus as it was meant, and come back as exactly one sample that is a number.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

from aftershock.chaos.lint.promql import samples
from aftershock.errors import InputError
from aftershock.experiment import AUTO, EMBEDDED, Experiment
from aftershock.slo.live import live_query, lookback
from aftershock.slo.objective import Objective, StopCondition
from aftershock.slo.openslo import load_slos

TIMEOUT_S = 3.0
"""Of one question, and the pause after one that was answered well: a breach is seen at most so much later."""

LEAST_INTERVAL_S = 1.0
LONGEST_NAME = 63

_PARTS = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`|(?:\s|\#[^\n]*)+|.""", re.DOTALL)
_SHELL = '"$`\\'
"""What means something within the double quotes of a shell."""


def slo_probes(experiment: Experiment) -> list[dict[str, Any]]:
    """A promProbe for each stop condition of the experiment's SLO.

    Raises InputError where there is none, where pods cannot reach Prometheus, and for a query that cannot be asked so.
    """
    endpoint = _endpoint(experiment)
    stopping = [
        (objective, objective.stop) for objective in load_slos(experiment.slo, experiment.matchers) if objective.stop
    ]
    if not stopping:
        raise InputError(
            f"slo_probes={experiment.slo_probes}: no objective of the SLO has a stop condition; mark one with the "
            "annotation aftershock.io/stop (see slo_specs/README.md), or give slo_probes=none"
        )
    names = _names([objective.name for objective, _ in stopping])
    return [_probe(next(names), objective, condition, endpoint, experiment) for objective, condition in stopping]


def shell_query(query: str) -> str:
    """`query` on one line, with label values in single quotes: the same PromQL, and untouched by a double-quoted word.

    Raises ValueError with the reason where it cannot be written so.
    """
    return "".join(_shell_parts(query)).strip()


def _probe(
    name: str, objective: Objective, stop: StopCondition, endpoint: str, experiment: Experiment
) -> dict[str, Any]:
    interval_s = max(LEAST_INTERVAL_S, experiment.scrape_interval_s)
    return {
        "name": name,
        "type": "promProbe",
        "mode": "Continuous",
        "promProbe/inputs": {
            "endpoint": endpoint,
            "query": _query(objective, experiment),
            # What has to hold; where it does not, the probe fails.
            "comparator": {"criteria": objective.op.symbol, "value": _number(stop.bound)},
        },
        "runProperties": {
            "probeTimeout": _duration(TIMEOUT_S),
            "interval": _duration(interval_s),
            # Tries that fail one after the other, an interval apart: the breach has lasted for all of `for_s`.
            "attempt": math.ceil(stop.for_s / interval_s) + 1,
            "probePollingInterval": _duration(TIMEOUT_S),
            "initialDelay": _duration(2 * interval_s),  # there is no rate before the second scrape
            "stopOnFailure": True,
        },
    }


def _query(objective: Objective, experiment: Experiment) -> str:
    """One sample always. Without traffic (NaN, or nothing) it is as good as the objective: no reason to stop."""
    lookback_s = lookback(scrape_interval_s=experiment.scrape_interval_s, rate=experiment.rate)
    query = live_query(objective, lookback_s=lookback_s)
    found = samples(query)
    if found and found.many:
        raise InputError(
            f"slo_probes: objective {objective.name}: its query may return several samples, and Litmus takes exactly "
            "one; wrap it in sum() or max()"
        )
    try:
        return f"max(({shell_query(query)}) >= -Inf) or vector({_number(objective.value)})"
    except ValueError as error:
        raise InputError(f"slo_probes: objective {objective.name}: {error}") from error


def _shell_parts(query: str) -> Iterator[str]:
    for match in _PARTS.finditer(query):
        part = match[0]
        if len(part) > 1 and part[0] in "\"'`":
            inner = part[1:-1]
            unsafe = next((sign for sign in inner if sign in _SHELL + "'" or not sign.isprintable()), "")
            if unsafe:
                raise ValueError(_cannot(f"the label value {inner[:60]!r}", unsafe))
            yield f"'{inner}'"
        elif part[0] == "#" or part[0].isspace():
            yield " "
        elif part in (*_SHELL, "'") or not part.isprintable():
            raise ValueError(_cannot("the query", part))
        else:
            yield part


def _cannot(what: str, sign: str) -> str:
    advice = "write [.] for \\." if sign == "\\" else "do without it (regular expressions are anchored anyway)"
    return f"{what} holds {sign!r}, which does not get through the shell that Litmus asks with; {advice}"


def _endpoint(experiment: Experiment) -> str:
    given = experiment.slo_probes
    url = experiment.prometheus_url if given == AUTO else given
    name = "prometheus_url" if given == AUTO else "slo_probes"
    if url == EMBEDDED or _is_loopback(urlsplit(url).hostname or ""):
        raise InputError(
            f"{name}={url}: the pods of a cluster cannot reach it; give slo_probes the URL of Prometheus as pods see "
            "it, as http://prometheus.monitoring:9090"
        )
    return url


def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
    return address.is_loopback or address.is_unspecified


def _names(objectives: Sequence[str]) -> Iterator[str]:
    """DNS-1123 labels, each once: Litmus makes names of pods of them."""
    taken: set[str] = set()
    for objective in objectives:
        name = re.sub(r"[^a-z0-9]+", "-", f"slo-{objective}".lower())[: LONGEST_NAME - 4].strip("-")
        unique = next(each for each in (name, *(f"{name}-{number}" for number in range(2, 999))) if each not in taken)
        taken.add(unique)
        yield unique


def _number(value: float) -> str:
    return f"{value:.15g}"


def _duration(seconds: float) -> str:
    """As Go reads it; without a unit Litmus would end without a result."""
    return f"{seconds:g}s" if seconds == int(seconds) else f"{round(seconds * 1000)}ms"
