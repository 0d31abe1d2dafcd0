"""Rendering: what a good set of parameters becomes, and that no value, however hostile, becomes YAML of its own."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from aftershock.chaos.engine import LOADER, RUN_ID_LABEL, AppInfo, parse_engine
from aftershock.chaos.hazards import RUNTIMES
from aftershock.chaos.lint.crd import schemas
from aftershock.chaos.lint.linter import lint
from aftershock.chaos.parameters import LONGEST_VALUE, Parameter
from aftershock.chaos.render import LONGEST_NAME, engine_name, render, render_fault
from aftershock.chaos.template import FaultTemplate, as_scalar, list_faults, load_fault
from aftershock.errors import ExperimentError, InputError, TemplateError
from aftershock.experiment import Experiment, load_experiment

HERE = Path(__file__).parent
FAULTS = list_faults()
NAMES = [fault.name for fault in FAULTS]
SCHEMAS = schemas()

KEPT = "$.spec.components.runner.nodeSelector: unknown"
"""The operator reads it; the portal's schema does not name it and keeps it, as everything below `runner`."""

NODES = {"TARGET_NODES": "worker-1"}
NODE = {"TARGET_NODE": "worker-1", "CHAOS_NODE": "worker-2"}
NEEDED: dict[str, dict[str, str]] = {
    "kubelet-service-kill": NODE,
    "node-cpu-hog": NODES,
    "node-drain": NODE,
    "node-io-stress": NODES,
    "node-memory-hog": NODES,
    "node-taint": NODE,
    "pod-autoscaler": {"REPLICA_COUNT": "3"},
    "pod-dns-spoof": {"SPOOF_MAP": '{"huggingface.co": "mirror.internal"}'},
}
"""What has to be given, because no default is safe."""

HOSTILE = [
    'x"\n- name: EVIL\n  value: "1',
    "x', y: 'z",
    "x\nspec:\n  engineState: stop",
    "a: b",
    "- a",
    "# comment",
    "value # comment",
    "&anchor x",
    "*alias",
    "!!python/object/apply:os.system ['id']",
    "{{ namespace }}",
    "{% raw %}",
    "{# gone #}",
    "}}",
    "---",
    "...",
    "%YAML 1.1",
    "[1, 2]",
    "{a: b}",
    "| \n x",
    "> x",
    "null",
    "~",
    "true",
    "0x10",
    "1e3",
    "\\",
    "\\u0022",
    "`id`",
    "$(id)",
    "tab\tand\rreturn",
    "nul\x00",
    "\x85\u2028\u2029\ufeff",
    "\ud800",
    "🌍" * 100,
    "a" * 10_000,
    "'\"" * 5_000,
    "- " * 5_000,
    "value-of-JITTER",
]


def load(text: str) -> Any:
    return yaml.load(text, Loader=LOADER)


@cache
def golden(name: str) -> str:
    return (HERE / "golden" / f"{name}.yaml").read_text()


def crd_faults(document: Any, schema: dict[str, Any]) -> list[str]:
    """What an API server with `schema` would refuse or drop, and what it would keep without knowing it (a typo)."""
    errors = jsonschema.Draft7Validator(schema).iter_errors(document)
    unknown_paths = [path for path in unknown(document, schema, "$") if path != KEPT]
    return [f"{error.json_path}: {error.message}" for error in errors] + unknown_paths


def unknown(node: Any, schema: dict[str, Any], path: str) -> list[str]:
    if isinstance(node, list):
        items = schema.get("items", {})
        return [each for index, item in enumerate(node) for each in unknown(item, items, f"{path}[{index}]")]
    known = schema.get("properties")
    if not isinstance(node, dict) or known is None:  # metadata, and maps of strings: anything goes
        return []
    found = [f"{path}.{key}: unknown" for key in node if key not in known]
    return found + [each for key in node if key in known for each in unknown(node[key], known[key], f"{path}.{key}")]


