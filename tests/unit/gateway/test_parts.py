"""The small parts: settings, readiness, balancing, headers, metrics, the delay line."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from prometheus_client.parser import text_string_to_metric_families

from aftershock.errors import InputError
from aftershock.gateway.delay import DelayLine, Held
from aftershock.gateway.faults.board import FaultBoard
from aftershock.gateway.faults.exchange import Exchange
from aftershock.gateway.faults.kind import Chunk
from aftershock.gateway.headers import passable
from aftershock.gateway.metrics import GatewayMetrics
from aftershock.gateway.replicas import Balancer, Replica
from aftershock.gateway.settings import GatewaySettings, HealthSettings, load_settings


def settings(**changes: Any) -> dict[str, Any]:
    """The least a configuration must say, and more."""
    return {"token": "t", "replicas": [{"name": "0", "url": "http://127.0.0.1:8000/"}], **changes}


def test_defaults_are_those_of_a_kubernetes_service() -> None:
    read = GatewaySettings.model_validate(settings())
    assert (read.retries, read.health.failures) == (0, 1)
    assert read.replicas[0].url == "http://127.0.0.1:8000"
    assert "token" not in repr(read)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"retires": 1}, "retires: Extra inputs"),
        ({"replicas": []}, "replicas: "),
        ({"replicas": [{"name": "0", "url": "https://h:1"}]}, "replicas.0.url: Value error, must be http://HOST:PORT"),
        ({"replicas": [{"name": "0", "url": "http://h:1/v1"}]}, "without a path"),
        ({"replicas": [{"name": "0", "url": "http://h:1"}] * 2}, "names must differ"),
        ({"port": 80, "admin_port": 80}, "both 80"),
        ({"token": ""}, "token: "),
        ({"health": {"period_s": 0}}, "health.period_s: "),
    ],
)
def test_bad_settings_are_refused_with_file_key_and_reason(
    tmp_path: Path, changes: dict[str, Any], reason: str
) -> None:
    path = tmp_path / "gateway.json"
    path.write_text(json.dumps(settings(**changes)))
    with pytest.raises(InputError) as caught:
        load_settings(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert reason in message
    assert "\n" not in message


def test_a_missing_or_broken_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        load_settings(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(InputError, match="Invalid JSON"):
        load_settings(tmp_path / "bad.json")


def test_readiness_changes_after_enough_probes_in_a_row() -> None:
    health = HealthSettings(failures=3, successes=2)
    replica = Replica("0", "http://h:1")
    results = [True, False, True, True, False, False, True, False, False, False, True, True]
    seen = []
    for result in results:
        replica.probed(result, "", health)
        seen.append(replica.ready)
    assert seen == [False] * 3 + [True] * 6 + [False] * 2 + [True]


def ready(count: int) -> list[Replica]:
    """So many ready replicas."""
    return [Replica(str(number), f"http://h:{number}", ready=True) for number in range(count)]


def picks(balancer: Balancer, count: int) -> list[str | None]:
    """Names of the next picks."""
    return [replica.name if (replica := balancer.pick()) else None for _ in range(count)]


def test_replicas_take_turns_and_unready_ones_none() -> None:
    replicas = ready(3)
    balancer = Balancer(replicas)
    assert picks(balancer, 4) == ["0", "1", "2", "0"]
    replicas[1].ready = False
    assert picks(balancer, 4) == ["2", "0", "2", "0"]
    assert balancer.pick(tried=[replicas[0], replicas[2]]) is None
    for replica in replicas:
        replica.ready = False
    assert (picks(balancer, 1), balancer.any_ready) == ([None], False)


def test_headers_of_one_connection_do_not_pass() -> None:
    given = CIMultiDict(
        [
            ("connection", "close, X-Hop"),
            ("Connection", "x-other"),
            ("X-Hop", "1"),
            ("X-Other", "1"),
            ("Transfer-Encoding", "chunked"),
            ("Upgrade", "websocket"),
            ("Set-Cookie", "a"),
            ("Set-Cookie", "b"),
        ]
    )
    assert list(passable(CIMultiDictProxy(given)).items()) == [("Set-Cookie", "a"), ("Set-Cookie", "b")]
    assert len(given) == 8


def test_strange_names_do_not_break_the_exposition() -> None:
    async def exposition() -> str:
        replica = Replica('a"\\\n', "http://h:1")
        metrics = GatewayMetrics([replica], FaultBoard([replica.name]))
        metrics.finished(replica.name, 418, 0.1, None)
        return metrics.page().decode()

    families = text_string_to_metric_families(asyncio.run(exposition()))
    labels = [sample.labels for family in families for sample in family.samples if sample.labels.get("code") == "418"]
    assert labels
    assert all(found["replica"] == 'a"\\\n' for found in labels)


def test_a_delay_line_keeps_order_and_its_limit() -> None:
    async def scenario() -> None:
        exchange = Exchange(FaultBoard(["0"]), "0", "request")
        line = DelayLine(limit=2)

        async def fill() -> None:
            for number in range(6):
                await line.put(Held(Chunk(b"%d" % number, last=number == 5), exchange.no_hold()))

        filling = asyncio.create_task(fill())
        await asyncio.sleep(0.01)
        assert not filling.done()
        taken = [(await line.get()).chunk.data for _ in range(6)]
        assert taken == [b"0", b"1", b"2", b"3", b"4", b"5"]
        await filling

    asyncio.run(asyncio.wait_for(scenario(), 10))
