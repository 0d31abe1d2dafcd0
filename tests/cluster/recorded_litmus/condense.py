"""What a client can see of a run, without times and made-up names: the same for a recording and for a live run. Pure.

Each kind of object has one list of states, in order; a state that repeats the one before it is left out. Nothing is
said about the order between kinds, because separate watches do not keep it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Line = Mapping[str, Any]
"""`t`, `kind`, `type` and `object`, as in the recordings."""
Seen = dict[str, list[str]]

_RANDOM = re.compile(r"(Experiment Job:? \S+)-[a-z0-9]{6} ")
"""A Job's name, which ends in chance."""


class _Numbers:
    """Names for what has none that lasts: the first, the second, and so on."""

    def __init__(self, word: str) -> None:
        self._word = word
        self._known: dict[str, str] = {}

    def of(self, key: str) -> str:
        return self._known.setdefault(key, f"{self._word} {len(self._known) + 1}")


def condense(lines: Iterable[Line]) -> Seen:
    """The states of each kind, by kind; Jobs and Litmus' own pods one by one, pods of the target all together."""
    seen: Seen = {}
    pods, jobs, runners = _Numbers("experiment pod"), _Numbers("job"), _Numbers("runner pod")
    for line in lines:
        if line.get("initial") or line["kind"] not in _READERS:
            continue
        read = _READERS[line["kind"]]
        for key, state in read(line["type"], line["object"], pods, jobs, runners):
            states = seen.setdefault(key, [])
            if states[-1:] != [state]:
                states.append(state)
    return seen


def _engine(kind: str, engine: Any, pods: _Numbers, *_: _Numbers) -> Iterable[tuple[str, str]]:
    status, metadata = engine.get("status") or {}, engine["metadata"]
    if "experiments" not in status or status["experiments"] is None:
        experiments = "null" if "experiments" in status else "absent"
    else:
        experiments = ", ".join(_entry(each, pods) for each in status["experiments"])
    held = "held" if metadata.get("finalizers") else "free"
    words = [status.get("engineStatus") or "no status", engine["spec"].get("engineState"), held]
    words += ["deleting"] * bool(metadata.get("deletionTimestamp")) + ["GONE"] * (kind == "DELETED")
    yield "ChaosEngine", f"{' '.join(words)}: {experiments}"


def _entry(entry: Any, pods: _Numbers) -> str:
    pod = entry["experimentPod"]
    pod = pod if pod in ("Yet to be launched", "N/A") else pods.of(pod)
    return f"{entry['name']} {entry['status']}/{entry['verdict']} ({pod})"


def _result(kind: str, result: Any, _: _Numbers, jobs: _Numbers, __: _Numbers) -> Iterable[tuple[str, str]]:
    status, labels = result["status"], result["metadata"].get("labels") or {}
    history, experiment = status["history"], status["experimentStatus"]
    runs = "/".join(str(history.get(name)) for name in ("passedRuns", "failedRuns", "stoppedRuns"))
    targets = [f"{each['kind']} {each['name']} {each['chaosStatus']}" for each in history.get("targets") or ()]
    probes = [
        f"{each['name']} {each['type']} {each['mode']} {each['status']['verdict']}"
        for each in status.get("probeStatuses") or ()
    ]
    words = [f"{experiment['phase']}/{experiment['verdict']} {experiment['probeSuccessPercentage']}", runs]
    words += [*targets, *probes, (experiment.get("errorOutput") or {}).get("errorCode", "")]
    words.append(jobs.of(labels["job-name"]) if "job-name" in labels else f"labels {', '.join(sorted(labels))}")
    words.append("GONE" * (kind == "DELETED"))
    yield f"ChaosResult {result['metadata']['name']}", ", ".join(filter(None, words))


def _event(_: str, event: Any, *__: _Numbers) -> Iterable[tuple[str, str]]:
    about = event["involvedObject"]["kind"]
    if about in ("ChaosEngine", "ChaosResult"):
        again = " (again)" if (event.get("count") or 1) > 1 else ""
        text = _RANDOM.sub(r"\1-RANDOM ", event["message"])
        yield "Event", f"{event['type']} {event['reason']} of {about}: {text}{again}"


def _pod(kind: str, pod: Any, pods: _Numbers, _: _Numbers, runners: _Numbers) -> Iterable[tuple[str, str]]:
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    going = metadata.get("deletionTimestamp")
    if "chaosUID" not in labels:
        if going:
            yield "target pods", f"deleted, grace {metadata.get('deletionGracePeriodSeconds')}"
        return
    is_runner = labels.get("app.kubernetes.io/component") == "chaos-runner"
    key = runners.of(metadata["uid"]) if is_runner else pods.of(metadata["name"])
    states = [(container.get("state") or {}) for container in (pod.get("status") or {}).get("containerStatuses") or ()]
    ended = [state["terminated"] for state in states if "terminated" in state]
    if kind == "DELETED":
        yield key, "gone"
    elif ended:
        yield key, f"ended, {ended[0]['reason']} {ended[0]['exitCode']}"
    elif going:
        yield key, "deleted while running"
    else:
        yield key, "running" if any("running" in state for state in states) else "created"


def _job(kind: str, job: Any, _: _Numbers, jobs: _Numbers, __: _Numbers) -> Iterable[tuple[str, str]]:
    status = job.get("status") or {}
    key = jobs.of(job["metadata"]["name"])
    failed = f", {status['failed']} failed" if status.get("failed") else ""
    if kind == "DELETED":
        yield key, "gone"
    elif status.get("succeeded"):
        yield key, f"succeeded{failed}"
    elif status.get("active"):
        yield key, f"active{failed}"
    elif kind == "ADDED":
        yield key, "created"


_READERS: Mapping[str, Callable[..., Iterable[tuple[str, str]]]] = {
    "ChaosEngine": _engine,
    "ChaosResult": _result,
    "Event": _event,
    "Pod": _pod,
    "Job": _job,
}


def reached(live: Seen, wanted: Seen) -> bool:
    """Whether the live run has come as far as the recorded one, in each kind."""
    return all(len(live.get(key, ())) >= len(states) for key, states in wanted.items())
