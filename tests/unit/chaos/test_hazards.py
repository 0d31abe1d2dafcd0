"""Hazards: what nobody means is refused, what somebody may mean is refused until it is confirmed by name."""

from __future__ import annotations

from typing import Any

import pytest

from aftershock.chaos.hazards import Confirmation, bytes_per_second
from aftershock.chaos.render import render, render_fault
from aftershock.chaos.template import list_faults
from aftershock.errors import ExperimentError, InputError, TemplateError
from aftershock.experiment import load_experiment

PORT = {"TARGET_SERVICE_PORT": "8000"}
NODE = {"TARGET_NODE": "worker-1", "CHAOS_NODE": "worker-2"}


def refused(name: str, given: dict[str, str], *confirmed: str, **fields: Any) -> str:
    with pytest.raises(InputError) as caught:
        render_fault(name, given, confirmed=confirmed, cluster=True, **fields)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def accepted(name: str, given: dict[str, str], *confirmed: str, cluster: bool = True, **fields: Any) -> None:
    assert render_fault(name, given, confirmed=confirmed, cluster=cluster, **fields)


# --- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [fault for fault in list_faults() if fault.hits_nodes], ids=lambda fault: fault.name)
@pytest.mark.parametrize("cluster", [True, False])
def test_a_fault_of_nodes_without_a_node_is_refused(fault: Any, cluster: bool) -> None:
    given = {"CHAOS_NODE": "worker-2"} if "CHAOS_NODE" in fault.parameters else {}
    ways = {name for name in ("TARGET_NODE", "TARGET_NODES") if name in fault.parameters}
    (way,) = ways
    for nothing in ({}, {way: ""}, {"NODE_LABEL": ""}):
        with pytest.raises(TemplateError, match=f"names no node, and Litmus would take any; give {way} or NODE_LABEL"):
            render_fault(fault.name, given | nothing, cluster=cluster)
    accepted(fault.name, given | {way: "worker-1"})
    accepted(fault.name, given | {"NODE_LABEL": "pool=chaos"})


def test_litmus_own_pods_on_the_node_that_is_hit_are_refused() -> None:
    assert "CHAOS_NODE='worker-1' is the node that is hit" in refused("node-drain", NODE | {"CHAOS_NODE": "worker-1"})


def test_litmus_own_pods_on_the_node_that_is_hit_by_its_label_are_refused() -> None:
    given = {"NODE_LABEL": "kubernetes.io/hostname=worker-1", "CHAOS_NODE": "worker-1"}
    assert "CHAOS_NODE='worker-1' is the node that is hit" in refused("node-drain", given)
    accepted("node-drain", given | {"CHAOS_NODE": "worker-2"})


@pytest.mark.parametrize(
    ("given", "way_out"),
    [
        ({"CONTAINER_RUNTIME": "crio"}, "SOCKET_PATH=/run/crio/crio.sock"),
        ({"CONTAINER_RUNTIME": "docker"}, "SOCKET_PATH=/var/run/docker.sock"),
        ({"SOCKET_PATH": "/run/crio/crio.sock"}, "CONTAINER_RUNTIME=crio"),
    ],
)
def test_a_container_runtime_with_the_socket_of_another_is_refused(given: dict[str, str], way_out: str) -> None:
    message = refused("pod-cpu-hog", given)
    assert "CONTAINER_RUNTIME_ERROR" in message
    assert way_out in message
    name, _, value = way_out.partition("=")
    accepted("pod-cpu-hog", given | {name: value})
    accepted("pod-cpu-hog", {"SOCKET_PATH": "/run/k3s/containerd/containerd.sock"})


def test_pods_by_name_are_deleted_once() -> None:
    assert "finds them no more; give CHAOS_INTERVAL=30 for one kill" in refused("pod-delete", {"TARGET_PODS": "a"})
    accepted("pod-delete", {"TARGET_PODS": "a", "CHAOS_INTERVAL": "30"})
    accepted("pod-delete", {"TARGET_PODS": "a-0"}, kind="statefulset")
    accepted("container-kill", {"TARGET_PODS": "a"})


def test_only_what_has_replicas_is_scaled() -> None:
    assert "kind=daemonset" in refused("pod-autoscaler", {"REPLICA_COUNT": "3"}, kind="daemonset")
    accepted("pod-autoscaler", {"REPLICA_COUNT": "3"}, kind="statefulset")


@pytest.mark.parametrize("fault", [fault.name for fault in list_faults() if fault.name.startswith("pod-http-")])
def test_an_http_fault_in_a_cluster_needs_the_port_of_the_container(fault: str) -> None:
    assert "TARGET_SERVICE_PORT is not given" in refused(fault, {})
    accepted(fault, PORT)
    accepted(fault, {}, cluster=False)  # the gateway knows its replicas
    assert "PROXY_PORT='8000' is the server's own port" in refused(fault, PORT | {"PROXY_PORT": "8000"})


