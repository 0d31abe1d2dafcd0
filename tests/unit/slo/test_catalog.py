"""The SLO documents that ship: what each use asks, and what it becomes with a server behind."""

from __future__ import annotations

import re

import pytest
import yaml

from aftershock.errors import SpecError
from aftershock.files import data_folder
from aftershock.slo.catalog import join, known_servers, known_specs, known_uses, list_text, locate
from aftershock.slo.objective import Objective, QuantileIndicator, RatioIndicator, ScalarIndicator, templates
from aftershock.slo.openslo import load_slos, read_slo_text

USES = ["agent", "batch", "chat", "code-completion", "rag"]

# guidellm's guide to service level objectives, 99 % of requests; batch and chat's latency are ours, as their files say.
BOUNDS = {
    "chat": {"ttft-p99": 200, "inter-token-p99": 50, "latency-p99": 10_200},
    "rag": {"latency-p99": 3000, "ttft-p99": 300, "inter-token-p99": 100},
    "agent": {"latency-p99": 5000},
    "code-completion": {"latency-p99": 2000},
    "batch": {"latency-p99": 30_000},
}


def rows(name: str) -> dict[str, Objective]:
    return {objective.name: objective for objective in load_slos(name)}


def of_the_server(name: str) -> dict[str, Objective]:
    return {key.removeprefix("server-"): one for key, one in rows(name).items() if key.startswith("server-")}


def test_what_ships() -> None:
    assert known_uses() == USES
    assert known_specs() == sorted([*USES, "canary", "llm-inference"])
    for family in ("vllm", "sglang", "tgi", "llamacpp", "triton", "kserve", "mlserver", "ray-serve", "istio", "envoy"):
        assert family in known_servers()
    assert "inference-gateway" in known_servers()
    listed = list_text()
    assert all(name in listed for name in (*known_specs(), *known_servers()))
    assert max(map(len, listed.splitlines()[: len(known_specs())])) < 120


@pytest.mark.parametrize("use", USES)
def test_a_use_alone_is_what_its_users_see(use: str) -> None:
    found = rows(use)
    latencies = {name: one.value for name, one in found.items() if isinstance(one.indicator, QuantileIndicator)}
    assert latencies == BOUNDS[use]
    assert set(found) == {*BOUNDS[use], "error-rate", "accuracy-drop", "recovery-time"}
    for objective in found.values():
        assert objective.severity == "critical"
        for query in templates(objective.indicator).values():
            names = re.findall(r"\b[a-z]+_[a-z_]+(?=[{\[])", query)
            assert names and all(name.startswith("aftershock_") for name in names), query


@pytest.mark.parametrize("server", known_servers())
@pytest.mark.parametrize("use", USES)
def test_with_a_server_its_view_is_shown_and_decides_nothing(use: str, server: str) -> None:
    alone, joined = rows(use), rows(f"{use}-{server}")
    own = {name: one for name, one in joined.items() if name not in alone}
    assert own, "a server that tells nothing"
    assert list(joined)[: len(alone)] == list(alone)
    for name, objective in own.items():
        assert name.startswith("server-") and objective.severity == "info"
        assert objective.stop is None
        for query in templates(objective.indicator).values():
            assert (
                "aftershock_" not in query and "{{ phase }}" not in query and "{{ window }}" in query + "{{ window }}"
            )
    for name in ("ttft-p99", "inter-token-p99", "latency-p99"):
        if name in BOUNDS[use] and f"server-{name}" in own:
            assert own[f"server-{name}"].target == alone[name].target


def test_a_row_is_there_where_the_server_tells_it_and_in_the_unit_of_its_bound() -> None:
    found = of_the_server("chat-vllm")
    assert list(found) == [
        "ttft-p99",
        "inter-token-p99",
        "latency-p99",
        "queue-time-p99",
        "success-rate",
        "kv-cache-usage",
        "waiting-requests",
        "cache-hit-rate",
    ]
    assert found["ttft-p99"].indicator == QuantileIndicator("vllm:time_to_first_token_seconds{}", 0.99, 1000)
    assert found["ttft-p99"].target == "<= 200 ms"
    assert found["success-rate"].target == ">= 99 %"
    assert found["kv-cache-usage"].target == "<= 95 %"
    assert isinstance(found["success-rate"].indicator, RatioIndicator)
    assert isinstance(found["kv-cache-usage"].indicator, ScalarIndicator)
    assert list(of_the_server("chat-llamacpp")) == ["waiting-requests", "cache-hit-rate"]
    assert list(of_the_server("agent-kserve")) == ["latency-p99"]
    assert list(of_the_server("agent-triton")) == [
        "latency-mean",
        "queue-time-mean",
        "success-rate",
        "waiting-requests",
    ]


def test_a_joined_document_can_be_read_copied_and_given_as_it_is() -> None:
    text, source = locate("rag-sglang")
    assert source == "rag-sglang" and text == read_slo_text("rag-sglang")
    kinds = [document["kind"] for document in yaml.safe_load_all(text)]
    assert kinds.count("SLI") == len(of_the_server("rag-sglang")), "an indicator that nothing refers to"
    assert "write_specs" not in text, "what is said of the parts is wrong of the whole"
    assert [one.name for one in load_slos(text)] == list(rows("rag-sglang"))
    lines = text.splitlines()
    for objective in rows("rag-sglang").values():
        assert lines[int(objective.source.rpartition(":")[2]) - 1].lstrip().startswith("- ")


@pytest.mark.parametrize("ref", ["chat-", "chat-vllama", "canary-vllm", "vllm", "objectives"])
def test_a_name_that_joins_nothing_is_refused(ref: str) -> None:
    with pytest.raises(SpecError, match=r"no such SLO spec; known are .*as chat-vllm"):
        load_slos(ref)


def test_only_a_use_can_be_joined() -> None:
    with pytest.raises(SpecError, match="'canary': cannot be joined with a server; give one of agent, batch, chat"):
        join("canary", "")
    assert join("chat", "") == read_slo_text("chat")


def test_the_table_of_servers_says_what_their_documents_have() -> None:
    """A row of the README against the rows of `chat-<server>`, where every column may be one."""
    columns = ["ttft-p99", "inter-token-p99", "latency", "queue-time", "success-rate", "kv-cache-usage"]
    columns += ["cache-hit-rate", "waiting-requests"]
    text = (data_folder("slo_specs") / "README.md").read_text()
    table = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.count("|") == 11
    ]
    said = {cells[0]: cells[2:] for cells in table if cells[0] in known_servers()}
    assert set(said) == set(known_servers())
    for server, cells in said.items():
        found = of_the_server(f"chat-{server}")
        for column, cell in zip(columns, cells, strict=True):
            there = (
                "yes" if column in found or f"{column}-p99" in found else "mean" if f"{column}-mean" in found else "no"
            )
            assert cell == there, (server, column)


@pytest.mark.parametrize("server", known_servers())
def test_the_selector_of_a_run_reaches_every_query_of_the_server(server: str) -> None:
    for use in USES:
        for objective in load_slos(f"{use}-{server}", 'namespace="llm"'):
            queries = templates(objective.indicator).values()
            assert not objective.name.startswith("server-") or all('namespace="llm"' in query for query in queries)
