"""Servers are told by their pages, and what is asked of them is on these pages.

`pages/` holds pages of real servers. `documented/` holds the public names of servers that were not at hand, with values
that are made up: they hold the queries to those names, and prove nothing about a running server.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aftershock.errors import InputError, TargetError
from aftershock.files import data_folder
from aftershock.metrics.families.describe import describe, examine
from aftershock.metrics.families.measure import Level, Metric, Quantile, Share
from aftershock.metrics.families.openslo import checked_selector, file_text
from aftershock.metrics.families.page import read_page
from aftershock.metrics.families.registry import FAMILIES, detect
from aftershock.metrics.families.signal import INSTEAD, Signal
from aftershock.metrics.selectors import selectors
from aftershock.slo import promql
from aftershock.slo.openslo import load_slos

HERE = Path(__file__).parent
_SPEC = importlib.util.spec_from_file_location("write_specs", HERE / "write_specs.py")
assert _SPEC and _SPEC.loader
write_specs = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(write_specs)
golden, pages, shown, SELECTOR = write_specs.golden, write_specs.pages, write_specs.shown, write_specs.SELECTOR

REAL = {
    "vllm": [("vllm", {Signal.SPECULATION})],
    "vllm-moe": [("vllm", {Signal.LORA, Signal.SPECULATION})],
    "llamacpp": [
        (
            "llamacpp",
            {
                Signal.LATENCY,
                Signal.TTFT,
                Signal.INTER_TOKEN,
                Signal.QUEUE_TIME,
                Signal.SUCCESS,
                Signal.REQUESTS,
                Signal.CACHE_USAGE,
                Signal.LORA,
            },
        )
    ],
    "kserve": [("kserve", set(Signal) - {Signal.LATENCY, Signal.REQUESTS} - set(INSTEAD))],
    "mlserver": [
        (
            "mlserver",
            set(Signal) - {Signal.LATENCY, Signal.SUCCESS, Signal.REQUESTS, Signal.RUNNING} - set(INSTEAD),
        )
    ],
}


def page_text(name: str) -> str:
    return next(page for page in pages() if page.stem == name).read_text()


def variants(text: str) -> list[str]:
    return [found.variant.name for found in detect(text, "page")]


@pytest.mark.parametrize("name", REAL)
def test_real_servers_are_told_and_what_they_lack_is_named(name: str) -> None:
    found = detect(page_text(name), name)
    assert [(each.variant.name, set(each.missing)) for each in found] == REAL[name]


@pytest.mark.parametrize("page", sorted((HERE / "documented").glob("*.txt")), ids=lambda page: page.stem)
def test_documented_servers_are_told_by_their_own_name(page: Path) -> None:
    assert variants(page.read_text())[0] == page.stem


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_the_queries_are_the_golden_ones(page: Path) -> None:
    expected = (HERE / "golden" / f"{page.stem}.promql").read_text()
    assert golden(shown(page)) == expected, "if meant: python tests/unit/metrics/write_specs.py"


def test_there_is_a_golden_file_for_each_page_and_a_page_for_each_variant() -> None:
    names = {page.stem for page in pages()}
    assert {path.stem for path in (HERE / "golden").glob("*.promql")} == names
    seen = {found.variant.name for page in pages() for found in shown(page)}
    assert seen == {variant.name for family in FAMILIES for variant in family.variants}


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_a_golden_query_asks_for_nothing_that_is_not_on_the_page(page: Path) -> None:
    text = (HERE / "golden" / f"{page.stem}.promql").read_text()
    asked = {
        selector.partition("{")[0]
        for line in text.splitlines()
        if line and not line.startswith("#")
        for selector in selectors(promql.fill(line, phase=promql.Phase.CHAOS, window_s=30))
    }
    exposed = {line.split()[2] for line in page.read_text().splitlines() if line.startswith("# TYPE ")}
    parts = {f"{name}{part}" for name in exposed for part in ("", "_bucket", "_sum", "_count")}
    assert asked and asked <= parts


def test_the_files_for_servers_are_what_the_families_say() -> None:
    written = {path.stem: path.read_text() for path in (data_folder("slo_specs") / "servers").glob("*.yaml")}
    said = {variant.name: file_text(family, variant) for family in FAMILIES for variant in family.variants}
    assert written == said, "if meant: python tests/unit/metrics/write_specs.py"


def test_what_no_version_of_a_family_tells_has_a_reason() -> None:
    for family in FAMILIES:
        told = {signal for variant in family.variants for signal in variant.measures}
        told |= {INSTEAD[signal] for signal in told if signal in INSTEAD}
        assert set(Signal) - set(INSTEAD) - told <= set(family.missing), family.title


def test_several_families_on_one_page_are_all_told_the_engine_first() -> None:
    both = page_text("vllm") + page_text("istio") + page_text("envoy")
    assert variants(both) == ["vllm", "istio", "envoy"]
    assert variants(page_text("vllm-ray")) == ["vllm-ray", "ray-serve"]
    assert variants(page_text("kserve") + page_text("vllm")) == ["vllm", "kserve"]


def test_a_proxy_s_own_end_decides_where_both_are_on_the_page() -> None:
    assert variants(page_text("istio") + page_text("istio-source")) == ["istio"]


def test_earlier_names_of_a_version_are_taken() -> None:
    text = page_text("vllm").replace("vllm:inter_token_latency_seconds", "vllm:time_per_output_token_seconds")
    text = text.replace("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")
    text = re.sub(r"vllm:prefix_cache_(queries|hits)", r"vllm:gpu_prefix_cache_\1", text)
    (found,) = detect(text, "0.8")
    asked = {signal: measure.promql() for signal, measure in found.measures.items()}
    assert "vllm:time_per_output_token_seconds_bucket" in asked[Signal.INTER_TOKEN]
    assert "vllm:gpu_cache_usage_perc" in asked[Signal.CACHE_USAGE]
    assert "vllm:gpu_prefix_cache_hits_total" in asked[Signal.CACHE_HITS]
    colon = page_text("vllm-ray").replace("ray_vllm_", "ray_vllm:")
    assert "ray_vllm:time_to_first_token_seconds_bucket" in detect(colon, "ray")[0].measures[Signal.TTFT].promql()


def test_what_a_version_does_not_show_is_missing_and_said_by_name() -> None:
    text = "\n".join(line for line in page_text("vllm").splitlines() if "kv_cache_usage_perc" not in line)
    found = detect(text, "page")
    assert Signal.CACHE_USAGE in found[0].missing
    assert "kv-cache-usage        not shown by this version" in describe(found, "")
    assert Signal.CACHE_USAGE not in detect(page_text("vllm"), "page")[0].missing


def test_a_mean_is_only_a_makeshift() -> None:
    (plain,) = detect(page_text("triton"), "page")
    assert Signal.LATENCY_MEAN in plain.measures and Signal.LATENCY in plain.missing
    (full,) = detect(page_text("triton-llm"), "page")
    assert Signal.LATENCY in full.measures and Signal.LATENCY_MEAN not in full.measures
    without = "\n".join(line for line in page_text("triton-llm").splitlines() if 'quantile="0.99"' not in line)
    (other,) = detect(without, "page")
    assert Signal.LATENCY not in other.measures and Signal.LATENCY_MEAN in other.measures, "it has no P99, only P50"


def test_words_of_speculative_decoding_are_those_of_vllm() -> None:
    text = page_text("vllm") + (
        "# TYPE vllm:spec_decode_num_draft_tokens_total counter\n"
        "# TYPE vllm:spec_decode_num_accepted_tokens_total counter\n"
    )
    (found,) = detect(text, "page")
    assert not found.missing
    assert found.measures[Signal.SPECULATION].promql() == (
        "100 * sum(increase(vllm:spec_decode_num_accepted_tokens_total[{{ window }}]))"
        " / sum(increase(vllm:spec_decode_num_draft_tokens_total[{{ window }}]))"
    )


def test_ingredients_become_promql_and_the_source_of_an_slo() -> None:
    quantile = Quantile(histogram=Metric("a_seconds", 'x="1"'), scale=1000)
    assert quantile.promql('job="j"') == (
        '1000 * histogram_quantile(0.99, sum by (le) (rate(a_seconds_bucket{x="1",job="j"}[{{ window }}])))'
    )
    assert quantile.source('job="j"') == {"histogram": 'a_seconds{x="1",job="j"}', "quantile": 0.99, "scale": 1000}
    share = Share(good=Metric("good_total"), total=(Metric("all_total"),))
    assert share.source() == {
        "good": "sum(increase(good_total[{{ window }}]))",
        "total": "sum(increase(all_total[{{ window }}]))",
    }
    peak, mean = (Level(gauge=Metric("g"), of=of).promql() for of in ("peak", "mean"))
    assert (peak, mean) == ("max(max_over_time(g[{{ window }}]))", "sum(avg_over_time(g[{{ window }}]))")


def test_a_page_is_read_line_by_line_and_broken_lines_are_left_out() -> None:
    page = read_page(
        "# TYPE a_total counter\n"
        'a_total{x="with \\"quotes\\" } and , in it",y="2"} 3.0 1700000000000\n'
        'b{broken="} 1\n'
        "c NaN\n"
        "d +Inf # a comment of OpenMetrics\n"
        "some words that are none\n"
        "# TYPE h histogram\n",
        "page",
    )
    assert page.labelled("a_total", {"y": "2"}) and not page.labelled("a_total", {"y": "3"})
    assert [name for name in ("a_total", "b", "c", "d", "some", "h_bucket", "h_sum", "i") if page.exposes(name)] == [
        "a_total",
        "c",
        "d",
        "h_bucket",
        "h_sum",
    ]


@given(st.text(max_size=300))
def test_any_text_is_a_page_or_refused_in_one_line(text: str) -> None:
    try:
        detect(text, "page")
    except InputError as error:
        assert str(error).startswith("page: ") and "\n" not in str(error)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<html>not found</html>", "is no page of metrics in Prometheus' text format"),
        ("", "is no page of metrics"),
        ("# TYPE node_load1 gauge\nnode_load1 1\n", "shows metrics of no known server; known are vLLM, SGLang"),
    ],
)
def test_other_pages_are_refused(text: str, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        detect(text, "page")


@pytest.mark.parametrize("text", ['job="a"', '{job="a"}', ' a=~"b|c" , d!="e" ', 'a="with \\"quotes\\""', ""])
def test_selectors_are_label_matchers(text: str) -> None:
    assert checked_selector(text) == text.strip().removeprefix("{").removesuffix("}").strip()


@pytest.mark.parametrize("text", ["job=a", 'job="a"} or up{', '"a"', 'a="{{ x }}"', 'a="b" c="d"', 'a="b\n"'])
def test_other_selectors_are_refused(text: str) -> None:
    with pytest.raises(InputError, match="must be label matchers"):
        checked_selector(text)


def test_a_page_becomes_a_document_that_asks_this_server_only(tmp_path: Path) -> None:
    page = HERE / "pages" / "vllm.txt"
    text = examine(str(page), SELECTOR, "chat")
    (tmp_path / "mine.yaml").write_text(text)
    server = {one.name: one for one in load_slos(str(tmp_path / "mine.yaml")) if one.severity == "info"}
    assert "server-ttft-p99" in server
    assert text.count(SELECTOR) == 10, "each of the eight rows, both sides of shares"
    with pytest.raises(InputError, match="'canary': cannot be joined"):
        examine(str(page), "", "canary")


def test_a_server_that_does_not_answer_is_no_bad_input(tmp_path: Path) -> None:
    with pytest.raises(TargetError, match=r"http://127\.0\.0\.1:9/metrics: no answer"):
        examine("http://user:secret@127.0.0.1:9")
    with pytest.raises(InputError, match="No such file"):
        examine(str(tmp_path / "none"))


def test_the_commands(tmp_path: Path) -> None:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "aftershock.cli", *arguments], cwd=tmp_path, text=True, capture_output=True
        )

    told = run("metrics", str(HERE / "pages" / "llamacpp.txt"))
    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith("llama.cpp (--slo NAME-llamacpp)\n")
    assert "kv-cache-usage" in told.stdout and "removed in May 2025" in told.stdout
    assert run("slos").stdout.startswith("agent ")
    printed = run("slos", "chat-llamacpp")
    assert "llamacpp:prompt_tokens_cached_total" in printed.stdout
    for arguments in (("metrics", "nowhere"), ("slos", "nothing")):
        refused = run(*arguments)
        assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1
    assert run("metrics", "http://127.0.0.1:9").returncode == 4
