"""A cluster: started, asked, hurt and stopped. Any process can do each of these, given the cluster's directory."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from aftershock.errors import InfrastructureError, InputError
from aftershock.processes import Identity
from aftershock.stack.private import private_folder
from aftershock.stack.process import last_words
from aftershock.stack.prometheus import find_binary
from tests.cluster.rig import cgroups, control_plane, daemons, debian, images, network, node, programs
from tests.cluster.rig.certificates import NODE, write_pki
from tests.cluster.rig.layout import Layout
from tests.cluster.rig.locking import locked
from tests.cluster.rig.state import State, read_state, write_state
from tests.cluster.rig.waiting import wait_until

DIRECTORY_VARIABLE = "TEST_CLUSTER_DIRECTORY"
"""Tells a command inside the cluster's network which cluster it is in."""
START_S = 90.0
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
"""Variables that would send what is meant for a pod to the machine's proxy, which is out of reach."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class DaemonStatus:
    """One daemon, now."""

    name: str
    pid: int
    alive: bool
    log: Path

    def __str__(self) -> str:
        if self.alive:
            return f"{self.name} runs (pid {self.pid})"
        return last_words(f"{self.name} has ended (pid {self.pid})", self.log)


@dataclass(frozen=True)
class Cluster:
    """A handle on the cluster of one directory, whether it runs or not."""

    layout: Layout

    @classmethod
    def start(cls, directory: Path, say: Say = lambda _line: None) -> Cluster:
        """Start the cluster of this directory and wait until its node is ready; one that runs is left as it is.

        Raises InfrastructureError where that cannot be done here, or a part fails; what was started is ended then.
        Raises InputError if the directory holds something else.
        """
        cluster = cls(Layout.of(directory))
        debian.ensure_packages(say)
        built = programs.ensure_programs(say)
        find_binary()  # now, because from inside nothing can be fetched
        with locked(cluster.layout.lock):
            if cluster.runs():
                say("cluster    runs already")
                return cluster
            cluster._clear()
            try:
                cluster._start(built, say)
            except BaseException:
                cluster._end()
                raise
        return cluster

    def stop(self) -> None:
        """End everything that belongs to the cluster and delete its directory; nothing if there is none.

        Raises InfrastructureError if something stays, InputError if the directory is not a cluster's.
        """
        with locked(self.layout.lock):
            self._clear()

    def runs(self) -> bool:
        """Whether it was started to the end, and no daemon has ended since."""
        try:
            state = read_state(self.layout)
        except InfrastructureError:
            return False
        return state is not None and state.complete and not state.dead()

    def status(self) -> list[DaemonStatus]:
        """Every daemon; empty where there is no cluster. Raises InfrastructureError if its state cannot be read."""
        state = read_state(self.layout) or State()
        return [
            DaemonStatus(name, process.pid, process.alive(), self.layout.log(name))
            for name, process in state.daemons.items()
        ]

    @property
    def kubeconfig(self) -> Path:
        """The administrator's."""
        return self.layout.kubeconfig

    def command(self, argv: Sequence[str]) -> list[str]:
        """The command that runs `argv` inside the cluster's network, as the same process; see `environment`."""
        return network.inside(self.layout.name, argv)

    def environment(self) -> dict[str, str]:
        """Of a command inside: this process' own, the administrator's kubeconfig, kubectl on PATH, no proxies."""
        kept = {name: value for name, value in os.environ.items() if name not in PROXIES}
        return {
            **kept,
            "PATH": f"{self.layout.programs}:{kept.get('PATH', os.defpath)}",
            "KUBECONFIG": str(self.layout.kubeconfig),
            DIRECTORY_VARIABLE: str(self.layout.directory),
        }

    def run(
        self, argv: Sequence[str], *, given: str | None = None, variables: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a command inside to its end; `given` is its standard input. Its exit code is the caller's to judge."""
        return subprocess.run(
            self.command(argv),
            env={**self.environment(), **(variables or {})},
            input=given,
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            text=True,
            check=False,
        )

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """What `kubectl ARGUMENTS` prints. Raises InfrastructureError with its own words if it fails."""
        done = self.run(["kubectl", *arguments], given=given)
        if done.returncode != 0:
            raise InfrastructureError(f"kubectl {' '.join(arguments)}: {done.stderr.strip() or done.returncode}")
        return done.stdout

    def stop_apiserver(self) -> None:
        """Kill the API server as a crash would. Raises InfrastructureError if there is none."""
        state = read_state(self.layout)
        if state is None or "apiserver" not in state.daemons:
            raise InfrastructureError(f"{self.layout.directory} holds no cluster; start one with `up`")
        daemons.kill([state.daemons["apiserver"]])

    def start_apiserver(self) -> None:
        """Start the API server again on the same address and data; returns when it is ready.

        Raises InfrastructureError if it does not become so.
        """
        self._spawn("apiserver", control_plane.apiserver(self.layout))
        self._await_apiserver()

    def _start(self, built: Path, say: Say) -> None:
        began = time.monotonic()

        def tell(what: str) -> None:
            say(f"cluster    {time.monotonic() - began:4.1f} s  {what}")

        layout = self.layout
        private_folder(layout.directory)
        write_state(layout, State())
        _link_programs(layout, built)
        write_pki(layout.pki)
        node.write_configuration(layout)
        network.create(layout.name)
        cgroups.create(layout.name)
        containerd = self._spawn("containerd", node.containerd(layout))
        self._spawn("etcd", control_plane.etcd(layout))
        self._spawn("apiserver", control_plane.apiserver(layout))
        with ThreadPoolExecutor(1) as pool:
            image = pool.submit(self._import_image)
            self._await_apiserver()
            tell("API server ready")
            self._spawn("controller-manager", control_plane.controller_manager(layout))
            self._spawn("scheduler", control_plane.scheduler(layout))
            self._spawn("proxy", control_plane.proxy(layout))
            image.result()
        self._spawn("kubelet", node.kubelet(layout, containerd.pid))
        self._wait(self._node_is_ready, "the node is not ready", "kubelet")
        tell("node ready")
        state = read_state(layout) or State()
        write_state(layout, State(state.daemons, complete=True))

    def _spawn(self, name: str, argv: Sequence[str]) -> Identity:
        process = daemons.spawn(self.command(argv), daemons.environment(self.layout), self.layout.log(name))
        state = read_state(self.layout) or State()
        write_state(self.layout, state.with_daemon(name, process))
        return process

    def _import_image(self) -> None:
        self._wait(self.layout.containerd_socket.exists, "containerd does not listen", "containerd")
        archive = self.layout.directory / "image.tar"
        images.write_image(archive)
        command = ["ctr", f"--address={self.layout.containerd_socket}", "--namespace=k8s.io", "images", "import"]
        done = self.run([*command, str(archive)])
        if done.returncode != 0:
            raise InfrastructureError(f"the image cannot be imported: {done.stderr.strip()}")
        archive.unlink()

    def _await_apiserver(self) -> None:
        self._wait(self._apiserver_is_ready, "the API server is not ready", "apiserver")

    def _apiserver_is_ready(self) -> bool:
        return self.run(["kubectl", "get", "--raw=/readyz", "--request-timeout=2s"]).stdout == "ok"

    def _node_is_ready(self) -> bool:
        query = "--output=jsonpath={.status.conditions[?(@.type=='Ready')].status} {.spec.taints}"
        return self.run(["kubectl", "get", "node", NODE, query]).stdout.strip() == "True"

    def _wait(self, condition: Callable[[], bool], otherwise: str, daemon: str) -> None:
        """Wait for something that `daemon` brings about, as long as no daemon ends."""

        def met() -> bool:
            state = read_state(self.layout) or State()
            for name in state.dead():
                raise InfrastructureError(last_words(f"{name} has ended", self.layout.log(name)))
            return condition()

        wait_until(met, START_S, lambda: last_words(f"{otherwise} after {START_S:g} s", self.layout.log(daemon)))

    def _end(self) -> None:
        """End every process, then what they leave in the kernel. The files stay: they may say why."""
        daemons.kill({*daemons.marked(self.layout), *self._written_down()})
        cgroups.delete(self.layout.name)
        daemons.kill(daemons.marked(self.layout))  # a container that was being started meanwhile has a keeper
        network.delete(self.layout.name)

    def _written_down(self) -> tuple[Identity, ...]:
        """The daemons of the state file: those of an earlier version of this code may bear another mark."""
        try:
            state = read_state(self.layout)
        except InfrastructureError:
            return ()
        return tuple(state.daemons.values()) if state else ()

    def _clear(self) -> None:
        """End what runs and delete the directory, if it is a cluster's."""
        directory, state = self.layout.directory, self.layout.state
        if directory.exists() and not state.exists() and any(directory.iterdir()):
            raise InputError(f"{directory} is not empty and holds no cluster; nothing was deleted, choose another")
        self._end()
        if not directory.exists():
            return
        try:
            for path in directory.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path != state:  # the last one: it says whose directory this is
                    path.unlink()
            state.unlink(missing_ok=True)
            directory.rmdir()
        except OSError as error:
            raise InfrastructureError(f"{error.filename} cannot be deleted ({error.strerror})") from error


def _link_programs(layout: Layout, built: Path) -> None:
    """Fill the folder that leads the cluster's PATH. Its iptables is the older kind, which works on every kernel."""
    layout.programs.mkdir()
    for program in programs.PROGRAMS:
        (layout.programs / program).symlink_to(built / program)
    for family in ("iptables", "ip6tables"):
        for action in ("", "-save", "-restore"):
            legacy = shutil.which(f"{family}-legacy{action}", path="/usr/sbin:/sbin")
            if legacy is None:
                raise InfrastructureError(f"there is no {family}-legacy{action}; install Debian's iptables again")
            (layout.programs / f"{family}{action}").symlink_to(legacy)
