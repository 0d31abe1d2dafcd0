"""Credentials that are replaced where they came from while a run goes on: files, plugins, and plugins that hang."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aftershock.chaos.litmus import credentials
from aftershock.chaos.litmus.abort import stop_engine
from aftershock.chaos.litmus.cluster import Cluster, UnauthorizedError
from aftershock.chaos.litmus.kinds import ENGINES
from aftershock.errors import ChaosError

from .fake_api_server import NAMESPACE, FakeApiServer

API = "client.authentication.k8s.io/v1"


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    monkeypatch.setattr("kubernetes.config.kube_config.KUBE_CONFIG_DEFAULT_LOCATION", str(path))
    return path


def write(kubeconfig: Path, server: str, user: dict[str, Any], **others: str) -> None:
    """A kubeconfig for that server; `others` are further contexts, with their servers."""
    servers = {"ours": server, **others}
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "ours",
        "contexts": [{"name": name, "context": {"cluster": name, "user": "u"}} for name in servers],
        "clusters": [{"name": name, "cluster": {"server": address}} for name, address in servers.items()],
        "users": [{"name": "u", "user": user}],
    }
    kubeconfig.write_text(json.dumps(document), encoding="utf-8")


class Gate:
    """What the API server accepts, and what it was shown."""

    def __init__(self, server: FakeApiServer) -> None:
        self.valid = "Bearer old"
        server.on_authorization = self.judge

    def judge(self, shown: str | None) -> bool:
        return shown == self.valid


@pytest.fixture
def gate(server: FakeApiServer) -> Gate:
    return Gate(server)


def plugin(folder: Path, body: str) -> dict[str, Any]:
    """A user of a kubeconfig whose token comes from a program; `$TOKEN` in its script is the file of the token."""
    script = folder / "plugin"
    script.write_text(
        f"#!/bin/sh\nTOKEN={folder / 'token'}\n{body}\n"
        f'echo "{{\\"apiVersion\\":\\"{API}\\",\\"kind\\":\\"ExecCredential\\",'
        '\\"status\\":{\\"token\\":\\"$(cat $TOKEN)\\"}}"\n',
        encoding="utf-8",
    )
    script.chmod(0o755)
    return {"exec": {"apiVersion": API, "command": str(script), "args": []}}


@pytest.mark.parametrize("source", ["file", "plugin"])
def test_a_replaced_token_is_read_again(
    server: FakeApiServer, gate: Gate, kubeconfig: Path, tmp_path: Path, source: str
) -> None:
    token = tmp_path / "token"
    token.write_text("old", encoding="utf-8")
    user = {"tokenFile": str(token)} if source == "file" else plugin(tmp_path, "")
    write(kubeconfig, server.url, user)
    cluster = Cluster.connect()
    cluster.list(ENGINES, NAMESPACE)
    token.write_text("new", encoding="utf-8")
    gate.valid = "Bearer new"
    cluster.list(ENGINES, NAMESPACE)
    assert stop_engine(cluster, NAMESPACE, "none", "u")
    assert server.authorizations == {"Bearer old", "Bearer new"}


def test_a_token_in_the_kubeconfig_itself_is_read_again_and_its_context_stays(
    server: FakeApiServer, gate: Gate, kubeconfig: Path
) -> None:
    write(kubeconfig, server.url, {"token": "old"})
    cluster = Cluster.connect()
    cluster.list(ENGINES, NAMESPACE)
    write(kubeconfig, server.url, {"token": "new"}, another="http://127.0.0.1:1")
    switched = json.loads(kubeconfig.read_text(encoding="utf-8")) | {"current-context": "another"}
    kubeconfig.write_text(json.dumps(switched), encoding="utf-8")
    gate.valid = "Bearer new"
    cluster.list(ENGINES, NAMESPACE)
    assert cluster.host == server.url


def test_the_token_of_a_pod_is_read_again(
    server: FakeApiServer, gate: Gate, kubeconfig: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, authority = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("old", encoding="utf-8")
    authority.write_text("x", encoding="utf-8")
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr("kubernetes.config.incluster_config.SERVICE_CERT_FILENAME", str(authority))
    monkeypatch.setattr("kubernetes.config.incluster_config._join_host_port", lambda host, port: f"{host}:{port}")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
    load = credentials._in_cluster

    def on_loopback() -> Any:
        api = load()
        api.configuration.host = server.url  # without TLS
        return api

    gate.valid = "bearer old"
    monkeypatch.setattr(credentials, "_client", without_authority(credentials._client))
    monkeypatch.setattr(credentials, "_in_cluster", on_loopback)
    cluster = Cluster.connect()
    cluster.list(ENGINES, NAMESPACE)
    token.write_text("new", encoding="utf-8")
    gate.valid = "bearer new"
    cluster.list(ENGINES, NAMESPACE)
    assert server.authorizations == {"bearer old", "bearer new"}


def without_authority(make: Any) -> Any:
    def client(settings: Any) -> Any:
        settings.ssl_ca_cert = None
        return make(settings)

    return client


def test_another_server_under_the_same_name_is_not_gone_to(server: FakeApiServer, gate: Gate, kubeconfig: Path) -> None:
    write(kubeconfig, server.url, {"token": "old"})
    cluster = Cluster.connect()
    write(kubeconfig, "http://127.0.0.1:1", {"token": "new"})
    gate.valid = "Bearer new"
    with pytest.raises(UnauthorizedError, match="401"):
        cluster.list(ENGINES, NAMESPACE)
    assert cluster.host == server.url


def test_credentials_that_stay_refused_are_not_read_again_at_once(
    server: FakeApiServer, gate: Gate, kubeconfig: Path, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("old", encoding="utf-8")
    write(kubeconfig, server.url, plugin(tmp_path, f"echo x >> {tmp_path / 'asked'}"))
    cluster = Cluster.connect()
    gate.valid = "Bearer another"
    for _ in range(5):
        with pytest.raises(UnauthorizedError):
            cluster.list(ENGINES, NAMESPACE)
    assert (tmp_path / "asked").read_text(encoding="utf-8").count("x") == 2


@pytest.fixture
def hanging(tmp_path: Path) -> Iterator[Path]:
    """Folder of a plugin that answers until there is a file `hang`; its processes are ended afterwards."""
    yield tmp_path
    pids = tmp_path / "pids"
    for pid in pids.read_text(encoding="utf-8").split() if pids.exists() else []:
        os.kill(int(pid), signal.SIGKILL)


def test_a_plugin_that_hangs_holds_no_stop_up_for_ever_and_may_still_answer(
    server: FakeApiServer, gate: Gate, kubeconfig: Path, hanging: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(credentials, "PATIENCE_S", 0.5)
    token = hanging / "token"
    token.write_text("old", encoding="utf-8")
    waits = "if [ -e $TOKEN.hang ]; then echo $$ > " + str(hanging / "pids") + "; read answer < $TOKEN.hang; fi"
    write(kubeconfig, server.url, plugin(hanging, waits))
    cluster = Cluster.connect()
    cluster.list(ENGINES, NAMESPACE)
    os.mkfifo(f"{token}.hang")
    gate.valid = "Bearer new"
    began = time.monotonic()
    assert not stop_engine(cluster, NAMESPACE, "none", "u")
    assert not stop_engine(cluster, NAMESPACE, "none", "u"), "the second does not wait at all"
    assert time.monotonic() - began < 5

    token.write_text("new", encoding="utf-8")
    Path(f"{token}.hang").write_text("logged in\n", encoding="utf-8")  # whoever waits reads on
    (hanging / "pids").unlink()
    deadline = time.monotonic() + 10
    while not stop_engine(cluster, NAMESPACE, "none", "u"):
        assert time.monotonic() < deadline, "what the plugin said at last is not used"
        time.sleep(0.01)


@pytest.mark.parametrize("text", ["a: [", "{}", "[]", "contexts: 1"])
def test_a_kubeconfig_that_is_none_is_said_so(kubeconfig: Path, text: str) -> None:
    kubeconfig.write_text(text, encoding="utf-8")
    with pytest.raises(ChaosError, match=r"no access to a cluster .*; set KUBECONFIG"):
        Cluster.connect()
