"""The recorded runner: the experiments of one engine, one after the other, each as a Job.

Its waits are those of the recordings: 8 s of look-ups before it sees the experiment's pod, then a rewrite of the engine
every 6 s; the state of the pod is read 2 s after each, and what it means is written 4 s later.
"""

from __future__ import annotations

import logging
import os
import secrets
import signal
import string
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

from tests.cluster.recorded_litmus.api import Api, Object, path
from tests.cluster.recorded_litmus.events import Happening, engine_event_name, now, record
from tests.cluster.recorded_litmus.job import job, result_name
from tests.cluster.recorded_litmus.timing import LOOKUP_S, SPEED_VARIABLE, pause, pause_to_age

FIRST_LOOKS = 17
"""How often the engine is looked for, 2 s apart, by a service account without rights."""
PODLESS_LOOKS = 90
_ALPHABET = string.ascii_lowercase + string.digits

log = logging.getLogger(__name__)


@dataclass
class Entry:
    """One of `status.experiments`."""

    name: str
    runner: str
    status: str = "Waiting for Job Creation"
    verdict: str = "N/A"
    pod: str = "Yet to be launched"
    updated: str = field(default_factory=now)

    def document(self) -> dict[str, str]:
        """As it is written."""
        return {
            "name": self.name,
            "runner": self.runner,
            "status": self.status,
            "verdict": self.verdict,
            "experimentPod": self.pod,
            "lastUpdateTime": self.updated,
        }


