"""The embedded stack as a block: running inside it, gone after it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aftershock.errors import StackError
from aftershock.progress import JOURNAL_VARIABLE
from aftershock.stack.cleanup import end_run, owned
from aftershock.stack.models import model_path
from aftershock.stack.object_store import answers, find_weed
from aftershock.stack.ports import require_free
from aftershock.stack.private import private_folder, write_private
from aftershock.stack.process import ending, last_words
from aftershock.stack.prometheus import find_binary
from aftershock.stack.settings import Launch, StackSettings
from aftershock.stack.state import StackState, read_state, state_path

__all__ = ["StackState", "check", "lost", "running_stack"]

VITAL = ("supervisor", "gateway")

POLL_S = 0.02
STOP_TIMEOUT_S = 5.0
"""The supervisor needs a second or two; one that hangs is killed, and the kernel kills its children."""
GRACE_S = 1.0


def check(settings: StackSettings) -> None:
    """Raise InputError for what can be known to be wrong before anything is started: the model, the port."""
    if settings.servers:
        model_path(settings.model)
        require_free(settings.gateway_port, "gateway_port")


@contextmanager
def running_stack(settings: StackSettings, run_dir: Path, run_id: str) -> Iterator[StackState]:
    """Start a stack in `run_dir` and wait until all of it is ready; stop it when the block ends, however it ends.

    Raises InputError as `check` does, and StackError naming the part that did not start, why, and its log.
    """
    check(settings)
    launch = Launch(
        run_id=run_id,
        run_dir=run_dir.absolute(),
        settings=settings,
        model_path=model_path(settings.model) if settings.servers else None,
        prometheus=find_binary() if settings.prometheus else None,
        weed=find_weed() if settings.store else None,
    )
    private_folder(launch.stack_dir)
    with owned(launch.run_dir):
        supervisor = None
        try:
            supervisor = _start(launch)
            yield _wait_until_ready(launch, supervisor)
        finally:
            if supervisor is not None:
                _stop(supervisor)
            end_run(launch.run_dir, grace_s=GRACE_S)


def lost(state: StackState) -> str | None:
    """What has ended that a run cannot do without, in a sentence; None while supervisor and gateway live.

    Two looks at the process table: cheap enough to be called every second while the stack of `state` runs.
    """
    for process, name in state.processes.items():
        if name in VITAL and not process.alive():
            return f"the stack's {name} (pid {process.pid}) has ended, and the run with it; see {name}.log"
    return None


def _start(launch: Launch) -> subprocess.Popen[bytes]:
    """The supervisor, in a session of its own: Ctrl-C in a terminal is for the command, which then stops the stack."""
    document = launch.stack_dir / "launch.json"
    write_private(document, launch.model_dump_json(indent=2))
    environment = {**os.environ, JOURNAL_VARIABLE: str(launch.run_dir / "events.jsonl")}
    try:
        launch.log("supervisor").parent.mkdir(parents=True, exist_ok=True)
        with launch.log("supervisor").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "aftershock.stack.supervisor", str(document)],
                stdin=subprocess.PIPE,  # the lifeline: nobody else may inherit our end of it
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=launch.stack_dir,
                env=environment,
                start_new_session=True,
            )
    except OSError as error:
        raise StackError(f"cannot start the supervisor in {launch.run_dir} ({error.strerror or error})") from error


def _stop(supervisor: subprocess.Popen[bytes]) -> None:
    """Cut the lifeline, and wait for the end of the supervisor and with it of its children."""
    if supervisor.stdin:
        supervisor.stdin.close()
    try:
        supervisor.wait(STOP_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        supervisor.kill()
        supervisor.wait()


def _wait_until_ready(launch: Launch, supervisor: subprocess.Popen[bytes]) -> StackState:
    timeout_s = launch.settings.ready_timeout_s
    deadline = time.monotonic() + timeout_s
    path = state_path(launch.run_dir)
    store_answers = False
    while True:
        ended = supervisor.poll()
        state = read_state(path) if path.exists() else None
        if state is not None:
            _raise_for_the_ended(launch, state)
            store_answers = store_answers or state.store is None or answers(state.store)
            if state.ready and store_answers:
                return state
        if ended is not None:
            raise _failure(launch, "supervisor", ending(ended))
        if time.monotonic() > deadline:
            raise _failure(launch, _laggard(state), f"was not ready within {timeout_s:g} s")
        time.sleep(POLL_S)


def _raise_for_the_ended(launch: Launch, state: StackState) -> None:
    """While a stack starts, nothing in it may end: it would only end again."""
    for part in state.parts:
        if part.reason is not None:
            raise _failure(launch, part.name, part.reason)
    for pod in state.pods:
        if pod.last_exit is not None:
            raise _failure(launch, f"model-server-{pod.slot}", pod.last_exit)


def _laggard(state: StackState | None) -> str:
    if state is None:
        return "supervisor"
    pods = [f"model-server-{pod.slot}" for pod in state.pods if not pod.ready]
    parts = [part.name for part in state.parts if not part.ready]
    return [*pods, *parts, "store"][0]  # pods first: a gateway without a ready model server is not to blame


def _failure(launch: Launch, part: str, what: str) -> StackError:
    return StackError(last_words(f"{part} {what}", launch.log(part)))
