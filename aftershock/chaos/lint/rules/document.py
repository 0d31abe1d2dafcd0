"""The document itself: fields that are dropped, refused or gone, and what a file must not say about a run."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from aftershock.chaos.lint.catalogue import catalogue, closest
from aftershock.chaos.lint.crd import Issue, Trouble
from aftershock.chaos.lint.engine import Engine
from aftershock.chaos.lint.finding import shown
from aftershock.chaos.lint.item import Item
from aftershock.chaos.lint.registry import ERROR, WARNING, Hit, engine_rule
from aftershock.chaos.lint.text import Edit

LONGEST_NAME = 63
_SUBDOMAIN = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_API_VERSION = "litmuschaos.io/v1alpha1"
GRACE_S = 60
LEAST_GRACE_S = 10
"""A fault was seen to write its result some 4 s after it was told to stop."""

_CRD = "CRD of the ChaosEngine, chaos-operator 3.18.0 and portal 3.31.0"
_OPERATOR = "chaos-operator 3.18.0, chaosengine_controller.go"
_REMOVED = {"annotationCheck": "no check is made, whatever it says", "monitoring": "nothing is exported", "rank": ""}
_FINALIZER = "chaosengine.litmuschaos.io"
_WRITTEN_BY_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
_READ_ALL_THE_SAME = re.compile(
    r"^spec\.components\.runner\."
    r"(args|command|imagePullPolicy|imagePullSecrets|nodeSelector|configMaps|secrets|resources)$"
    r"|^spec\.experiments\[\d+\]\.spec\.components\.(experimentImagePullSecrets|resources)$"
)
"""Fields of the Go types that the CRD has not listed."""
_HAS_A_RULE = re.compile(
    r"(components\.env\[\d+\]\.value|(prom|cmd)Probe/inputs\.comparator(\.(type|criteria|value))?"
    r"|\.runProperties(\.\w+)?|\.probe\[\d+\]\.(mode|type)|\.responseTimeout|cmdProbe/inputs\.source)$"
)
"""Paths whose troubles have a rule of their own, which can say more."""


@engine_rule(
    "field-removed", ERROR, "A field that Litmus 3 no longer has", "chaos-operator 3.18.0, chaosengine_types.go"
)
def field_removed(engine: Engine) -> Iterator[Hit]:
    """They stay in old files, and some look like a safety net."""
    for issue in engine.issues:
        if issue.trouble in (Trouble.KEPT, Trouble.PRUNED) and issue.detail in _REMOVED:
            effect = _REMOVED[issue.detail] or "the order of the list counts"
            yield Hit(
                issue.item,
                f"{issue.item.path} is gone since Litmus 3; {effect}",
                "remove it",
                issue.item.remove(),
            )
    runner = engine.root.get("spec", "components", "runner", "type")
    if runner and runner.value == "ansible":
        yield Hit(
            runner,
            "runner.type='ansible' is gone since Litmus 3; the API server refuses it",
            "write go",
            runner.write("go"),
        )


@engine_rule("field-pruned", ERROR, "A field that the CRD does not have", _CRD)
def field_pruned(engine: Engine) -> Iterator[Hit]:
    """A strict client is refused; with others the API server drops the field without a word."""
    for issue in engine.issues:
        if issue.trouble is Trouble.PRUNED and not _has_a_rule(issue) and issue.detail not in _REMOVED:
            near = closest(issue.detail, issue.known)
            yield Hit(
                issue.item,
                f"{issue.item.path} is unknown to every published CRD; it is dropped, or refused by a strict client",
                f"did you mean {near}?"
                if near
                else f"remove it; known there are {', '.join(issue.known) or 'no fields'}",
            )


@engine_rule("field-unknown", WARNING, "A field that is kept, but read by nobody", _CRD)
def field_unknown(engine: Engine) -> Iterator[Hit]:
    """Where the CRD keeps everything, a misspelt name is kept too, and nothing tells."""
    for issue in engine.issues:
        read = issue.detail in _REMOVED or _READ_ALL_THE_SAME.match(issue.item.path)
        if issue.trouble is Trouble.KEPT and not read:
            near = closest(issue.detail, issue.known)
            yield Hit(
                issue.item,
                f"{issue.item.path} is unknown; the API server keeps it and nobody reads it",
                f"did you mean {near}?" if near else "remove it",
            )


@engine_rule("field-partly", WARNING, "A field or value that not every published CRD has", _CRD)
def field_partly(engine: Engine) -> Iterator[Hit]:
    """The CRDs of the operator, of its bundle and of ChaosCenter differ."""
    for issue in engine.issues:
        if issue.trouble is Trouble.PARTLY and not re.search(r"\.(kind|appkind|initialDelaySeconds)$", issue.item.path):
            yield Hit(
                issue.item,
                f"{issue.item.path} is not in every published CRD; some clusters drop or refuse it",
                "do without it, or check the CRD of your cluster",
            )


@engine_rule("field-type", ERROR, "A value of the wrong type", _CRD)
def field_type(engine: Engine) -> Iterator[Hit]:
    """YAML takes what is not in quotes for a number, a truth value or null."""
    for issue in engine.issues:
        if issue.trouble is Trouble.TYPE and not _has_a_rule(issue):
            edits = retyped(issue.item, issue.detail)
            yield Hit(
                issue.item,
                f"{issue.item.path}={_what(issue.item)}: must be {issue.detail}, is {issue.item.type}; "
                "the API server refuses it",
                f"write it as {issue.detail}",
                edits,
            )


@engine_rule("field-value", ERROR, "A value that the CRD does not allow", _CRD)
def field_value(engine: Engine) -> Iterator[Hit]:
    """Closed lists are regular expressions there."""
    for issue in engine.issues:
        if issue.trouble is Trouble.PATTERN and not _has_a_rule(issue) and issue.item.value != "ansible":
            known = re.findall(r"[A-Za-z0-9]+", issue.detail)
            right = next((each for each in known if each.lower() == issue.item.value.lower()), None)
            yield Hit(
                issue.item,
                f"{issue.item.path}={shown(issue.item.value)}: the API server refuses it",
                f"write {right}" if right else f"give one of {', '.join(known)}",
                issue.item.write(right) if right else (),
            )


@engine_rule("field-missing", ERROR, "A field that the CRD requires", _CRD, of_whole=True)
def field_missing(engine: Engine) -> Iterator[Hit]:
    """Only what no other rule says better."""
    for issue in engine.issues:
        if issue.trouble is Trouble.MISSING and not _has_a_rule(issue):
            yield Hit(
                issue.item, f"{issue.item.path} lacks {issue.detail}; the API server refuses it", f"add {issue.detail}"
            )


@engine_rule("key-twice", ERROR, "A key twice in one mapping", "YAML 1.2, 3.2.1.1")
def key_twice(engine: Engine) -> Iterator[Hit]:
    """Some readers refuse the file, others take the last one."""
    seen: set[int] = set()
    rest = [engine.root]
    while rest:
        item = rest.pop()
        if id(item.node) in seen:
            continue
        seen.add(id(item.node))
        names: set[str] = set()
        for name, below in item.own_entries():
            if name in names:
                yield Hit(
                    below, f"{below.path} is there twice; some readers refuse it, others take the last", "keep one"
                )
            names.add(name)
        rest += [below for _, below in item.own_entries()] or item.values()


@engine_rule("name-long", ERROR, "A name that is too long or not allowed", f"{_OPERATOR}; seen with 70 characters")
def name_long(engine: Engine) -> Iterator[Hit]:
    """The operator makes the name a label and the first part of a pod's name."""
    given = engine.root.get("metadata", "name") or engine.root.get("metadata", "generateName")
    if given is None:
        if not engine.is_patch:
            yield Hit(engine.root.get("metadata") or engine.root, "the engine has no name", "add metadata.name")
        return
    if given.is_open:
        return
    length = len(given.value) + (0 if given.path.endswith("metadata.name") else 5)
    if length > LONGEST_NAME:
        yield Hit(
            given,
            f"{given.path} is {length} characters long; with more than {LONGEST_NAME} no runner pod ever appears",
            "shorten it to 40, so that names made of it fit too",
        )
    elif not re.fullmatch(_SUBDOMAIN, given.value if given.path.endswith(".name") else f"{given.value}x"):
        yield Hit(
            given,
            f"{given.path}={shown(given.value)}: the API server refuses it",
            "use a-z, 0-9, - and ., with a letter or digit at both ends and beside each .",
        )


