"""The recorded Litmus shows a client the same states in the same order as the real one did, given the same actions.

Left out of the comparison, on purpose (`DIFFERENCES` does it, and says so again):
- Times, and how often a count rises. The rounds of a fault depend on Litmus' own waits, which the suite shortens; so
  does whether there is a second ChaosInject within one run.
- What a failed probe says in its description: the real one quotes Go's network errors.
Different, and in no scenario here: see the docstrings of operator.py, experiment.py and probes.py.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import groupby

import pytest

from tests.cluster.recorded_litmus.api import Api, Object, path
from tests.cluster.recorded_litmus.condense import Seen, condense
from tests.cluster.recorded_litmus.install import (
    NAMESPACE,
    OPERATOR,
    SERVICE_ACCOUNT,
    experiment_document,
    host_pieces,
    install,
    service_account_documents,
)
from tests.cluster.recorded_litmus.play import DEADLINE_S, POLL_S, RECORDED_NAMESPACE, play, read_recording
from tests.cluster.recorded_litmus.timing import SPEED_VARIABLE
from tests.cluster.rig import manifests
from tests.cluster.rig.cluster import Cluster
from tests.cluster.rig.images import IMAGE

SCENARIOS = (
    "rerun-same-name",  # the longest first
    "two-experiments",
    "two-experiments-distinct",
    "post-probe",
    "experiment-pod-lost",
    "slow-target",
    "pass",
    "created-stopped",
    "fail-probe",
    "no-target",
    "comma-labels",
    "stop-on-failure",
    "abort-by-patch",
    "abort-then-delete",
    "delete-engine-mid-run",
    "delete-after-completed",
    "sa-without-rights",
    "bad-probe-duration",
    "unknown-experiment",
    "missing-service-account",
    "long-name",
    "incomplete-appinfo",
)
SIDE_BY_SIDE = 6
"""Each waits most of its time."""
SPEED = float(os.environ.get(SPEED_VARIABLE) or "4")
RUN = secrets.token_hex(2)
"""In the names of namespaces: those of a run just before may still be going."""
TARGET = "inference"
PORT = 8080
SLOW_S = 25
"""What the target of the recording slow-target needs to become ready."""
AGAIN = " (again)"


def prepare(cluster: Cluster, scenario: str, namespace: str) -> str:
    """The namespace of a scenario with its target; returns the address of one of the target's pods."""
    loading_s = SLOW_S if scenario == "slow-target" else 0
    page = f"echo hi > /tmp/index.html; sleep {loading_s}; exec httpd -f -p {PORT} -h /tmp"
    probe = {"httpGet": {"path": "/index.html", "port": PORT}, "periodSeconds": 1}
    container = {"name": "web", "image": IMAGE, "imagePullPolicy": "Never", "readinessProbe": probe}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [{**container, "command": ["sh", "-c", page]}]}
    account = service_account_documents(namespace)
    if scenario == "missing-service-account":
        account = []
    elif scenario == "sa-without-rights":
        account = [document for document in account if document["kind"] == "ServiceAccount"]
        assert account[0]["metadata"]["name"] == SERVICE_ACCOUNT
    documents = [
        manifests.namespace(namespace),
        *account,
        experiment_document(namespace, host_pieces()),
        experiment_document(namespace, host_pieces(), "pod-delete-b"),
        manifests.deployment(TARGET, namespace, 2, pod),
    ]
    manifests.apply(cluster, documents)
    manifests.wait_ready(cluster, namespace, TARGET)
    return str(Api.connect().items(path("pods", namespace))[0]["status"]["podIP"])


def play_scenario(cluster: Cluster, scenario: str) -> Seen:
    """In a namespace of its own, which is deleted again."""
    namespace = f"recorded-{scenario}-{RUN}"
    api = Api.connect()
    try:
        address = prepare(cluster, scenario, namespace)
        return play(api, read_recording(scenario), namespace, address)
    finally:
        remove(cluster, namespace)


def remove(cluster: Cluster, namespace: str) -> None:
    """Engines first, and gone: without their operator's consent, the namespace would never go."""
    cluster.kubectl("delete", "chaosengines", "--all", f"--namespace={namespace}", "--timeout=60s")
    cluster.kubectl("delete", "namespace", namespace, "--wait=false")


@pytest.fixture(scope="module")
def played(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[dict[str, Future[Seen]]]:
    """The scenarios that were asked for, running side by side."""
    install(cluster, factor=SPEED)
    asked = [item.callspec.params.get("scenario") for item in request.session.items if hasattr(item, "callspec")]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        yield {name: pool.submit(play_scenario, cluster, name) for name in SCENARIOS if name in asked}


def rounds_left_out(states: list[str]) -> list[str]:
    """Each run's ChaosInject once, whether or not it is a later one."""
    plain = [state.removesuffix(AGAIN) if "ChaosInject" in state else state for state in states]
    return [state for state, _ in groupby(plain)]


DIFFERENCES = {"Event": rounds_left_out}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_client_sees_what_it_saw_of_the_real_one(scenario: str, played: dict[str, Future[Seen]]) -> None:
    wanted, live = condense(read_recording(scenario)), played[scenario].result()
    for leave_out in (wanted, live):
        for kind, change in DIFFERENCES.items():
            leave_out[kind] = change(leave_out[kind])
    assert live == wanted


def test_it_survives_the_loss_of_api_server_and_operator(cluster: Cluster) -> None:
    """Runs on its own: every engine of the cluster would notice."""
    install(cluster, factor=SPEED)
    namespace, api = f"recorded-losses-{RUN}", Api.connect(patience_s=30)
    prepare(cluster, "pass", namespace)
    create = next(line["object"]["body"] for line in read_recording("pass") if line["kind"] == "Client")
    text = json.dumps(create).replace(RECORDED_NAMESPACE, namespace)
    at = path("chaosengines", namespace, "pass")
    try:
        api.create(path("chaosengines", namespace), json.loads(text))
        await_status(api, at, lambda status: bool(status.get("experiments")))
        api.delete(path("pods", NAMESPACE), grace_s=0, labelSelector=f"name={OPERATOR}")
        await_status(api, at, lambda status: status["experiments"][0]["status"] == "Running")
        cluster.stop_apiserver()
        cluster.start_apiserver()
        status = await_status(api, at, lambda status: status["engineStatus"] != "initialized")
        assert status["engineStatus"] == "completed"
        assert [(each["status"], each["verdict"]) for each in status["experiments"]] == [("Completed", "Pass")]
        result = api.get(path("chaosresults", namespace, "pass-pod-delete"))
        assert result["status"]["history"]["passedRuns"] == 1
        (job,) = api.items(path("jobs", namespace))
        assert "failed" not in job["status"]
    finally:
        remove(cluster, namespace)


def await_status(api: Api, at: str, reached: Callable[[Object], bool]) -> Object:
    """The status of an engine as soon as it is as wanted, or as it is at the deadline."""
    until = time.monotonic() + DEADLINE_S
    while True:
        status: Object = api.get(at).get("status") or {}
        if status and (reached(status) or time.monotonic() >= until):
            return status
        time.sleep(POLL_S)
