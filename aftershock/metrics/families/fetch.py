"""A server's `/metrics`, from its address or from a file."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

import requests

from aftershock.errors import InputError, TargetError
from aftershock.metrics.prometheus import is_loopback, without_password

TIMEOUT_S = 10.0


def read_metrics(source: str) -> str:
    """The text of `source`: a file, or an http(s) address, whose path is /metrics if it has none.

    Raises InputError for a file that cannot be read, TargetError for an address that does not answer with a page.
    """
    if source.startswith(("http://", "https://")):
        return _get(source if urlsplit(source).path.strip("/") else f"{source.rstrip('/')}/metrics")
    try:
        return Path(source).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InputError(f"{source}: cannot be read ({reason}); give a file, or a URL with http://") from error


def _get(url: str) -> str:
    shown = without_password(url)
    try:
        with requests.Session() as session:
            session.trust_env = not is_loopback(url)  # a proxy of the environment cannot reach this machine's loopback
            answer = session.get(url, timeout=TIMEOUT_S)
    except requests.RequestException as error:
        reason = "timed out" if isinstance(error, requests.Timeout) else type(error).__name__
        raise TargetError(f"{shown}: no answer ({reason}); is the server up, and is this its metrics port?") from error
    if not answer.ok:
        raise TargetError(
            f"{shown}: answered {answer.status_code}; give the address of its metrics, and see that they are on"
        )
    return answer.text
