"""render -> baseline -> chaos -> recovery -> collect -> judge -> report -> gate.

Compile with `make compile`, which writes pipeline.yaml beside this file.
"""

from kfp import dsl

from components.chaos.component import chaos as chaos_component
from components.collect.component import collect as collect_component
from components.gate.component import gate as gate_component
from components.judge.component import judge as judge_component
from components.load.component import load as load_component
from components.render.component import render as render_component
from components.report.component import report as report_component


@dsl.pipeline(name="slo-chaos", description="Does the inference service keep its SLO while a fault is injected?")
def slo_chaos(
    run_id: str = "auto",
    target_url: str = "embedded",
    model: str = "canary",
    protocol: str = "completions",
    namespace: str = "inference",
    label: str = "app=model-server",
    kind: str = "deployment",
    chaos_namespace: str = "auto",
    service_account: str = "auto",
    fault: str = "pod-delete",
    fault_parameters: dict = {},  # noqa: B006 - a pipeline's defaults are data, never changed
    engine: str = "none",
    probes: str = "none",
    slo_probes: str = "none",
    slo_watch: bool = True,
    confirm: str = "none",
    baseline_s: float = 20.0,
    chaos_s: float = 30.0,
    recovery_s: float = 20.0,
    rate: float = 60.0,
    arrivals: str = "poisson",
    dataset: str = "canary",
    max_tokens: int = 16,
    temperature: float = 0.0,
    request_timeout_s: float = 10.0,
    seed: int = 1,
    slo: str = "canary",
    selector: str = "none",
    policy: str = "strict",
    prometheus_url: str = "embedded",
    scrape_interval_s: float = 1.0,
    metrics_port: int = 9464,
    backend: str = "local",
    kube_context: str = "auto",
    store_endpoint: str = "embedded",
    store_bucket: str = "aftershock",
    gate: bool = True,
    stack: str = "none",
):
    """Parameters are those of `aftershock.experiment.Experiment`; a test holds the two together."""
    rendered = render_component(
        run_id=run_id,
        target_url=target_url,
        model=model,
        protocol=protocol,
        namespace=namespace,
        label=label,
        kind=kind,
        chaos_namespace=chaos_namespace,
        service_account=service_account,
        fault=fault,
        fault_parameters=fault_parameters,
        engine=engine,
        probes=probes,
        slo_probes=slo_probes,
        slo_watch=slo_watch,
        confirm=confirm,
        baseline_s=baseline_s,
        chaos_s=chaos_s,
        recovery_s=recovery_s,
        rate=rate,
        arrivals=arrivals,
        dataset=dataset,
        max_tokens=max_tokens,
        temperature=temperature,
        request_timeout_s=request_timeout_s,
        seed=seed,
        slo=slo,
        selector=selector,
        policy=policy,
        prometheus_url=prometheus_url,
        scrape_interval_s=scrape_interval_s,
        metrics_port=metrics_port,
        backend=backend,
        kube_context=kube_context,
        store_endpoint=store_endpoint,
        store_bucket=store_bucket,
        gate=gate,
        stack=stack,
    )
    experiment = rendered.outputs["experiment"]

    baseline = load_component(experiment=experiment, phase="baseline")
    chaos = chaos_component(experiment=experiment, engine=rendered.outputs["chaos_engine"]).after(baseline)
    recovery = load_component(experiment=experiment, phase="recovery").after(chaos)

    collected = collect_component(
        experiment=experiment,
        baseline=baseline.outputs["window"],
        chaos=chaos.outputs["window"],
        recovery=recovery.outputs["window"],
    )
    evidence = {
        "experiment": experiment,
        "metrics": collected.outputs["metrics"],
        "windows": collected.outputs["windows"],
        "outcome": chaos.outputs["outcome"],
        "baseline_records": baseline.outputs["records"],
        "chaos_records": chaos.outputs["records"],
        "recovery_records": recovery.outputs["records"],
    }
    judged = judge_component(**evidence)
    reported = report_component(judgement=judged.outputs["judgement"], **evidence)
    gated = gate_component(verdict=judged.outputs["Output"], enabled=gate).after(reported)

    # A cached answer about a service that has changed since is a lie; the compiled package must say so for each task.
    for task in (rendered, baseline, chaos, recovery, collected, judged, reported, gated):
        task.set_caching_options(False)
