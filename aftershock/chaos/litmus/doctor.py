"""What must be true of the cluster for a fault to be injected and reverted there. Asks, changes nothing.

An engine is held against all that `preflight.py` checks, each by itself. What we have no right to see is skipped: the
minimal Role suffices for a run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

from aftershock.chaos.engine import RUN_ID_LABEL, ChaosEngine, parse_engine
from aftershock.chaos.litmus.cluster import Cluster, DeniedError, Query, UnauthorizedError
from aftershock.chaos.litmus.kinds import NODES, PODS
from aftershock.chaos.litmus.preflight import CHECKS, check_installed, check_state, is_ready
from aftershock.chaos.litmus.read import section
from aftershock.chaos.litmus.sightings import Object
from aftershock.chaos.litmus.sweep import marked
from aftershock.checkup import Check, NotCheckedError
from aftershock.errors import ChaosError, InputError
from aftershock.experiment import NO_FAULT, Experiment

GROUP = "cluster"
DEADLINE_S = 45.0
"""Of each check: some ask a dozen times, and the client gives each up after a quarter of a minute."""

OPERATOR = "chaos-operator"
"""Value of the label `name` of its pods in the published manifests, and a part of its image's name everywhere."""
PAGE = 500
"""Pods listed at once, where those of the operator are not found by their label."""
FEW = 5

_ABOUT_LITMUS = ("ChaosExperiments", "names", "other chaos")
"""Checks of an engine that look for objects of Litmus' kinds."""
_SOUND = {
    "own rights": "we may do all that a run does",
    "ChaosExperiments": "those of the engine are installed",
    "service account": "that of the engine is there",
    "its rights": "it may do all that the fault does",
    "pod security": "the namespace admits the pods of the fault",
    "names": "those of the engine and its results are free",
    "target pods": "they are there, ready, and owned as the engine says",
    "other chaos": "no other engine is active on the target",
}
"""What is so where a check of an engine raises nothing."""

_RUNTIMES = {"containerd": "containerd", "cri-o": "crio", "docker": "docker"}
"""What a node calls its runtime -> what Litmus calls it."""
_SOCKETS = {
    "containerd": ("/run/containerd/containerd.sock", "/var/run/containerd/containerd.sock"),
    "crio": ("/run/crio/crio.sock", "/var/run/crio/crio.sock"),
    "docker": ("/run/docker.sock", "/var/run/docker.sock"),
}
_OWN_SOCKETS = {"+k3s": "/run/k3s/containerd/containerd.sock", "+rke2": "/run/k3s/containerd/containerd.sock"}
"""Mark in a kubelet's version -> where this distribution keeps the socket of its containerd."""


def checks(
    experiment: Experiment, engine_text: Callable[[], str], fault: Check, connect: Callable[[str], Cluster]
) -> list[Check]:
    """All checks of the cluster that the experiment names.

    `engine_text` gives the rendered engine, `fault` is the check that it can be rendered at all. `connect` is
    Cluster.connect.
    """
    context = "" if experiment.kube_context == "auto" else experiment.kube_context
    connected = cache(partial(connect, context))

    def check(name: str, look: Callable[[Cluster], str], *needs: Check) -> Check:
        return Check(GROUP, name, lambda: _allowed(look, connected()), needs, DEADLINE_S)

    server = Check(GROUP, "API server", lambda: _server(connected()), (), DEADLINE_S)
    litmus = check("Litmus", _installed, server)
    general = [
        server,
        litmus,
        check("operator", _operator, litmus),
        check("leftovers", lambda cluster: _leftovers(cluster, experiment), litmus),
    ]
    if experiment.backend != "litmus" or experiment.fault == NO_FAULT:
        return general  # nothing is injected there
    return general + _of_the_engine(check, engine_text, (server, litmus, fault))


def _of_the_engine(
    check: Callable[..., Check], engine_text: Callable[[], str], needs: tuple[Check, Check, Check]
) -> list[Check]:
    server, litmus, fault = needs

    def engine() -> ChaosEngine:
        return parse_engine(engine_text(), "rendered engine")

    def held_against(name: str) -> Callable[[Cluster], str]:
        def look(cluster: Cluster) -> str:
            CHECKS[name](cluster, engine())
            return _SOUND.get(name, "nothing is wrong")

        return look

    made = {"engine": check("engine", lambda _: _engine(engine()), server, fault)}
    for name in CHECKS:
        first = litmus if name in _ABOUT_LITMUS else server
        needed = [first, made["engine"]] + ([made["service account"]] if name == "its rights" else [])
        made[name] = check(name, held_against(name), *needed)
    made["runtime"] = check("container runtime", lambda cluster: _runtime(cluster, engine()), server, made["engine"])
    return list(made.values())


def _allowed(look: Callable[[Cluster], str], cluster: Cluster) -> str:
    try:
        return look(cluster)
    except UnauthorizedError:
        raise
    except DeniedError as error:
        raise NotCheckedError(f"for lack of rights: {error}") from error


