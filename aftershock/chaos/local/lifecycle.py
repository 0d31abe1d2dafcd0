"""The life of one experiment, the same for every fault: check, ramp, inject and hold, revert, ramp, check, summary."""

from __future__ import annotations

from aftershock.chaos.local.plan import Plan
from aftershock.chaos.local.recorder import Ending
from aftershock.chaos.local.scene import Scene, serving_slots
from aftershock.chaos.local.stop import StopRequestedError
from aftershock.errors import ChaosError


def run_experiment(plan: Plan, scene: Scene) -> Ending:
    """Live it to its end, which is recorded and returned. Whatever happens, the fault has been reverted by then."""
    try:
        _before(plan, scene)
        _inject(plan, scene)
        _after(plan, scene)
        ending = Ending("Pass")
    except StopRequestedError as stop:
        ending = Ending("Stopped", reason=str(stop))
    except ChaosError as error:
        ending = Ending("Error", error.code, str(error))
    return scene.record.finish(ending)


def _before(plan: Plan, scene: Scene) -> None:
    """A fault on a service that is not whole would be blamed for what was there before it."""
    scene.switch.check()
    scene.wait_ready()
    scene.record.event("PreChaosCheck", f"AUT: Running, {scene.slots} of {scene.slots} pods ready")
    scene.wait(plan.ramp_s)


def _inject(plan: Plan, scene: Scene) -> None:
    """If the revert fails too, the first error leads: that is where the trouble began."""
    trouble: ChaosError | None = None
    try:
        plan.fault.inject(scene)
    except ChaosError as error:
        trouble = error
        raise
    finally:
        try:
            plan.fault.revert(scene)
        except ChaosError as error:
            if trouble is None:
                raise
            raise ChaosError(f"{trouble}; then, at the revert: {error}", trouble.code) from error


def _after(plan: Plan, scene: Scene) -> None:
    scene.wait(plan.ramp_s)
    if plan.health_check:
        scene.wait_ready()
    ready = serving_slots(scene.supervisor.pods())
    scene.record.event("PostChaosCheck", f"AUT: Running, {ready} of {scene.slots} pods ready")
