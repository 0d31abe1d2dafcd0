"""Templates as files: the shipped ones hold together, and a broken one is refused before anybody chooses it."""

from __future__ import annotations

from pathlib import Path

import pytest

from aftershock.chaos.local.faults import FAULTS as LOCAL
from aftershock.chaos.template import WIDTH, FaultTemplate, describe, list_faults, list_text, load_fault
from aftershock.errors import ExitCode, TemplateError

FAULTS = list_faults()

SAME_EVERYWHERE = {
    "TOTAL_CHAOS_DURATION",
    "RAMP_TIME",
    "STATUS_CHECK_TIMEOUT",
    "DEFAULT_HEALTH_CHECK",
    "CHAOS_INTERVAL",
    "SEQUENCE",
    "PODS_AFFECTED_PERC",
    "TARGET_PODS",
    "TARGET_CONTAINER",
    "NODE_LABEL",
    "CONTAINER_RUNTIME",
    "SOCKET_PATH",
    "NETWORK_INTERFACE",
    "TARGET_SERVICE_PORT",
    "PROXY_PORT",
    "TOXICITY",
    "RESPONSE_BODY",
    "CORRELATION",
    "DESTINATION_IPS",
    "SOURCE_PORTS",
    "TARGET_NODES",
    "TARGET_NODE",
    "CHAOS_NODE",
}

OF_ITS_OWN = {
    ("TOTAL_CHAOS_DURATION", "node-memory-hog"),  # two minutes
    ("TOTAL_CHAOS_DURATION", "kubelet-service-kill"),  # less than a node takes to become NotReady is an error
    ("TOXICITY", "pod-http-latency"),  # slow answers are still answers
    ("TARGET_PODS", "pod-delete"),  # they are gone after the first kill
    ("DESTINATION_IPS", "pod-network-partition"),  # cut off, not slowed down
    ("NODE_LABEL", "node-drain"),  # these three hit one node
    ("NODE_LABEL", "node-taint"),
    ("NODE_LABEL", "kubelet-service-kill"),
}

TEMPLATE = """\
{#---
name: some-fault
summary: Does something to somebody.
layer: network
stage: warm-up
scope: Namespaced
tells: Whether somebody minds.
local: Nothing at all, it is a test.
parameters:
  TOTAL_CHAOS_DURATION: {type: integer, default: 30, minimum: 1, maximum: 86400, unit: s, help: How long it lasts}
  RAMP_TIME: {type: integer, default: 0, minimum: 0, maximum: 60, unit: s, help: How long to wait}
  STATUS_CHECK_TIMEOUT: {type: integer, default: 9, minimum: 1, maximum: 60, unit: s, help: How long to wait}
rbac:
  - {apiGroups: [""], resources: [pods], verbs: [get]}
---#}
{# A remark vanishes. #}
kind: ChaosEngine
all: [{{ engine_name }}, {{ run_id }}, {{ namespace }}, {{ label }}, {{ kind }}, {{ status_check_timeout }}]
litmus: [{{ chaos_namespace }}, {{ service_account }}]
env: {total: {{ TOTAL_CHAOS_DURATION }}, ramp: {{ RAMP_TIME }} }
"""


def write(folder: Path, text: str, name: str = "some-fault") -> Path:
    path = folder / f"{name}.yaml.j2"
    path.write_text(text, encoding="utf-8")
    return path


CATALOGUE = """
    container-kill disk-fill kubelet-service-kill
    node-cpu-hog node-drain node-io-stress node-memory-hog node-taint
    pod-autoscaler pod-cpu-hog pod-delete pod-dns-error pod-dns-spoof
    pod-http-latency pod-http-modify-body pod-http-modify-header pod-http-reset-peer pod-http-status-code
    pod-io-stress pod-memory-hog
    pod-network-corruption pod-network-duplication pod-network-latency pod-network-loss pod-network-partition
    pod-network-rate-limit
"""