def assert_published_crds_accept(text: str) -> None:
    document = load(text)
    for name, schema in SCHEMAS.items():
        assert crd_faults(document, schema) == [], name


def experiment(**fields: Any) -> Experiment:
    return load_experiment(yaml.safe_dump({"run_id": "r-1"} | fields))


def environments(text: str) -> list[dict[str, str]]:
    return [dict(each.env) for each in parse_engine(text, "test").experiments]


def environment(text: str) -> dict[str, str]:
    (only,) = environments(text)
    return only


def node_selectors(document: Any) -> list[Any]:
    """Take them out of the document."""
    spec = document["spec"]
    parts = [spec.get("components", {}).get("runner", {}), spec["experiments"][0]["spec"]["components"]]
    return [part.pop("nodeSelector", None) for part in parts]


# --- what a good experiment becomes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_defaults_render_to_the_golden_file_and_pass_crds_and_lint(name: str) -> None:
    text = render_fault(name, NEEDED.get(name, {}))
    given = "".join(f" -p '{key}={value}'" for key, value in NEEDED.get(name, {}).items())
    assert text == golden(name), f"if meant: aftershock render {name}{given} > the file"
    assert_published_crds_accept(text)
    assert lint(text, name) == []


def test_there_is_no_golden_file_without_a_template() -> None:
    assert sorted(path.stem for path in (HERE / "golden").glob("*.yaml")) == NAMES


def test_the_crd_check_can_fail() -> None:
    good = yaml.safe_load(render_fault("pod-delete", {}))
    assert len(SCHEMAS) == 3

    def broken(change: str, value: Any, *path: str | int) -> list[list[str]]:
        document = json.loads(json.dumps(good))
        node = document
        for step in path:
            node = node[step]
        node[change] = value
        return [crd_faults(document, schema) for schema in SCHEMAS.values()]

    assert all(broken("rank", 1, "spec", "experiments", 0, "spec"))
    assert all(broken("jobCleanupPolicy", "delete", "spec"))
    assert all(broken("engineState", "on", "spec"))
    assert all(broken("value", 5, "spec", "experiments", 0, "spec", "components", "env", 0))
    assert all(broken("timeout", "5", "spec", "experiments", 0, "spec", "components", "statusCheckTimeouts"))


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_the_engine_is_what_the_experiment_says(fault: FaultTemplate) -> None:
    target = {"namespace": "llm", "label": "team/app=vllm", "kind": "statefulset"}
    needed = NEEDED.get(fault.name, {})
    text = render(experiment(fault=fault.name, fault_parameters=needed, chaos_s=142, **target))
    engine = parse_engine(text, "test")
    assert engine.name == engine_name(fault.name, "r-1")
    assert (engine.namespace, engine.labels[RUN_ID_LABEL], engine.state, engine.uid) == ("llm", "r-1", "active", None)
    assert engine.labels["app.kubernetes.io/managed-by"] == "aftershock"
    assert engine.appinfo == (AppInfo() if fault.hits_nodes else AppInfo("llm", "team/app=vllm", "statefulset"))
    (only,) = engine.experiments
    assert only.name == fault.name
    assert only.env["TOTAL_CHAOS_DURATION"] == "142"
    outside = {name for name, parameter in fault.parameters.items() if parameter.rendered_as}
    assert {*only.env, *outside, "STATUS_CHECK_TIMEOUT"} == set(fault.parameters)
    assert only.status_check_timeout_s == 180.0
    spec = engine.document["spec"]
    assert spec["chaosServiceAccount"] == ("aftershock-node-chaos" if fault.hits_nodes else "aftershock-pod-chaos")
    assert spec["jobCleanUpPolicy"] == "delete"
    assert spec["terminationGracePeriodSeconds"] == 60
    assert parse_engine(yaml.safe_dump(dict(engine.document)), "again") == engine


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_engine_and_account_can_be_elsewhere_than_the_target(fault: FaultTemplate) -> None:
    where = {"chaos_namespace": "litmus", "service_account": "1.5"}  # a number, to careless YAML
    given = {"fault": fault.name, "fault_parameters": NEEDED.get(fault.name, {}), "chaos_s": 60}
    text, usual = (render(experiment(**given, **fields)) for fields in (where, {}))
    assert_published_crds_accept(text)
    document = load(text)
    assert document["metadata"].pop("namespace") == "litmus"
    assert document["spec"].pop("chaosServiceAccount") == "1.5"
    meant = load(usual)
    assert meant["metadata"].pop("namespace") == "inference"
    assert meant["spec"].pop("chaosServiceAccount") == fault.service_account
    assert document == meant, "the target stays where it is"


