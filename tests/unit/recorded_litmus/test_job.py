"""The Job of the recorded runner."""

from __future__ import annotations

from typing import Any

from tests.cluster.recorded_litmus.job import experiment_spec, job, result_name


def engine(*experiments: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "e", "namespace": "n", "uid": "u", "labels": {"chaos-run": "r"}},
        "spec": {"chaosServiceAccount": "admin", "experiments": list(experiments), **spec},
    }


def listed(**env: str) -> dict[str, Any]:
    entries = [{"name": name, "value": value} for name, value in env.items()]
    return {"name": "pod-delete", "spec": {"components": {"env": entries}}}


EXPERIMENT = {
    "metadata": {"name": "pod-delete"},
    "spec": {
        "definition": {
            "image": "image",
            "command": ["run"],
            "args": ["-name", "pod-delete"],
            "labels": {"name": "pod-delete"},
            "env": [{"name": "FORCE", "value": "true"}, {"name": "CHAOS_INTERVAL", "value": "5"}],
            "hostFileVolumes": [{"name": "lib", "mountPath": "/lib", "nodePath": "/usr/lib"}],
        }
    },
}


def test_the_job_carries_the_labels_of_the_engine() -> None:
    document = job(engine(listed()), EXPERIMENT, "pod-delete-abc123", "", {})
    labels = {"chaos-run": "r", "name": "pod-delete", "chaosUID": "u"}
    assert document["metadata"]["labels"] == document["spec"]["template"]["metadata"]["labels"] == labels


def test_its_pod_is_not_restarted_and_has_the_host_files() -> None:
    pod = job(engine(listed()), EXPERIMENT, "pod-delete-abc123", "", {})["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    assert pod["serviceAccountName"] == "admin"
    assert pod["volumes"] == [{"name": "lib", "hostPath": {"path": "/usr/lib"}}]
    (container,) = pod["containers"]
    assert container["name"] == "pod-delete-abc123"
    assert container["volumeMounts"] == [{"name": "lib", "mountPath": "/lib", "readOnly": True}]


def test_the_engine_overrides_the_experiment_and_forces_some() -> None:
    given = engine(listed(FORCE="false", STATUS_CHECK_DELAY="9"), jobCleanUpPolicy="delete")
    given["spec"]["experiments"][0]["spec"]["components"]["statusCheckTimeouts"] = {"timeout": 8}
    document = job(given, EXPERIMENT, "pod-delete-abc123", "deployment:n:[app=x]", {"SPEED": "4"})
    env = {each["name"]: each.get("value") for each in document["spec"]["template"]["spec"]["containers"][0]["env"]}
    assert env["FORCE"] == "false"
    assert env["CHAOS_INTERVAL"] == "5"
    assert (env["STATUS_CHECK_DELAY"], env["STATUS_CHECK_TIMEOUT"]) == ("0", "8"), (
        "the runner has no default for half of them"
    )
    assert env["JOB_CLEANUP_POLICY"] == "delete"
    assert env["TERMINATION_GRACE_PERIOD_SECONDS"] == "0"
    assert env["TARGETS"] == "deployment:n:[app=x]"
    assert env["SPEED"] == "4"


def test_an_experiment_listed_twice_is_its_last_entry() -> None:
    given = engine(listed(INSTANCE_ID="a"), listed(INSTANCE_ID="b"))
    assert experiment_spec(given, "pod-delete") == listed(INSTANCE_ID="b")["spec"]
    assert result_name(given, "pod-delete") == "e-pod-delete-b"
    assert result_name(engine(listed()), "pod-delete") == "e-pod-delete"
