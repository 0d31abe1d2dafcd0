"""The steps of a run, one function a pipeline component. Read them in this order and you know what a run does.

Each takes the paths of its inputs and outputs, does its work through one package of the library, and says what it does
through `progress.emit`. Errors of our tree are said there too, since all that a pipeline reports is that a task failed.
"""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar
from urllib.parse import urlsplit

from aftershock.errors import (
    AftershockError,
    ChaosError,
    ExitCode,
    GateError,
    InputError,
    PipelineError,
    StoreError,
)
from aftershock.experiment import EMBEDDED, NO_FAULT, NOTHING, Experiment, load_experiment, validate
from aftershock.files import read_json, write_json, write_text
from aftershock.progress import emit
from aftershock.rundir import new_run_id
from aftershock.windows import Phase, Window, utc_now

if TYPE_CHECKING:
    from aftershock.brake import Watching
    from aftershock.chaos.backend import ChaosEvent, ChaosOutcome
    from aftershock.load.plan import LoadPlan, LoadProgress, LoadResult
    from aftershock.report.history import Store
    from aftershock.slo.objective import Objective

P = ParamSpec("P")
R = TypeVar("R")

LONGEST_CHAOS_S = 2 * 86_400.0
"""Bound of the load in the chaos phase, against a backend that never ends: twice what one fault may last. The load
really ends with the fault, which may take longer than asked: pods one after the other, models that load for minutes."""


def step(function: Callable[P, R]) -> Callable[P, R]:
    """Say that a step begins, and why it failed."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        emit("step", name=function.__name__)
        try:
            return function(*args, **kwargs)
        except AftershockError as error:
            emit("error", type=type(error).__name__, message=str(error), exit_code=int(error.exit_code))
            raise
        except Exception as error:
            message = f"{function.__name__}: {type(error).__name__}: {error}; see the log of the step"
            emit("error", type=PipelineError.__name__, message=message, exit_code=int(ExitCode.INFRASTRUCTURE))
            raise

    return wrapped


@step
def render(parameters: Mapping[str, Any], *, experiment_out: Path, engine_out: Path) -> None:
    """Check the experiment, render its ChaosEngine, and refuse what cannot work before any load is sent.

    Raises InputError for what the user can mend, InfrastructureError for what does not answer.
    """
    experiment = validate(parameters, "pipeline parameters")
    if experiment.run_id == "auto":
        experiment = experiment.model_copy(update={"run_id": new_run_id()})
    experiment = with_own_engine(experiment)
    write_text(experiment_out, experiment.to_yaml())
    engine = render_engine(experiment)
    write_text(engine_out, engine)
    _preflight(experiment, engine)


def with_own_engine(experiment: Experiment) -> Experiment:
    """The experiment with the fault and the target of the ChaosEngine that it brings, if any. Raises InputError."""
    if experiment.engine == NOTHING:
        return experiment
    from aftershock.chaos.adopt import follow_engine

    return follow_engine(experiment)


def render_engine(experiment: Experiment) -> str:
    """The experiment's ChaosEngine as YAML, with its probes; a comment alone for a control run. Raises InputError."""
    if experiment.engine != NOTHING:
        from aftershock.chaos.adopt import adopt

        return adopt(experiment, confirmed=experiment.confirmed)
    if experiment.fault == NO_FAULT:
        from aftershock.chaos.probes import refuse_idle_probes

        refuse_idle_probes(experiment, cluster=False)
        return "# control run: no fault is injected\n"
    from aftershock.chaos.render import render as render_template

    return render_template(experiment, confirmed=experiment.confirmed)


def _preflight(experiment: Experiment, engine_text: str) -> None:
    from aftershock.chaos.backend import create_backend
    from aftershock.chaos.engine import parse_engine
    from aftershock.load.preflight import check_target
    from aftershock.metrics.collect import check_queries
    from aftershock.metrics.prometheus import PrometheusClient
    from aftershock.slo.openslo import load_slos
    from aftershock.slo.slices import too_few_slices

    objectives = load_slos(experiment.slo, experiment.matchers)
    for sentence in too_few_slices(objectives, experiment.phase_seconds):
        emit("warning", message=sentence)
    for name in ("target_url", "prometheus_url", "store_endpoint"):
        if getattr(experiment, name) == EMBEDDED:
            raise InputError(
                f"{name}=embedded: there is no embedded stack here; give an address, or use `aftershock run`"
            )
    if experiment.fault != NO_FAULT:
        create_backend(experiment).preflight(parse_engine(engine_text, "rendered engine"))
    if experiment.store_endpoint != "none" and not history_store(experiment).ready():
        raise StoreError(
            f"{experiment.store_endpoint}: no object store answers; --store-endpoint none keeps no history"
        )
    asyncio.run(check_target(load_plan(experiment, Phase.BASELINE, Path("unused"))))
    with PrometheusClient(experiment.prometheus_url) as client:
        if _stop_conditions(experiment):
            client.probe()  # no fault whose brake is known not to work
        check_queries(objectives, client)


