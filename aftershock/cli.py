"""The command line: parse, call, print. Flags of `run` are made from the models, so that nothing is said twice."""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click
from pydantic import BaseModel

from aftershock import __version__
from aftershock.errors import AftershockError, ExitCode, InfrastructureError, InputError
from aftershock.experiment import Experiment, resolve
from aftershock.slo.decision import POLICIES
from aftershock.stack.settings import StackSettings

if TYPE_CHECKING:
    from aftershock.run import RunOptions

RUNS = click.option("--runs", type=click.Path(path_type=Path), default=Path("runs"), help="Folder of all runs.")
JUNIT = click.option("--junit", type=click.Path(path_type=Path), help="Write the table as JUnit XML too, for CI.")
SET_BY_RUN = frozenset({"stack"})
"""Fields of Experiment that `run` itself fills in."""
FROM_EXPERIMENT = frozenset({"model", "scrape_interval_s", "servers", "prometheus", "store"})
"""Fields of StackSettings that follow from the experiment."""


class Commands(click.Group):
    """The commands; click itself would end with 1, our FAIL, when nobody reads the output any more."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run one. Raises InfrastructureError where standard output was closed."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # so that the last flush does not fail too
            raise InfrastructureError("standard output was closed before the command was done") from error


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__)
def cli() -> None:
    """Does your inference service keep its SLO under chaos?

    Exit codes: 0 all PASS, 1 a FAIL, 2 bad input, 3 INCONCLUSIVE or NO_DATA, 4 infrastructure error.
    """


def flags_of(model: type[BaseModel], skip: frozenset[str]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """One flag for each field of `model`; values go to the model as text, so that it alone decides what is valid."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for name, field in reversed(model.model_fields.items()):
            if name in skip:
                continue
            flag = name.replace("_", "-")
            text = f"{field.description}.  [default: {field.default}]"
            if field.annotation is bool:
                command = click.option(f"--{flag}/--no-{flag}", name, default=None, help=text)(command)
            else:
                command = click.option(f"--{flag}", name, default=None, metavar="VALUE", help=text)(command)
        return command

    return add


@cli.command()
@click.option("-f", "--file", type=click.Path(path_type=Path), help="Experiment as YAML; flags and environment win.")
@RUNS
@JUNIT
@flags_of(Experiment, SET_BY_RUN)
@flags_of(StackSettings, FROM_EXPERIMENT)
def run(file: Path | None, runs: Path, junit: Path | None, **given: Any) -> int:
    """Run an experiment on the embedded stack and print its compliance table."""
    from aftershock.console import Console
    from aftershock.files import write_text
    from aftershock.report.junit import junit_of_failure
    from aftershock.run import run as run_experiment
    from aftershock.signals import Interrupted

    try:
        options = replace(options_of(file, runs, given), junit=junit)
        return run_experiment(options, Console(sys.stdout))
    except Interrupted as interrupted:
        return interrupted.exit_code
    except AftershockError as error:
        if junit is not None:  # else CI would show the file of the last run, or none at all
            write_text(junit, junit_of_failure(error))
        raise


def options_of(file: Path | None, runs: Path, given: Mapping[str, Any]) -> RunOptions:
    """What the flags of a run, the environment and the file come to. Raises InputError."""
    from aftershock.run import RunOptions

    flags = {name: value for name, value in given.items() if value is not None}
    stack = {name: flags.pop(name) for name in list(flags) if name not in Experiment.model_fields}
    return RunOptions(
        experiment=resolve(flags=flags, environment=os.environ, file=file),
        stack=StackSettings.checked(stack),
        runs=runs,
    )


