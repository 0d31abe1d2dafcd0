"""Whether the target can take the load at all, asked with one real request before anything is disturbed."""

from __future__ import annotations

import asyncio

import aiohttp

from aftershock.errors import TargetError
from aftershock.load.client import Exchange, open_client
from aftershock.load.outcome import Outcome
from aftershock.load.plan import LoadPlan
from aftershock.load.protocol import get_protocol
from aftershock.load.sender import request_bodies

PATIENCE_S = 10.0
"""How long a service may still be starting."""

_RETRY_S = 0.25

_MAY_PASS = {Outcome.REFUSED, Outcome.RESET, Outcome.TIMEOUT, Outcome.RATE_LIMITED, Outcome.HTTP_5XX, Outcome.TRUNCATED}
"""What a service that is starting answers; anything else will not change by waiting."""


async def check_target(plan: LoadPlan, patience_s: float = PATIENCE_S) -> None:
    """Send the first request of the plan until it is answered. Raises TargetError, in one line, where it cannot be.

    A service that is still starting has `patience_s` to come up; one that refuses the request is not asked twice.
    """
    protocol = get_protocol(plan.protocol)
    body = request_bodies(plan)[0]
    now = asyncio.get_running_loop().time
    deadline = now() + patience_s
    async with open_client(plan.target_url, protocol) as client:
        while True:
            exchange = Exchange(sent=now())
            await client.exchange(exchange, body, now() + plan.request_timeout_s)
            if exchange.outcome is Outcome.OK:
                return
            if exchange.outcome not in _MAY_PASS or exchange.no_such_host or now() + _RETRY_S > deadline:
                break
            await asyncio.sleep(_RETRY_S)
    raise TargetError(f"{client.url}: {await _explain(plan, exchange)}")


async def _explain(plan: LoadPlan, exchange: Exchange) -> str:
    """What the failure means and what to do."""
    error = exchange.error
    match exchange.outcome:
        case Outcome.REFUSED if exchange.no_such_host:
            return f"no such host ({error}); check --target-url"
        case Outcome.REFUSED:
            return f"no connection ({error}); is the service running there? check --target-url"
        case Outcome.TIMEOUT:
            return f"no full answer within {plan.request_timeout_s:g} s; is the model loaded? raise --request-timeout-s"
        case Outcome.HTTP_4XX if "model" in str(error).lower():
            return f"{error}; it does not know the model {plan.model!r}{await _served(plan)}; check --model"
        case Outcome.HTTP_4XX:
            return f"{error}; check --target-url (without /v1), --protocol and --model"
        case Outcome.MALFORMED:
            return f"{error}; it must answer as a stream of server-sent events, as OpenAI's API does"
        case _:
            return f"{error}; see the service's log"


async def _served(plan: LoadPlan) -> str:
    """The models that the service lists, as the end of a sentence; empty where it lists none."""
    names = await served_models(plan.target_url)
    return f", it serves {', '.join(names)}" if names else ""


async def served_models(target_url: str) -> list[str]:
    """Names of the models that the service lists; none where it lists none, or does not answer."""
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=2.0)) as http,
            http.get(f"{target_url}/v1/models") as response,
        ):
            return [str(model["id"]) for model in (await response.json())["data"]]
    except (aiohttp.ClientError, TimeoutError, ValueError, KeyError, TypeError):
        return []
