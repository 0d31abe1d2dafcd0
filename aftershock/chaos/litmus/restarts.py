"""Signs that the fault was started more than once, which makes every number of the window doubtful.

Litmus' Jobs have a backoffLimit of 6: a lost or crashed experiment pod is replaced, and the fault begins again, even
after the engine is `completed`; the verdict may well be Pass then. An engine set to `active` again runs again, too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from aftershock.chaos.litmus.read import digest, experiment_of, section
from aftershock.chaos.litmus.sightings import Object


@dataclass
class Restarts:
    """Each sign once, as a sentence."""

    signs: dict[str, None] = field(default_factory=dict)
    _jobs: dict[str, set[str]] = field(default_factory=dict)
    """Experiment -> its Jobs there ever were."""
    _pods: dict[str, set[str]] = field(default_factory=dict)
    """Job -> uids of its pods there ever were."""

    def engine(self, before: Object | None, now: Object) -> None:
        """An engine that was over and is no longer; an experiment whose pod is another."""
        was, is_ = (section(each, "status").get("engineStatus") for each in (before, now))
        if was in ("completed", "stopped") and is_ not in ("completed", "stopped"):
            self._sign(f"the engine was {was} and has been made to run again")
        old, new = _pods_of(before), _pods_of(now)
        for name, pod in new.items():
            if name in old and old[name] != pod:
                self._sign(f"experiment {name} went on in another pod, {pod} after {old[name]}")

    def job(self, job: Object) -> None:
        """A Job whose pod has failed; a second Job of one experiment."""
        name = str(section(job, "metadata").get("name"))
        experiment = experiment_of(name)
        seen = self._jobs.setdefault(experiment, set())
        seen.add(name)
        if len(seen) > 1:
            self._sign(f"experiment {experiment} was started again in a second Job")
        if int(section(job, "status").get("failed") or 0):
            self._sign(f"a pod of Job {name} failed, which makes Kubernetes start another")

    def pod(self, pod: Object) -> None:
        """A second pod of one Job."""
        job = section(pod, "metadata", "labels").get("job-name")
        if not job:
            return
        seen = self._pods.setdefault(str(job), set())
        seen.add(digest(pod))
        if len(seen) > 1:
            self._sign(f"Job {job} started its experiment again in a second pod")

    def _sign(self, sentence: str) -> None:
        self.signs.setdefault(sentence)


def _pods_of(engine: Object | None) -> dict[str, str]:
    """Experiment -> pod, as far as a pod is named."""
    listed = section(engine, "status").get("experiments") or []
    return {
        str(each.get("name")): str(each.get("experimentPod"))
        for each in listed
        if str(each.get("experimentPod")) not in ("None", "", "N/A", "Yet to be launched")
    }
