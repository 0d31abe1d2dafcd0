"""What single faults make of their tunables: values that each would do, and together or for this fault do not."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aftershock.chaos.hazards import RUNTIMES, scrape_gap
from aftershock.chaos.lint.engine import Engine, Experiment
from aftershock.chaos.lint.finding import shown
from aftershock.chaos.lint.registry import ERROR, WARNING, Hit, experiment_rule
from aftershock.chaos.lint.text import Edit
from aftershock.errors import TemplateError

SHORTEST_STATUS_CHECK_S = 30
SCRAPE_INTERVAL_S = 15.0
"""How often Prometheus asks, where nothing says so."""

_CHARTS = "chaos-charts b2662c23, fault.yaml"
_OF_OTHERS = re.compile(r"([A-Za-z0-9.-]*kubernetes\.io|nvidia\.com|amd\.com)/")
_NAME_OF_A_STATEFULSETS_POD = re.compile(r".*-[0-9]{1,3}")


@experiment_rule(
    "runtime-socket", ERROR, "Container runtime and socket of two kinds", "litmuschaos/litmus#4245, #3957, #5030"
)
def runtime_socket(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The fault ends with CONTAINER_RUNTIME_ERROR."""
    names = ("SOCKET_PATH", "CONTAINER_RUNTIME")
    given = [experiment.env[name].item for name in names if experiment.is_set(name)]
    if not given or any(experiment.env[name].is_open for name in names if name in experiment.env):
        return
    socket, runtime = (experiment.string(name) for name in names)
    kind = next((name for name in RUNTIMES if name in socket), None)
    if kind and kind != runtime and runtime in RUNTIMES:
        whose = "" if experiment.is_set("SOCKET_PATH") else "the chart's "
        yield Hit(
            given[0],
            f"{whose}SOCKET_PATH={shown(socket)} is that of {kind}, CONTAINER_RUNTIME is {runtime}",
            f"set CONTAINER_RUNTIME to {kind}, or give {RUNTIMES[runtime]} as SOCKET_PATH",
        )


