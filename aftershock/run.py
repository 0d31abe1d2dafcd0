"""One run on this machine, from the experiment to the exit code: the story of the product on one screen."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path

from aftershock.console import Console, Journal, table_text
from aftershock.errors import ExitCode, InfrastructureError, InputError, PipelineError, StackError
from aftershock.experiment import EMBEDDED, NO_FAULT, Experiment
from aftershock.files import data_folder, read_json, write_text
from aftershock.kubeflow import LocalPipeline
from aftershock.place import Place, placed
from aftershock.progress import JOURNAL_VARIABLE
from aftershock.rundir import RunDirectory, gather, new_run_id
from aftershock.signals import interruptible
from aftershock.slo.verdict import Judgement
from aftershock.stack.cleanup import cleanup, is_live, owned, register_process
from aftershock.stack.settings import StackSettings
from aftershock.stack.stack import check
from aftershock.steps import render_engine, with_own_engine

PACKAGE = Path("slo_chaos") / "pipeline.yaml"
POLL_S = 0.1


@dataclass(frozen=True)
class RunOptions:
    """What `aftershock run` was asked for."""

    experiment: Experiment
    stack: StackSettings
    runs: Path
    junit: Path | None = None
    """Where the table is written as JUnit XML too."""

    def stack_settings(self) -> StackSettings:
        """The stack's settings with what the experiment decides of them: parts that are elsewhere are not started."""
        experiment = self.experiment
        return self.stack.model_copy(
            update={
                "servers": experiment.target_url == EMBEDDED,
                "model": experiment.model if experiment.target_url == EMBEDDED else "canary",
                "scrape_interval_s": experiment.scrape_interval_s,
                "prometheus": experiment.prometheus_url == EMBEDDED,
                "store": experiment.store_endpoint == EMBEDDED,
            }
        )


def run(options: RunOptions, console: Console) -> ExitCode:
    """Check, start the stack, run the compiled pipeline, stop the stack, show the table.

    Raises AftershockError with one clear line. Whatever happens, what was started is stopped, the fault is reverted,
    and the records that exist are under their names in the run directory.
    """
    experiment, settings = checked(options)
    for ended in tidy(options.runs):
        console.line("cleanup", ended)
    if experiment.needs_stack():
        check(settings)
    directory = RunDirectory.create(options.runs, experiment.run_id)
    write_text(directory.experiment, experiment.to_yaml())
    console.line("run", f"{experiment.run_id}  in {shown(directory.path)}")
    package = data_folder("pipelines") / PACKAGE
    with interruptible(console), owned(directory.path):
        try:
            with (
                LocalPipeline(package, directory.artifacts, directory.logs / "pipeline.log") as pipeline,
                placed(experiment, settings, directory, console) as place,
            ):
                journal = follow(pipeline, place, directory, console)
        finally:
            gather(directory)
    return conclude(directory, journal, console, options.junit)


def tidy(runs: Path) -> list[str]:
    """End what dead runs left running and put their records in place; a sentence for each thing that was done."""
    done = cleanup(runs)
    for path in sorted(runs.glob("*/artifacts")):
        if not is_live(path.parent):
            done += [f"{path.parent.name}: kept {name}" for name in gather(RunDirectory(path.parent.absolute()))]
    return done


def checked(options: RunOptions) -> tuple[Experiment, StackSettings]:
    """All that can be known to be wrong before anything is started is refused; files that it names are taken in.

    Raises InputError.
    """
    from aftershock.chaos.probes import read_probes_text
    from aftershock.load.dataset import load_dataset
    from aftershock.slo.openslo import load_slos, read_slo_text

    experiment, settings = options.experiment, options.stack_settings()
    if experiment.run_id == "auto":
        experiment = experiment.model_copy(update={"run_id": new_run_id()})
    experiment = with_own_engine(experiment)
    load_slos(experiment.slo, experiment.matchers)
    load_dataset(experiment.dataset)
    render_engine(experiment)
    check_place(experiment)
    # A path on this disk means nothing to a pod: the pipeline gets the text.
    texts = {"slo": read_slo_text(experiment.slo), "probes": read_probes_text(experiment.probes)}
    return experiment.model_copy(update=texts), settings


def check_place(experiment: Experiment) -> None:
    """Raise InputError where the backend would act on something else than what the load goes to."""
    if experiment.fault != NO_FAULT and (experiment.backend == "local") != (experiment.target_url == EMBEDDED):
        place = "the embedded stack" if experiment.backend == "local" else "a cluster"
        raise InputError(
            f"fault={experiment.fault}: backend {experiment.backend} acts on {place}, but target_url is "
            f"{experiment.target_url}; give another --backend or --target-url, or --fault none to inject nothing"
        )


def follow(pipeline: LocalPipeline, place: Place, directory: RunDirectory, console: Console) -> Journal:
    """Run the compiled package and show its progress until it ends; stop it if this is interrupted.

    Raises StackError if the stack dies meanwhile, PipelineError if the runner does.
    """
    journal, lost = Journal(directory.journal), None
    try:
        register_process(directory.path, pipeline.pid)
        environment = {**place.secrets, JOURNAL_VARIABLE: str(directory.journal)}
        pipeline.begin(place.experiment.model_dump(mode="json"), environment)
        while (succeeded := pipeline.poll()) is None and (lost := place.lost()) is None:
            time.sleep(POLL_S)
            for event in journal.new_events():
                console.show(event)
    finally:
        pipeline.stop()
        for event in journal.new_events():
            console.show(event)
    if lost is not None:
        raise StackError(journal.error[0] if journal.error else lost)
    if not succeeded and journal.error is None and not journal.gate_closed:
        raise PipelineError(f"the pipeline failed; the reason is in {shown(pipeline.log)}")
    return journal


def conclude(directory: RunDirectory, journal: Journal, console: Console, junit: Path | None = None) -> ExitCode:
    """Show the table and where the report is; the verdict's exit code, or that of what went wrong."""
    from aftershock.report.junit import to_junit

    code = None
    if directory.verdict.exists():
        judgement = Judgement.from_dict(read_json(directory.verdict))
        console.text(table_text(judgement))
        code = judgement.exit_code
        if junit is not None:
            write_text(junit, to_junit(judgement, directory.path.name))
        if directory.report.exists():
            console.line("report", shown(directory.report))
    if journal.error is not None:
        message, code = journal.error
        raise (InputError if code is ExitCode.BAD_INPUT else InfrastructureError)(message)
    if code is None:
        raise PipelineError(f"the pipeline ended without a verdict; see {shown(directory.logs / 'pipeline.log')}")
    return code


def shown(path: Path) -> str:
    """A path as short as it can be given."""
    try:
        return os.path.relpath(path) if path.is_relative_to(Path.cwd()) else str(path)
    except FileNotFoundError:
        return str(path)