def test_parameters_land_in_the_environment() -> None:
    given = {"NETWORK_LATENCY": "750", "JITTER": "100", "TARGET_PODS": "a-1,a-2", "STATUS_CHECK_TIMEOUT": "600"}
    only = parse_engine(render_fault("pod-network-latency", given), "test").experiments[0]
    assert only.status_check_timeout_s == 600.0
    for name in ("NETWORK_LATENCY", "JITTER", "TARGET_PODS"):
        assert only.env[name] == given[name]


def test_the_duration_is_the_experiments_in_whole_seconds_unless_given() -> None:
    def duration(**fields: Any) -> str:
        return parse_engine(render(experiment(**fields)), "test").experiments[0].env["TOTAL_CHAOS_DURATION"]

    assert duration(chaos_s=12.9) == "12"
    assert duration(chaos_s=12.9, fault_parameters={"TOTAL_CHAOS_DURATION": 7}) == "7"


def test_a_short_run_lowers_the_default_interval_but_refuses_a_given_one() -> None:
    env = parse_engine(render(experiment(chaos_s=5)), "test").experiments[0].env
    assert (env["TOTAL_CHAOS_DURATION"], env["CHAOS_INTERVAL"]) == ("5", "5")
    with pytest.raises(TemplateError, match="CHAOS_INTERVAL='6': must be at most TOTAL_CHAOS_DURATION, which is 5"):
        render(experiment(chaos_s=5, fault_parameters={"CHAOS_INTERVAL": 6}))


@pytest.mark.parametrize("unit", ["PERCENTAGE", "BYTES"])
@pytest.mark.parametrize("name", ["pod-io-stress", "node-io-stress"])
def test_of_the_two_sizes_of_io_stress_litmus_sees_the_given_one(name: str, unit: str) -> None:
    env = environment(render_fault(name, {**NEEDED.get(name, {}), f"FILESYSTEM_UTILIZATION_{unit}": "2"}))
    other = {"PERCENTAGE": "BYTES", "BYTES": "PERCENTAGE"}[unit]
    # The code compares with "0": an empty one would be taken for a size.
    assert (env[f"FILESYSTEM_UTILIZATION_{unit}"], env[f"FILESYSTEM_UTILIZATION_{other}"]) == ("2", "0")


def test_node_memory_hog_holds_half_for_two_minutes_unless_told_otherwise() -> None:
    def sizes(**given: str) -> tuple[str, ...]:
        env = environment(render_fault("node-memory-hog", NODES | given))
        names = ("MEMORY_CONSUMPTION_PERCENTAGE", "MEMORY_CONSUMPTION_MEBIBYTES", "TOTAL_CHAOS_DURATION")
        return tuple(env[name] for name in names)

    assert sizes() == ("50", "0", "120")
    assert sizes(MEMORY_CONSUMPTION_PERCENTAGE="30", MEMORY_CONSUMPTION_MEBIBYTES="0") == ("30", "0", "120")
    assert sizes(MEMORY_CONSUMPTION_MEBIBYTES="4096", TOTAL_CHAOS_DURATION="7") == ("0", "4096", "7")
    with pytest.raises(TemplateError, match="give one of the two"):
        sizes(MEMORY_CONSUMPTION_MEBIBYTES="4096", MEMORY_CONSUMPTION_PERCENTAGE="30")


