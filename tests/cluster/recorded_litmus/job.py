"""The Job of one experiment, as the recorded runner builds it from an engine and a ChaosExperiment; pure."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

JobDocument = dict[str, Any]


def experiment_spec(engine: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """What the engine says about an experiment. Where it is listed twice, the last one counts for both, as recorded."""
    found = [each for each in engine["spec"]["experiments"] if each["name"] == name]
    return (found[-1].get("spec") or {}) if found else {}


def components(engine: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The tunables among that."""
    return experiment_spec(engine, name).get("components") or {}


def result_name(engine: Mapping[str, Any], experiment: str) -> str:
    """Of the ChaosResult that the experiment writes."""
    instance = plain_env(components(engine, experiment).get("env") or ()).get("INSTANCE_ID")
    return "-".join(filter(None, (engine["metadata"]["name"], experiment, instance)))


def plain_env(entries: Any) -> dict[str, str]:
    """Environment entries that have a value."""
    return {entry["name"]: entry.get("value") or "" for entry in entries if "valueFrom" not in entry}


def job(
    engine: Mapping[str, Any], experiment: Mapping[str, Any], name: str, targets: str, settings: Mapping[str, str]
) -> JobDocument:
    """The Job called `name`; `settings` are what the recorded Litmus adds to the environment of its own programs."""
    definition = experiment["spec"]["definition"]
    kind = experiment["metadata"]["name"]
    ours = components(engine, kind)
    labels = {
        **(engine["metadata"].get("labels") or {}),
        **definition["labels"],  # required in practice: the real runner panics without
        "chaosUID": engine["metadata"]["uid"],
    }
    container: dict[str, Any] = {
        "name": name,
        "image": ours.get("experimentImage") or definition["image"],
        "imagePullPolicy": definition.get("imagePullPolicy") or "Always",
        "command": definition.get("command") or [],
        "args": definition.get("args") or [],
        "env": _env(engine, kind, definition, ours, targets, settings),
        "resources": ours.get("resources") or {},
    }
    files = [("hostPath", each["name"], each["mountPath"], {"path": each["nodePath"]}) for each in _files(definition)]
    for source, key in (("configMap", "name"), ("secret", "secretName")):
        given = [*(definition.get(f"{source}s") or ()), *(ours.get(f"{source}s") or ())]
        files += [(source, each["name"], each["mountPath"], {key: each["name"]}) for each in given]
    # Read-only, unlike Litmus': the files are the machine's own.
    container["volumeMounts"] = [{"name": file, "mountPath": at, "readOnly": True} for _, file, at, _ in files]
    pod: dict[str, Any] = {
        "restartPolicy": "Never",
        "serviceAccountName": engine["spec"].get("chaosServiceAccount", ""),
        "containers": [container],
        "volumes": [{"name": file, source: where} for source, file, _, where in files],
    }
    pod |= {key: ours[key] for key in ("nodeSelector", "tolerations") if ours.get(key)}
    if grace_s := engine["spec"].get("terminationGracePeriodSeconds"):
        pod["terminationGracePeriodSeconds"] = grace_s
    namespace = engine["metadata"]["namespace"]
    annotations = ours.get("experimentAnnotations") or {}
    template = {"metadata": {"name": name, "labels": labels, "annotations": annotations}, "spec": pod}
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return copy.deepcopy(
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    )


def _files(definition: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(definition.get("hostFileVolumes") or ())


def _env(
    engine: Mapping[str, Any],
    kind: str,
    definition: Mapping[str, Any],
    ours: Mapping[str, Any],
    targets: str,
    settings: Mapping[str, str],
) -> list[dict[str, Any]]:
    """Precedence as in the real one: runner, then ChaosExperiment, then engine, then what the engine forces."""
    spec, timeouts = engine["spec"], ours.get("statusCheckTimeouts") or {}
    given = {
        "CHAOSENGINE": engine["metadata"]["name"],
        "CHAOS_NAMESPACE": engine["metadata"]["namespace"],
        "CHAOS_UID": engine["metadata"]["uid"],
        "EXPERIMENT_NAME": kind,
        "TARGETS": targets,
        "CHAOS_SERVICE_ACCOUNT": spec.get("chaosServiceAccount", ""),
        "LIB_IMAGE_PULL_POLICY": definition.get("imagePullPolicy") or "Always",
        "TERMINATION_GRACE_PERIOD_SECONDS": str(spec.get("terminationGracePeriodSeconds") or 0),
        "DEFAULT_HEALTH_CHECK": str(bool(spec.get("defaultHealthCheck"))).lower(),
        **settings,
    }
    entries = {name: {"name": name, "value": value} for name, value in given.items()}
    entries |= {each["name"]: dict(each) for each in (*(definition.get("env") or ()), *(ours.get("env") or ()))}
    delay, timeout = timeouts.get("delay") or 0, timeouts.get("timeout") or 0
    if not (delay or timeout):
        delay, timeout = 2, 180  # both or none: the runner's defaults hold only where neither is given
    forced = {
        "STATUS_CHECK_DELAY": str(delay),
        "STATUS_CHECK_TIMEOUT": str(timeout),
        "JOB_CLEANUP_POLICY": spec.get("jobCleanUpPolicy") or "retain",
    }
    entries |= {name: {"name": name, "value": value} for name, value in forced.items()}
    entries["POD_NAME"] = {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}
    return list(entries.values())