@engine_rule("api-version", ERROR, "Another apiVersion than Litmus', or none", "CRD of the ChaosEngine: v1alpha1 only")
def api_version(engine: Engine) -> Iterator[Hit]:
    """No cluster knows such an object."""
    given = engine.root.get("apiVersion")
    if given is None or not (given.is_open or given.value == _API_VERSION):
        what = f"apiVersion={shown(given.value)}: no Litmus has it" if given else "the engine has no apiVersion"
        yield Hit(
            given or engine.root.get("kind") or engine.root,
            f"{what}; the API server refuses it",
            f"write apiVersion: {_API_VERSION}",
        )


@engine_rule("status-applied", ERROR, "A status in the file", f"{_OPERATOR}: no status subresource")
def status_applied(engine: Engine) -> Iterator[Hit]:
    """Status is an ordinary part of the object here: applying it forges or wipes the state of a run."""
    status = engine.root.get("status")
    if status:
        yield Hit(
            status, "status is in the file; applied, it forges the state of the run", "remove it", status.remove()
        )


@engine_rule("dumped", WARNING, "Fields that the API server writes", "Kubernetes API conventions, metadata")
def dumped(engine: Engine) -> Iterator[Hit]:
    """The file was read from a cluster; a create with them is refused, or meets another object."""
    metadata = engine.root.get("metadata")
    for name, item in metadata.own_entries() if metadata else ():
        own = [each for each in item.values() if name == "finalizers" and each.value.startswith(_FINALIZER)]
        found = own[0] if own and len(item.values()) > len(own) else item if own else None
        if name in _WRITTEN_BY_SERVER or found:
            place = found or item
            yield Hit(place, f"metadata.{name} is written by the cluster, not by you", "remove it", place.remove())