def _stop_conditions(experiment: Experiment) -> list[Objective]:
    """The objectives on whose account a fault is to be stopped early; none where nobody shall watch them."""
    from aftershock.slo.openslo import load_slos

    if experiment.fault == NO_FAULT or not experiment.slo_watch:
        return []
    return [objective for objective in load_slos(experiment.slo, experiment.matchers) if objective.stop]


@step
def load(experiment_path: Path, phase: str, *, records_out: Path, window_out: Path) -> None:
    """Send the load of a phase without a fault; write its records, its window and how well the generator kept up."""
    from aftershock.load.runner import run_load

    experiment = _read_experiment(experiment_path)
    plan = load_plan(experiment, Phase(phase), records_out)
    emit("phase", phase=phase, seconds=plan.seconds)
    result = _run_until_told(run_load(plan, on_progress=_say_load(plan), on_warning=_say_warning))
    _write_window(window_out, result.window, result)


@step
def chaos(experiment_path: Path, engine_path: Path, *, records_out: Path, window_out: Path, outcome_out: Path) -> None:
    """Send the load while the fault is injected, and write what both did.

    Raises ChaosError after everything is written if the fault could not be injected or reverted as asked.
    """
    experiment = _read_experiment(experiment_path)
    plan = load_plan(experiment, Phase.CHAOS, records_out)
    emit("phase", phase=plan.phase.value, seconds=plan.seconds)
    engine = None if experiment.fault == NO_FAULT else engine_path.read_text(encoding="utf-8")
    result, outcome = _run_until_told(_disturb(experiment, engine, plan, archive=outcome_out.with_name("archive")))
    window = result.window
    if outcome is not None:
        window = replace(window, injected_at=outcome.injected_at, reverted_at=outcome.reverted_at)
    _write_window(window_out, window, result)
    write_json(outcome_out, outcome.to_dict() if outcome else {})
    if outcome is not None and outcome.verdict == "Error":
        code = outcome.error_code or "GENERIC_ERROR"
        raise ChaosError(f"{experiment.fault}: {code}: {outcome.reason}; the records are kept", code)


async def _disturb(
    experiment: Experiment, engine_text: str | None, plan: LoadPlan, archive: Path
) -> tuple[LoadResult, ChaosOutcome | None]:
    """Load and fault together. The load goes on until the fault is over and `chaos_s` have passed since it began.

    The fault ends early where a stop condition of the SLO is reached; the load does not. The fault is reverted before
    this returns or raises, whatever happens to the load.
    """
    from aftershock.brake import brake
    from aftershock.chaos.backend import create_backend
    from aftershock.chaos.engine import parse_engine
    from aftershock.load.runner import run_load

    if engine_text is None:
        return await run_load(plan, on_progress=_say_load(plan), on_warning=_say_warning), None

    watch = _watch(experiment)
    loop = asyncio.get_running_loop()
    started, injected, over, enough = asyncio.Event(), asyncio.Event(), asyncio.Event(), asyncio.Event()
    stop_fault = threading.Event()

    def on_event(event: ChaosEvent) -> None:
        emit("chaos", reason=event.reason, message=event.message, type=event.type)
        if event.reason == "ChaosInject":
            loop.call_soon_threadsafe(injected.set)
        elif event.reason == "PostChaosCheck" and next(unfinished, None) is None:
            loop.call_soon_threadsafe(over.set)  # Litmus' book-keeping goes on for half a minute after the last fault

    engine = parse_engine(engine_text, "rendered engine")
    unfinished = iter(engine.experiments[1:])
    backend = create_backend(experiment, archive)
    bounded = replace(plan, seconds=LONGEST_CHAOS_S)
    sending = asyncio.create_task(
        run_load(bounded, stop=enough, on_start=started.set, on_progress=_say_load(plan), on_warning=_say_warning)
    )
    await asyncio.wait({sending, asyncio.create_task(started.wait())}, return_when=asyncio.FIRST_COMPLETED)
    if sending.done():
        sending.result()  # raises: no fault without load
    disturbing = asyncio.create_task(asyncio.to_thread(backend.run, engine, stop_fault, on_event))
    braking = asyncio.create_task(
        brake(watch, injected=injected, over=over, disturbing=disturbing, stop_fault=stop_fault)
    )
    try:
        first = asyncio.create_task(injected.wait())
        await asyncio.wait({sending, disturbing, first}, return_when=asyncio.FIRST_COMPLETED)
        if injected.is_set():
            await asyncio.wait({sending}, timeout=plan.seconds)
        last = asyncio.create_task(over.wait())
        await asyncio.wait({sending, disturbing, last}, return_when=asyncio.FIRST_COMPLETED)
        enough.set()
        if sending.done() and not over.is_set():
            stop_fault.set()  # no fault without load
        result, outcome = await sending, await disturbing
        return result, replace(outcome, stop=await braking)
    finally:
        stop_fault.set()
        await asyncio.gather(disturbing, return_exceptions=True)
        sending.cancel()
        braking.cancel()
        await asyncio.gather(sending, braking, return_exceptions=True)


