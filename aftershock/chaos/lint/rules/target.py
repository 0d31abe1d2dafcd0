"""Which pods or nodes a fault hits: the part where Litmus' reading differs most from the author's."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aftershock.chaos.lint.crd import Trouble
from aftershock.chaos.lint.engine import Engine, Experiment
from aftershock.chaos.lint.finding import shown
from aftershock.chaos.lint.item import Item
from aftershock.chaos.lint.registry import ERROR, WARNING, Hit, engine_rule, experiment_rule
from aftershock.chaos.lint.text import Edit

KINDS = ("deployment", "statefulset", "daemonset", "deploymentconfig", "rollout")
FIRST_LABEL_ONLY = frozenset(
    [
        "pod-network-partition",
        "pod-autoscaler",
        "node-drain",
        "node-taint",
        "node-restart",
        "node-poweroff",
        "kubelet-service-kill",
        "docker-service-kill",
    ]
)
"""Faults that take the first label of the first target without looking whether there is one."""
_NODE_OF_A_POD = FIRST_LABEL_ONLY - {"pod-network-partition", "pod-autoscaler"}
"""Faults for nodes that take the node of a target pod where none is named, and take it down."""

TARGETS = "chaos-operator 3.18.0, getTargets; litmus-go 3.31.0, pkg/utils/common/pods.go"
NODES = "litmus-go 3.31.0, pkg/utils/common/nodes.go"
PLAIN_LABEL = re.compile(r"[A-Za-z0-9./_-]+=[A-Za-z0-9._-]*")


def labels_of(engine: Engine) -> Iterator[Item]:
    """Every place where pods are chosen by label."""
    label = engine.root.get("spec", "appinfo", "applabel")
    if label:
        yield label
    workloads = engine.root.get("spec", "selectors", "workloads")
    for workload in workloads.values() if workloads else ():
        found = workload.get("labels")
        if found:
            yield found


def kinds_of(engine: Engine) -> Iterator[Item]:
    """Every place where the kind of the workload is named."""
    kind = engine.root.get("spec", "appinfo", "appkind")
    if kind:
        yield kind
    workloads = engine.root.get("spec", "selectors", "workloads")
    for workload in workloads.values() if workloads else ():
        found = workload.get("kind")
        if found:
            yield found


@engine_rule("label-comma", ERROR, "Several labels with commas", f"{TARGETS}; litmuschaos/litmus#3509")
def label_comma(engine: Engine) -> Iterator[Hit]:
    """Litmus lists the pods of each label by itself and takes them all together."""
    for label in labels_of(engine):
        if "," in label.value and "(" not in label.value:
            yield Hit(
                label,
                f"{label.path}={shown(label.value)}: Litmus reads the comma as OR and hits pods with any of the labels",
                "give the one key=value that only the target has, or name it in selectors.workloads.names",
            )


@engine_rule("label-set", ERROR, "A label that is not key=value", TARGETS)
def label_set(engine: Engine) -> Iterator[Hit]:
    """Without a = the text is taken for pod names; != reaches everything else."""
    for label in labels_of(engine):
        plain = all(PLAIN_LABEL.fullmatch(part.strip()) for part in label.value.split(","))
        if not label.value or label.is_open or (plain and "(" not in label.value):
            continue
        edits: tuple[Edit, ...] = ()
        if re.fullmatch(r"[A-Za-z0-9./_-]+==[A-Za-z0-9._-]+", label.value):
            edits = label.write(label.value.replace("==", "="))
        yield Hit(
            label,
            f"{label.path}={shown(label.value)}: no key=value; Litmus takes sets and bare keys for pod names, "
            "and != for everything else",
            "give exactly one key=value",
            edits,
        )


@engine_rule("kind-case", ERROR, "The kind of the workload in capitals or unknown", "CRD, appkind and workloads[].kind")
def kind_case(engine: Engine) -> Iterator[Hit]:
    """The CRD has a closed list, in lower case."""
    for kind in kinds_of(engine):
        if kind.is_open or not kind.value or kind.value in (*KINDS, "job"):
            continue
        right = next((each for each in KINDS if kind.value.lower() in (each, f"{each}s")), None)
        yield Hit(
            kind,
            f"{kind.path}={shown(kind.value)}: the API server refuses it",
            f"write {right}"
            if right
            else f"give one of {', '.join(KINDS)}; other pods by selectors.pods or TARGET_PODS",
            kind.write(right) if right else (),
        )


@engine_rule("kind-job", WARNING, "A kind that not every CRD has", "CRD of chaos-operator 3.18.0 and of portal 3.31.0")
def kind_job(engine: Engine) -> Iterator[Hit]:
    """Only the CRD of ChaosCenter knows jobs."""
    for kind in kinds_of(engine):
        if kind.value == "job":
            yield Hit(kind, f"{kind.path}='job': the operator's own CRD refuses it", "name the pods in selectors.pods")


@engine_rule("appinfo-incomplete", ERROR, "appinfo with some of its three fields", TARGETS, of_whole=True)
def appinfo_incomplete(engine: Engine) -> Iterator[Hit]:
    """With one of label and kind the operator stops the engine at once, without a word."""
    given = engine.appinfo
    missing = [name for name in ("appns", "applabel", "appkind") if name not in given]
    place = engine.root.get("spec", "appinfo")
    if place and given and missing and set(given) != {"appns"} and not engine.selectors:
        yield Hit(
            place,
            f"spec.appinfo lacks {' and '.join(missing)}; Litmus stops at once, with no experiment and no event",
            f"add {' and '.join(missing)}, or leave appinfo out",
        )


@engine_rule("appinfo-namespace-only", ERROR, "A target by namespace alone", TARGETS, of_whole=True)
def appinfo_namespace_only(engine: Engine) -> Iterator[Hit]:
    """Then any pod of the namespace may be hit."""
    place = engine.root.get("spec", "appinfo", "appns")
    if place and set(engine.appinfo) == {"appns"} and not engine.selectors:
        yield Hit(
            place,
            f"spec.appinfo names the namespace {shown(place.value)} alone; Litmus hits random pods of all of it",
            "add applabel and appkind, or name the pods in selectors.pods",
        )


@engine_rule("selectors-win", WARNING, "Both selectors and appinfo", TARGETS)
def selectors_win(engine: Engine) -> Iterator[Hit]:
    """The operator looks at appinfo only where there are no selectors."""
    if engine.selectors and engine.appinfo:
        yield Hit(engine.selectors, "spec.selectors win; spec.appinfo is not looked at", "keep the one that is meant")


@engine_rule("selectors-choice", ERROR, "Selectors with none or both of two keys", "CRD, spec.selectors")
def selectors_choice(engine: Engine) -> Iterator[Hit]:
    """pods or workloads; names or labels."""
    for issue in engine.issues:
        if issue.trouble is Trouble.CHOICE:
            yield Hit(
                issue.item,
                f"{issue.item.path} must have exactly one of {issue.detail}; the API server refuses it",
                f"keep one of {issue.detail}",
            )


@engine_rule("selectors-empty", ERROR, "Selectors that select nothing", TARGETS)
def selectors_empty(engine: Engine) -> Iterator[Hit]:
    """The operator stops the engine at once, without a word."""
    for name in ("pods", "workloads"):
        found = engine.root.get("spec", "selectors", name)
        if found and found.type == "seq" and not found.values():
            yield Hit(
                found,
                f"{found.path} is empty; Litmus stops at once, with no experiment and no event",
                f"name {name}, or use spec.appinfo",
            )


@experiment_rule("target-second", ERROR, "A second target that is never hit", TARGETS)
def target_second(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """These faults take the first target only."""
    workloads = engine.root.get("spec", "selectors", "workloads")
    several = workloads.values() if workloads else []
    if experiment.name in FIRST_LABEL_ONLY and len(several) > 1:
        yield Hit(
            several[1],
            f"{several[1].path}: {experiment.name} hits the first of the workloads only",
            "give each an engine of its own",
        )


@experiment_rule("target-missing", ERROR, "A fault for pods without a target", TARGETS, of_whole=True)
def target_missing(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """No pod is found, and the result is an Error after some 20 s."""
    fault = experiment.fault
    named = experiment.is_set("TARGET_PODS") and fault is not None and "TARGET_PODS" in fault.tunables
    if not fault or fault.is_for_nodes or engine.appinfo or engine.selectors or named:
        return
    yield Hit(
        experiment.item.get("name") or experiment.item,
        f"{experiment.name} has no target: neither appinfo nor selectors"
        + (" nor TARGET_PODS" if "TARGET_PODS" in fault.tunables else "")
        + "; it ends as Error",
        "give spec.appinfo with appns, applabel and appkind",
    )


@experiment_rule(
    "target-by-name", ERROR, "A target by name where the fault needs a label", f"{TARGETS} (read, not run)"
)
def target_by_name(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """These faults take the first label without looking whether there is one, and panic."""
    if experiment.name not in FIRST_LABEL_ONLY:
        return
    names = engine.root.get("spec", "selectors", "pods")
    workloads = engine.root.get("spec", "selectors", "workloads")
    for workload in workloads.values() if workloads else ():
        names = names or workload.get("names")
    if names:
        advice = "leave selectors and appinfo out and give TARGET_NODE" if experiment.name in _NODE_OF_A_POD else ""
        yield Hit(
            names,
            f"{names.path}: {experiment.name} takes the target's first label, and panics where it has none",
            advice or "choose the target by spec.appinfo or selectors.workloads.labels",
        )


@experiment_rule("node-missing", ERROR, "A fault for nodes without a node", NODES, of_whole=True)
def node_missing(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Litmus takes a random node of the cluster; the control plane's, perhaps."""
    fault = experiment.fault
    if not fault or not fault.is_for_nodes or experiment.is_set(*fault.node_tunables, "NODE_LABEL"):
        return
    if experiment.name in _NODE_OF_A_POD and (engine.appinfo or engine.selectors):
        return
    yield Hit(
        experiment.place_of_env(),
        f"{experiment.name} names no node; Litmus takes a random one of the whole cluster, or none",
        f"give {fault.node_tunables[0]}",
    )


