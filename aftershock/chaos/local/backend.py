"""The local backend: does what a ChaosEngine says to the embedded stack, as Litmus would to a cluster."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
from aftershock.chaos.engine import ChaosEngine
from aftershock.chaos.local.gateway import Gateway
from aftershock.chaos.local.lifecycle import run_experiment
from aftershock.chaos.local.live import ABORTED, COMPLETED, RUNNING, LiveEngine
from aftershock.chaos.local.plan import Plan, make_plans
from aftershock.chaos.local.recorder import Ending, Record, Recorder
from aftershock.chaos.local.scene import Scene
from aftershock.chaos.local.state import StackState, read_state
from aftershock.chaos.local.stop import StopSwitch
from aftershock.chaos.local.supervisor import Supervisor
from aftershock.errors import ChaosError, InputError, RunDirectoryError


class LocalBackend:
    """Acts on the stack whose state file it is given. What it writes goes to the folder `chaos` beside that file."""

    name = "local"

    def __init__(self, state_file: Path, seed: int) -> None:
        self._state_file = state_file
        self._folder = state_file.parent / "chaos"
        self._seed = seed

    def preflight(self, engine: ChaosEngine) -> None:
        """Refuse what cannot be done, and a stack that is not whole; nothing has been touched then."""
        plans = make_plans(engine)
        stack = self._look()
        for plan in plans:
            plan.check(engine, stack, self._state_file.parent)
        unready = [pod.name for pod in stack.pods if not pod.serving]
        if unready or not stack.pods:
            raise ChaosError(
                f"the stack's pods are not ready ({', '.join(unready) or 'there are none'}); see the stack's logs",
                code="STATUS_CHECKS_ERROR",
            )
        active = [fault for fault in Gateway(stack.gateway).faults() if fault.active]
        if active:
            raise ChaosError(
                f"the gateway already acts out {active[0].id} until {active[0].expires_at}: "
                "there is no baseline under a fault; wait, or run `aftershock cleanup`"
            )

    def run(self, engine: ChaosEngine, stop: threading.Event, on_event: Callable[[ChaosEvent], None]) -> ChaosOutcome:
        """Accept the engine, live its experiments one after the other, and say what came of them."""
        live = LiveEngine(self._folder, engine)
        recorder = Recorder(engine, live.uid, self._folder / f"{engine.name}.result.json", on_event)
        try:
            plans = make_plans(engine)
            live.accept(plan.experiment.name for plan in plans)
        except (InputError, RunDirectoryError) as error:
            recorder.begin(engine.experiments[0]).finish(Ending("Error", "GENERIC_ERROR", str(error)))
            return recorder.outcome(self.name)
        recorder.event("ChaosEngineInitialized", f"Identifying app under test & launching {engine.name}")
        stopped = self._run_all(plans, live, recorder, StopSwitch(stop, live))
        live.close(stopped)
        if stopped:
            recorder.event("ChaosEngineStopped", f"{engine.name} was stopped, and its faults are reverted", "Warning")
        else:
            recorder.event("ChaosEngineCompleted", f"{engine.name} is completed")
        return recorder.outcome(self.name)

    def _run_all(self, plans: Sequence[Plan], live: LiveEngine, recorder: Recorder, switch: StopSwitch) -> bool:
        """Serially, as Litmus' runner does: an Error does not keep the next one from its turn. True: stopped."""
        for plan in plans:
            name = plan.experiment.name
            live.update(name, RUNNING, "Awaited")
            ending = self._run_one(plan, recorder, switch)
            live.update(name, ABORTED if ending.verdict == "Stopped" else COMPLETED, ending.verdict)
            if ending.verdict == "Stopped":
                return True
        return False

    def _run_one(self, plan: Plan, recorder: Recorder, switch: StopSwitch) -> Ending:
        record = recorder.begin(plan.experiment)
        try:
            scene = self._scene(plan, recorder.engine, record, switch)
        except (ChaosError, InputError) as error:
            code = error.code if isinstance(error, ChaosError) else "GENERIC_ERROR"
            return record.finish(Ending("Error", code, str(error)))
        return run_experiment(plan, scene)

    def _scene(self, plan: Plan, engine: ChaosEngine, record: Record, switch: StopSwitch) -> Scene:
        """The stack as it is now. Raises ChaosError or InputError where the plan does not fit it (any more)."""
        stack = self._look()
        plan.check(engine, stack, self._folder)
        random = Random(self._seed)
        return Scene(
            experiment=plan.experiment,
            selection=plan.fault.selection.drawn(random),
            supervisor=Supervisor(stack.supervisor),
            gateway=Gateway(stack.gateway),
            folder=self._folder,
            switch=switch,
            record=record,
            random=random,
            slots=len({pod.slot for pod in stack.pods}),
        )

    def _look(self) -> StackState:
        """Addresses from the state file, pods from the supervisor itself."""
        stack = read_state(self._state_file)
        return stack.model_copy(update={"pods": Supervisor(stack.supervisor).pods()})