def _watch(experiment: Experiment) -> Watching | None:
    """What looks at the stop conditions once it is called; None where there are none.

    To be made before the load begins: the import takes longer than a load generator may stand still.
    """
    conditions = _stop_conditions(experiment)
    if not conditions:
        return None
    from aftershock.metrics.watch import Pace, watch

    pace = Pace.of(
        scrape_interval_s=experiment.scrape_interval_s,
        rate=experiment.rate,
        request_timeout_s=experiment.request_timeout_s,
    )
    return functools.partial(watch, conditions, experiment.prometheus_url, load_began=utc_now(), pace=pace)


@step
def collect(experiment_path: Path, window_paths: Sequence[Path], *, metrics_out: Path, windows_out: Path) -> None:
    """Ask Prometheus for every objective over every phase; write one tidy frame and the windows.

    A Prometheus that does not answer is no error here: its rows say so, and the judge makes NO_DATA of them.
    """
    from aftershock.files import atomic_path
    from aftershock.metrics.collect import collect as ask
    from aftershock.metrics.prometheus import PrometheusClient
    from aftershock.slo.frame import Answer
    from aftershock.slo.openslo import load_slos

    experiment = _read_experiment(experiment_path)
    entries = [read_json(path) for path in window_paths]
    windows = [Window.from_dict(entry) for entry in entries]
    with PrometheusClient(experiment.prometheus_url) as client:
        frame = ask(
            load_slos(experiment.slo, experiment.matchers),
            windows,
            client,
            scrape_interval_s=experiment.scrape_interval_s,
        )
    unreachable = frame["status"].eq(Answer.UNREACHABLE)
    if unreachable.any():
        emit("warning", message=f"{experiment.prometheus_url}: {frame.loc[unreachable, 'detail'].iloc[0]}")
    write_json(windows_out, entries)
    with atomic_path(metrics_out) as temporary:
        frame.to_parquet(temporary)


@step
def judge(
    experiment_path: Path,
    *,
    metrics: Path,
    windows: Path,
    outcome: Path,
    records: Sequence[Path],
    judgement_out: Path,
) -> str:
    """Hold what was measured against the SLO; write the verdicts and return the worst of them."""
    from aftershock.evidence import Evidence

    judgement = Evidence.read(
        experiment_path, metrics=metrics, windows=windows, outcome=outcome, records=records
    ).judge()
    write_json(judgement_out, judgement.to_dict())
    return judgement.verdict.value


@step
def report(
    experiment_path: Path,
    *,
    judgement: Path,
    metrics: Path,
    windows: Path,
    outcome: Path,
    records: Sequence[Path],
    table_out: Path,
    summary_out: Path,
    page_out: Path,
) -> dict[str, float]:
    """Write the table and the report, keep them in the history, and return the finite numbers for KFP's Metrics.

    A store that does not answer costs the run its place in the history, not its report: that is a warning.
    """
    from aftershock.evidence import Evidence
    from aftershock.report.table import to_kfp_metrics
    from aftershock.slo.verdict import Judgement

    evidence = Evidence.read(experiment_path, metrics=metrics, windows=windows, outcome=outcome, records=records)
    verdicts = Judgement.from_dict(read_json(judgement))
    files = evidence.report(verdicts)
    for path, name in ((table_out, "slo_table.csv"), (summary_out, "report.md"), (page_out, "report.html")):
        write_text(path, files[name])
    _publish(evidence.experiment, files | {"verdict.json": judgement.read_text(encoding="utf-8")})
    return to_kfp_metrics(verdicts)


