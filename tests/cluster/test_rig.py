"""The test cluster is a real one, and can be hurt, asked and removed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftershock.errors import InfrastructureError, InputError
from aftershock.stack.state import NAMESPACE
from tests.cluster.rig import cgroups, daemons, network
from tests.cluster.rig.certificates import NODE
from tests.cluster.rig.cluster import Cluster
from tests.cluster.rig.layout import REPOSITORY, Layout
from tests.cluster.rig.manifests import apply
from tests.cluster.rig.mounts import PYTHON, host_pod
from tests.cluster.rig.waiting import wait_until
from tests.cluster.rig.workload import MODEL_SERVER, MODEL_URL, PROMETHEUS_URL

DEADLINE_S = 60.0


def get(cluster: Cluster, *arguments: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(cluster.kubectl("get", *arguments, "--output=json"))
    return document


def replicas(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The replicas by name."""
    found = get(cluster, "pods", f"--namespace={NAMESPACE}", f"--selector=app={MODEL_SERVER}")["items"]
    return {pod["metadata"]["name"]: pod for pod in found}


def ready(pod: dict[str, Any]) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def ask(url: str, body: dict[str, Any] | None = None) -> Any:
    data = json.dumps(body).encode() if body else None
    request = urllib.request.Request(url, data, {"Content-Type": "application/json", "Connection": "close"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def scraped(query: str) -> dict[str, float]:
    """The value of each pod in the answer to a query."""
    found = ask(f"{PROMETHEUS_URL}/api/v1/query?{urllib.parse.urlencode({'query': query})}")
    return {series["metric"].get("pod", "none"): float(series["value"][1]) for series in found["data"]["result"]}


def rig(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """`python -m tests.cluster.rig --directory DIRECTORY ARGUMENTS...`."""
    command = [sys.executable, "-m", "tests.cluster.rig", "--directory", str(directory), *arguments]
    return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)


def left(cluster: Cluster) -> list[str]:
    """What there is of a cluster in this machine's kernel and file system."""
    name, directory = cluster.layout.name, cluster.layout.directory
    return [
        *(f"process {process.pid}" for process in daemons.marked(cluster.layout)),
        *map(str, cgroups.ROOT.glob(f"*/{name}")),
        *([str(network.namespace_path(name))] if network.namespace_path(name).exists() else []),
        *(line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines() if str(directory) in line),
        *([str(directory)] if directory.exists() else []),
    ]


@pytest.fixture
def second(tmp_path: Path) -> Iterator[Cluster]:
    """A handle on a cluster of the test's own, which is not started yet; nothing is left of it."""
    cluster = Cluster(Layout.of(tmp_path / "c"))
    yield cluster
    cluster.stop()
    assert left(cluster) == []


def test_the_node_is_ready_and_runs_the_pinned_version(cluster: Cluster) -> None:
    node = get(cluster, "node", NODE)
    assert ready(node)
    assert (
        node["status"]["nodeInfo"]["kubeletVersion"]
        == json.loads(cluster.kubectl("get", "--raw=/version"))["gitVersion"]
    )


def test_python_of_this_repository_runs_in_a_pod_and_reaches_services(workload: Cluster) -> None:
    script = (
        "import aftershock, kubernetes, os, urllib.request\n"
        f"print(urllib.request.urlopen('{MODEL_URL}/health', timeout=10).status)\n"
        "kubernetes.config.load_incluster_config()\n"
        "print(kubernetes.client.VersionApi().get_code().git_version)\n"
        "print(os.access(aftershock.__path__[0], os.W_OK))\n"
    )
    pod = {**host_pod([PYTHON, "-c", script]), "restartPolicy": "Never"}
    metadata = {"name": "host-python", "namespace": "default"}
    try:
        apply(workload, [{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod}])
        workload.kubectl(
            "wait", "pod/host-python", "--for=jsonpath={.status.phase}=Succeeded", f"--timeout={DEADLINE_S:g}s"
        )
        status, version, writable = workload.kubectl("logs", "host-python").split()
    finally:
        workload.kubectl("delete", "pod", "host-python", "--ignore-not-found")
    assert (status, version[0], writable) == ("200", "v", "False")


def test_the_service_answers_completions(workload: Cluster) -> None:
    answer = ask(f"{MODEL_URL}/v1/completions", {"prompt": "1 2 3", "max_tokens": 4})
    assert answer["choices"][0]["finish_reason"] in ("length", "stop")


def test_prometheus_scrapes_every_replica(workload: Cluster) -> None:
    wait_until(
        lambda: scraped(f'up{{job="{MODEL_SERVER}"}}') == dict.fromkeys(replicas(workload), 1.0),
        DEADLINE_S,
        lambda: f"up is {scraped('up')}, the replicas are {list(replicas(workload))}",
    )


def test_a_deleted_replica_is_replaced(workload: Cluster) -> None:
    before = replicas(workload)
    victim = next(iter(before))
    workload.kubectl("delete", "pod", victim, f"--namespace={NAMESPACE}")

    def replaced() -> bool:
        now = replicas(workload)
        return victim not in now and len(now) == len(before) and all(map(ready, now.values()))

    wait_until(replaced, DEADLINE_S, lambda: f"there are {list(replicas(workload))}")


def test_a_killed_api_server_comes_back_with_everything_in_it(workload: Cluster) -> None:
    before = {name: pod["metadata"]["uid"] for name, pod in replicas(workload).items()}
    workload.stop_apiserver()
    try:
        with pytest.raises(InfrastructureError, match="refused"):
            replicas(workload)
        assert ask(f"{MODEL_URL}/health") == {"status": "ok"}  # what serves needs no API server
        assert [daemon.name for daemon in workload.status() if not daemon.alive] == ["apiserver"]
    finally:
        workload.start_apiserver()
    after = replicas(workload)
    assert {name: pod["metadata"]["uid"] for name, pod in after.items()} == before
    assert all(pod["status"]["containerStatuses"][0]["restartCount"] == 0 for pod in after.values())


def test_exec_is_the_command_it_runs(cluster: Cluster) -> None:
    directory = cluster.layout.directory
    assert rig(directory, "exec", "--", "sh", "-c", "exit 7").returncode == 7
    assert rig(directory, "exec", "kubectl", "get", "node", NODE).returncode == 0
    assert rig(directory, "exec", "sh", "-c", "kill -TERM $$").returncode == -signal.SIGTERM


def test_a_second_cluster_lives_beside_the_first_and_tells_who_died(workload: Cluster, second: Cluster) -> None:
    containers = {pod["status"]["containerStatuses"][0]["containerID"] for pod in replicas(workload).values()}
    Cluster.start(second.layout.directory)
    ids = {get(one, "namespace", "kube-system")["metadata"]["uid"] for one in (workload, second)}
    assert len(ids) == 2  # same addresses, two clusters
    scheduler = next(daemon for daemon in second.status() if daemon.name == "scheduler")
    daemons.kill([process for process in daemons.marked(second.layout) if process.pid == scheduler.pid])
    told = rig(second.layout.directory, "status")
    assert told.returncode == InfrastructureError.exit_code
    assert "scheduler has ended" in told.stdout
    assert "etcd runs" in told.stdout

    said: list[str] = []
    Cluster.start(second.layout.directory, said.append)  # a dead one is replaced
    assert any("node ready" in line for line in said)
    assert all(daemon.alive for daemon in second.status())
    said.clear()
    Cluster.start(second.layout.directory, said.append)
    assert said == ["cluster    runs already"]
    assert {pod["status"]["containerStatuses"][0]["containerID"] for pod in replicas(workload).values()} == containers


def test_nothing_is_left_of_a_start_that_was_killed(cluster: Cluster, second: Cluster) -> None:
    command = [sys.executable, "-m", "tests.cluster.rig", "--directory", str(second.layout.directory), "up"]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.DEVNULL) as start:
        try:
            wait_until(second.layout.log("kubelet").exists, DEADLINE_S, lambda: "no kubelet was started")
        finally:
            start.kill()
    assert len(daemons.marked(second.layout)) > 1
    assert rig(second.layout.directory, "status").returncode == InfrastructureError.exit_code
    assert rig(second.layout.directory, "down").returncode == 0
    assert left(second) == []


def test_a_folder_that_is_no_cluster_is_not_deleted(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work")
    with pytest.raises(InputError, match="holds no cluster"):
        Cluster(Layout.of(tmp_path)).stop()
    assert (tmp_path / "thesis.txt").exists()


def test_a_directory_too_deep_for_sockets_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="choose a shorter one"):
        Layout.of(tmp_path / ("d" * 80))