class Runner:
    """The runner of one engine."""

    def __init__(self, api: Api, namespace: str, engine_name: str, targets: str) -> None:
        self._api, self._namespace, self._engine_name, self._targets = api, namespace, engine_name, targets
        self._name = f"{engine_name}-runner"
        self._at = path("chaosengines", namespace, engine_name)

    def run(self) -> None:
        """Until all experiments are over; whatever goes wrong is logged, and no failure."""
        engine = self._first_look()
        if engine is None:
            return
        names = [experiment["name"] for experiment in engine["spec"]["experiments"]]
        self._write(lambda entries: entries.__setitem__(slice(None), [self._entry(name).document() for name in names]))
        pause_to_age(1)
        for index, name in enumerate(names):
            pause(0.8 if index else 0)
            self._experiment(self._api.get(self._at), name)
        pause(1)

    def _first_look(self) -> Object | None:
        for _ in range(FIRST_LOOKS):
            try:
                return self._api.get(self._at)
            except ApiException as error:
                log.error("cannot read the engine: %s %s", error.status, error.reason)
                pause(LOOKUP_S)
        return None

    def _experiment(self, engine: Object, name: str) -> None:
        experiment = self._api.find(path("chaosexperiments", self._namespace, name))
        if experiment is None:
            self._tell(engine, name, "ExperimentNotFound", f"Unable to list Chaos Experiment: {name}", "Warning")
            self._update(self._entry(name, status="ChaosExperiment Not Found", verdict="Fail", pod="N/A"))
            return
        text = f"Experiment resources validated for Chaos Experiment: {name}"
        self._tell(engine, name, "ExperimentDependencyCheck", text)
        suffix = "".join(secrets.choice(_ALPHABET) for _ in range(6))
        speed = {key: value for key, value in os.environ.items() if key == SPEED_VARIABLE}
        document = job(engine, experiment, f"{name}-{suffix}", self._targets, speed)
        job_name = document["metadata"]["name"]
        try:
            self._api.create(path("jobs", self._namespace), document)
            self._tell(engine, name, "ExperimentJobCreate", f"Experiment Job {job_name} for Chaos Experiment: {name}")
            pod = self._await_end(name, job_name)
        except ApiException as error:
            log.error("no Job for %s: %s %s", name, error.status, error.body)
            pod = None
        if pod is None:
            text = f"Experiment Job creation failed, skipping Chaos Experiment: {name}"
            self._tell(engine, name, "ChaosContainerWatchNotPermitted", text, "Warning")
            self._update(self._entry(name, status="Skipped", verdict="Fail", pod="N/A"))
            return
        self._take_result(engine, name, pod)
        self._clean_up(engine, name, job_name)

    def _await_end(self, name: str, job_name: str) -> str | None:
        """The pod that ended well, or None; the engine's entry is rewritten meanwhile, as a sign of life."""
        pause(4 * LOOKUP_S)
        podless = 0
        while podless < PODLESS_LOOKS:
            pod = self._newest_pod(job_name)
            if pod is None:
                podless += 1
                pause(LOOKUP_S)
                continue
            pod_name = pod["metadata"]["name"]
            self._update(self._entry(name, status="Running", verdict="Awaited", pod=pod_name))
            pause(LOOKUP_S)
            exit_code = _exit_code(self._newest_pod(job_name) or {}, job_name)
            if exit_code is not None:
                pause(0 if exit_code == 0 else LOOKUP_S)
                return pod_name if exit_code == 0 else None
            pause(2 * LOOKUP_S)
        return None

    def _newest_pod(self, job_name: str) -> Object | None:
        pods = self._api.items(path("pods", self._namespace), labelSelector=f"job-name={job_name}")
        return max(pods, key=lambda pod: str(pod["metadata"]["creationTimestamp"]), default=None)

    def _take_result(self, engine: Object, name: str, pod: str) -> None:
        pause(LOOKUP_S)
        result = self._api.find(path("chaosresults", self._namespace, result_name(engine, name)))
        if result is None:
            log.error("unable to update the status of the engine: no result of %s", name)
            return
        pause(LOOKUP_S)
        verdict = result["status"]["experimentStatus"]["verdict"]
        self._update(self._entry(name, status="Completed", verdict=verdict, pod=pod))

    def _clean_up(self, engine: Object, name: str, job_name: str) -> None:
        if engine["spec"].get("jobCleanUpPolicy") == "delete":
            self._api.delete(path("jobs", self._namespace, job_name), propagation="Foreground")
            text = f"Experiment Job: {job_name} will be deleted"
        else:
            text = f"Experiment Job {job_name} will be retained"
        self._tell(engine, name, "ExperimentJobCleanUp", text)

    def _entry(self, name: str, **values: str) -> Entry:
        return Entry(name, self._name, **values)

    def _update(self, entry: Entry) -> None:
        """The first entry of that name, also where there are two, as recorded."""

        def replace(entries: list[Any]) -> None:
            for index, each in enumerate(entries):
                if each["name"] == entry.name:
                    entries[index] = entry.document()
                    return

        self._write(replace)

    def _write(self, change: Callable[[list[Any]], None]) -> None:
        def write(engine: Object) -> None:
            status = engine.setdefault("status", {})
            status["experiments"] = status.get("experiments") or []
            change(status["experiments"])

        self._api.change(self._at, write)

    def _tell(self, engine: Object, name: str, reason: str, text: str, kind: str = "Normal") -> None:
        event = engine_event_name(reason, name, engine["metadata"]["uid"])
        record(self._api, event, engine, Happening(reason, text, kind), self._name)


def _exit_code(pod: Object, container_name: str) -> int | None:
    for container in (pod.get("status") or {}).get("containerStatuses") or ():
        terminated = (container.get("state") or {}).get("terminated")
        if container["name"] == container_name and terminated:
            return int(terminated["exitCode"])
    return None


def _end(*_: object) -> None:
    sys.exit(143)


def main(_: Sequence[str] = ()) -> None:
    """Run as the pod's environment says. Exits with 0 whatever happens, as the real one does; 143 when told to end."""
    signal.signal(signal.SIGTERM, _end)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    env = os.environ
    api = Api.connect(patience_s=30)
    try:
        Runner(api, env["CHAOS_NAMESPACE"], env["CHAOSENGINE"], env.get("TARGETS", "")).run()
    except (ApiException, HTTPError, OSError) as error:
        log.error("given up: %s", error)
