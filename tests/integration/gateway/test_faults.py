"""Each kind of fault as clients and probes feel it, and its end. Delays are held against lower bounds; the upper ones
only tell a shifted stream from one that is slowed, with room for a busy machine."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import aiohttp
import pytest

if TYPE_CHECKING:
    from tests.integration.gateway.conftest import Stand

pytestmark = pytest.mark.integration

NEVER = {"period_s": 60.0, "timeout_s": 5.0}
"""Probes once, at the start: readiness stays what it was."""
SEED = 8818
"""Of 50 % loss: the second request of replica 0 loses its first transmission, and nothing else is lost."""
STREAM_3 = b"data: 0\n\ndata: 1\n\ndata: 2\n\n"


async def timed_get(it: Stand, path: str) -> tuple[float, int, bytes]:
    """Seconds, status and body of one request."""
    started = time.monotonic()
    status, body = await it.get(path)
    return time.monotonic() - started, status, body


async def nothing_arrives(response: aiohttp.ClientResponse, seconds: float = 0.3) -> bool:
    """Whether the stream stays silent. What is waited for is not lost: a later read gets it."""
    with suppress(TimeoutError):
        await asyncio.wait_for(response.content.readany(), seconds)
        return False
    return True


async def injections(it: Stand, fault_id: str) -> int:
    """What the fault API counts."""
    _, fault = await it.admin("GET", f"/faults/{fault_id}")
    return int(fault["injections"])


async def test_latency_shifts_a_stream_without_slowing_it(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it:
        await it.get("/v1/warm")
        async with it.fault("network-latency", latency_ms=300.0):
            started = time.monotonic()
            async with it.client.get(f"{it.url}/stream") as response:
                assert time.monotonic() - started >= 0.3
                started = time.monotonic()
                for _number in range(10):  # one each 30 ms; held one after the other they would take 3 s
                    it.replicas[0].gate.release()
                    await asyncio.sleep(0.03)
                received = await response.content.readexactly(90)
                assert received == b"".join(b"data: %d\n\n" % number for number in range(10))
                assert 0.3 + 9 * 0.03 <= time.monotonic() - started < 2.5
                response.close()


async def test_latency_delays_a_new_connection_too(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it:
        async with it.fault("network-latency", latency_ms=200.0) as fault_id:
            seconds, status, _ = await timed_get(it, "/v1/x")
            assert (status, seconds >= 0.4) == (200, True)  # the SYN-ACK, then the answer
            first = await injections(it, fault_id)
            await it.get("/v1/x")
            assert await injections(it, fault_id) == 2 * first - 1  # the connection was there
        assert (await it.get("/v1/x"))[0] == 200
        assert await injections(it, fault_id) == 2 * first - 1  # and the fault is not


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("network-partition", {}),
        ("network-partition", {"direction": "ingress"}),
        ("network-partition", {"direction": "egress"}),
        ("network-loss", {"percentage": 100}),
        ("network-latency", {"latency_ms": 60_000}),
    ],
)
async def test_a_stream_under_way_is_caught_and_let_go(
    stand: type[Stand], kind: str, parameters: dict[str, Any]
) -> None:
    async with stand(health=NEVER) as it, it.client.get(f"{it.url}/stream") as response:
        it.replicas[0].gate.release()
        assert await response.content.readany() == b"data: 0\n\n"
        async with it.fault(kind, **parameters) as fault_id:
            it.replicas[0].gate.release()
            assert await nothing_arrives(response)
            assert await injections(it, fault_id) == 1
        assert await response.content.readany() == b"data: 1\n\n"
        it.replicas[0].gate.release()
        assert await response.content.readany() == b"data: 2\n\n"
        response.close()


async def test_a_partition_hides_that_a_replica_died(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it, it.client.get(f"{it.url}/stream") as response:
        it.replicas[0].gate.release()
        await response.content.readany()
        async with it.fault("network-partition"):
            await it.replicas[0].stop()
            assert await nothing_arrives(response)
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.content.readany()


async def test_a_partition_lets_no_connection_through_and_ends_by_itself(stand: type[Stand]) -> None:
    async with stand(health=NEVER, connect_timeout_s=0.2) as it:
        _, fault = await it.admin("POST", "/faults", {"kind": "network-partition", "duration_s": 0.8})
        seconds, status, body = await timed_get(it, "/v1/x")
        assert (status, b"replica_connect_timeout" in body) == (504, True)
        assert seconds >= 0.2
        assert it.replicas[0].requests == []

        async def ended() -> bool:
            nonlocal fault
            _, fault = await it.admin("GET", f"/faults/{fault['id']}")
            return bool(fault["state"] == "expired")

        await it.until(ended)
        assert fault["injections"] == 1
        assert fault["ended_at"] >= fault["expires_at"]
        assert (await it.get("/v1/x"))[0] == 200


@pytest.mark.parametrize(("direction", "arrives"), [("ingress", False), ("egress", True), ("all", False)])
async def test_the_direction_decides_whether_requests_arrive(stand: type[Stand], direction: str, arrives: bool) -> None:
    async with stand(health=NEVER) as it:
        await it.get("/v1/warm")  # leaves a connection open
        async with it.fault("network-partition", direction=direction) as fault_id:
            request = asyncio.create_task(it.get("/v1/x"))

            async def met() -> bool:
                return await injections(it, fault_id) == 1

            await it.until(met)
            assert ("/v1/x" in it.replicas[0].requests) is arrives
            assert not request.done()
        assert (await request)[0] == 200


async def test_a_client_that_leaves_during_a_partition_ends_the_request(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it, it.client.get(f"{it.url}/stream") as response:
        it.replicas[0].gate.release()
        await response.content.readany()
        async with it.fault("network-partition"):
            it.replicas[0].gate.release()
            assert await nothing_arrives(response, 0.1)
            response.close()
            await asyncio.wait_for(it.replicas[0].client_left.wait(), 5)


async def test_probes_meet_the_faults_of_the_traffic(stand: type[Stand]) -> None:
    health = {"period_s": 0.05, "timeout_s": 0.1}
    async with stand(replicas=2, health=health) as it:
        for kind, parameters in (
            ("network-partition", {}),
            ("network-latency", {"latency_ms": 150}),
            ("http-latency", {"latency_ms": 150}),
            ("http-status", {"status_code": 500}),
        ):
            async with it.fault(kind, replicas=["0"], **parameters):
                await it.until_ready(False, True)
                assert {(await it.get("/v1/x"))[0] for _ in range(4)} == {200}
            await it.until_ready(True, True)
        assert it.replicas[0].requests == []


async def test_loss_costs_retransmission_time_outs(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it:
        await it.get("/v1/warm")
        async with it.fault("network-loss", percentage=50, seed=SEED) as fault_id:
            times = [(await timed_get(it, "/v1/x"))[0] for _ in range(3)]
            assert await injections(it, fault_id) == 1  # with this seed: the second answer, once
        assert times[1] >= 0.2


async def test_http_latency_shifts_the_answer(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it:
        await it.get("/v1/warm")
        async with it.fault("http-latency", latency_ms=200) as fault_id:
            seconds, *answer = await timed_get(it, "/stream?n=3")
            assert answer == [200, STREAM_3]
            assert seconds >= 0.2
            count = await injections(it, fault_id)
            assert count >= 1
        assert await it.get("/stream?n=3") == (200, STREAM_3)
        assert await injections(it, fault_id) == count


async def test_http_faults_leave_answers_under_way_alone(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it, it.client.get(f"{it.url}/stream") as response:
        async with it.fault("http-latency", latency_ms=60_000) as fault_id:
            it.replicas[0].gate.release()
            assert await response.content.readany() == b"data: 0\n\n"
            assert await injections(it, fault_id) == 0
        response.close()


async def test_http_status_replaces_status_and_body(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it:
        body: dict[str, Any] = {"response_body": '{"error": "chaos"}', "content_type": "application/json"}
        async with it.fault("http-status", status_code=503, **body) as fault_id:
            async with it.client.get(f"{it.url}/stream") as response:
                assert (response.status, response.reason) == (503, "Service Unavailable")
                assert response.headers["Content-Type"] == "application/json"
                assert await response.json() == {"error": "chaos"}
            await asyncio.wait_for(it.replicas[0].client_left.wait(), 5)  # the replica need not go on
            assert await injections(it, fault_id) == 1
        async with it.fault("http-status", status_code=429):
            assert await it.get("/stream?n=3") == (429, b"429 Too Many Requests")
        async with it.fault("http-status", status_code=404, modify_body=False):
            assert await it.get("/stream?n=3") == (404, STREAM_3)
        async with it.fault("http-status", status_code=204):
            assert await it.get("/stream?n=3") == (204, b"")
        assert await it.get("/stream?n=3") == (200, STREAM_3)
        assert await it.count("aftershock_gateway_requests_total", replica="0", code="503") == 1


async def test_the_seed_decides_which_requests_are_hit(stand: type[Stand]) -> None:
    async def statuses(it: Stand, seed: int) -> list[int]:
        async with it.fault("http-status", status_code=500, toxicity_percent=50, seed=seed):
            return [(await it.get("/v1/x"))[0] for _ in range(20)]

    async with stand(health=NEVER) as it:
        first = await statuses(it, seed=1)
        assert set(first) == {200, 500}
        assert await statuses(it, seed=1) == first
        assert await statuses(it, seed=2) != first
    async with stand(health={"period_s": 0.01, "timeout_s": 1, "failures": 100}) as it:
        assert await statuses(it, seed=1) == first  # whatever the probes meet


async def test_faults_compose_and_end_one_by_one(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it:
        await it.get("/v1/warm")
        async with it.fault("network-latency", latency_ms=150), it.fault("http-latency", latency_ms=150):
            async with it.fault("http-status", status_code=418):
                assert await it.count("aftershock_gateway_faults_active") == 3
                seconds, status, _ = await timed_get(it, "/v1/x")
                assert status == 418
                assert seconds >= 0.3
            assert (await it.get("/v1/x"))[0] == 200
        assert await it.count("aftershock_gateway_faults_active") == 0


async def test_only_the_named_replicas_are_hit(stand: type[Stand]) -> None:
    async with stand(replicas=2, health=NEVER) as it, it.fault("http-status", status_code=500, replicas=["1"]):
        assert sorted([(await it.get("/v1/x"))[0] for _ in range(4)]) == [200, 200, 500, 500]


async def test_injections_are_counted_in_the_api_and_in_the_metrics(stand: type[Stand]) -> None:
    async with stand(health=NEVER) as it:
        async with it.fault("http-status", status_code=500) as fault_id:
            for _ in range(3):
                await it.get("/v1/x")
            assert await injections(it, fault_id) == 3
        await it.get("/v1/x")
        assert await injections(it, fault_id) == 3
        assert await it.count("aftershock_gateway_fault_injections_total", kind="http-status") == 3


async def test_the_fault_api_lists_what_was_and_is(stand: type[Stand]) -> None:
    async with stand(replicas=2, health=NEVER) as it:
        document = {"id": "mine", "kind": "network-latency", "duration_s": 30, "seed": 7, "latency_ms": 5}
        status, fault = await it.admin("POST", "/faults", document)
        assert status == 201
        assert {name: fault[name] for name in document} == document
        assert (fault["state"], fault["replicas"], fault["jitter_ms"]) == ("active", ["0", "1"], 0)
        assert fault["expires_at"] > fault["started_at"]
        assert (await it.admin("GET", "/faults"))[1] == {"faults": [fault]}
        status, reverted = await it.admin("DELETE", "/faults/mine")
        assert (status, reverted["state"]) == (200, "reverted")
        assert await it.admin("DELETE", "/faults/mine") == (200, reverted)  # again does no harm
        assert (await it.admin("GET", "/faults"))[1] == {"faults": [reverted]}


async def test_the_fault_api_wants_its_token(stand: type[Stand]) -> None:
    async with stand() as it:
        for path in ("/faults", "/replicas", "/nowhere"):
            status, answer = await it.admin("GET", path, token="wrong")
            assert status == 401
            assert "Authorization" in answer["error"]
        async with it.client.get(f"{it.admin_url}/faults") as response:
            assert response.status == 401


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"kind": "pod-delete", "duration_s": 1}, "known kinds: http-latency, http-status, network-latency"),
        ({"kind": "network-loss"}, "duration_s: Field required"),
        ({"kind": "network-loss", "duration_s": 86401}, "duration_s: Input should be less than or equal to 86400"),
        ({"kind": "network-loss", "duration_s": float("inf")}, "duration_s: "),
        ({"kind": "network-loss", "duration_s": 1, "percentage": float("nan")}, "percentage: "),
        ({"kind": "network-loss", "duration_s": 0}, "duration_s: Input should be greater than 0"),
        ({"kind": "network-loss", "duration_s": 1, "percentage": 101}, "percentage: "),
        ({"kind": "network-latency", "duration_s": 1, "latency_ms": "500ms"}, "latency_ms: "),
        ({"kind": "network-latency", "duration_s": 1, "latency": 500}, "latency: Extra inputs are not permitted"),
        ({"kind": "network-partition", "duration_s": 1, "direction": "both"}, "'ingress', 'egress' or 'all'"),
        ({"kind": "http-status", "duration_s": 1, "status_code": 99}, "status_code: "),
        ({"kind": "http-status", "duration_s": 1, "content_type": "a\r\nSet-Cookie: b"}, "content_type: "),
        ({"kind": "network-loss", "duration_s": 1, "replicas": ["7"]}, "known replicas: 0, 1"),
        ({"kind": "network-loss", "duration_s": 1, "replicas": []}, "replicas: "),
        ({"kind": "network-loss", "duration_s": 1, "id": "a/b"}, "id: "),
        ([], "a fault is a JSON object"),
    ],
)
async def test_bad_faults_are_refused_with_a_reason(stand: type[Stand], document: Any, reason: str) -> None:
    async with stand(replicas=2, wait_ready=False) as it:
        status, answer = await it.admin("POST", "/faults", document)
        assert status == 400
        assert reason in answer["error"]
        assert "\n" not in answer["error"]
        assert (await it.admin("GET", "/faults"))[1] == {"faults": []}


async def test_other_errors_of_the_fault_api(stand: type[Stand]) -> None:
    async with stand(wait_ready=False) as it:
        assert (await it.admin("GET", "/faults/none"))[0] == 404
        assert (await it.admin("DELETE", "/faults/none"))[0] == 404
        assert (await it.admin("GET", "/nowhere"))[0] == 404
        assert (await it.admin("DELETE", "/faults"))[0] == 405
        document = {"id": "one", "kind": "network-loss", "duration_s": 60}
        assert (await it.admin("POST", "/faults", document))[0] == 201
        status, answer = await it.admin("POST", "/faults", document)
        assert status == 409
        assert "one" in answer["error"]
        headers = {"Authorization": f"Bearer {it.settings.token}"}
        async with it.client.post(f"{it.admin_url}/faults", data=b"{", headers=headers) as response:
            assert response.status == 400
            assert "not JSON" in (await response.json())["error"]