@pytest.mark.parametrize("name", ["node-drain", "node-taint", "kubelet-service-kill"])
def test_litmus_own_pods_keep_off_the_node_that_they_take_down(name: str) -> None:
    document = load(render_fault(name, NODE))
    assert node_selectors(document) == [{"kubernetes.io/hostname": "worker-2"}] * 2


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("pod-autoscaler", {}, "REPLICA_COUNT is not given: a number that is right for one service"),
        ("pod-dns-spoof", {}, "SPOOF_MAP is not given: without it no look-up is touched"),
        ("pod-dns-spoof", {"SPOOF_MAP": "{'a': 'b'}"}, "must be a JSON object of host names"),
        ("pod-dns-error", {"TARGET_HOSTNAMES": "a.com"}, "must be a JSON list of host names"),
        ("pod-http-modify-header", {"HEADERS_MAP": '{"X-A": "it\'s"}'}, "must be a JSON object from header to value"),
        ("pod-network-rate-limit", {"NETWORK_BANDWIDTH": "1"}, "with a unit of tc"),
        ("node-drain", {"TARGET_NODE": "worker-1"}, "CHAOS_NODE is not given: Litmus' own pods must not run"),
        ("node-taint", NODE | {"TAINTS": "a=b"}, "must be one key=value:Effect"),
        ("node-taint", NODE | {"TAINTS": "node.kubernetes.io/unreachable=x:NoExecute"}, "not one of Kubernetes"),
        ("node-taint", NODE | {"TAINTS": "nvidia.com/gpu=present:NoSchedule"}, "not one of Kubernetes"),
        ("kubelet-service-kill", NODE | {"TOTAL_CHAOS_DURATION": "30"}, "from 60 to 86400"),
        ("node-cpu-hog", {"TARGET_NODES": "a", "NODE_LABEL": "a=b"}, "would ignore it beside TARGET_NODES"),
        ("node-cpu-hog", {"NODE_LABEL": "a=b,c=d"}, "must be exactly one key=value"),
    ],
)
def test_what_litmus_would_misread_is_refused(name: str, given: dict[str, str], said: str) -> None:
    with pytest.raises(TemplateError) as caught:
        render_fault(name, given)
    assert str(caught.value).startswith(f"{name}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_control_run_has_no_engine() -> None:
    with pytest.raises(InputError, match="fault=none"):
        render(experiment(fault="none"))


# --- names ----------------------------------------------------------------------------------------------------------


def test_a_short_name_is_kept_and_a_long_one_keeps_its_beginning() -> None:
    assert engine_name("pod-delete", "r-1") == "pod-delete-r-1"
    name = engine_name("pod-network-partition", "20261201-053000-nightly-canary")
    assert name.startswith("pod-network-partition-20261201-")
    assert len(name) <= LONGEST_NAME


@given(
    st.sampled_from(NAMES),
    st.lists(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?", fullmatch=True), min_size=2, max_size=2, unique=True),
)
def test_names_are_legal_wherever_litmus_puts_them_and_never_clash(fault: str, runs: list[str]) -> None:
    names = [engine_name(fault, run) for run in runs]
    assert names[0] != names[1]
    for name in names:
        pattern = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?"
        assert len(name) <= LONGEST_NAME
        for whole in (name, f"{name}-runner", f"{name}-{fault}"):
            assert re.fullmatch(pattern, whole)
        assert len(f"{name}-runner") <= 63


# --- values ---------------------------------------------------------------------------------------------------------


def value_of(parameter: Parameter) -> st.SearchStrategy[str]:
    match parameter.type:
        case "integer":
            return st.integers(parameter.minimum, parameter.maximum).map(str)
        case "boolean":
            return st.sampled_from(["true", "false", "True"])
        case "choice":
            return st.sampled_from(parameter.choices)
        case "string":
            matching = st.from_regex(parameter.pattern, fullmatch=True).filter(lambda text: len(text) <= LONGEST_VALUE)
            return matching.filter(lambda text: parameter.refusal(text) is None)


@st.composite
def valid_sets(draw: st.DrawFn) -> tuple[FaultTemplate, dict[str, str]]:
    """A fault and any choice of its parameters that respects what its header says."""
    fault = draw(st.sampled_from(FAULTS))
    chosen = draw(st.sets(st.sampled_from(sorted(fault.parameters))))
    values = {name: draw(value_of(fault.parameters[name])) for name in sorted(chosen)}
    values = NEEDED.get(fault.name, {}) | values
    assume(values.get("TARGET_NODE") != values.get("CHAOS_NODE", ""))
    assume(values.get("PROXY_PORT", "20000") != values.get("TARGET_SERVICE_PORT", "8000"))
    for name in sorted(chosen):
        limit, other = fault.parameters[name].at_most, fault.parameters[name].instead_of
        if limit:
            values[limit] = str(max(int(values[name]), int(values.get(limit, "1"))))
        values.pop(other, None)
    if "CONTAINER_RUNTIME" in values:
        values["SOCKET_PATH"] = RUNTIMES[values["CONTAINER_RUNTIME"]]
    if fault.name == "pod-delete" and "TARGET_PODS" in values:
        values["CHAOS_INTERVAL"] = values["TOTAL_CHAOS_DURATION"] = values.get("TOTAL_CHAOS_DURATION", "30")
    return fault, values


def tunables(fault: FaultTemplate, values: dict[str, str]) -> dict[str, str]:
    """Those of the values that Litmus reads from the environment, as it reads them."""
    outside = {"STATUS_CHECK_TIMEOUT", *(name for name, each in fault.parameters.items() if each.rendered_as)}
    return {
        name: value.lower() if fault.parameters[name].type == "boolean" else value
        for name, value in values.items()
        if name not in outside
    }


@settings(max_examples=80, deadline=None)
@given(valid_sets())
def test_any_valid_set_renders_and_passes_the_published_crds(case: tuple[FaultTemplate, dict[str, str]]) -> None:
    fault, values = case
    text = render_fault(fault.name, values)
    assert_published_crds_accept(text)
    meant = tunables(fault, values)
    assert meant.items() <= environment(text).items()


def assert_lands_or_is_refused(fault: FaultTemplate, name: str, value: str) -> bool:
    """Whether it landed. If so: as one scalar, in its place, and nothing else is other than it is without it."""
    try:
        text = render_fault(fault.name, {**NEEDED.get(fault.name, {}), name: value})
    except (TemplateError, ExperimentError) as error:
        assert name in str(error)
        assert "\n" not in str(error)
        assert len(str(error)) < 1_000
        return False
    parsed, plain = load(text), load(golden(fault.name))
    components = [document["spec"]["experiments"][0]["spec"]["components"] for document in (parsed, plain)]
    env, plain_env = ({each["name"]: each["value"] for each in part.pop("env")} for part in components)
    timeout = components[0].pop("statusCheckTimeouts")["timeout"]
    components[1].pop("statusCheckTimeouts")
    selectors = [node_selectors(document) for document in (parsed, plain)]
    assert parsed == plain
    assert list(env) == list(plain_env)
    env["STATUS_CHECK_TIMEOUT"] = str(timeout)
    parameter = fault.parameters[name]
    if parameter.rendered_as:
        assert selectors[0] == [{"kubernetes.io/hostname": value}] * 2
        return True
    assert selectors[0] == selectors[1]
    if parameter.type == "string":
        assert env[name] == value
    elif not value.strip():
        assert env[name] == parameter.unset
    else:
        assert env[name].casefold() == value.strip().lstrip("0").casefold() or int(env[name]) == int(value)
    assert all(isinstance(each, str) for each in env.values())
    return True


@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: ascii(value)[:30])
def test_hostile_text_lands_as_one_scalar_or_is_refused(value: str) -> None:
    seen: list[tuple[str, Parameter]] = []
    for fault in FAULTS:
        for name, parameter in fault.parameters.items():
            if (name, parameter) not in seen:  # many faults share a parameter
                seen.append((name, parameter))
                landed = assert_lands_or_is_refused(fault, name, value)
                assert not (landed and parameter.type == "integer")


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(FAULTS), st.data(), st.one_of(st.text(), st.text(st.characters(categories=["Cs", "Cc", "Zl"]))))
def test_any_text_lands_as_one_scalar_or_is_refused(fault: FaultTemplate, data: st.DataObject, value: str) -> None:
    assert_lands_or_is_refused(fault, data.draw(st.sampled_from(sorted(fault.parameters))), value)