@pytest.mark.parametrize("label", ["app=a,tier=b", "app in (a,b)", "", "app", "app=a app=b"])
def test_a_target_that_is_not_one_label_is_refused(label: str) -> None:
    with pytest.raises(ExperimentError, match="must be exactly one key=value; Litmus reads a comma as OR"):
        render_fault("pod-delete", {}, label=label)


def test_a_latency_with_a_unit_is_refused() -> None:
    assert "without a unit; give 500" in refused("pod-network-latency", {"NETWORK_LATENCY": "500ms"})
    assert "without a unit; give 2000" in refused("pod-http-latency", PORT | {"LATENCY": "2s"})


def test_a_length_beyond_a_day_is_refused_whatever_is_confirmed() -> None:
    assert "from 1 to 86400" in refused("pod-delete", {"TOTAL_CHAOS_DURATION": "86401"}, "duration")


# --- harm -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "given", "said"),
    [
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "100"}, "loses Prometheus' scrapes too"),
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "21"}, "give SOURCE_PORTS"),
        ("pod-network-corruption", {"NETWORK_PACKET_CORRUPTION_PERCENTAGE": "50"}, "loses Prometheus' scrapes too"),
        ("pod-network-latency", {"NETWORK_LATENCY": "2000"}, "delays a scrape by more than its interval"),
        ("pod-network-latency", {"NETWORK_LATENCY": "400", "JITTER": "200"}, "delays a scrape"),
        ("pod-network-rate-limit", {"NETWORK_BANDWIDTH": "64kbit"}, "too little for a scrape"),
        ("pod-network-partition", {}, "cuts Prometheus off too"),
        ("pod-network-partition", {"POLICY_TYPES": "ingress"}, "spare Prometheus with NAMESPACE_SELECTOR"),
        ("pod-network-partition", {"POD_SELECTOR": "app=prometheus"}, "pods of the target's namespace only"),
        ("pod-network-partition", {"DESTINATION_IPS": "0.0.0.0/0"}, "cuts Prometheus off too"),
        ("pod-network-partition", {"DESTINATION_IPS": "10.0.0.0/8"}, "cuts Prometheus off too"),
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "100", "SOURCE_PORTS": "8000"}, "as vLLM's are"),
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "100", "SOURCE_PORTS": "!1"}, "on every port"),
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "100", "DESTINATION_PORTS": "!443"}, "on every port"),
        (
            "pod-network-loss",
            {"NETWORK_PACKET_LOSS_PERCENTAGE": "100", "DESTINATION_IPS": "0.0.0.0/0"},
            "on every port",
        ),
        (
            "pod-network-latency",
            {"NETWORK_LATENCY": "2000", "SOURCE_PORTS": "8000"},
            "nothing is lost where metrics",
        ),
        ("pod-network-rate-limit", {"NETWORK_BANDWIDTH": "64kbit", "SOURCE_PORTS": "8000"}, "where the metrics are"),
    ],
)
def test_a_fault_that_cuts_the_scrapes_has_to_be_asked_for(fault: str, given: dict[str, str], said: str) -> None:
    message = refused(fault, given, "blast-radius", "duration")
    assert said in message
    assert message.endswith("if that is meant, give confirm=scrape-gap")
    accepted(fault, given, "scrape-gap", "blast-radius")
    accepted(fault, given, cluster=False)


@pytest.mark.parametrize(
    ("fault", "given"),
    [
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "10", "SOURCE_PORTS": "8000"}),
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "100", "DESTINATION_IPS": "10.0.0.1"}),
        ("pod-network-loss", {"NETWORK_PACKET_LOSS_PERCENTAGE": "100", "DESTINATION_IPS": "10.1.0.0/16"}),
        ("pod-network-latency", {"NETWORK_LATENCY": "2000", "DESTINATION_HOSTS": "vectors"}),
        ("pod-network-duplication", {"NETWORK_PACKET_DUPLICATION_PERCENTAGE": "100"}),
        ("pod-network-rate-limit", {"NETWORK_BANDWIDTH": "64kbit", "DESTINATION_PORTS": "6333"}),
        ("pod-network-partition", {"POLICY_TYPES": "egress"}),
        ("pod-network-partition", {"NAMESPACE_SELECTOR": "kubernetes.io/metadata.name=monitoring"}),
    ],
)
def test_a_fault_that_spares_the_scrapes_needs_no_confirmation_for_them(fault: str, given: dict[str, str]) -> None:
    accepted(fault, given, "blast-radius")