def test_the_catalogue_is_complete() -> None:
    assert [fault.name for fault in FAULTS] == CATALOGUE.split()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_parameter_of_many_faults_says_the_same_in_each(fault: FaultTemplate) -> None:
    for other in FAULTS:
        if other.hits_nodes == fault.hits_nodes:
            for name in SAME_EVERYWHERE & set(fault.parameters) & set(other.parameters):
                if (name, fault.name) not in OF_ITS_OWN and (name, other.name) not in OF_ITS_OWN:
                    assert fault.parameters[name] == other.parameters[name], f"{name} in {other.name}"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_defaults_leave_a_service_that_can_answer(fault: FaultTemplate) -> None:
    defaults = {name: parameter.default for name, parameter in fault.parameters.items()}
    assert int(defaults["TOTAL_CHAOS_DURATION"]) <= (120 if fault.hits_nodes else 30)
    assert defaults.get("PODS_AFFECTED_PERC", "50") == "50"
    assert defaults.get("TARGET_SERVICE_PORT", "8000") == "8000"
    for latency in ("NETWORK_LATENCY", "LATENCY"):
        assert int(defaults.get(latency, "200")) <= 500
    assert int(defaults.get("NETWORK_PACKET_LOSS_PERCENTAGE", "1")) <= 20
    assert int(defaults.get("NETWORK_PACKET_CORRUPTION_PERCENTAGE", "1")) <= 20
    for share in ("CPU_LOAD", "FILESYSTEM_UTILIZATION_PERCENTAGE", "FILL_PERCENTAGE"):
        assert int(defaults.get(share, "1")) <= 80
    assert defaults.get("NODES_AFFECTED_PERC", "0") == "0"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_the_local_backend_cannot_do_is_said_with_what_comes_near(fault: FaultTemplate) -> None:
    cannot = fault.local.startswith("Cannot be done here")
    assert cannot == (fault.name not in LOCAL)
    if cannot:
        assert any(name in fault.local for name in LOCAL)


def test_rights_are_those_the_fault_needs() -> None:
    rights = {(rule.resources, rule.verbs) for rule in load_fault("pod-network-partition").rbac}
    assert (("networkpolicies",), ("create", "delete", "list", "get")) in rights
    assert not any("deployments" in resources for resources, _ in rights)
    drain = {(rule.resources, rule.verbs) for rule in load_fault("node-drain").rbac}
    taint = {(rule.resources, rule.verbs) for rule in load_fault("node-taint").rbac}
    assert (("nodes",), ("get", "list", "patch")) in drain
    assert taint - drain == {(("nodes",), ("get", "list", "patch", "update"))}
    for fault in FAULTS:
        resources = {resource for rule in fault.rbac for resource in rule.resources}
        assert (fault.scope == "Cluster") == ("nodes" in resources) == fault.hits_nodes
        assert {"pods", "jobs", "events", "chaosresults"} <= resources
        assert not {resource for rule in fault.rbac for resource in rule.verbs} & {"*"}


def test_an_unknown_fault_gets_a_suggestion_and_the_known_ones() -> None:
    with pytest.raises(TemplateError) as caught:
        load_fault("pod-delte")
    assert "unknown fault 'pod-delte'; did you mean pod-delete? known are container-kill, " in str(caught.value)
    assert caught.value.exit_code is ExitCode.BAD_INPUT


@pytest.mark.parametrize("name", ["", "../litmus_templates/pod-delete", "/etc/passwd", "README", "x" * 10_000, "*"])
def test_a_name_is_never_a_path(name: str) -> None:
    with pytest.raises(TemplateError, match="unknown fault"):
        load_fault(name)