@settings(max_examples=100, deadline=None)
@given(st.text(st.characters(exclude_characters='"$`\\', exclude_categories=["Cs", "Cc"]), max_size=300))
def test_free_text_lands_as_it_is(value: str) -> None:
    assert assert_lands_or_is_refused(load_fault("pod-http-status-code"), "RESPONSE_BODY", value)


@pytest.mark.parametrize(
    "field", ["namespace", "label", "kind", "run_id", "fault", "chaos_namespace", "service_account"]
)
@pytest.mark.parametrize("value", [*HOSTILE, "", "a,b", "app=a,tier=b", "x" * 64, "=", "a="])
def test_a_hostile_target_is_refused(field: str, value: str) -> None:
    try:
        text = render(experiment(**{field: value}))
    except InputError as error:
        assert "\n" not in str(error)
    else:
        # Some of these are harmless as a name; then they are names.
        engine = parse_engine(text, "test")
        account = engine.document["spec"]["chaosServiceAccount"]
        assert value in (engine.namespace, engine.labels[RUN_ID_LABEL], account)
        assert value in ("null", "true", "0x10", "1e3", "x" * 32) or (field, value) == ("service_account", "x" * 64)


@given(st.text(max_size=200))
def test_any_text_is_one_scalar_to_yaml(value: str) -> None:
    for loader in (yaml.SafeLoader, yaml.CSafeLoader):
        assert yaml.load(f"- {as_scalar(value)}\n- {as_scalar(7)}\n", Loader=loader) == [value, 7]