@experiment_rule(
    "http-port",
    ERROR,
    "An HTTP fault without the container's port",
    "litmus docs; litmuschaos/litmus#3954",
    of_whole=True,
)
def http_port(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """It redirects port 80, where no model server listens, has no effect, and passes."""
    fault = experiment.fault
    if fault and "TARGET_SERVICE_PORT" in fault.tunables and not experiment.is_set("TARGET_SERVICE_PORT"):
        yield Hit(
            experiment.place_of_env(),
            f"{experiment.name} has no TARGET_SERVICE_PORT; it takes port 80, has no effect elsewhere, and passes",
            "give the port on which the container listens, not that of the Service",
        )


@experiment_rule(
    "status-code-random", WARNING, "A status code by chance", "litmus-go 3.31.0, http-chaos", of_whole=True
)
def status_code_random(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Empty is any code of the list, 200 too."""
    if experiment.name == "pod-http-status-code" and not experiment.is_set("STATUS_CODE"):
        yield Hit(
            experiment.place_of_env(), "STATUS_CODE is empty; Litmus takes a random one, 200 too", "give one, as 503"
        )


@experiment_rule(
    "sizes-both", ERROR, "The size of files beside their share", "litmus docs, pod-io-stress and node-io-stress"
)
def sizes_both(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The percentage wins, also the chart's own, and an empty one makes the size "%"; only "0" is not set to it."""
    share, size = "FILESYSTEM_UTILIZATION_PERCENTAGE", "FILESYSTEM_UTILIZATION_BYTES"
    if not experiment.is_set(size) or experiment.env[size].value == "0":
        return
    own = experiment.env.get(share)
    if own and (own.is_open or own.value == "0"):
        return
    if own is None and not (experiment.fault and share in experiment.fault.tunables):
        return
    what = f"{size} is not looked at: "
    edits: tuple[Edit, ...] = ()
    if own is None:
        what += f"the chart's own {share} wins"
        edits = experiment.place_of_env().insert_item({"name": share, "value": '"0"'})
    elif not own.value:
        what += f"{share} is empty, and stress-ng is told to write %"
        edits = own.item.write('"0"', raw=True) if own.entry.get("value") else ()
    else:
        what += f"both are given, and {share} wins"
    yield Hit(experiment.env[size].item, what, f'set {share} to "0", if {size} is meant', edits)


@experiment_rule(
    "memory-sizes", ERROR, "node-memory-hog that holds nothing", "litmus-go 3.31.0, node-memory-hog", of_whole=True
)
def memory_sizes(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The code compares with the text "0"; a share that is empty is one to it, of 0 percent."""
    share, size = "MEMORY_CONSUMPTION_PERCENTAGE", "MEMORY_CONSUMPTION_MEBIBYTES"
    if experiment.name != "node-memory-hog" or any(
        name in experiment.env and experiment.env[name].is_open for name in (share, size)
    ):
        return
    given = {name: experiment.string(name) for name in (share, size)}
    if given[share] not in ("", "0"):
        if given[size] not in ("", "0"):
            place = experiment.env[size].item
            yield Hit(place, f"both {share} and {size} are given; {share} wins", 'set the other one to "0"')
    elif not given[share]:
        own = experiment.env.get(share)
        place = own.item if own else experiment.place_of_env()
        edits: tuple[Edit, ...] = ()
        if given[size] not in ("", "0"):
            edits = place.insert_item({"name": share, "value": '"0"'}) if own is None else ()
            if own and own.entry.get("value"):
                edits = place.write('"0"', raw=True)
        yield Hit(
            place,
            f"{share} is not set, which is 0 percent to the fault: it holds nothing, and passes",
            f'set {share} to "0"' if edits else f'give {share}, or {size} and {share} as "0"',
            edits,
        )
    elif not given[size]:
        place = experiment.env[share].item
        yield Hit(place, f"{share} is 0 and {size} is not set: the fault holds nothing", f"give {size}, or {share}")


@experiment_rule(
    "taint-missing", ERROR, "node-taint without a taint", "litmus-go 3.31.0, node-taint: TAINTS", of_whole=True
)
def taint_missing(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The documentation still calls it TAINT_LABEL."""
    if experiment.name == "node-taint" and not experiment.is_set("TAINTS"):
        yield Hit(experiment.place_of_env(), "node-taint has no TAINTS", "give TAINTS as key=value:NoSchedule")


@experiment_rule("health-check-overridden", WARNING, "A health check that the chart turns off again", _CHARTS)
def health_check_overridden(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """The chart's env says false, and env wins over spec.defaultHealthCheck."""
    wanted = engine.root.get("spec", "defaultHealthCheck")
    if wanted and wanted.value == "true" and "DEFAULT_HEALTH_CHECK" not in experiment.env:
        if experiment.name == "pod-network-rate-limit":  # the one chart that does not say so
            return
        env = experiment.item.get("spec", "components", "env")
        yield Hit(
            wanted,
            f"spec.defaultHealthCheck is true, but {experiment.name}'s chart has DEFAULT_HEALTH_CHECK=false and wins",
            'add DEFAULT_HEALTH_CHECK="true" to env',
            env.insert_item({"name": "DEFAULT_HEALTH_CHECK", "value": '"true"'}) if env else (),
        )


@experiment_rule(
    "status-check-short", WARNING, "Less time to come back than a model takes to load", "seen: STATUS_CHECKS_ERROR"
)
def status_check_short(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Litmus waits this long for the target to run again; then the result is an Error, no verdict."""
    timeout = experiment.item.get("spec", "components", "statusCheckTimeouts", "timeout")
    if timeout and re.fullmatch(r"[0-9]{1,9}", timeout.value) and 0 < int(timeout.value) < SHORTEST_STATUS_CHECK_S:
        yield Hit(
            timeout,
            f"statusCheckTimeouts.timeout={timeout.value}: where a target takes longer, the run ends as Error",
            "give delay and timeout, and with that more than the model takes to load; the default is 180",
        )


@experiment_rule(
    "status-check-half", ERROR, "One of the two status check timeouts, or a 0", "chaos-runner 3.18.0, SetENV"
)
def status_check_half(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """As soon as one is given the runner passes both, and what is missing is 0 to it."""
    timeouts = experiment.item.get("spec", "components", "statusCheckTimeouts")
    if timeouts is None or timeouts.is_open:
        return
    defaults = {"delay": "2", "timeout": "180"}
    zero = [name for name in defaults if re.fullmatch(r"0*", timeouts.string(name))]
    if len(zero) != 1:  # none: both count; two: the runner takes its defaults
        return
    (name,), own = zero, timeouts.get(zero[0])
    effect = "Litmus divides by it, and panics" if name == "delay" else "Litmus does not wait for the target at all"
    yield Hit(
        own or timeouts,
        f"{timeouts.path}.{name} is {'0' if own else 'not given, which is 0 beside the other one'}; {effect}",
        f"give {name}: {defaults[name]}" if own is None else "give more than 0",
        timeouts.insert(name, defaults[name]) if own is None else (),
    )


@experiment_rule(
    "scrape-cut", WARNING, "A network fault that cuts the target off from Prometheus", "litmus-go 3.31.0, netem"
)
def scrape_cut(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Without a filter all that leaves the pod is hit, the answer to a scrape too."""
    fault = experiment.fault
    if not fault or any(variable.is_open for variable in experiment.variables):
        return
    values = {name: experiment.string(name) for name in fault.tunables}
    numbers = {name: str(int(most)) for name in values if (most := experiment.most(name)) is not None}
    try:
        gap = scrape_gap(experiment.name, {**values, **numbers}, SCRAPE_INTERVAL_S)
    except TemplateError:  # a rate that is none
        return
    if gap:
        place = next((experiment.env[name].item for name in gap.tunables if name in experiment.env), None)
        yield Hit(place or experiment.place_of_env(), f"{experiment.name}: {gap.what}", gap.way_out)


@experiment_rule(
    "replicas-missing", WARNING, "pod-autoscaler without REPLICA_COUNT", f"{_CHARTS}: REPLICA_COUNT=5", of_whole=True
)
def replicas_missing(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Where there is no room for five, pods stay Pending, and the run ends as Error."""
    if experiment.name == "pod-autoscaler" and not experiment.is_set("REPLICA_COUNT"):
        yield Hit(
            experiment.place_of_env(),
            "pod-autoscaler has no REPLICA_COUNT; the cluster's chart decides (5 in Litmus' own)",
            "give REPLICA_COUNT, one more than there are",
        )


@experiment_rule(
    "map-empty",
    ERROR,
    "A fault that has nothing to change",
    "litmus-go 3.31.0, pod-dns-spoof and header",
    of_whole=True,
)
def map_empty(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """No name is spoofed, no header changed: no effect, and a Pass."""
    name = {"pod-dns-spoof": "SPOOF_MAP", "pod-http-modify-header": "HEADERS_MAP"}.get(experiment.name)
    if not name or (name in experiment.env and experiment.env[name].is_open):
        return
    if re.fullmatch(r"\s*(\{\s*\})?\s*", experiment.string(name)):
        place = experiment.env[name].item if name in experiment.env else experiment.place_of_env()
        yield Hit(place, f"{name} is empty: {experiment.name} changes nothing, and passes", f"give {name}")


@experiment_rule("proxy-port", ERROR, "The proxy on the server's own port", "litmus-go 3.31.0, http-chaos")
def proxy_port(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """It cannot listen there."""
    names = [name for name in ("PROXY_PORT", "TARGET_SERVICE_PORT") if name in experiment.env]
    if experiment.fault and "PROXY_PORT" in experiment.fault.tunables and names:
        port = experiment.string("PROXY_PORT")
        if port and port == experiment.string("TARGET_SERVICE_PORT"):
            place = experiment.env[names[0]].item
            yield Hit(place, f"PROXY_PORT is {port}, the server's own port", "give one that is free in the pod")


@experiment_rule(
    "body-shell", ERROR, "A body that a shell interprets", "litmus-go 3.31.0, http-chaos: EscapeQuotes, then a shell"
)
def body_shell(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """It stands in double quotes on a command line of a privileged pod; quotes in it are escaped, these signs not."""
    body = experiment.env.get("RESPONSE_BODY")
    if body and experiment.fault and re.search(r"`|\$[A-Za-z0-9_({]", body.value) and not body.is_open:
        yield Hit(
            body.item,
            f"RESPONSE_BODY={shown(body.value)}: a shell in a privileged pod interprets $ and `",
            "give a text without them",
        )


@experiment_rule("taint-of-others", WARNING, "A taint that others set", "litmus-go 3.31.0, removeTaintFromNode")
def taint_of_others(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Afterwards every taint with the key is removed, also those that were there before."""
    taint = experiment.env.get("TAINTS")
    if taint and experiment.name == "node-taint" and _OF_OTHERS.match(taint.value):
        key = re.split("[=:]", taint.value)[0]
        yield Hit(
            taint.item,
            f"TAINTS={shown(taint.value)}: Litmus removes every taint {shown(key)} of the node afterwards",
            "give a key of your own",
        )


@experiment_rule("pods-gone", WARNING, "pod-delete that looks for pods that it has deleted", "litmus-go, pod-delete")
def pods_gone(engine: Engine, experiment: Experiment) -> Iterator[Hit]:
    """Each round asks for the same names, and a Deployment's pods come back under others: it ends as Error."""
    pods = experiment.env.get("TARGET_PODS")
    if not pods or experiment.name != "pod-delete" or pods.is_open or not pods.value:
        return
    names = [name.strip() for name in pods.value.split(",")]
    kept = engine.appinfo.get("appkind") == "statefulset" or all(map(_NAME_OF_A_STATEFULSETS_POD.fullmatch, names))
    interval, duration = experiment.number("CHAOS_INTERVAL"), experiment.number("TOTAL_CHAOS_DURATION")
    if not kept and interval and duration and interval < duration:
        yield Hit(
            pods.item,
            "pod-delete looks for the names of TARGET_PODS every CHAOS_INTERVAL; only a StatefulSet's pods keep "
            "theirs, others are not found again, and it ends as Error",
            "give CHAOS_INTERVAL as long as TOTAL_CHAOS_DURATION, for one kill",
        )
