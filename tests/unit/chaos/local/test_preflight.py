"""What is refused before anything starts, and why."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from typing import Any, get_args

import pytest

from aftershock.chaos.backend import BACKENDS, create_backend
from aftershock.chaos.engine import ChaosEngine, parse_engine
from aftershock.chaos.local.backend import LocalBackend
from aftershock.chaos.local.faults import FAULTS
from aftershock.chaos.render import render_fault
from aftershock.chaos.template import list_faults, load_fault
from aftershock.errors import ChaosError, EngineError, InputError
from aftershock.experiment import Experiment

Build = Callable[..., ChaosEngine]


def preflight(stack: Any, engine: ChaosEngine) -> None:
    """As the run does it."""
    LocalBackend(stack.state_file, 1).preflight(engine)
    assert not (stack.folder / "chaos").exists(), "a preflight leaves nothing behind"


OF_A_CLUSTER = sorted({template.name for template in list_faults()} - set(FAULTS))


@pytest.mark.parametrize("fault", FAULTS)
def test_the_template_of_every_known_fault_is_accepted_with_its_defaults(stack: Any, fault: str) -> None:
    preflight(stack, parse_engine(render_fault(fault, {}), fault))


@pytest.mark.parametrize("fault", OF_A_CLUSTER)
def test_a_fault_that_needs_a_cluster_is_refused_in_one_line(stack: Any, engine: Build, fault: str) -> None:
    assert load_fault(fault).local.startswith("Cannot be done here")
    with pytest.raises(EngineError) as caught:
        preflight(stack, engine((fault, {})))
    assert str(caught.value).startswith(f"experiment {fault}: the local backend does not know it; it knows pod-delete")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("fault", "env", "message"),
    [
        ("pod-explode", {}, "does not know it; it knows pod-delete"),
        ("pod-delete", {"TOTAL_CHAOS_DURATION": "0"}, "TOTAL_CHAOS_DURATION='0': must be a whole number from 1"),
        ("pod-delete", {"CHAOS_INTERVAL": "5-10"}, "CHAOS_INTERVAL"),
        ("pod-delete", {"FORCE": "yes"}, "FORCE='yes': must be one of true, false"),
        ("pod-delete", {"SEQUENCE": "zigzag"}, "SEQUENCE"),
        ("pod-delete", {"NODE_LABEL": "a=b"}, "NODE_LABEL"),
        ("pod-delete", {"TARGET_CONTAINER": "istio-proxy"}, "TARGET_CONTAINER='istio-proxy'"),
        ("pod-delete", {"CHAOS_INTERVALL": "5"}, "CHAOS_INTERVALL='5': the local backend does not know how"),
        ("pod-delete", {"TARGET_PODS": "a", "CHAOS_INTERVAL": "1"}, "another name"),
        ("container-kill", {"SIGNAL": "SIGSTOP"}, "SIGNAL='SIGSTOP': must be one of SIGKILL, SIGTERM"),
        ("pod-network-latency", {"NETWORK_LATENCY": "500ms"}, "NETWORK_LATENCY='500ms'"),
        ("pod-network-latency", {"DESTINATION_IPS": "10.0.0.1"}, "DESTINATION_IPS='10.0.0.1'"),
        ("pod-network-latency", {"SOURCE_PORTS": "8000"}, "SOURCE_PORTS"),
        ("pod-network-loss", {"CORRELATION": "20"}, "CORRELATION"),
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "120"}, "NETWORK_PACKET_LOSS_PERCENTAGE"),
        ("pod-network-partition", {"PODS_AFFECTED_PERC": "50"}, "PODS_AFFECTED_PERC"),
        ("pod-network-partition", {"POLICY_TYPES": "both"}, "POLICY_TYPES"),
        ("pod-http-status-code", {"STATUS_CODE": "299"}, "STATUS_CODE='299'"),
        ("pod-http-status-code", {"CONTENT_ENCODING": "gzip"}, "CONTENT_ENCODING"),
        ("pod-io-stress", {"CPU_CORES": "2"}, "CPU_CORES"),
        ("pod-io-stress", {"VOLUME_MOUNT_PATH": "/models"}, "VOLUME_MOUNT_PATH"),
        ("pod-io-stress", {"FILESYSTEM_UTILIZATION_PERCENTAGE": "60"}, "half of what is free"),
        ("pod-io-stress", {"FILESYSTEM_UTILIZATION_BYTES": "900000"}, "FILESYSTEM_UTILIZATION_BYTES=900000"),
        ("pod-memory-hog", {"MEMORY_CONSUMPTION": "9000000"}, "MEMORY_CONSUMPTION=9000000"),
        ("pod-cpu-hog", {"CPU_CORES": "1024"}, "CPU_CORES=1024"),
    ],
)
def test_what_cannot_be_done_is_refused(
    stack: Any, engine: Build, fault: str, env: dict[str, str], message: str
) -> None:
    with pytest.raises(InputError) as caught:
        preflight(stack, engine((fault, env)))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_every_experiment_is_looked_at(stack: Any, engine: Build) -> None:
    with pytest.raises(EngineError, match="pod-explode"):
        preflight(stack, engine(("pod-delete", {}), ("pod-explode", {})))


def test_tunables_that_only_a_cluster_needs_are_accepted(stack: Any, engine: Build) -> None:
    env = {"CONTAINER_RUNTIME": "crio", "SOCKET_PATH": "/x", "NETWORK_INTERFACE": "eth1", "DESTINATION_IPS": ""}
    preflight(stack, engine(("pod-network-latency", env)))
    preflight(stack, engine(("pod-delete", {"TARGET_CONTAINER": "model-server", "POD_TERMINATION_ORDER": "random"})))


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ({"engineState": "stop"}, "engineState is stop"),
        ({"selectors": {"pods": [{"namespace": "inference", "names": "a"}]}}, "selectors"),
    ],
)
def test_engines_that_mean_something_else_are_refused(
    stack: Any, engine: Build, spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(EngineError, match=message):
        preflight(stack, engine(("pod-delete", {}), **spec))


def test_probes_are_refused(stack: Any, engine: Build) -> None:
    with_probe = engine(("pod-delete", {}))
    with_probe.document["spec"]["experiments"][0]["spec"]["probe"] = [{"name": "p99", "type": "promProbe"}]
    with pytest.raises(EngineError, match="no probes"):
        preflight(stack, with_probe)


def test_pods_of_another_label_are_no_targets(stack: Any, engine: Build) -> None:
    other = {"appns": "inference", "applabel": "app=vllm", "appkind": "deployment"}
    with pytest.raises(ChaosError) as caught:
        preflight(stack, engine(("pod-delete", {}), appinfo=other))
    assert caught.value.code == "TARGET_SELECTION_ERROR"


def test_pods_that_are_not_ready_are_refused(stack: Any, engine: Build) -> None:
    stack.pods[1].ready_from = float("inf")
    with pytest.raises(ChaosError, match=stack.pods[1].name) as caught:
        preflight(stack, engine(("pod-delete", {})))
    assert caught.value.code == "STATUS_CHECKS_ERROR"


def test_a_gateway_with_a_fault_is_refused(stack: Any, engine: Build) -> None:
    fault = {"id": "left-over", "kind": "network-loss", "state": "active", "injections": 1, "expires_at": "soon"}
    stack.faults["left-over"] = fault
    with pytest.raises(ChaosError, match="left-over"):
        preflight(stack, engine(("pod-delete", {})))
    fault["state"] = "expired"
    preflight(stack, engine(("pod-delete", {})))


@pytest.mark.parametrize("part", ["supervisor_url", "gateway_url"])
def test_a_part_that_does_not_answer_is_an_error(stack: Any, engine: Build, part: str) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        setattr(stack, part, f"http://127.0.0.1:{unused.getsockname()[1]}")
        stack.write_state()
        with pytest.raises(ChaosError, match=f"{part.partition('_')[0]} at .* does not answer"):
            preflight(stack, engine(("pod-delete", {})))


def test_the_experiment_chooses_the_backend(stack: Any) -> None:
    backend = create_backend(Experiment(stack=str(stack.state_file)))
    assert backend.name == "local"


def test_the_local_backend_without_a_stack_is_refused() -> None:
    with pytest.raises(InputError, match="aftershock run"):
        create_backend(Experiment())


def test_an_experiment_can_name_every_backend_and_no_other() -> None:
    assert set(get_args(Experiment.model_fields["backend"].annotation)) == set(BACKENDS)


def test_a_stack_without_model_servers_is_refused(stack: Any, engine: Build) -> None:
    document = json.loads(stack.state_file.read_text())
    stack.state_file.write_text(json.dumps(document | {"gateway": None}))
    with pytest.raises(ChaosError, match="a stack with model servers"):
        preflight(stack, engine(("pod-delete", {})))


def test_without_a_preflight_the_refusal_is_an_outcome(stack: Any, engine: Build) -> None:
    refused = engine(("pod-delete", {"FORCE": "yes"}))
    outcome = LocalBackend(stack.state_file, 1).run(refused, threading.Event(), lambda event: None)
    assert outcome.verdict == "Error"
    assert outcome.reason is not None and "FORCE" in outcome.reason
    assert not stack.kills