@experiment_rule("node-of-a-pod", WARNING, "A node that depends on where a pod runs", NODES, of_whole=True)
def node_of_a_pod(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Whatever else runs on that node is hit as well."""
    fault = experiment.fault
    if experiment.name not in _NODE_OF_A_POD or not fault or experiment.is_set(*fault.node_tunables, "NODE_LABEL"):
        return
    if engine.appinfo or engine.selectors:
        yield Hit(
            experiment.place_of_env(),
            f"{experiment.name} hits the node of some target pod, whichever that is then",
            f"give {fault.node_tunables[0]}",
        )


@experiment_rule(
    "node-own",
    WARNING,
    "A node taken down under Litmus' own pods",
    "litmus docs, node-drain, kubelet-service-kill",
    of_whole=True,
)
def node_own(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Runner and experiment have to live to put the node right again."""
    if experiment.name not in _NODE_OF_A_POD:
        return
    runner = engine.root.get("spec", "components", "runner", "nodeSelector")
    own = experiment.item.get("spec", "components", "nodeSelector")
    place = experiment.item.get("name") or experiment.item
    if not (runner and own):
        yield Hit(
            place,
            f"{experiment.name} takes its node down, and Litmus' own pods may be on it",
            "set nodeSelector in spec.components.runner and in the experiment's components to another node",
        )
        return
    targets = {experiment.env[name].value for name in ("TARGET_NODE", "TARGET_NODES") if name in experiment.env}
    for selector in (runner, own):
        host = selector.get("kubernetes.io/hostname")
        if host and host.value in targets and not host.is_open:
            yield Hit(
                host, f"{experiment.name} takes {host.value} down, where Litmus' own pods are", "choose another node"
            )


@experiment_rule("node-label-ignored", WARNING, "NODE_LABEL beside TARGET_PODS", TARGETS)
def node_label_ignored(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """TARGET_PODS wins."""
    if experiment.is_set("TARGET_PODS") and experiment.is_set("NODE_LABEL"):
        place = experiment.env["NODE_LABEL"].item
        yield Hit(place, "NODE_LABEL is not looked at beside TARGET_PODS", "give one of the two")


@experiment_rule("share-ignored", WARNING, "PODS_AFFECTED_PERC beside selectors.pods", TARGETS)
def share_ignored(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """All pods that are named are hit."""
    if engine.root.get("spec", "selectors", "pods") and experiment.is_set("PODS_AFFECTED_PERC"):
        place = experiment.env["PODS_AFFECTED_PERC"].item
        yield Hit(place, "PODS_AFFECTED_PERC is not looked at beside selectors.pods", "name fewer pods, or remove it")


@experiment_rule("autoscaler-kind", ERROR, "pod-autoscaler on what it cannot scale", "litmus-go 3.31.0, pod-autoscaler")
def autoscaler_kind(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """It knows how to scale deployments and statefulsets."""
    if experiment.name == "pod-autoscaler":
        for kind in kinds_of(engine):
            if kind.value in KINDS and kind.value not in ("deployment", "statefulset"):
                yield Hit(kind, f"pod-autoscaler cannot scale a {kind.value}", "aim at a deployment or a statefulset")
