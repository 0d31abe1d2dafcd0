"""Answers the gateway gives itself."""

from __future__ import annotations

import json
from typing import Any

from aiohttp import web


def json_answer(document: Any, status: int = 200) -> web.Response:
    """A JSON document."""
    return web.Response(status=status, body=json.dumps(document).encode(), content_type="application/json")


def openai_error(status: int, code: str, message: str) -> web.Response:
    """An error in the form that clients of OpenAI's API read."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    return json_answer({"error": {"message": message, "type": kind, "param": None, "code": code}}, status)
