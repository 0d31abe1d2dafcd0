"""`aftershock doctor`: everything that can be known to be wrong before a run, each by itself, with what to do.

It changes nothing, anywhere. The only load it sends is the one request with which a run begins too.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, partial
from itertools import groupby
from pathlib import Path
from typing import Literal, TextIO

from aftershock.chaos.litmus import doctor as cluster_doctor
from aftershock.chaos.litmus.cluster import Cluster
from aftershock.chaos.local.machine import available_memory
from aftershock.checkup import Check, Finding, Status, examine, exit_code
from aftershock.errors import ExitCode, InputError, PipelineError
from aftershock.experiment import EMBEDDED, NO_FAULT, Experiment
from aftershock.files import data_folder
from aftershock.kubeflow import Package, read_package, server_version
from aftershock.load import doctor as load_doctor
from aftershock.load.dataset import load_dataset
from aftershock.metrics import doctor as metrics_doctor
from aftershock.report import doctor as report_doctor
from aftershock.run import PACKAGE, RunOptions, check_place
from aftershock.rundir import new_run_id
from aftershock.slo.openslo import load_slos
from aftershock.stack import doctor as stack_doctor
from aftershock.steps import history_store, load_plan, render_engine, with_own_engine
from aftershock.windows import Phase

Format = Literal["text", "json"]

IMPORT_S = 60.0
"""How long loading kfp may take on a busy machine."""


def doctor(options: RunOptions, kfp_endpoint: str | None, output: Format, out: TextIO) -> ExitCode:
    """Make all checks that the run needs, and print what they find. 0, 2 (the experiment), or 4 (something else)."""
    findings = examine(checks(options, kfp_endpoint))
    if output == "json":
        found = list(findings)
        out.write(json.dumps(as_document(found), indent=2) + "\n")
    else:
        found = []
        for line in as_lines(_kept(findings, found)):
            out.write(line + "\n")
            out.flush()
    return exit_code(found)


def checks(options: RunOptions, kfp_endpoint: str | None) -> list[Check]:
    """Those that this run needs, in the order in which it would stumble."""
    given = options.experiment
    if given.run_id == "auto":
        given = given.model_copy(update={"run_id": new_run_id()})
    experiment = _followed(given)
    objectives = cache(partial(load_slos, experiment.slo, experiment.matchers))
    own = {check.name: check for check in _of_the_experiment(given)}
    metrics_port = None if experiment.prometheus_url == EMBEDDED else experiment.metrics_port
    found = list(own.values())
    found += stack_doctor.checks(options.stack_settings(), options.runs, available_memory, metrics_port)
    if experiment.target_url != EMBEDDED:
        plan = partial(load_plan, experiment, Phase.BASELINE, Path("unused"))
        found += load_doctor.checks(plan, experiment.request_timeout_s, own["data set"])
    if experiment.prometheus_url != EMBEDDED:
        found += metrics_doctor.checks(experiment, objectives, own["SLO"])
    if experiment.backend == "litmus" or experiment.kube_context != "auto":
        engine_text = cache(partial(render_engine, experiment))
        found += cluster_doctor.checks(experiment, engine_text, own["fault"], Cluster.connect)
    found += _of_kubeflow(kfp_endpoint)
    if experiment.store_endpoint not in (EMBEDDED, "none"):
        found += report_doctor.checks(partial(history_store, experiment))
    return found


def _followed(given: Experiment) -> Experiment:
    """With the fault and the target of its own engine; where that cannot be read, the check of the fault says so."""
    try:
        return with_own_engine(given)
    except InputError:
        return given


def _of_the_experiment(given: Experiment) -> list[Check]:
    experiment = _followed(given)

    def slo() -> str:
        objectives = load_slos(experiment.slo, experiment.matchers)
        stops = sum(objective.stop is not None for objective in objectives)
        return f"{len(objectives)} objectives, {stops or 'none'} of them with a stop condition"

    def data_set() -> str:
        return f"{len(load_dataset(experiment.dataset))} questions"

    def fault() -> str:
        render_engine(with_own_engine(given))
        return "none: a control run" if experiment.fault == NO_FAULT else f"{experiment.fault} gives a ChaosEngine"

    def backend() -> str:
        check_place(experiment)
        return f"{experiment.backend}, for a target that is {experiment.target_url}"

    looks = {"SLO": slo, "data set": data_set, "fault": fault, "backend": backend}
    return [Check("experiment", name, look) for name, look in looks.items()]


def _of_kubeflow(endpoint: str | None) -> list[Check]:
    group = "Kubeflow Pipelines"
    path = data_folder("pipelines") / PACKAGE
    package = cache(partial(read_package, path))
    loads = Check(group, "package", lambda: _package(package(), path), deadline_s=IMPORT_S)
    found = [Check(group, "library", _library, deadline_s=IMPORT_S), loads]
    if endpoint is not None:
        found.append(Check(group, "API server", lambda: _server(endpoint)))
        found.append(Check(group, "image", lambda: _image(package(), path), (loads,)))
    return found


def _library() -> str:
    """Steps are processes of their own, which find aftershock only where it is installed."""
    done = subprocess.run([sys.executable, "-c", "import aftershock"], cwd="/", capture_output=True, check=False)
    if done.returncode != 0:
        raise PipelineError(f"{sys.executable} does not find aftershock from everywhere; install it: pip install -e .")
    return "the steps of a pipeline find aftershock"


def _package(package: Package, path: Path) -> str:
    known = frozenset(Experiment.model_fields)
    if package.parameters != known:
        differing = ", ".join(sorted(package.parameters ^ known))
        raise PipelineError(f"{path} was compiled for other parameters ({differing}); run `make compile`")
    return f"loads under kfp {package.sdk}"


def _server(endpoint: str) -> str:
    version = server_version(endpoint)
    return f"{endpoint} answers{f', version {version}' if version else ', without telling its version'}"


def _image(package: Package, path: Path) -> str:
    named = ", ".join(sorted(package.images))
    if package.is_for_this_machine:
        raise PipelineError(
            f"{path} names the image {named}, which is in no registry: push one that the cluster can pull, and compile "
            "with AFTERSHOCK_IMAGE=REGISTRY/NAME:TAG make compile"
        )
    return f"{named}; whether the cluster can pull it is not tried"


def as_lines(findings: Iterable[Finding]) -> Iterator[str]:
    """For people: a line for each group and each check, as they come, and one at the end."""
    counts: Counter[Status] = Counter()
    for group, found in groupby(findings, key=lambda finding: finding.group):
        yield group
        for finding in found:
            counts[finding.status] += 1
            yield f"  {finding.status.value:<7}  {finding.name:<17}  {finding.text}"
    yield _summary(counts)


def as_document(findings: Iterable[Finding]) -> Mapping[str, object]:
    """For programs."""
    found = list(findings)
    return {
        "exit_code": int(exit_code(found)),
        "checks": [
            {"group": one.group, "name": one.name, "status": one.status.value.lower(), "text": one.text}
            for one in found
        ],
    }


def _summary(counts: Mapping[Status, int]) -> str:
    failed = counts[Status.FAIL]
    skipped = f", {counts[Status.SKIPPED]} skipped" if counts[Status.SKIPPED] else ""
    if failed:
        return f"{failed} of {sum(counts.values())} checks failed{skipped}"
    return f"all is well: {counts[Status.OK]} checks are ok{skipped}"


def _kept(findings: Iterable[Finding], kept: list[Finding]) -> Iterator[Finding]:
    """The same, one by one, while they are kept."""
    for finding in findings:
        kept.append(finding)
        yield finding
