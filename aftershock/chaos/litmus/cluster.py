"""The one edge to the API server: the `kubernetes` client in, plain JSON and our own errors out.

Paths are called through `ApiClient` and not through the generated classes: their objects would have to be turned back
into what Litmus wrote, and they name the same call differently for each kind. TLS, proxies and the kubeconfig remain
the client's. The client is imported where a cluster is first connected to, because that import takes more than half a
second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from aftershock.chaos.litmus.credentials import Credentials, connected
from aftershock.chaos.litmus.kinds import Kind
from aftershock.errors import ChaosError

CONNECT_S = 5.0
READ_S = 15.0
WATCH_S = 20
"""The server ends a watch after this long; a connection that died silently is noticed `READ_S` later."""
LOG_IDLE_S = 60.0
"""A log that is silent for longer is read again from its beginning, in case the connection died."""

Query = Mapping[str, str | int]


class ClusterError(ChaosError):
    """The API server refused, or did not answer."""


class UnreachableError(ClusterError):
    """No answer: down, restarting, or the connection broke. Worth another try."""


class GoneError(ClusterError):
    """The history before a resourceVersion is no longer there (410, or 504 on reading a lagging cache): list again."""


class NotFoundError(ClusterError):
    """No such object, or no such kind (404)."""


class ConflictError(ClusterError):
    """It exists already, or is not the one that was meant (409)."""


class DeniedError(ClusterError):
    """Who we are does not count (401), or may not do this (403)."""


class UnauthorizedError(DeniedError):
    """Who we are does not count (401): expired or revoked, and there is nothing newer where it came from."""


_BY_STATUS: dict[int, type[ClusterError]] = {
    401: UnauthorizedError,
    403: DeniedError,
    404: NotFoundError,
    409: ConflictError,
    410: GoneError,
    0: UnreachableError,
    429: UnreachableError,
    500: UnreachableError,
    502: UnreachableError,
    503: UnreachableError,
    504: UnreachableError,
}


class Cluster:
    """An API server that we have credentials for. Safe to use from several threads."""

    def __init__(self, api: Any, load: Callable[[], Any] | None = None) -> None:
        """`api` is a `kubernetes.client.ApiClient`; `load` makes another one from the source of its credentials."""
        self._credentials = Credentials(api, load)

    @classmethod
    def connect(cls, context: str = "") -> Cluster:
        """By kubeconfig (`context`, or its current one) or, inside a pod, by its service account. Sends nothing yet."""
        return cls(*connected(context))

    @property
    def host(self) -> str:
        """Address of the API server, for messages."""
        return str(self._credentials.api.configuration.host)

    def get(self, path: str, query: Query | None = None) -> dict[str, Any]:
        """Read one object or one list."""
        return self._call("GET", path, query)

    def list(self, kind: Kind, namespace: str | None, **selectors: str) -> dict[str, Any]:
        """Read all that match `labelSelector` and `fieldSelector`, with the list's resourceVersion."""
        return self.get(kind.path(namespace), {name: value for name, value in selectors.items() if value})

    def create(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        """Strictly: a field that the server would drop is an error, so that what runs is what was rendered."""
        return self._call("POST", path, {"fieldValidation": "Strict"}, document)

    def merge_patch(self, path: str, patch: Mapping[str, Any]) -> dict[str, Any]:
        """Change these fields and no others, whatever others have changed meanwhile."""
        return self._call("PATCH", path, None, patch, "application/merge-patch+json")

    def delete(self, path: str, uid: str) -> None:
        """Delete the object, only if it is the one with this uid; one that is gone already is fine."""
        options = {"preconditions": {"uid": uid}, "propagationPolicy": "Background"}
        try:
            self._call("DELETE", path, None, options)
        except NotFoundError:
            return

    def follow_log(self, namespace: str, pod: str, container: str) -> Iterator[bytes]:
        """What a container of the pod has written, and what it writes, until it ends or the connection does."""
        path = f"/api/v1/namespaces/{namespace}/pods/{pod}/log"
        query: Query = {"container": container, "follow": "true", "timestamps": "true"}
        with _mapped("GET", path):
            response = self._send("GET", path, query, stream=True, read_s=LOG_IDLE_S)
            try:
                yield from response.stream(amt=None, decode_content=False)
            finally:
                response.close()

    def watch(self, path: str, query: Query) -> Iterator[dict[str, Any]]:
        """Changes, one JSON document each, until the server ends the watch; first one of type OPENED, made here.

        Raises GoneError where the history is lost, also if the server says so within the stream, and UnreachableError
        where the connection breaks.
        """
        with _mapped("GET", path):
            timeouts: Query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": WATCH_S}
            response = self._send("GET", path, {**query, **timeouts}, stream=True, read_s=WATCH_S + READ_S)
            try:
                yield {"type": "OPENED"}
                for line in _lines(response):
                    change = json.loads(line)
                    if change.get("type") == "ERROR":
                        raise _refusal("watch", path, change.get("object") or {})
                    yield change
            finally:
                # Closed, not given back: a watch that is left early has more to come.
                response.close()

    def _call(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> dict[str, Any]:
        with _mapped(method, path):
            data = self._send(method, path, query, body, content_type)
            if not isinstance(data, dict):  # a proxy's page, answered with 200
                raise ValueError("not a JSON object")
            return data

    def _send(
        self,
        method: str,
        path: str,
        query: Query | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        *,
        stream: bool = False,
        read_s: float = READ_S,
    ) -> Any:
        """The parsed body, or the open response of a stream; with other credentials if the first do not count."""
        from kubernetes.client import ApiException

        def send(api: Any) -> Any:
            return api.call_api(
                path,
                method,
                query_params=list((query or {}).items()),
                header_params={"Accept": "application/json, */*", "Content-Type": content_type},
                body=body,
                response_type="object",
                auth_settings=["BearerToken"],
                _return_http_data_only=True,
                _preload_content=not stream,
                _request_timeout=(CONNECT_S, read_s),
            )

        api = self._credentials.api
        try:
            return send(api)
        except ApiException as error:
            if error.status != 401 or not self._credentials.replaced(api):
                raise
        return send(self._credentials.api)


def _lines(response: Any) -> Iterator[bytes]:
    rest = b""
    for chunk in response.stream(amt=None, decode_content=False):
        *lines, rest = (rest + chunk).split(b"\n")
        yield from (line for line in lines if line.strip())


@contextmanager
def _mapped(method: str, path: str) -> Iterator[None]:
    from kubernetes.client import ApiException
    from urllib3.exceptions import HTTPError

    try:
        yield
    except ClusterError:
        raise
    except ApiException as error:
        raise _refusal(method, path, _status(error)) from error
    except (HTTPError, OSError) as error:
        raise UnreachableError(f"{method} {path}: the API server does not answer ({_line(error)})") from error
    except ValueError as error:
        raise UnreachableError(f"{method} {path}: the answer is not the API server's ({_line(error)})") from error
    except Exception as error:  # whatever it is, it must not keep a fault from being stopped
        what = f"{type(error).__name__}: {_line(error)}"
        raise UnreachableError(f"{method} {path}: the request came to nothing ({what})") from error


def _status(error: Any) -> dict[str, Any]:
    """The Status object of a refusal, or the little that is known without one."""
    try:
        status = json.loads(error.body)
        if isinstance(status, dict):
            # A proxy in between has an error object of its own, in which `code` may be a word.
            return {**status, "code": status["code"] if isinstance(status.get("code"), int) else error.status}
    except (TypeError, ValueError):
        pass
    return {"code": error.status, "message": str(error.reason or error.body or "no reason given")}


def _refusal(method: str, path: str, status: Mapping[str, Any]) -> ClusterError:
    code = status.get("code") if isinstance(status.get("code"), int) else 0
    message = _line(status.get("message") or status.get("reason") or "no reason given")
    kind = _BY_STATUS.get(code or 0, ClusterError)
    if code == 504 and method in ("GET", "watch"):  # to a write it says that nobody knows what became of it
        kind = GoneError
    return kind(f"{method} {path}: {code}: {message}")


def _line(error: object) -> str:
    """One line of whatever it is."""
    return " ".join(str(error).split()) or type(error).__name__
