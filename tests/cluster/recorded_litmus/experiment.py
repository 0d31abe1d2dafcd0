"""The recorded experiment: pod-delete, for real, in the pod of a Job; its arguments are `-name pod-delete`.

Any other name ends as in the real program that does not know it: a line in the log, exit code 0 and no ChaosResult.
Not played: NODE_LABEL, POD_TERMINATION_ORDER, INTER_POD_KILL_INTERVAL_SECONDS, auxiliary applications.
"""

from __future__ import annotations

import json
import logging
import os
import random
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from kubernetes.client import ApiException

from tests.cluster.recorded_litmus.api import Api, Object, path
from tests.cluster.recorded_litmus.events import Happening, engine_event_name, record
from tests.cluster.recorded_litmus.job import experiment_spec
from tests.cluster.recorded_litmus.pods import ChaosError, Workload, await_recovery, owner, target_pods
from tests.cluster.recorded_litmus.probes import ProbeError, parse_probe
from tests.cluster.recorded_litmus.probing import ProbesStoppedError, Probing, documents, percentage, verdict
from tests.cluster.recorded_litmus.targets import choose, from_range, parse_targets
from tests.cluster.recorded_litmus.timing import LOOKUP_S, pause, pause_to_age

# What the code, not the chart, has for variables that are absent or empty.
DEFAULTS = {
    "TOTAL_CHAOS_DURATION": "30",
    "CHAOS_INTERVAL": "10",
    "RAMP_TIME": "0",
    "PODS_AFFECTED_PERC": "0",
    "FORCE": "false",
    "SEQUENCE": "parallel",
    "STATUS_CHECK_DELAY": "2",
    "STATUS_CHECK_TIMEOUT": "180",
    "DEFAULT_HEALTH_CHECK": "false",
    "RANDOMNESS": "false",
}
FIRST_LOOKS = 90
COUNTERS = {"Pass": "passedRuns", "Fail": "failedRuns", "Stopped": "stoppedRuns"}

log = logging.getLogger(__name__)


class AbortedError(BaseException):
    """SIGTERM, raised wherever the main thread is; not an Exception, so that nothing takes it for its own failure."""


