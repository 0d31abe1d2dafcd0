"""`python -m tests.cluster.rig up | down | status | exec [--] COMMAND... | test [--] PYTEST-ARGUMENTS...`: the cluster
from the command line."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from aftershock.errors import AftershockError, ExitCode, InfrastructureError
from tests.cluster.rig import suite
from tests.cluster.rig.cluster import Cluster
from tests.cluster.rig.layout import Layout, default_directory

COMMAND = "python -m tests.cluster.rig"


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the command line says. Returns the exit code; `exec` becomes the command instead."""
    options = _parser().parse_args(arguments)
    try:
        code: int = options.action(options)
    except AftershockError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=COMMAND, description="A real Kubernetes cluster of one node, for the tests.")
    parser.add_argument("--directory", type=Path, default=default_directory(), help="the cluster's  [%(default)s]")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    up = actions.add_parser("up", help="start the cluster, unless it runs")
    up.set_defaults(action=_up)
    down = actions.add_parser("down", help="end the cluster and delete its directory")
    down.set_defaults(action=_down)
    status = actions.add_parser("status", help="say what runs; exit code 4 if something does not")
    status.set_defaults(action=_status)
    execute = actions.add_parser("exec", help="run a command inside the cluster's network, with kubectl at hand")
    execute.add_argument("argv", nargs=argparse.REMAINDER, metavar="[--] COMMAND...")
    execute.set_defaults(action=_exec)
    test = actions.add_parser("test", help="run tests/cluster on it, or on a cluster for the time of the tests")
    test.add_argument("--if-possible", action="store_true", help="where there can be no cluster here, say so and pass")
    test.add_argument("--kubeconfig", type=Path, help="run what can be run on this cluster instead of one of its own")
    test.add_argument("argv", nargs=argparse.REMAINDER, metavar="[--] PYTEST-ARGUMENTS...")
    test.set_defaults(action=_test)
    return parser


def _up(options: argparse.Namespace) -> int:
    cluster = Cluster.start(options.directory, _say)
    there = "" if options.directory == default_directory() else f" --directory {options.directory}"
    _say(f"try        {COMMAND}{there} exec kubectl get pods -A")
    _say(f"           its network is reached from inside only; KUBECONFIG there is {cluster.layout.kubeconfig}")
    _say(f"end it     {COMMAND}{there} down")
    return ExitCode.PASS


def _down(options: argparse.Namespace) -> int:
    Cluster(Layout.of(options.directory)).stop()
    return ExitCode.PASS


def _status(options: argparse.Namespace) -> int:
    cluster = Cluster(Layout.of(options.directory))
    found = cluster.status()
    for daemon in found:
        _say(str(daemon))
    if not found:
        _say(f"no cluster in {cluster.layout.directory}")
    return ExitCode.PASS if cluster.runs() else ExitCode.INFRASTRUCTURE


def _exec(options: argparse.Namespace) -> int:
    argv = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
    if not argv:
        raise InfrastructureError(f"exec: no command; say {COMMAND} exec kubectl get pods -A")
    cluster = Cluster(Layout.of(options.directory))
    if not cluster.status():
        raise InfrastructureError(f"no cluster in {cluster.layout.directory}; start it with {COMMAND} up")
    command = cluster.command(argv)
    os.execvpe(command[0], command, cluster.environment())


def _test(options: argparse.Namespace) -> int:
    why = suite.obstacle() if options.if_possible else None
    if why is not None:
        _say(f"cluster    the cluster suite (tests/cluster) did NOT run: {why}")
        return ExitCode.PASS
    argv = options.argv[1:] if options.argv[:1] == ["--"] else options.argv
    if options.kubeconfig is not None:
        return suite.run_on_given(options.kubeconfig, argv)
    return suite.run(options.directory, argv, _say)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
