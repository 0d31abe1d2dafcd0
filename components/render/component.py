"""Checks the experiment, renders its ChaosEngine and makes sure that the run can work, before any load is sent."""

from kfp import dsl

from components.image import component


@component
def render(
    run_id: str,
    target_url: str,
    model: str,
    protocol: str,
    namespace: str,
    label: str,
    kind: str,
    chaos_namespace: str,
    service_account: str,
    fault: str,
    fault_parameters: dict,
    engine: str,
    probes: str,
    slo_probes: str,
    slo_watch: bool,
    confirm: str,
    baseline_s: float,
    chaos_s: float,
    recovery_s: float,
    rate: float,
    arrivals: str,
    dataset: str,
    max_tokens: int,
    temperature: float,
    request_timeout_s: float,
    seed: int,
    slo: str,
    selector: str,
    policy: str,
    prometheus_url: str,
    scrape_interval_s: float,
    metrics_port: int,
    backend: str,
    kube_context: str,
    store_endpoint: str,
    store_bucket: str,
    gate: bool,
    stack: str,
    experiment: dsl.Output[dsl.Artifact],
    chaos_engine: dsl.Output[dsl.Artifact],
):
    """Validate every parameter, render the ChaosEngine and refuse what cannot work.

    Parameters are those of `aftershock.experiment.Experiment`, where each is described with its unit and bounds.

    Args:
        run_id: Name of the run.
        target_url: Base URL of the inference service.
        model: Model name sent with each request.
        protocol: OpenAI endpoint that takes the load.
        namespace: Namespace of the pods that the fault hits.
        label: One key=value label of these pods.
        kind: Kind of the workload that owns them.
        chaos_namespace: Namespace of the ChaosEngine; auto: that of the pods.
        service_account: Service account that the fault runs under.
        fault: Fault template; none for a control run.
        fault_parameters: Tunables of the fault under Litmus' names.
        engine: ChaosEngine to use instead of the templates, or none.
        probes: Probes that Litmus shall run beside the fault, or none.
        slo_probes: Have Litmus watch the stop conditions too; Prometheus as pods see it, auto or none.
        slo_watch: Stop the fault where a stop condition of the SLO is breached.
        confirm: Harm in a cluster that is meant.
        baseline_s: Length of the baseline phase, seconds.
        chaos_s: Length of the chaos phase, seconds.
        recovery_s: Length of the recovery phase, seconds.
        rate: Offered load, requests per second.
        arrivals: poisson or constant.
        dataset: Questions to ask.
        max_tokens: Upper bound of tokens per answer.
        temperature: Sampling temperature.
        request_timeout_s: Time-out of a request, seconds.
        seed: Seed of arrivals and of what the fault picks.
        slo: SLO document: a name or the YAML itself.
        selector: Labels of the target's series in Prometheus, for the SLO's queries, or none.
        policy: strict or point.
        prometheus_url: Base URL of Prometheus.
        scrape_interval_s: How often Prometheus scrapes, seconds.
        metrics_port: Port on which the load generator is scraped.
        backend: Who injects.
        kube_context: Context of the kubeconfig, for litmus.
        store_endpoint: S3 store of the history.
        store_bucket: Its bucket.
        gate: Fail the run where the verdict is not PASS.
        stack: State file of the embedded stack, or none.
        experiment: The checked experiment, YAML.
        chaos_engine: The ChaosEngine, YAML; empty for a control run.
    """
    # Before any other statement, so that these are the parameters alone.
    given = {name: value for name, value in locals().items() if name not in ("experiment", "chaos_engine")}
    from pathlib import Path

    from aftershock import steps

    steps.render(given, experiment_out=Path(experiment.path), engine_out=Path(chaos_engine.path))