class Experiment:
    """One run of pod-delete."""

    def __init__(self, api: Api, env: Mapping[str, str], engine: Object) -> None:
        """Raises ValueError for a probe whose times Go does not read."""
        self._env = {**DEFAULTS, **{name: value for name, value in env.items() if value}}
        self._api, self._engine = api, engine
        self._name, self._pod = self._env["EXPERIMENT_NAME"], self._env["POD_NAME"]
        self._namespace = self._env["CHAOS_NAMESPACE"]
        names = (self._env["CHAOSENGINE"], self._name, self._env.get("INSTANCE_ID"))
        self._result_name = "-".join(filter(None, names))
        self._result_at = path("chaosresults", self._namespace, self._result_name)
        probes = [parse_probe(probe) for probe in experiment_spec(engine, self._name).get("probe") or ()]
        self._probing = Probing(probes, api, self._stop_engine)
        self._workloads: list[Workload] = []
        self._chance = random.Random()

    def begin(self) -> None:
        """The result, Running and Awaited; one of the same name is taken over with its history, and costs look-ups."""
        pod = self._api.get(path("pods", self._namespace, self._pod))
        labels = {**pod["metadata"]["labels"], "chaosUID": self._env["CHAOS_UID"]}
        pause(2 * LOOKUP_S)
        old = self._api.find(self._result_at)
        if old:
            pause(LOOKUP_S)

            def take_over(result: Object) -> None:
                result["metadata"]["labels"] = labels
                history = {**result["status"].get("history", {})}
                history.pop("targets", None)
                result["status"] = self._status("Running", "Awaited", "Awaited", history)

            self._api.change(self._result_at, take_over)
            pause(LOOKUP_S)
        else:
            spec = {"engine": self._env["CHAOSENGINE"], "experiment": self._name}
            if instance := self._env.get("INSTANCE_ID"):
                spec["instance"] = instance
            result = {
                "apiVersion": "litmuschaos.io/v1alpha1",
                "kind": "ChaosResult",
                "metadata": {"name": self._result_name, "namespace": self._namespace, "labels": labels},
                "spec": spec,
                "status": self._status("Running", "Awaited", "Awaited", dict.fromkeys(COUNTERS.values(), 0)),
            }
            self._api.create(path("chaosresults", self._namespace), result)
        pause(LOOKUP_S)
        self._tell_result("Awaited", self._result_line("Awaited"))

    def run(self) -> None:
        """From the checks before the chaos to the final result, whatever it is."""
        try:
            self._check("PreChaosCheck")
            self._inject()
            self._check("PostChaosCheck")
        except ProbesStoppedError:
            self._fail("Stopped", "Stopped")
        except ChaosError as error:
            self._fail("Error", "Error", error)
        else:
            phase, final = verdict(self._probing.records, aborted=False)
            pause(3 * LOOKUP_S)
            self._finish(phase, final, percentage(self._probing.records))
            pause(LOOKUP_S)
            self._tell_result(final, self._result_line(final), "Normal" if final == "Pass" else "Warning")
            self._tell("Summary", f"{self._name} experiment has been {final}ed")
        pause(0.5)

    def abort(self) -> None:
        """After SIGTERM: nothing is to be reverted, so only the result is written; it loses all labels but one."""
        self._probing.give_up()
        phase, final = verdict(self._probing.records, aborted=True)
        share = percentage(self._probing.records) if self._probing.records else "0"
        # In recorded time whatever the speed: a pod that is deleted by force has 2 s, and must not get as far as this.
        time.sleep(2 * LOOKUP_S)
        self._finish(phase, final, share, labels={"chaosUID": self._env["CHAOS_UID"]})
        pause(LOOKUP_S)
        text = f"{self._name} experiment has been aborted"
        self._tell("Summary", text, "Warning")
        self._tell_result("Abort", text, "Warning")

    def _check(self, reason: str) -> None:
        """Health, if asked for, and probes; the Event says `Successful` also where one in the background has failed."""
        phase = reason.removesuffix("Check")
        is_healthy = self._flag("DEFAULT_HEALTH_CHECK")
        said = ["AUT: Running"] if is_healthy else []
        try:
            if is_healthy:
                self._find_workloads(self._targets())
                self._await_recovery()
            if self._probing.records:
                pause(LOOKUP_S)
                self._probing.before() if reason == "PreChaosCheck" else self._probing.after()
                said.append("Probes: Successful")
        except ChaosError as error:
            self._tell(reason, "AUT: Not Running", "Warning")
            raise ChaosError(error.code, error.reason, error.target, phase) from error
        except (ProbeError, ProbesStoppedError) as error:
            self._tell(reason, ", ".join([*said, "Probes: Unsuccessful"]), "Warning")
            if isinstance(error, ProbeError):
                raise ChaosError(error.code, error.reason, "", phase) from error
            raise
        self._tell(reason, ", ".join(said) or "Skipped the default checks")

    def _inject(self) -> None:
        time.sleep(self._number("RAMP_TIME"))
        duration_s = self._number("TOTAL_CHAOS_DURATION")
        percent = from_range(self._env["PODS_AFFECTED_PERC"], self._chance)
        sequence = self._env["SEQUENCE"].lower()
        if sequence == "random":
            sequence = self._chance.choice(("parallel", "serial"))
        if sequence not in ("parallel", "serial"):
            raise ChaosError("GENERIC_ERROR", f"sequence '{sequence}' is not supported")
        if "NODE_LABEL" in self._env:
            raise ChaosError("GENERIC_ERROR", "NODE_LABEL is not played by the recorded Litmus; leave it empty")
        if self._probing.records:
            pause(LOOKUP_S)
            self._probing.during(duration_s)
        began = time.monotonic()
        while time.monotonic() - began < duration_s:
            pods = self._targets()
            if not (self._env.get("TARGET_PODS") or any(part.kind == "pod" for part in self._parts())):
                pods = choose(pods, percent, self._chance)
            self._find_workloads(pods)
            self._tell("ChaosInject", f"Injecting {self._name} chaos on application pod")
            for batch in [pods] if sequence == "parallel" else [[pod] for pod in pods]:
                for pod in batch:
                    self._kill(pod)
                time.sleep(self._interval_s())
                self._await_recovery()
        time.sleep(self._number("RAMP_TIME"))

    def _kill(self, pod: Object) -> None:
        name, namespace = pod["metadata"]["name"], pod["metadata"]["namespace"]
        log.info("killing %s/%s", namespace, name)
        try:
            self._api.delete(path("pods", namespace, name), grace_s=0 if self._flag("FORCE") else None)
        except ApiException as error:
            where = f"{{podName: {name}, namespace: {namespace}}}"
            text = f"failed to delete the target pod: {error.status} {error.reason}"
            raise ChaosError("CHAOS_INJECT_ERROR", text, where) from error

    def _parts(self) -> Any:
        return parse_targets(self._env.get("TARGETS", ""))

    def _targets(self) -> list[Object]:
        names = [name.strip() for name in self._env.get("TARGET_PODS", "").split(",") if name.strip()]
        return target_pods(self._api, self._parts(), names, self._namespace)

    def _find_workloads(self, pods: list[Object]) -> None:
        for pod in pods:
            workload = owner(self._api, pod)
            if workload and workload not in self._workloads:
                self._workloads.append(workload)

    def _await_recovery(self) -> None:
        delay_s, timeout_s = self._number("STATUS_CHECK_DELAY"), self._number("STATUS_CHECK_TIMEOUT")
        await_recovery(self._api, self._workloads, delay_s, timeout_s)

    def _interval_s(self) -> float:
        given = self._env["CHAOS_INTERVAL"]
        return float(from_range(given, self._chance)) if self._flag("RANDOMNESS") else self._number("CHAOS_INTERVAL")

    def _number(self, name: str) -> float:
        try:
            return float(int(self._env[name]))
        except ValueError:
            return 0.0  # as the real one reads what is no whole number

    def _flag(self, name: str) -> bool:
        return self._env[name].lower() in ("true", "1", "t")

    def _fail(self, phase: str, final: str, error: ChaosError | None = None) -> None:
        self._probing.give_up()
        pause(3 * LOOKUP_S)
        self._finish(phase, final, "0", error)
        pause(LOOKUP_S)
        self._tell_result(final, self._result_line(final), "Warning")
        self._tell("Summary", self._result_line(final), "Warning")

    def _finish(
        self, phase: str, final: str, share: str, error: ChaosError | None = None, labels: Object | None = None
    ) -> None:
        def finish(result: Object) -> None:
            result["metadata"]["labels"] = labels or result["metadata"].get("labels")
            history = {**result["status"].get("history", {})}
            if counter := COUNTERS.get(final):
                history[counter] = history.get(counter, 0) + 1
            if self._workloads:
                each = [{"chaosStatus": "targeted", "kind": one.kind, "name": one.name} for one in self._workloads]
                history["targets"] = each
            result["status"] = self._status(phase, final, share, history, error)

        self._api.change(self._result_at, finish)

    def _status(
        self, phase: str, final: str, share: str, history: Object, error: ChaosError | None = None
    ) -> dict[str, Any]:
        experiment: Object = {"phase": phase, "verdict": final, "probeSuccessPercentage": share}
        if error:
            reason = {"errorCode": error.code, "phase": error.phase, "reason": error.reason, "target": error.target}
            text = json.dumps({key: value for key, value in reason.items() if value}, separators=(",", ":"))
            experiment["errorOutput"] = {"errorCode": error.code, "reason": text}
        return {"experimentStatus": experiment, "history": history, **documents(self._probing.records)}

    def _stop_engine(self) -> None:
        def stop(engine: Object) -> None:
            engine["spec"]["engineState"] = "stop"

        try:
            self._api.change(path("chaosengines", self._namespace, self._env["CHAOSENGINE"]), stop)
        except ApiException as error:
            log.error("unable to stop the engine: %s %s", error.status, error.reason)

    def _result_line(self, final: str) -> str:
        return f"experiment: {self._name}, Result: {final}"

    def _tell(self, reason: str, text: str, kind: str = "Normal") -> None:
        name = engine_event_name(reason, self._name, self._env["CHAOS_UID"])
        record(self._api, name, self._engine, Happening(reason, text, kind), self._pod)

    def _tell_result(self, reason: str, text: str, kind: str = "Normal") -> None:
        result = self._api.get(self._result_at)
        record(self._api, f"{reason}{self._pod}", result, Happening(reason, text, kind), self._pod)


