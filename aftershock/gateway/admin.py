"""The fault API, on a port of its own: what goes wrong is decided here, so it asks for a token."""

from __future__ import annotations

import hmac
import json
import logging
from http import HTTPStatus

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from aftershock.errors import InputError
from aftershock.gateway.answers import json_answer
from aftershock.gateway.faults.board import DuplicateFaultError, FaultBoard, UnknownFaultError
from aftershock.gateway.faults.catalog import parse_fault
from aftershock.gateway.replicas import Balancer

log = logging.getLogger(__name__)


def admin_application(token: str, balancer: Balancer, board: FaultBoard) -> web.Application:
    """GET /replicas; GET and POST /faults; GET and DELETE /faults/{id}. Errors are `{"error": "one line"}`."""

    async def replicas(_: web.Request) -> web.Response:
        return json_answer({"replicas": [replica.to_dict() for replica in balancer.replicas]})

    async def faults(_: web.Request) -> web.Response:
        return json_answer({"faults": [fault.to_dict() for fault in board.faults()]})

    async def show(request: web.Request) -> web.Response:
        return json_answer(board.get(request.match_info["id"]).to_dict())

    async def inject(request: web.Request) -> web.Response:
        try:
            document = json.loads(await request.read())
        except ValueError as error:
            raise InputError(f"the body is not JSON: {error}") from error
        fault = board.add(parse_fault(document))
        log.info("fault %s begins: %s", fault.id, fault.to_dict())
        return json_answer(fault.to_dict(), HTTPStatus.CREATED)

    async def revert(request: web.Request) -> web.Response:
        fault = board.revert(request.match_info["id"])
        log.info("fault %s: %s, %d injections", fault.id, fault.state, fault.injections)
        return json_answer(fault.to_dict())

    application = web.Application(middlewares=[_errors, _authorised(token)])
    application.router.add_get("/replicas", replicas)
    application.router.add_get("/faults", faults)
    application.router.add_post("/faults", inject)
    application.router.add_get("/faults/{id}", show)
    application.router.add_delete("/faults/{id}", revert)
    return application


def _authorised(token: str) -> Middleware:
    expected = f"Bearer {token}".encode()

    @web.middleware
    async def authorised(request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.headers.get("Authorization", "").encode(errors="surrogateescape")
        if not hmac.compare_digest(given, expected):
            return json_answer({"error": "send the header Authorization: Bearer <token of the gateway>"}, 401)
        return await handler(request)

    return authorised


@web.middleware
async def _errors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except UnknownFaultError as error:
        return json_answer({"error": str(error)}, 404)
    except DuplicateFaultError as error:
        return json_answer({"error": str(error)}, 409)
    except InputError as error:
        return json_answer({"error": str(error)}, 400)
    except web.HTTPException as error:  # unknown path or method, body too large
        return json_answer({"error": f"{request.method} {request.path}: {error.reason}"}, error.status)