def test_a_new_file_is_a_new_fault(tmp_path: Path) -> None:
    write(tmp_path, TEMPLATE)
    (only,) = list_faults(tmp_path)
    assert (only.name, only.stage, list(only.parameters)) == (
        "some-fault",
        "warm-up",
        ["TOTAL_CHAOS_DURATION", "RAMP_TIME", "STATUS_CHECK_TIMEOUT"],
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{#---\n", "{#-\n", ":1: must start with a header"),
        ("\n---#}", "\n---#} #", "must start with a header"),
        ("layer: network", "layer: network: x", ":4: header is not YAML"),
        ("layer: network", "layer: cloud", "layer: Input should be"),
        ("stage: warm-up\n", "", "stage: Field required"),
        ("scope: Namespaced", "scope: Namespaced\ncolour: red", "colour: Extra inputs"),
        ("name: some-fault", "name: other-fault", "name is 'other-fault', must be that of the file"),
        ("unit: s, help: How long it lasts", "unit: s", "parameters.TOTAL_CHAOS_DURATION.help: Field required"),
        ("default: 30", "default: 0", "default '0' must be a whole number of s from 1 to 86400"),
        ("maximum: 86400", "maximum: 86401", "faults are finite"),
        ("  RAMP_TIME: {", "  RAMP: {", "RAMP_TIME is missing"),
        ("default: 0, minimum", "default: 0, at_most: SPEED, minimum", "RAMP_TIME refers to SPEED"),
        ("{{ RAMP_TIME }}", "0", "RAMP_TIME is not placed in the template"),
        ("{{ run_id }}", "x", "run_id is not placed"),
        ("{{ run_id }}", "{{ run_ids }}", "run_id is not placed"),
        ("{{ RAMP_TIME }}", "{{ RAMP_TIME }}, x: {{ SPEED }}", "SPEED is neither a parameter nor given"),
        ("{{ RAMP_TIME }}", "{{ RAMP_TIME | int }}", "names only, not Filter"),
        ("{{ RAMP_TIME }}", "{{ RAMP_TIME.x }}", "not Getattr"),
        ("{{ RAMP_TIME }}", "{{ RAMP_TIME ~ 1 }}", "not Concat"),
        ("{{ RAMP_TIME }}", "{% if RAMP_TIME %}{{ RAMP_TIME }}{% endif %}", "not If"),
        ("{{ RAMP_TIME }}", "{% for x in [1] %}{{ RAMP_TIME }}{% endfor %}", "not For"),
        ("{{ RAMP_TIME }}", "{% include 'x' %}", "not Include"),
        ("{{ RAMP_TIME }}", "{% set RAMP_TIME = 1 %}", "not Assign"),
        ("{{ RAMP_TIME }}", "{{ RAMP_TIME", ":20: "),
    ],
)
def test_a_broken_template_is_refused_with_its_place(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in TEMPLATE
    path = write(tmp_path, TEMPLATE.replace(old, new, 1))
    with pytest.raises(TemplateError) as caught:
        load_fault("some-fault", tmp_path)
    message = str(caught.value).replace("text and {{ NAME }} only", "names only")
    assert message.startswith(str(path))
    assert said in message
    assert "\n" not in message


def test_a_template_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "some-fault.yaml.j2").write_bytes(b"\xff\xfe")
    with pytest.raises(TemplateError, match="cannot be read"):
        load_fault("some-fault", tmp_path)


def test_the_catalogue_has_a_line_for_each_fault() -> None:
    text = list_text()
    for fault in FAULTS:
        assert any(line.startswith(fault.name) and fault.stage in line for line in text.splitlines())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_description_says_everything(fault: FaultTemplate) -> None:
    text = describe(fault)
    words = " ".join(text.split())
    for sentence in (fault.summary, " ".join(fault.tells.split()), " ".join(fault.local.split())):
        assert sentence in words
    for name, parameter in fault.parameters.items():
        line = next(line for line in text.splitlines() if line.split()[:2] == [name, parameter.type])
        assert f" {parameter.default or ('required' if parameter.required else '-')} " in line
        assert " ".join(parameter.help.split()) in words
    assert "litmuschaos.io" in text
    assert max(map(len, text.splitlines())) <= WIDTH
