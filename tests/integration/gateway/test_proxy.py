"""What passes the gateway, and what it says when nothing does."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from yarl import URL

if TYPE_CHECKING:
    from tests.integration.gateway.conftest import Stand

pytestmark = pytest.mark.integration

NEVER = {"period_s": 60.0}
"""Probes once, at the start."""


def error_code(body: bytes) -> str:
    """The code of an error in OpenAI's form."""
    error = json.loads(body)["error"]
    assert error["message"] and error["type"] in ("server_error", "invalid_request_error")
    return str(error["code"])


async def raw(url: str, request: bytes) -> bytes:
    """Everything a server says to these bytes until it closes the connection."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    return answer


async def test_a_stream_passes_chunk_by_chunk_as_it_is_sent(stand: type[Stand]) -> None:
    async with stand() as it, it.client.get(f"{it.url}/stream") as response:
        assert response.headers["Content-Type"] == "text/event-stream"
        for number in range(5):  # the replica sends each event only after the client has got the one before
            it.replicas[0].gate.release()
            assert await response.content.readany() == b"data: %d\n\n" % number
        response.close()


async def test_a_stream_arrives_whole(stand: type[Stand]) -> None:
    async with stand() as it:
        assert await it.get("/stream?n=500") == (200, b"".join(b"data: %d\n\n" % number for number in range(500)))


async def test_request_and_answer_pass_as_they_are(stand: type[Stand]) -> None:
    async with stand() as it:
        target = "/v1/a%2Fb//c?x=%20+y&x=2"
        headers = {
            "Host": "models.example",
            "X-Mine": "kept",
            "Content-Encoding": "gzip",
            "Connection": "keep-alive, X-Secret",
            "X-Secret": "for the gateway only",
            "TE": "trailers",
        }
        body = b"\x1f\x8b not really gzip"
        async with it.client.post(URL(it.url + target, encoded=True), data=body, headers=headers) as response:
            seen = await response.json()
            assert response.headers.getall("X-Twice") == ["a", "b"]
            assert "X-Private" not in response.headers
        assert (seen["method"], seen["target"], seen["body"]) == ("POST", target, body.decode("latin-1"))
        passed = dict(seen["headers"])
        assert (passed["Host"], passed["X-Mine"], passed["Content-Encoding"]) == ("models.example", "kept", "gzip")
        assert not {"X-Secret", "TE"} & set(passed)
        assert passed["Content-Length"] == str(len(body))


async def test_connections_are_kept_on_both_sides(stand: type[Stand]) -> None:
    async with stand() as it:
        request = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n%s\r\n"
        answer = await raw(it.url, request % b"" + request % b"" + request % b"Connection: close\r\n")
        assert answer.count(b"HTTP/1.1 200 OK\r\n") == 3
        assert len(it.replicas[0].connections) == 1


async def test_without_idle_time_each_request_has_a_connection(stand: type[Stand]) -> None:
    async with stand(idle_timeout_s=0) as it:
        for _ in range(3):
            assert (await it.get("/v1/models"))[0] == 200
        assert len(it.replicas[0].connections) == 3


async def test_answers_without_a_body_keep_their_framing(stand: type[Stand]) -> None:
    async with stand() as it:
        async with it.client.head(f"{it.url}/v1/models") as response:
            assert response.status == 200
            assert int(response.headers["Content-Length"]) > 0
        assert await it.get("/empty") == (204, b"")
        assert (await it.get("/v1/models"))[0] == 200


async def test_http_1_0_clients_get_a_body_that_ends_with_the_connection(stand: type[Stand]) -> None:
    async with stand() as it:
        head, _, body = (await raw(it.url, b"GET /stream?n=2 HTTP/1.0\r\n\r\n")).partition(b"\r\n\r\n")
        assert b"chunked" not in head.lower()
        assert body == b"data: 0\n\ndata: 1\n\n"


async def test_a_client_that_asks_before_it_sends_is_told_to_go_on(stand: type[Stand]) -> None:
    async with stand() as it, it.client.post(f"{it.url}/v1/x", data=b"body", expect100=True) as response:
        assert (await response.json())["body"] == "body"


async def test_large_bodies_pass_up_to_the_limit(stand: type[Stand]) -> None:
    async with stand(max_body_bytes=3_000_000) as it:
        async with it.client.post(f"{it.url}/v1/x", data=bytes(900_000)) as response:
            assert response.status == 200
        async with it.client.post(f"{it.url}/stream?n=1", data=chunked(3_000_000)) as response:
            assert (response.status, await response.read()) == (200, b"data: 0\n\n")


async def chunked(size: int) -> AsyncIterator[bytes]:
    """A body whose length is not told beforehand."""
    for start in range(0, size, 50_000):
        yield bytes(min(50_000, size - start))


async def test_larger_bodies_are_refused(stand: type[Stand]) -> None:
    async with stand(max_body_bytes=1000) as it:
        for body in (bytes(1001), chunked(1001)):
            async with it.client.post(f"{it.url}/v1/x", data=body) as response:
                assert (response.status, error_code(await response.read())) == (413, "body_too_large")
        assert it.replicas[0].requests == []


async def test_a_target_that_is_no_path_is_refused(stand: type[Stand]) -> None:
    async with stand() as it:
        answer = await raw(it.url, b"GET http://elsewhere/ HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 400 ")
        assert it.replicas[0].requests == []


async def test_traffic_moves_away_from_a_replica_that_died_and_comes_back(stand: type[Stand]) -> None:
    async with stand(replicas=2) as it:
        await it.replicas[0].stop()
        await it.until_ready(False, True)
        assert {(await it.get("/v1/x"))[0] for _ in range(10)} == {200}
        assert len(it.replicas[1].requests) == 10
        await it.replicas[0].start()
        await it.until_ready(True, True)
        for _ in range(10):
            await it.get("/v1/x")
        assert len(it.replicas[0].requests) == 5


async def test_readiness_takes_as_many_probes_as_asked(stand: type[Stand]) -> None:
    async with stand(health={"period_s": 0.05, "timeout_s": 0.5, "failures": 3, "successes": 2}) as it:
        it.replicas[0].healthy = False
        await it.until_ready(False)
        _, document = await it.admin("GET", "/replicas")
        assert document["replicas"][0]["last_probe"] == "status 503"
        it.replicas[0].healthy = True
        await it.until_ready(True)


async def test_a_refused_connection_is_502(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it:
        await it.replicas[0].stop()
        status, body = await it.get("/v1/x")
        assert (status, error_code(body)) == (502, "replica_refused")
        assert "Connection refused" in json.loads(body)["error"]["message"]


async def test_a_connection_that_breaks_before_the_answer_is_502(stand: type[Stand]) -> None:
    async with stand() as it, it.client.post(f"{it.url}/reset") as response:
        assert (response.status, error_code(await response.read())) == (502, "replica_reset")


async def test_an_answer_that_is_not_http_is_502_and_not_tried_again(stand: type[Stand]) -> None:
    async with stand(replicas=2, retries=1) as it:
        status, body = await it.get("/nonsense")
        assert (status, error_code(body)) == (502, "replica_bad_answer")
        assert it.replicas[1].requests == []


async def test_no_ready_replica_is_503(stand: type[Stand]) -> None:
    async with stand() as it:
        assert (await it.get("/healthz"))[0] == 200
        it.replicas[0].healthy = False
        await it.until_ready(False)
        status, body = await it.get("/v1/x")
        assert (status, error_code(body)) == (503, "no_replica_ready")
        assert (await it.get("/healthz"))[0] == 503


async def test_a_retry_hides_a_refused_replica(stand: type[Stand]) -> None:
    async with stand(replicas=2, retries=1, health=NEVER) as it:
        await it.replicas[0].stop()
        assert [(await it.get("/v1/x"))[0] for _ in range(4)] == [200] * 4
        assert len(it.replicas[1].requests) == 4


async def test_without_a_replica_left_to_try_the_first_error_is_told(stand: type[Stand]) -> None:
    async with stand(retries=3, health=NEVER) as it:
        await it.replicas[0].stop()
        assert (await it.get("/v1/x"))[0] == 502


async def test_an_answer_that_breaks_off_does_not_look_whole(stand: type[Stand]) -> None:
    async with stand(replicas=2, retries=1) as it, it.client.get(f"{it.url}/stream") as response:
        it.replicas[0].gate.release()
        assert await response.content.readany() == b"data: 0\n\n"
        await it.replicas[0].stop()
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.readany()
        assert it.replicas[1].requests == []  # nothing is tried again once the client got a byte
        assert await it.count("aftershock_gateway_requests_total", replica="0", code="502") == 1


async def test_no_answer_in_time_is_504(stand: type[Stand]) -> None:
    async with stand(request_timeout_s=0.2) as it:
        status, body = await it.get("/silent")
        assert (status, error_code(body)) == (504, "timeout")
        await asyncio.wait_for(it.replicas[0].client_left.wait(), 5)


async def test_an_answer_that_does_not_end_in_time_is_cut(stand: type[Stand]) -> None:
    async with stand(request_timeout_s=0.3) as it, it.client.get(f"{it.url}/stream") as response:
        it.replicas[0].gate.release()
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()
        assert await it.count("aftershock_gateway_requests_total", replica="0", code="504") == 1


async def test_a_request_body_that_does_not_come_is_408(stand: type[Stand]) -> None:
    async with stand(request_timeout_s=0.2) as it:
        answer = await raw(
            it.url, b"POST /v1/x HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nab"
        )
        assert answer.startswith(b"HTTP/1.1 408 ")


async def test_a_client_that_leaves_ends_the_work_of_the_replica(stand: type[Stand]) -> None:
    async with stand() as it:
        async with it.client.get(f"{it.url}/stream") as response:
            it.replicas[0].gate.release()
            await response.content.readany()
            response.close()
        await asyncio.wait_for(it.replicas[0].client_left.wait(), 5)

        async def counted() -> bool:
            return await it.count("aftershock_gateway_requests_total", replica="0", code="499") == 1

        await it.until(counted)


async def test_a_slow_client_slows_the_replica_instead_of_filling_memory(stand: type[Stand]) -> None:
    async with stand() as it, it.client.get(f"{it.url}/flood") as response:
        await settled(it)
        assert it.replicas[0].sent_bytes < 32 << 20  # of 64 MiB: what sockets on the way hold, not what they are given
        assert len(await response.read()) == 64 << 20


async def test_a_delay_line_does_not_fill_memory_either(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it, it.client.get(f"{it.url}/flood") as response:
        async with it.fault("network-partition"):
            await settled(it)
            assert it.replicas[0].sent_bytes < 32 << 20
        assert len(await response.read()) == 64 << 20


async def settled(it: Stand) -> None:
    """Wait until the replica has not been able to send for a while."""
    before = -1
    while before != it.replicas[0].sent_bytes:
        before = it.replicas[0].sent_bytes
        await asyncio.sleep(0.2)
    assert before > 0


async def test_metrics_parse_and_count(stand: type[Stand]) -> None:
    async with stand(replicas=2) as it:
        for _ in range(6):
            await it.get("/stream?n=3")
        await it.get("/reset")
        status, text = await it.get("/metrics")
        assert status == 200
        families = {family.name: family for family in text_string_to_metric_families(text.decode())}
        samples = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for family in families.values()
            for sample in family.samples
        }
        prefix = "aftershock_gateway_"
        assert families[f"{prefix}request_duration_seconds"].type == "histogram"
        for replica in "01":
            labels = (("code", "200"), ("replica", replica))
            assert samples[f"{prefix}requests_total", labels] == 3
            assert samples[f"{prefix}request_duration_seconds_count", labels] == 3
            buckets = [
                value
                for (name, given), value in samples.items()
                if name == f"{prefix}request_duration_seconds_bucket" and set(labels) <= set(given)
            ]
            assert buckets == sorted(buckets) and buckets[-1] == 3
            assert samples[f"{prefix}ttft_seconds_count", (("replica", replica),)] == 3
            assert samples[f"{prefix}replica_ready", (("replica", replica),)] == 1
            assert samples[f"{prefix}in_flight", (("replica", replica),)] == 0
        assert samples[f"{prefix}requests_total", (("code", "502"), ("replica", "0"))] == 1
        assert samples[f"{prefix}requests_total", (("code", "504"), ("replica", "0"))] == 0
        assert samples[f"{prefix}faults_active", ()] == 0
        assert samples[f"{prefix}fault_injections_total", (("kind", "network-loss"),)] == 0


@pytest.mark.parametrize("port", ["public", "admin"])
@pytest.mark.parametrize(
    "nonsense",
    [
        b"NONSENSE\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01",  # TLS
        b"GET /healthz HTTP/1.1\r\nHost: x\r\nBad Header\r\n\r\n",
        b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n",
    ],
)
async def test_a_malformed_request_is_one_line_at_debug(
    stand: type[Stand], caplog: pytest.LogCaptureFixture, port: str, nonsense: bytes
) -> None:
    caplog.set_level(logging.DEBUG)
    async with stand() as it:
        host, number = (it.url if port == "public" else it.admin_url).removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(number))
        writer.write(nonsense)
        assert b"400 Bad Request" in await reader.readline()
        writer.close()
        await writer.wait_closed()
        (record,) = [record for record in caplog.records if "Error handling request" in record.getMessage()]
        assert (record.levelno, record.exc_info) == (logging.DEBUG, None)
        assert "\n" not in record.getMessage()
        assert (await it.get("/healthz"))[0] == 200