def _first_look(api: Api) -> Object:
    """The engine, looked for again and again also by a service account without rights, as in the real one."""
    at = path("chaosengines", os.environ["CHAOS_NAMESPACE"], os.environ["CHAOSENGINE"])
    for left in reversed(range(FIRST_LOOKS)):
        try:
            return api.get(at)
        except ApiException:
            if not left:
                raise
            pause(LOOKUP_S)
    raise AssertionError("unreachable")


def _die(*_: object) -> NoReturn:
    sys.exit(143)


def _abort(*_: object) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise AbortedError


def main(arguments: Sequence[str]) -> int:
    """0 whatever the verdict, as the real one does; 1 when it was stopped, 143 when that was before it could say so."""
    signal.signal(signal.SIGTERM, _die)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    if arguments[-2:-1] != ["-name"] or arguments[-1] != "pod-delete":
        log.error("Unsupported -name %s, please provide the correct value of -name args", arguments[-1:])
        return 0
    api = Api.connect(patience_s=60)
    pause_to_age(LOOKUP_S)
    try:
        experiment = Experiment(api, os.environ, _first_look(api))
    except (ApiException, ValueError) as error:
        log.error("Unable to initialize the probes, err: %s", error)
        return 0
    experiment.begin()
    try:
        signal.signal(signal.SIGTERM, _abort)
        experiment.run()
    except AbortedError:
        experiment.abort()
        return 1
    return 0