def _publish(experiment: Experiment, files: Mapping[str, str]) -> None:
    if experiment.store_endpoint == "none":
        return
    try:
        kept = {**files, "experiment.yaml": experiment.to_yaml()}
        history_store(experiment).publish(experiment.run_id, {name: text.encode() for name, text in kept.items()})
    except StoreError as error:
        emit("warning", message=f"the run is not kept in the history: {error}")


def history_store(experiment: Experiment) -> Store:
    """The object store that keeps the history, with the credentials of the environment."""
    from aftershock.report.history import Store

    return Store(
        experiment.store_endpoint,
        os.environ.get("AFTERSHOCK_STORE_ACCESS_KEY", ""),
        os.environ.get("AFTERSHOCK_STORE_SECRET_KEY", ""),
        experiment.store_bucket,
    )


@step
def gate(verdict: str, enabled: bool) -> None:
    """Fail if asked to and the verdict is not PASS. Raises GateError."""
    if enabled and verdict != "PASS":
        raise GateError(f"verdict {verdict}: the run is failed because gate is true")


def _read_experiment(path: Path) -> Experiment:
    return load_experiment(path.read_text(encoding="utf-8"), "experiment")


def load_plan(experiment: Experiment, phase: Phase, records: Path) -> LoadPlan:
    """The load of a phase. Raises DatasetError where there are no questions to ask."""
    from aftershock.load.dataset import load_dataset
    from aftershock.load.plan import LoadPlan

    return LoadPlan(
        phase=phase,
        target_url=experiment.target_url,
        model=experiment.model,
        protocol=experiment.protocol,
        rate=experiment.rate,
        arrivals=experiment.arrivals,
        seconds=experiment.phase_seconds[phase],
        items=load_dataset(experiment.dataset),
        max_tokens=experiment.max_tokens,
        temperature=experiment.temperature,
        request_timeout_s=experiment.request_timeout_s,
        seed=experiment.seed,
        records_path=records,
        metrics_host="127.0.0.1" if _is_local(experiment.prometheus_url) else "0.0.0.0",
        metrics_port=experiment.metrics_port,
        scrape_interval_s=experiment.scrape_interval_s,
    )


def _is_local(url: str) -> bool:
    """Whether it is on this machine: then nobody else needs to see the load generator's metrics."""
    return urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1")


def _say_load(plan: LoadPlan) -> Callable[[LoadProgress], None]:
    def say(progress: LoadProgress) -> None:
        emit(
            "load",
            phase=plan.phase.value,
            seconds=plan.seconds,
            elapsed_s=progress.elapsed_s,
            sent=progress.sent,
            ok=progress.ok,
            failed=progress.failed,
            p99_ms=_milliseconds(progress.p99_s),
            send_lag_p99_ms=_milliseconds(progress.send_lag_p99_s),
        )

    return say


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1000


def _say_warning(message: str) -> None:
    emit("warning", message=message)


def _write_window(path: Path, window: Window, result: LoadResult) -> None:
    """The window, and how well the load generator kept up in it: what the judge must know of the load."""
    load = {
        "settled": result.settled,
        "sent": result.sent,
        "resent": result.resent,
        "ok": result.ok,
        "failed": result.failed,
        "offered_rate": result.offered_rate,
        "achieved_rate": result.achieved_rate,
        "send_lag_p99_s": result.send_lag_p99_s,
        "loop_lag_p99_s": result.loop_lag_p99_s,
        "keeping_up": result.keeping_up,
        "warnings": list(result.warnings),
    }
    write_json(path, window.to_dict() | {"load": load})


def _run_until_told(work: Coroutine[Any, Any, R]) -> R:
    """Run `work`; on SIGTERM or SIGINT cancel it, so that it reverts and flushes, and exit as the signal asks."""

    async def guarded() -> R:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _cancel_once, loop, task, number, told)
        return await task

    told: list[int] = []
    try:
        return asyncio.run(guarded())
    except asyncio.CancelledError:
        raise SystemExit(128 + told[0] if told else 1) from None


def _cancel_once(loop: asyncio.AbstractEventLoop, task: asyncio.Future[Any], number: int, told: list[int]) -> None:
    told.append(number)
    if len(told) == 1:  # a second signal must not interrupt the revert
        task.cancel()
