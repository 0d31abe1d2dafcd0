"""The compiled package and a Kubeflow Pipelines server, looked at before anything is run or sent."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from aftershock.errors import PipelineError
from aftershock.experiment import Experiment
from aftershock.files import data_folder
from aftershock.kubeflow import Package, read_package, server_version
from aftershock.run import PACKAGE


@contextmanager
def answering(status: int, body: bytes) -> Iterator[tuple[str, list[str]]]:
    """A fake server of which only the health endpoint is there; its address, and the paths it was asked for."""
    asked: list[str] = []

    class FakeApiServer(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), FakeApiServer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("health", "version"),
    [
        ({"multi_user": False}, ""),
        ({"tag_name": "2.17.0"}, "2.17.0"),
        ({"apiServerTagName": "2.17.0", "frontendTagName": "2.16.0", "apiServerReady": True}, "2.17.0"),
    ],
)
def test_a_server_and_its_version(health: dict[str, Any], version: str) -> None:
    with answering(200, json.dumps(health).encode()) as (url, asked):
        assert server_version(f"{url}/pipeline/") == version
        assert asked == ["/pipeline/apis/v2beta1/healthz"]


@pytest.mark.parametrize(
    ("status", "body", "says"),
    [
        (401, b"", "HTTP 401"),
        (200, b"<html>log in</html>", "a login page"),
        (200, b"[]", "a login page"),
        (200, b'{"apiServerReady": false}', "its API server is not ready"),
    ],
)
def test_what_is_no_answer_of_a_server(status: int, body: bytes, says: str) -> None:
    with answering(status, body) as (url, _), pytest.raises(PipelineError, match=says):
        server_version(url)


def test_no_server() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))  # bound and not listening: nobody else gets it
        with pytest.raises(PipelineError, match=r"no answer \(Connection refused\); check --kfp-endpoint"):
            server_version(f"http://127.0.0.1:{probe.getsockname()[1]}")


def test_the_package_is_read() -> None:
    package = read_package(data_folder("pipelines") / PACKAGE)
    assert package.parameters == frozenset(Experiment.model_fields)
    assert package.is_for_this_machine


def test_an_image_of_a_registry_is_for_a_cluster() -> None:
    assert not Package("2", frozenset(), frozenset({"registry.example/team/aftershock:1"})).is_for_this_machine
    assert Package("2", frozenset(), frozenset({"registry.example/a:1", "aftershock:1"})).is_for_this_machine


@pytest.mark.parametrize("text", ["", "- a list", "a: [", "pipelineInfo: {name: x}"])
def test_what_is_no_package(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pipeline.yaml"
    path.write_text(text)
    with pytest.raises(PipelineError, match="make compile"):
        read_package(path)
    with pytest.raises(PipelineError, match="is missing"):
        read_package(tmp_path / "none.yaml")