@engine_rule(
    "engine-stopped",
    ERROR,
    "An engine that is created stopped",
    f"{_OPERATOR}; seen: no status, no event",
    of_whole=True,
)
def engine_stopped(engine: Engine) -> Iterator[Hit]:
    """Also what a completed engine looks like when it is read from a cluster."""
    state = engine.root.get("spec", "engineState")
    if state and state.value == "stop":
        yield Hit(
            state, "engineState is stop: nothing at all happens, and nothing says so", "write active, if it is to run"
        )


@engine_rule(
    "account-missing",
    ERROR,
    "No service account",
    "chaos-operator 3.18.0: must exist in the engine's namespace",
    of_whole=True,
)
def account_missing(engine: Engine) -> Iterator[Hit]:
    """The runner cannot be created, and the engine stays initialized for ever."""
    if not engine.root.get("spec", "chaosServiceAccount") and engine.root.get("spec"):
        yield Hit(
            engine.spec,
            "spec.chaosServiceAccount is missing; the engine stays initialized and never starts",
            "name the fault's service account",
        )


@engine_rule(
    "grace-missing", WARNING, "No time to revert", "chaos-runner 3.18.0: TERMINATION_GRACE_PERIOD_SECONDS (read)"
)
def grace_missing(engine: Engine) -> Iterator[Hit]:
    """Without it, pods that changed the target's network may be killed before they put it right again."""
    grace = engine.root.get("spec", "terminationGracePeriodSeconds")
    spec = engine.root.get("spec")
    reverts = any(experiment.fault is None or experiment.fault.helper for experiment in engine.experiments)
    if grace is None and spec and reverts and not engine.is_patch:
        yield Hit(
            spec,
            "spec.terminationGracePeriodSeconds is missing; an abort gives helper pods 0 s, and the fault may stay",
            f"set it to {GRACE_S}",
            spec.insert("terminationGracePeriodSeconds", str(GRACE_S)),
        )
    elif grace and re.fullmatch(r"\d{1,9}", grace.value) and int(grace.value) < LEAST_GRACE_S:
        yield Hit(
            grace,
            f"{grace.path}={grace.value}: too short to revert the fault and to write the result",
            f"set it to {GRACE_S}",
            grace.write(str(GRACE_S), raw=True) if grace.type == "int" else (),
        )


