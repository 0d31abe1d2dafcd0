"""The API server: paths in, plain JSON out, through the `kubernetes` client and none of the code under test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kubernetes import client, config
from kubernetes.client import ApiException
from urllib3.exceptions import HTTPError

Object = dict[str, Any]
TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
CONNECT_S, READ_S, WATCH_S = 5.0, 30.0, 60
RETRY_S = 0.5
REFUSED_S = 5.0
"""How long one who was allowed before, or found no server, asks again when refused: a new server knows no rights."""
CONFLICTS = 10
"""How often a change is tried again because somebody else changed the object meanwhile."""
_ROOTS = {
    "chaosengines": "/apis/litmuschaos.io/v1alpha1",
    "chaosexperiments": "/apis/litmuschaos.io/v1alpha1",
    "chaosresults": "/apis/litmuschaos.io/v1alpha1",
    "jobs": "/apis/batch/v1",
    "deployments": "/apis/apps/v1",
    "replicasets": "/apis/apps/v1",
}


def path(plural: str, namespace: str = "", name: str = "") -> str:
    """Of a collection (of all namespaces without one), or of one object."""
    where = f"/namespaces/{namespace}" if namespace else ""
    return f"{_ROOTS.get(plural, '/api/v1')}{where}/{plural}" + (f"/{name}" if name else "")


class Api:
    """Calls of one identity. With `patience_s`, a server that does not answer is asked again for so long."""

    def __init__(self, api_client: Any, patience_s: float = 0.0) -> None:
        self._client = api_client
        self._patience_s = patience_s
        self._asks_refused_again = False

    @classmethod
    def connect(cls, patience_s: float = 0.0) -> Api:
        """As the service account of the pod; outside of one by KUBECONFIG."""
        settings = client.Configuration()
        settings.retries = False
        if TOKEN.exists():
            config.load_incluster_config(client_configuration=settings)
        else:
            config.load_kube_config(client_configuration=settings)
        return cls(client.ApiClient(configuration=settings), patience_s)

    def get(self, at: str, **query: str) -> Object:
        """One object or one list. Raises ApiException, as all of these calls."""
        return self._call("GET", at, query)

    def find(self, at: str) -> Object | None:
        """The object, or None where there is none."""
        try:
            return self.get(at)
        except ApiException as error:
            if error.status == 404:
                return None
            raise

    def items(self, at: str, **query: str) -> list[Object]:
        """What a list holds."""
        return list(self.get(at, **query).get("items") or ())

    def create(self, at: str, document: Mapping[str, Any]) -> Object:
        """Create in the collection at this path."""
        return self._call("POST", at, body=document)

    def replace(self, at: str, document: Mapping[str, Any]) -> Object:
        """PUT: 409 where somebody else was faster."""
        return self._call("PUT", at, body=document)

    def patch(self, at: str, document: Mapping[str, Any]) -> Object:
        """A merge patch."""
        return self._call("PATCH", at, body=document, content_type="application/merge-patch+json")

    def change(self, at: str, change: Callable[[Object], None]) -> Object:
        """Get, change, PUT; again where somebody else was faster."""
        for attempt in range(CONFLICTS):
            document = self.get(at)
            change(document)
            try:
                return self.replace(at, document)
            except ApiException as error:
                if error.status != 409 or attempt == CONFLICTS - 1:
                    raise
        raise AssertionError("unreachable")

    def delete(self, at: str, grace_s: int | None = None, propagation: str = "Background", **query: str) -> None:
        """Delete an object or, with a labelSelector, a collection; what is gone already is fine."""
        options: Object = {"propagationPolicy": propagation}
        if grace_s is not None:
            options["gracePeriodSeconds"] = grace_s
        try:
            self._call("DELETE", at, query, options)
        except ApiException as error:
            if error.status != 404:
                raise

    def watch(self, at: str, version: str, **query: str) -> Iterator[tuple[str, Object]]:
        """Type and object of each change, until the server ends the watch. Raises ApiException 410 in-band, too."""
        given = {**query, "watch": "true", "resourceVersion": version, "timeoutSeconds": str(WATCH_S)}
        response = self._send("GET", at, given, read_s=WATCH_S + READ_S)
        try:
            rest = b""
            for chunk in response.stream(amt=None, decode_content=False):
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    change = json.loads(line)
                    if change["type"] == "ERROR":
                        raise ApiException(status=change["object"].get("code"), reason=change["object"].get("message"))
                    yield change["type"], change["object"]
        finally:
            response.close()

    def follow(self, at: str, seen: Callable[[str, Object], None], closed: Callable[[], bool], **query: str) -> None:
        """Tell of everything at this path: first a list (type LISTED), then each change, over all interruptions."""
        version = ""
        while not closed():
            try:
                if not version:
                    listed = self.get(at, **query)
                    for item in listed.get("items") or ():
                        seen("LISTED", item)
                    version = listed["metadata"]["resourceVersion"]
                for kind, item in self.watch(at, version, **query):
                    seen(kind, item)
                    version = item["metadata"]["resourceVersion"]
            except ApiException as error:
                version = "" if error.status in (410, 504) else version
                time.sleep(RETRY_S)
            except (HTTPError, OSError, ValueError):
                time.sleep(RETRY_S)

    def _call(
        self,
        method: str,
        at: str,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
    ) -> Object:
        until = time.monotonic() + self._patience_s
        refused_until = 0.0
        while True:
            try:
                answer: Object = json.loads(self._send(method, at, query or {}, body, content_type).data)
                self._asks_refused_again = True
                return answer
            except ApiException as error:
                if error.status in (401, 403) and self._asks_refused_again and self._patience_s:
                    refused_until = refused_until or time.monotonic() + REFUSED_S
                    if time.monotonic() >= refused_until:
                        raise
                elif error.status not in (429, 500, 502, 503, 504) or time.monotonic() >= until:
                    raise
            except (HTTPError, OSError):
                self._asks_refused_again = True
                if time.monotonic() >= until:
                    raise
            time.sleep(RETRY_S)

    def _send(
        self,
        method: str,
        at: str,
        query: Mapping[str, str],
        body: Mapping[str, Any] | None = None,
        content_type: str = "application/json",
        read_s: float = READ_S,
    ) -> Any:
        return self._client.call_api(
            at,
            method,
            query_params=list(query.items()),
            header_params={"Accept": "application/json", "Content-Type": content_type},
            body=body,
            auth_settings=["BearerToken"],
            _return_http_data_only=True,
            _preload_content=False,
            _request_timeout=(CONNECT_S, read_s),
        )
