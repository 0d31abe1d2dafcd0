"""A fake kube-apiserver: real HTTP on a loopback port, the list and watch protocol, and objects in memory.

No schema, no RBAC but what a test denies, no controllers: what happens to an object is said by the test.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from typing import Any
from urllib.parse import parse_qs, urlsplit

NAMESPACE = "chaos-test"
_PATH = re.compile(
    r"/(?:api|apis/[^/]+)/v1\w*(?:/namespaces/(?P<namespace>[^/]+))?"
    r"(?:/(?P<plural>\w+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>\w+))?)?"
)


@dataclass
class Stream:
    """One open watch."""

    plural: str
    selector: Callable[[dict[str, Any]], bool]
    changes: Queue[dict[str, Any] | None] = field(default_factory=Queue)
    """None: the connection breaks. An empty change: the server ends the watch as it should."""


@dataclass
class FakeApiServer:
    """Holds objects, answers for them, and tells the watches of each change."""

    objects: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    """Plural -> uid -> object."""
    history: list[tuple[int, str, dict[str, Any]]] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    requests: list[tuple[str, str, Any]] = field(default_factory=list)
    """Method, path and body of each that changes something."""
    authorizations: set[str | None] = field(default_factory=set)
    """Each Authorization header that came."""
    lists: list[str] = field(default_factory=list)
    """Plural of each list that was asked for."""
    down: bool = False
    compacted: int = 0
    """Watches from before this resourceVersion get 410."""
    denied: set[tuple[str, str]] = field(default_factory=set)
    """(verb, resource) that access reviews refuse."""
    refusals: dict[tuple[str, str], int] = field(default_factory=dict)
    """(method, plural) -> status with which it is refused."""
    error: Callable[[int], dict[str, Any]] = lambda code: {
        "kind": "Status",
        "code": code,
        "message": f"refused with {code}",
    }
    """Body of a refusal."""
    on_authorization: Callable[[str | None], bool] | None = None
    """Told each Authorization header; what it does not accept is refused with 401."""
    on_request: Callable[[str, str, str], int | None] | None = None
    """Told method, plural and name; a status that it returns is what the request is refused with."""
    on_log: Callable[[str, str], str] | None = None
    """Told pod and container; what its log is now."""
    on_create: Callable[[dict[str, Any]], dict[str, Any] | int] | None = None
    """A status in place of the object it returns is what the request is refused with, whatever it has done."""
    on_start: Callable[[dict[str, Any]], None] | None = None
    on_stop: Callable[[], None] | None = None
    on_delete: Callable[[dict[str, Any]], None] | None = None
    url: str = ""
    version: int = 1000
    sent: int = 0
    """Changes given to open watches."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def change(self, kind: str, plural: str, item: dict[str, Any]) -> None:
        """Something happens to an object."""
        with self.lock:
            self.version += 1
            item = {**item, "metadata": {**item["metadata"], "resourceVersion": str(self.version)}}
            uid = item["metadata"].get("uid") or item["metadata"]["name"]
            held = self.objects.setdefault(plural, {})
            if kind == "DELETED":
                held.pop(uid, None)
            else:
                held[uid] = item
            change = {"type": kind, "object": item}
            self.history.append((self.version, plural, change))
            for stream in self.streams:
                if stream.plural == plural and stream.selector(item):
                    stream.changes.put(change)
                    self.sent += 1

    def find(self, plural: str, name: str) -> dict[str, Any] | None:
        with self.lock:
            found = [each for each in self.objects.get(plural, {}).values() if each["metadata"]["name"] == name]
            return found[0] if found else None

    def add(self, plural: str, name: str, **content: Any) -> None:
        """Put an object there; `content` is merged into it."""
        metadata = {"name": name, "namespace": NAMESPACE, "uid": f"uid-of-{name}", **content.pop("metadata", {})}
        self.change("ADDED", plural, {"metadata": metadata, **content})

    def end_watches(self) -> None:
        """As the server does with each after `timeoutSeconds`."""
        with self.lock:
            for stream in self.streams:
                stream.changes.put({})
            self.streams.clear()

    def kill(self) -> None:
        """The server dies: all watches break, and no call is answered."""
        with self.lock:
            self.down = True
            self.compacted = self.version
            for stream in self.streams:
                stream.changes.put(None)
            self.streams.clear()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body in one segment: two of them wait 40 ms for an acknowledgement
    disable_nagle_algorithm = True
    state: FakeApiServer

    def log_message(self, *_: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self._is_down():
            return
        self.state.authorizations.add(self.headers["Authorization"])
        url = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        plural, name, sub = self._what(url.path)
        if refused := self.state.refusals.get(("GET", plural)):
            self._refuse(refused)
        elif url.path == "/version":
            self._answer(200, {"gitVersion": "v1.36.2"})
        elif url.path == "/apis/litmuschaos.io/v1alpha1":
            names = ["chaosengines", "chaosresults", "chaosexperiments"]
            self._answer(200, {"kind": "APIResourceList", "resources": [{"name": each} for each in names]})
        elif sub == "log":
            log = self.state.on_log(name, query["container"]) if self.state.on_log else f"log of {name}\n"
            self._text(log)
        elif name:
            found = self.state.find(plural, name)
            self._answer(200, found) if found else self._refuse(404)
        elif query.get("watch"):
            self._watch(plural, _selector(query), int(query["resourceVersion"]))
        else:
            with self.state.lock:
                self.state.lists.append(plural)
                items = [each for each in self.state.objects.get(plural, {}).values() if _selector(query)(each)]
                self._answer(200, {"metadata": {"resourceVersion": str(self.state.version)}, "items": items})

    def do_POST(self) -> None:
        if self._is_down():
            return
        body = self._body()
        plural, _, _ = self._what(self.path)
        if plural.endswith("accessreviews") and ("POST", plural) not in self.state.refusals:
            asked = body["spec"]["resourceAttributes"]
            resource = asked["resource"] + (f"/{asked['subresource']}" if asked.get("subresource") else "")
            self._answer(201, {"status": {"allowed": (asked["verb"], resource) not in self.state.denied}})
            return
        if not plural.endswith("accessreviews"):
            self.state.requests.append(("POST", self.path, body))
        if refused := self.state.refusals.get(("POST", plural)):
            self._refuse(refused)
        elif self.state.find(plural, body["metadata"]["name"]):
            self._refuse(409)
        else:
            assert self.state.on_create
            created = self.state.on_create(body)
            self._refuse(created) if isinstance(created, int) else self._answer(201, created)

    def do_PATCH(self) -> None:
        if self._is_down():
            return
        body = self._body()
        assert self.headers["Content-Type"] == "application/merge-patch+json"
        self.state.requests.append(("PATCH", self.path, body))
        plural, name, _ = self._what(self.path)
        found = self.state.find(plural, name)
        if found is None:
            self._refuse(404)
        else:
            wanted = body["spec"]["engineState"]
            if wanted == "stop" and self.state.on_stop:
                self.state.on_stop()
            if wanted == "active" and self.state.on_start:
                self.state.on_start(found)
            self._answer(200, self.state.find(plural, name) or found)

    def do_DELETE(self) -> None:
        if self._is_down():
            return
        body = self._body()
        self.state.requests.append(("DELETE", self.path, body))
        plural, name, _ = self._what(self.path)
        found = self.state.find(plural, name)
        if found is None:
            self._refuse(404)
        elif body["preconditions"]["uid"] != found["metadata"]["uid"]:
            self._refuse(409)
        else:
            if plural == "chaosengines" and self.state.on_delete:
                self.state.on_delete(found)
            else:
                self.state.change("DELETED", plural, found)
            self._answer(200, found)

    def _what(self, path: str) -> tuple[str, str, str]:
        match = _PATH.fullmatch(urlsplit(path).path)
        if match is None:
            return "", "", ""
        if match["plural"] is None and match["namespace"] is None:
            return path.rpartition("/")[2], "", ""
        if match["plural"] is None:
            return "namespaces", match["namespace"] or "", ""
        return match["plural"], match["name"] or "", match["sub"] or ""

    def _is_down(self) -> bool:
        if self.state.down:
            self.close_connection = True
        elif self.state.on_authorization and not self.state.on_authorization(self.headers["Authorization"]):
            self.rfile.read(int(self.headers["Content-Length"] or 0))
            self._refuse(401)
            return True
        elif self.state.on_request:
            plural, name, _ = self._what(urlsplit(self.path).path)
            if refused := self.state.on_request(self.command, plural, name):
                self.rfile.read(int(self.headers["Content-Length"] or 0))
                self._refuse(refused)
                return True
        return self.state.down

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def _refuse(self, code: int) -> None:
        self._answer(code, self.state.error(code))

    def _answer(self, code: int, document: Any) -> None:
        self._text(json.dumps(document), code, "application/json")

    def _text(self, text: str, code: int = 200, content_type: str = "text/plain") -> None:
        body = text.encode()
        self.send_response(code)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _watch(self, plural: str, selector: Callable[[dict[str, Any]], bool], version: int) -> None:
        stream = Stream(plural, selector)
        with self.state.lock:
            if version < self.state.compacted:
                expired = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
                stream.changes.put({"type": "ERROR", "object": expired})
                stream.changes.put({})
            else:
                self._resume(stream, version)
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        while (change := stream.changes.get()) is not None:
            if not change:
                self.wfile.write(b"0\r\n\r\n")
                return
            try:
                self._chunk(change)
            except OSError:
                break
        self.close_connection = True  # in the middle of the answer, as when a server dies

    def _resume(self, stream: Stream, version: int) -> None:
        for seen, plural, change in self.state.history:
            if plural == stream.plural and seen > version and stream.selector(change["object"]):
                stream.changes.put(change)
                self.state.sent += 1
        bookmark = {"metadata": {"resourceVersion": str(self.state.version)}}
        stream.changes.put({"type": "BOOKMARK", "object": bookmark})
        self.state.streams.append(stream)

    def _chunk(self, change: dict[str, Any]) -> None:
        line = json.dumps(change).encode() + b"\n"
        self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.wfile.flush()


def _selector(query: dict[str, str]) -> Callable[[dict[str, Any]], bool]:
    label, _, value = query.get("labelSelector", "").partition("=")
    name = query.get("fieldSelector", "").removeprefix("metadata.name=")

    def matches(item: dict[str, Any]) -> bool:
        labels = item["metadata"].get("labels") or {}
        right_label = not label or (labels.get(label) == value if value else label in labels)
        return right_label and (not name or item["metadata"]["name"] == name)

    return matches


@contextmanager
def serving() -> Iterator[FakeApiServer]:
    """A server on a free port."""
    state = FakeApiServer()
    http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"state": state}))
    http.daemon_threads = True
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    state.url = f"http://127.0.0.1:{http.server_address[1]}"
    try:
        yield state
    finally:
        state.kill()
        http.shutdown()
        http.server_close()
        thread.join()
