"""The probes of an experiment: what a probe asks, what it wants to hear, and whether it is failed or broken.

The texts of failures are the recorded ones where a recording has one (an HTTP probe that timed out) and ours elsewhere;
no recording has a passed probe. Not played: commands in a pod of their own (`source`), sloProbe, k8sProbe create and
delete, and the real promql command's split of CSV rows at every comma.
"""

from __future__ import annotations

import operator
import re
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import requests
from kubernetes.client import ApiException

from tests.cluster.recorded_litmus.api import Api
from tests.cluster.recorded_litmus.durations import parse_duration

_ORDERED: Mapping[str, Callable[[float, float], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_CODES = {"httpProbe": "HTTP", "promProbe": "PROM", "cmdProbe": "CMD", "k8sProbe": "K8S"}
SHELL_S = 60.0


class ProbeError(Exception):
    """One evaluation came out wrong: failed (an answer that is not the wanted one) or broken (no usable answer)."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code, self.reason = code, reason

    @property
    def is_broken(self) -> bool:
        """A *_PROBE_ERROR: in SOT, EOT and Edge it ends the experiment with Error."""
        return self.code.endswith("_ERROR")


@dataclass(frozen=True)
class Probe:
    """One probe of an engine, its times in seconds."""

    name: str
    type: str
    mode: str
    inputs: Mapping[str, Any]
    timeout_s: float
    interval_s: float
    """Between the attempts of one evaluation."""
    polling_s: float
    """Between the evaluations of a Continuous or OnChaos probe."""
    delay_s: float
    attempts: int
    stop_on_failure: bool

    def failed(self, reason: str) -> ProbeError:
        """It answered, and wrongly."""
        return ProbeError(f"{_CODES[self.type]}_PROBE_FAILURE", reason)

    def broken(self, reason: str) -> ProbeError:
        """It did not answer."""
        return ProbeError(f"{_CODES[self.type]}_PROBE_ERROR", reason)


def parse_probe(document: Mapping[str, Any]) -> Probe:
    """Raises ValueError for a duration that Go does not read: such an experiment ends before it has a result."""
    run = document.get("runProperties") or {}
    times = {
        key: parse_duration(str(run[key]))
        for key in ("probeTimeout", "interval", "probePollingInterval", "initialDelay", "evaluationTimeout")
        if run.get(key)
    }
    return Probe(
        name=document["name"],
        type=document["type"],
        mode=document["mode"],
        inputs=document.get(f"{document['type']}/inputs") or {},
        timeout_s=times.get("probeTimeout", 0.0),
        interval_s=times.get("interval", 0.0),
        polling_s=times.get("probePollingInterval", 0.0),
        delay_s=times.get("initialDelay", 0.0),
        attempts=int(run.get("attempt") or run.get("retry") or 1),
        stop_on_failure=bool(run.get("stopOnFailure")),
    )


def panics(probe: Probe) -> bool:
    """Whether the real program would crash with exit code 2, which it does at an httpProbe that posts."""
    return probe.type == "httpProbe" and "get" not in (probe.inputs.get("method") or {})


def holds(kind: str, criteria: str, actual: str, expected: str) -> bool:
    """Whether `actual` is as wanted. Raises ValueError for criteria that this kind (int, float, string) has not."""
    if kind == "string":
        return _text_holds(criteria, actual, expected)
    read = _integer if kind == "int" else _number
    if criteria == "oneOf":
        return read(actual) in [read(each) for each in expected.split(",")]
    if criteria == "between":
        low, high = (read(each) for each in expected.split(","))
        return low <= read(actual) <= high
    if criteria not in _ORDERED:
        raise ValueError(f"criteria '{criteria}' not supported")
    return _ORDERED[criteria](read(actual), read(expected))


def _text_holds(criteria: str, actual: str, expected: str) -> bool:
    checks: Mapping[str, Callable[[], bool]] = {
        "equal": lambda: actual == expected,
        "notEqual": lambda: actual != expected,
        "contains": lambda: expected in actual,
        "matches": lambda: re.search(expected, actual) is not None,
        "notMatches": lambda: re.search(expected, actual) is None,
        "oneOf": lambda: actual in expected.split(","),
    }
    for name, check in checks.items():
        if name.lower() == criteria.lower():
            return check()
    raise ValueError(f"criteria '{criteria}' not supported")


def _number(text: str) -> float:
    """What is no number is 0, as the real one reads it; NaN is a number, and equal to none."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def _integer(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return 0


def evaluate(probe: Probe, api: Api) -> None:
    """One evaluation, without its attempts. Raises ProbeError."""
    {"httpProbe": _http, "promProbe": _prometheus, "cmdProbe": _command, "k8sProbe": _kubernetes}[probe.type](
        probe, api
    )


def _compare(probe: Probe, kind: str, comparator: Mapping[str, Any], actual: str) -> None:
    criteria, expected = str(comparator.get("criteria")), str(comparator.get("value", comparator.get("responseCode")))
    try:
        fine = holds(kind, criteria, actual, expected)
    except ValueError as error:
        raise probe.broken(str(error)) from error
    if not fine:
        raise probe.failed(f"Actual value: {{{actual}}}, Expected value: {{{expected}}}, Operator: {{{criteria}}}")


def _http(probe: Probe, _: Api) -> None:
    wanted = probe.inputs["method"]["get"]
    url = str(probe.inputs["url"])
    verify = not probe.inputs.get("insecureSkipVerify")
    try:
        status = requests.get(url, timeout=probe.timeout_s or None, verify=verify).status_code
    except requests.Timeout as error:
        text = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
        raise probe.failed(f'Get "{url}": {text}') from error
    except requests.RequestException as error:
        raise probe.failed(f'Get "{url}": {error}') from error
    _compare(probe, "int", wanted, str(status))


def shell_reads(query: str) -> str:
    """The query as it reaches the promql command: the real one writes it between the double quotes of a shell line."""
    ended = _shell(f'printf %s "{query}"')
    if ended.returncode:
        raise ValueError(f"unable to run command: {ended.stderr.strip()}")
    return ended.stdout


def _shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=SHELL_S, check=False)


def _prometheus(probe: Probe, _: Api) -> None:
    query = str(probe.inputs.get("query") or f"$(cat {probe.inputs.get('queryPath')})")
    endpoint = str(probe.inputs["endpoint"]).rstrip("/")
    try:
        answer = requests.get(f"{endpoint}/api/v1/query", params={"query": shell_reads(query)}, timeout=SHELL_S)
        if answer.status_code != 200:
            raise ValueError(f"{answer.status_code}: {answer.text[:200]}")
        data = answer.json()["data"]
    except (requests.RequestException, subprocess.TimeoutExpired, ValueError, KeyError) as error:
        raise probe.broken(f"unable to run command, {error}") from error
    _compare(probe, "float", probe.inputs.get("comparator") or {}, _only_sample(probe, data))


def _only_sample(probe: Probe, data: Mapping[str, Any]) -> str:
    samples = [{"value": data["result"]}] if data["resultType"] in ("scalar", "string") else data["result"]
    if not samples:
        raise probe.broken("metrics doesn't contains required values")
    if len(samples) > 1:
        raise probe.broken("metrics entries can't be more than two")
    return str(samples[0]["value"][1])


def _command(probe: Probe, _: Api) -> None:
    if probe.inputs.get("source"):
        raise probe.broken("a command with a source is not played by the recorded Litmus")
    try:
        ended = _shell(str(probe.inputs["command"]))
    except subprocess.TimeoutExpired as error:
        raise probe.broken(f"unable to run command: {error}") from error
    if ended.returncode:
        raise probe.broken(f"unable to run command: {ended.stdout.strip()}")
    comparator = probe.inputs.get("comparator") or {}
    _compare(probe, str(comparator.get("type") or "string"), comparator, ended.stdout.strip())


def _kubernetes(probe: Probe, api: Api) -> None:
    given = probe.inputs
    group, operation = given.get("group") or "", given.get("operation")
    if operation not in ("present", "absent"):
        raise probe.broken(f"operation {operation} is not played by the recorded Litmus")
    root = f"/apis/{group}/{given['version']}" if group else f"/api/{given['version']}"
    where = f"/namespaces/{given['namespace']}" if given.get("namespace") else ""
    selectors = {key: str(given[key]) for key in ("fieldSelector", "labelSelector") if given.get(key)}
    try:
        found = {item["metadata"]["name"] for item in api.items(f"{root}{where}/{given['resource']}", **selectors)}
    except ApiException as error:
        raise probe.broken(f"unable to list {given['resource']}: {error.status} {error.reason}") from error
    names = [name for name in str(given.get("resourceNames") or "").split(",") if name]
    if operation == "present" and not (found.issuperset(names) if names else found):
        raise probe.failed(f"no resource found with matching criteria: {given['resource']}")
    if operation == "absent" and (found.intersection(names) if names else found):
        raise probe.failed(f"resource found, which was expected to be absent: {given['resource']}")