@cli.command()
@click.option("-f", "--file", type=click.Path(path_type=Path), help="Experiment as YAML; flags and environment win.")
@click.option("--kfp-endpoint", default=None, metavar="URL", help="Check this Kubeflow Pipelines too.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="Of the findings.")
@click.option("--junit", type=click.Path(path_type=Path), expose_value=False, hidden=True, help="Of the run.")
@RUNS
@flags_of(Experiment, SET_BY_RUN)
@flags_of(StackSettings, FROM_EXPERIMENT)
def doctor(
    file: Path | None, kfp_endpoint: str | None, output: Literal["text", "json"], runs: Path, **given: Any
) -> int:
    """Check all that a run needs: put `doctor` in place of `run`, with the same flags. Changes nothing.

    0: nothing failed, 2: the experiment is wrong, 4: something that it needs is not there.
    """
    from aftershock.doctor import doctor as examine

    logging.disable(logging.WARNING)  # what a library tries again is no finding
    return examine(options_of(file, runs, given), kfp_endpoint, output, sys.stdout)


@cli.command()
@RUNS
@click.option("--kube-context", default=None, help="Sweep this cluster too; auto: the kubeconfig's current context.")
@click.option("--namespace", default=None, help="Of the cluster, only this.  [default: all]")
@click.option("--run-id", default=None, help="Of the cluster, only what this run left.  [default: all runs]")
def cleanup(runs: Path, kube_context: str | None, namespace: str | None, run_id: str | None) -> int:
    """End what dead runs left running, revert their faults, and put their records in place.

    In a cluster that is everything with aftershock's run label, so of live runs too: name the run where others work.
    4: something is still there.
    """
    from aftershock.run import tidy

    done = tidy(runs)
    left: list[str] = []
    if kube_context is not None:
        from aftershock.chaos.litmus.cluster import Cluster
        from aftershock.chaos.litmus.sweep import sweep

        cluster = Cluster.connect("" if kube_context == "auto" else kube_context)
        leftovers = sweep(cluster, namespace, run_id)
        done += [str(leftover) for leftover in leftovers]
        left = [leftover.name for leftover in leftovers if not leftover.removed]
    click.echo("\n".join(done) or "nothing was left")
    if left:
        raise InfrastructureError(
            f"not all was removed ({', '.join(left)} is still there); see above why, mend that, and try again"
        )
    return ExitCode.PASS


@cli.command()
@click.argument("run_directory", type=click.Path(path_type=Path))
def stop(run_directory: Path) -> int:
    """Stop the fault of a run that is going on; the run goes on to its verdict."""
    from aftershock.chaos.local.live import stop_engines

    stopped = stop_engines(run_directory / "stack")
    if not stopped:
        raise InputError(f"{run_directory}: no fault is running there; give the directory of a run that works now")
    click.echo("\n".join(f"engineState: stop written to {path}" for path in stopped))
    return ExitCode.PASS


@cli.command()
@click.argument("name", required=False)
def faults(name: str | None) -> int:
    """List the faults, or explain one."""
    from aftershock.chaos.template import describe, list_text, load_fault

    click.echo(describe(load_fault(name)) if name else list_text())
    return ExitCode.PASS


@cli.command()
@click.argument("name")
@click.option("-p", "--parameter", "parameters", multiple=True, metavar="KEY=VALUE", help="A tunable of the fault.")
@click.option("--namespace", default=None, help="Namespace of the target.")
@click.option("--label", default=None, help="One key=value label of the target.")
@click.option("--kind", default=None, help="Kind of the target.")
@click.option("--chaos-namespace", default=None, help="Namespace of the ChaosEngine.  [default: that of the target]")
@click.option("--service-account", default=None, help="Service account of the fault.  [default: the one of deploy/]")
@click.option("--probes", default=None, metavar="FILE", help="Probes that Litmus shall run beside it: a YAML list.")
@click.option("--confirm", multiple=True, metavar="NAME", help="Harm that is meant, as the refusal names it.")
def render(name: str, parameters: tuple[str, ...], confirm: tuple[str, ...], **target: str | None) -> int:
    """Print the ChaosEngine that a fault renders to."""
    from aftershock.chaos.render import render_fault

    wrong = [text for text in parameters if "=" not in text]
    if wrong:
        raise InputError(f"-p {wrong[0]}: must be KEY=VALUE")
    given: dict[str, Any] = {key: value for key, value in target.items() if value is not None}
    tunables = dict(text.split("=", 1) for text in parameters)
    click.echo(render_fault(name, tunables, confirmed=confirm, cluster=True, **given), nl=False)
    return ExitCode.PASS


@cli.command()
@click.argument("files", nargs=-1, type=click.Path(path_type=Path))
@click.option("--fix", is_flag=True, help="Mend what takes no decision, and say what was changed.")
@click.option("--ignore", multiple=True, metavar="RULE", help="Pass over this rule, in all files.")
@click.option("--rules", is_flag=True, help="List the rules instead.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="Of the findings.")
def lint(
    files: tuple[Path, ...], fix: bool, ignore: tuple[str, ...], rules: bool, output: Literal["text", "json"]
) -> int:
    """Name every hazard of ChaosEngines, also of those that workflows hold.

    0: no errors, warnings are only told. 1: errors. 2: a file could not be read, or none holds a ChaosEngine.

    What is meant is passed over by a comment on its line, or on the line above:
    `# aftershock: ignore RULE[, RULE]`.
    """
    from aftershock.chaos.lint.files import run_lint
    from aftershock.chaos.lint.linter import rules_text

    if rules:
        click.echo(rules_text())
        return ExitCode.PASS
    if not files:
        raise InputError("no file to lint; name files that hold ChaosEngines, or give --rules")
    text, code = run_lint(files, fix, output, ignore)
    click.echo(text)
    return code


@cli.command()
@click.argument("run_directory", type=click.Path(path_type=Path))
@click.option("--slo", default=None, help="Another SLO document: name or file.  [default: the run's own]")
@click.option("--policy", type=click.Choice(POLICIES), default=None, help="Another policy.")
@click.option("--format", "output", type=click.Choice(["text", "json"]), default="text", help="Of the table.")
@JUNIT
def judge(run_directory: Path, slo: str | None, policy: str | None, output: str, junit: Path | None) -> int:
    """Judge a finished run again, from what it measured; no server is needed."""
    from aftershock.console import table_text
    from aftershock.evidence import judge_again
    from aftershock.files import write_text
    from aftershock.report.junit import to_junit
    from aftershock.rundir import RunDirectory

    directory = RunDirectory.existing(run_directory)
    judgement = judge_again(directory, slo=slo, policy=policy)
    if junit is not None:
        write_text(junit, to_junit(judgement, directory.path.name))
    click.echo(table_text(judgement) if output == "text" else json.dumps(judgement.to_dict(), indent=2))
    return judgement.exit_code


@cli.command()
@click.argument("name", required=False)
def slos(name: str | None) -> int:
    """List the SLO documents that ship with aftershock, or print one, to be copied and changed."""
    from aftershock.slo.catalog import list_text, locate

    click.echo(locate(name)[0] if name else list_text(), nl=not name)
    return ExitCode.PASS


@cli.command()
@click.argument("source", metavar="URL|FILE")
@click.option("--selector", default="", help="Labels that its series have in Prometheus, as 'job=\"vllm\"'.")
@click.option("--slo", default=None, metavar="NAME", help="Print this SLO document instead, joined with this server.")
def metrics(source: str, selector: str, slo: str | None) -> int:
    """Say which inference server a /metrics is of, what it tells, by which PromQL, and what it does not tell."""
    from aftershock.metrics.families.describe import examine

    click.echo(examine(source, selector, slo), nl=not slo)
    return ExitCode.PASS


def main() -> None:
    """Entry point: one clear line for what is wrong, and the exit code of `errors.ExitCode`."""
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.ClickException as error:
        click.echo(f"error: {error.format_message()}", err=True)
        sys.exit(ExitCode.BAD_INPUT)
    except AftershockError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        sys.exit(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last edge: Python itself would end with 1, our FAIL
        traceback.print_exc()
        click.echo(
            f"error: {type(error).__name__}: {error}; this is a mistake in aftershock, please report it", err=True
        )
        sys.exit(ExitCode.INFRASTRUCTURE)


if __name__ == "__main__":
    main()