def test_only_text_and_integers_are_scalars() -> None:
    with pytest.raises(TemplateError, match="given float"):
        as_scalar(1.5)


# --- templates that do not do what they say -------------------------------------------------------------------------


def mended(folder: Path, old: str, new: str) -> Path:
    source = load_fault("pod-network-latency").source
    assert old in source
    (folder / "pod-network-latency.yaml.j2").write_text(source.replace(old, new), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: {{ engine_name }}", "name: x-{{ engine_name }}", "does not stand alone"),
        ("value: {{ JITTER }}", "value: '{{ JITTER }}'", "does not stand alone"),
        ("value: {{ JITTER }}", 'value: "{{ JITTER }}"', "is not YAML"),
        ("value: {{ JITTER }}", "value: [{{ JITTER }}]", "spec.experiments.0.spec.components.env"),
        ("name: JITTER\n", "name: JITTERS\n", "components.env came out as"),
        ("value: {{ JITTER }}", "value: {{ CORRELATION }} # {{ JITTER }}", "components.env came out as"),
        ("appns: {{ namespace }}", "appns: {{ kind }} # {{ namespace }}", "spec.appinfo came out as"),
        ("engineState: active", "engineState: stop", "spec.engineState came out as 'stop'"),
        ("- name: pod-network-latency", "- name: pod-network-loss", "spec.experiments came out as"),
        ("timeout: {{ status_check_timeout }}", "delay: {{ status_check_timeout }}", "statusCheckTimeouts came out as"),
    ],
)
def test_a_template_that_puts_a_value_elsewhere_is_refused(tmp_path: Path, old: str, new: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        render(
            experiment(fault="pod-network-latency", fault_parameters={"STATUS_CHECK_TIMEOUT": 600}),
            folder=mended(tmp_path, old, new),
        )
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