@engine_rule("experiments-missing", ERROR, "An engine without experiments", _OPERATOR, of_whole=True)
def experiments_missing(engine: Engine) -> Iterator[Hit]:
    """There is nothing to run."""
    if not engine.experiments and not engine.spec.is_open:
        yield Hit(engine.spec, "spec.experiments is missing or empty; nothing is run", "name a fault")


@engine_rule("sidecar-idle", WARNING, "A sidecar that is never started", f"{_OPERATOR}: annotation sidecar/enabled")
def sidecar_idle(engine: Engine) -> Iterator[Hit]:
    """The operator starts it where an annotation of the engine says so."""
    sidecar = engine.root.get("spec", "components", "sidecar")
    enabled = engine.root.get("metadata", "annotations", "sidecar/enabled")
    if sidecar and sidecar.values() and (enabled is None or enabled.value == "false"):
        yield Hit(
            sidecar,
            "spec.components.sidecar is started only with the annotation sidecar/enabled, which is not there",
            'add metadata.annotations: {sidecar/enabled: "true"}, or remove it',
        )


@engine_rule("experiment-twice", ERROR, "One experiment twice in an engine", "seen on chaos-operator 3.18.0")
def experiment_twice(engine: Engine) -> Iterator[Hit]:
    """Both write one ChaosResult, INSTANCE_ID or not, and one of them is never seen to run."""
    names = [experiment.name for experiment in engine.experiments]
    for index, experiment in enumerate(engine.experiments):
        place = experiment.item.get("name")
        if place and experiment.name in names[:index]:
            yield Hit(
                place,
                f"{experiment.name} is listed twice; both write one ChaosResult, INSTANCE_ID or not",
                "make it an engine of its own, or install the ChaosExperiment under a second name",
            )


@engine_rule(
    "experiment-unknown", WARNING, "An experiment that is nearly one of Litmus' own", "litmuschaos/chaos-charts"
)
def experiment_unknown(engine: Engine) -> Iterator[Hit]:
    """Own experiments are fine; misspelt ones leave the engine initialized for ever."""
    for experiment in engine.experiments:
        place = experiment.item.get("name")
        near = closest(experiment.name, catalogue().faults, 0.88)
        if place and not place.is_open and not experiment.fault and near:
            yield Hit(place, f"{shown(experiment.name)} is no fault of Litmus", f"did you mean {near}?")


def retyped(item: Item, wanted: str) -> tuple[Edit, ...]:
    """The scalar as the type that is wanted, where its characters say what it is to be."""
    if not isinstance(item.node, yaml.ScalarNode):
        return ()
    if wanted == "string" and item.type in ("int", "float", "bool"):
        return item.write(f'"{item.value}"', raw=True)
    plain = {"integer": r"-?(0|[1-9][0-9]{0,17})", "boolean": "true|false"}.get(wanted)
    if plain and item.type == "str" and re.fullmatch(plain, item.value):
        return item.write(item.value, raw=True)
    return ()


def _has_a_rule(issue: Issue) -> bool:
    missing = issue.trouble is Trouble.MISSING
    path = f"{issue.item.path}.{issue.detail}" if missing else issue.item.path
    return bool(_HAS_A_RULE.search(path)) or (
        not missing and bool(re.search(r"\.(appkind|workloads\[\d+\]\.kind)$", path))
    )


def _what(item: Item) -> str:
    return shown(item.value) if isinstance(item.node, yaml.ScalarNode) else item.type