def _server(cluster: Cluster) -> str:
    try:
        version = cluster.get("/version").get("gitVersion", "of unknown version")
        cluster.get("/api/v1")  # /version may be for everybody; this is for those who are known
    except DeniedError as error:
        raise ChaosError(f"{cluster.host} does not accept these credentials ({error}); log in again") from error
    return f"{cluster.host}, Kubernetes {version}"


def _installed(cluster: Cluster) -> str:
    check_installed(cluster)
    return "its three kinds are there"


def _operator(cluster: Cluster) -> str:
    pods = list(_operator_pods(cluster))
    ready = [pod for pod in pods if is_ready(pod)]
    if not pods:
        raise ChaosError(
            f"no pod of {OPERATOR} in any namespace: Litmus' kinds are there, but nobody would act on an engine; "
            "install the operator"
        )
    if not ready:
        raise ChaosError(
            f"{_place(pods[0])} is not ready, so nobody would act on an engine; see its log and its events"
        )
    return f"{_place(ready[0])} is ready ({', '.join(_images(ready[0]))})"


def _operator_pods(cluster: Cluster) -> Iterator[Object]:
    """By their label, else by their image."""
    labelled = cluster.list(PODS, None, labelSelector=f"name={OPERATOR}").get("items") or []
    if labelled:
        yield from labelled
        return
    following: str | None = ""
    while following is not None:
        query: Query = {"limit": PAGE, "continue": following} if following else {"limit": PAGE}
        page = cluster.get(PODS.path(None), query)
        yield from (pod for pod in page.get("items") or [] if any(OPERATOR in image for image in _images(pod)))
        following = section(page, "metadata").get("continue") or None


def _leftovers(cluster: Cluster, experiment: Experiment) -> str:
    where = "in any namespace"
    try:
        found = list(marked(cluster, None))
    except DeniedError:
        found, where = list(marked(cluster, experiment.engine_namespace)), f"in {experiment.engine_namespace}"
    if not found:
        return f"no run has left anything {where}"
    runs = sorted({str(section(item, "metadata", "labels").get(RUN_ID_LABEL)) for _, item in found})
    named = ", ".join(f"{kind.plural} {_place(item)}" for kind, item in found[:FEW])
    more = f" and {len(found) - FEW} more" if len(found) > FEW else ""
    raise ChaosError(
        f"{named}{more} are of run {', '.join(runs[:FEW])}; unless that run is going on: "
        f"aftershock cleanup --kube-context {experiment.kube_context} --run-id {runs[0]}"
    )


def _engine(engine: ChaosEngine) -> str:
    check_state(engine)
    return f"{engine.name} would be created in namespace {engine.namespace}"


def _runtime(cluster: Cluster, engine: ChaosEngine) -> str:
    """Whether the helper of the fault would find the runtime of the nodes that it runs on."""
    given = [each for each in engine.experiments if each.value("CONTAINER_RUNTIME")]
    if not given:
        raise NotCheckedError("the fault has nothing to do with it")
    nodes = _nodes(cluster, engine)
    for node in nodes:
        runtime, sockets = _runtime_of(node)
        for experiment in given:
            wanted, socket = experiment.value("CONTAINER_RUNTIME"), experiment.value("SOCKET_PATH")
            if runtime and (wanted != runtime or socket not in sockets):
                tunables = json.dumps({"CONTAINER_RUNTIME": runtime, "SOCKET_PATH": sockets[0]})
                raise InputError(
                    f"node {section(node, 'metadata').get('name')} runs {runtime} with its socket at {sockets[0]}, but "
                    f"{experiment.name} is told {wanted} at {socket}: give --fault-parameters '{tunables}'"
                )
    known = Counter(str(_info(node).get("containerRuntimeVersion")) for node in nodes)
    return ", ".join(f"{runtime} on {count} {'node' if count == 1 else 'nodes'}" for runtime, count in known.items())


def _nodes(cluster: Cluster, engine: ChaosEngine) -> list[Object]:
    """Those that the target's pods are on; all, where that is not known."""
    info = engine.appinfo
    pods = cluster.list(PODS, info.namespace, labelSelector=info.label).get("items") or [] if info.label else []
    names = {section(pod, "spec").get("nodeName") for pod in pods}
    nodes = cluster.list(NODES, None).get("items") or []
    return [node for node in nodes if section(node, "metadata").get("name") in names] or nodes


def _runtime_of(node: Object) -> tuple[str, tuple[str, ...]]:
    """Litmus' name for its runtime, empty where there is none, and where its socket may be."""
    runtime = _RUNTIMES.get(str(_info(node).get("containerRuntimeVersion")).partition("://")[0], "")
    kubelet = str(_info(node).get("kubeletVersion"))
    own = tuple(path for mark, path in _OWN_SOCKETS.items() if mark in kubelet and runtime == "containerd")
    return runtime, own or _SOCKETS.get(runtime, ())


def _info(node: Object) -> Mapping[str, Any]:
    return section(node, "status", "nodeInfo")


def _images(pod: Object) -> list[str]:
    return [str(each.get("image")) for each in section(pod, "spec").get("containers") or []]


def _place(item: Object) -> str:
    metadata = section(item, "metadata")
    return f"{metadata.get('namespace')}/{metadata.get('name')}"