def test_a_slow_scrape_bears_more() -> None:
    given = {"NETWORK_LATENCY": "2000", "JITTER": "0"}
    assert "delays a scrape" in refused("pod-network-latency", given, scrape_interval_s=3)
    accepted("pod-network-latency", given, scrape_interval_s=15)
    accepted("pod-network-rate-limit", {"NETWORK_BANDWIDTH": "64kbit"}, scrape_interval_s=15)


@pytest.mark.parametrize(
    ("fault", "given", "said"),
    [
        ("pod-delete", {"PODS_AFFECTED_PERC": "51"}, "PODS_AFFECTED_PERC=51 is more than 50 percent"),
        ("node-cpu-hog", {"NODE_LABEL": "pool=gpu", "NODES_AFFECTED_PERC": "100"}, "NODES_AFFECTED_PERC=100"),
        ("pod-network-partition", {"POD_SELECTOR": "app=prometheus"}, "a full outage"),
        ("pod-network-partition", {"DESTINATION_IPS": "10.0.0.0/8"}, "a full outage"),
    ],
)
def test_more_than_half_of_the_target_has_to_be_asked_for(fault: str, given: dict[str, str], said: str) -> None:
    message = refused(fault, given, "scrape-gap", "duration")
    assert said in message
    assert message.endswith("give confirm=blast-radius")
    accepted(fault, given, "blast-radius", "scrape-gap")
    accepted(fault, given, cluster=False)


def test_what_is_named_is_meant() -> None:
    accepted("pod-delete", {"PODS_AFFECTED_PERC": "100", "TARGET_PODS": "a", "CHAOS_INTERVAL": "30"})
    accepted("node-cpu-hog", {"NODES_AFFECTED_PERC": "100", "TARGET_NODES": "a,b"})
    accepted("pod-network-partition", {"DESTINATION_IPS": "10.0.0.1"})


def test_more_than_an_hour_has_to_be_asked_for_with_its_ramps_and_all_faults_together() -> None:
    accepted("pod-delete", {"TOTAL_CHAOS_DURATION": "3600"})
    given = {"TOTAL_CHAOS_DURATION": "3600", "RAMP_TIME": "1"}
    assert "3602 s" in refused("pod-delete", given)
    accepted("pod-delete", given, "duration")
    both = {f"{fault}.TOTAL_CHAOS_DURATION": "2000" for fault in ("pod-delete", "pod-cpu-hog")}
    message = refused("pod-delete,pod-cpu-hog", both)
    assert "4000 s" in message
    assert message.endswith("give confirm=duration")


@pytest.mark.parametrize("fault", list_faults(), ids=lambda fault: fault.name)
def test_defaults_need_no_confirmation_but_for_a_full_outage(fault: Any) -> None:
    given = {"REPLICA_COUNT": "3", "SPOOF_MAP": '{"a": "b"}', "TARGET_NODES": "a", **NODE, **PORT}
    own = {name: value for name, value in given.items() if name in fault.parameters}
    outage = fault.name == "pod-network-partition"
    accepted(fault.name, own, *(("scrape-gap", "blast-radius") if outage else ()))


def test_an_unknown_confirmation_is_refused_with_the_known_ones() -> None:
    assert "did you mean scrape-gap? known are scrape-gap, blast-radius, duration" in refused(
        "pod-delete", {}, "scrape_gap"
    )
    assert [str(each) for each in Confirmation] == ["scrape-gap", "blast-radius", "duration"]


def test_the_embedded_stack_belongs_to_the_run() -> None:
    given = {"NETWORK_PACKET_LOSS_PERCENTAGE": "100", "PODS_AFFECTED_PERC": "100"}
    experiment = load_experiment("run_id: r-1").model_copy(
        update={"fault": "pod-network-loss", "fault_parameters": given, "chaos_s": 7200.0}
    )
    assert experiment.backend == "local"
    assert render(experiment)
    with pytest.raises(TemplateError, match="give confirm=scrape-gap"):
        render(experiment, cluster=True)
    with pytest.raises(TemplateError, match="give confirm=scrape-gap"):
        render(experiment.model_copy(update={"backend": "litmus"}))
    assert render(experiment, cluster=True, confirmed={"scrape-gap", "blast-radius", "duration"})


@pytest.mark.parametrize(
    ("rate", "bytes_a_second"),
    [("8bit", 1), ("1mbit", 125_000), ("2gbit", 250_000_000), ("3bps", 3), ("4kbps", 4_000), ("5mbps", 5_000_000)],
)
def test_rates_are_read_as_tc_does(rate: str, bytes_a_second: int) -> None:
    assert bytes_per_second(rate) == bytes_a_second
    with pytest.raises(TemplateError, match="must be a whole number with a unit of tc"):
        bytes_per_second(f"{rate} ")
