"""What must be true of Prometheus for a run's figures to be right. Asks, changes nothing."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from aftershock.checkup import Check, NotCheckedError
from aftershock.errors import InputError, PrometheusError, SpecError
from aftershock.experiment import Experiment
from aftershock.metrics import cadence
from aftershock.metrics.collect import check_queries
from aftershock.metrics.prometheus import PrometheusClient, QueryRefusedError, ScrapeTarget, Series
from aftershock.metrics.questions import queries, recovery_lookback_s
from aftershock.metrics.selectors import is_of_the_load, selectors
from aftershock.slo.objective import Objective, RecoveryIndicator
from aftershock.slo.promql import duration
from aftershock.slo.slices import too_few_slices
from aftershock.windows import utc_now

GROUP = "Prometheus"
TIMEOUT_S = 5.0
"""Of each request."""
TOGETHER_S = 15.0
"""Of all requests of a check."""

CLOCKS_S = 1.0
"""How far its clock and ours may be apart: our clock cuts the phases, and its own stamps the samples."""

PRESENT = timedelta(minutes=5)
"""How old the last sample of a series may be that is there, as in Prometheus itself."""
EARLIER = timedelta(days=1)
"""How long ago the last run may have been that shows that the load generator is scraped."""
SCRAPES_READ = 12
"""How many scrapes are looked at to see how often they come."""
LEAST_READ_S = 60.0
FEW = 5
"""Things of a kind that are looked at, or named, one by one."""

_REFUSED = "connection refused"
"""What a scrape of the load generator ends in while no run goes on: its machine is there, and nothing listens."""

Scrapes = Mapping[str, str]
"""Labels that name one scrape: job and instance."""


@dataclass(frozen=True)
class Patient:
    """What is asked about."""

    experiment: Experiment
    objectives: Callable[[], Sequence[Objective]]
    """Of the SLO; called only where it could be read."""

    def of_the_target(self) -> list[str]:
        """What the SLO asks of series that are not our load generator's, as selectors; each once."""
        found = [one for objective in self.objectives() for one in _selectors(objective)]
        return [one for one in dict.fromkeys(found) if not is_of_the_load(one)]


def checks(experiment: Experiment, objectives: Callable[[], Sequence[Objective]], slo: Check) -> list[Check]:
    """All checks of Prometheus. `slo`: the check that the SLO can be read at all."""
    patient = Patient(experiment, objectives)

    def check(name: str, ask: Callable[[PrometheusClient, Patient], str], *needs: Check) -> Check:
        def look() -> str:
            with PrometheusClient(experiment.prometheus_url, timeout_s=TIMEOUT_S) as client, client.limited(TOGETHER_S):
                return ask(client, patient)

        return Check(GROUP, name, look, needs)

    reachable = check("reachable", _reachable)
    accepted = check("queries", _queries, reachable, slo)
    return [
        reachable,
        check("clock", _clock, reachable),
        accepted,
        check("target series", _target_series, accepted),
        check("load generator", _load_generator, reachable),
        check("scrape interval", _scrape_interval, reachable, slo),
        check("phases", _phases, reachable, slo),
    ]


def _reachable(client: PrometheusClient, patient: Patient) -> str:
    client.probe()
    version = client.version()
    return f"{f'version {version}' if version else 'it answers, but tells no version'} at {client.shown}"


def _clock(client: PrometheusClient, patient: Patient) -> str:
    before = time.time()
    theirs = client.now()
    took_s = time.time() - before
    offset_s = theirs - (before + took_s / 2)
    if abs(offset_s) - took_s / 2 > CLOCKS_S:
        raise PrometheusError(
            f"its clock is {abs(offset_s):.3g} s {'ahead of' if offset_s > 0 else 'behind'} ours, by which phases are "
            "cut, so their edges would be wrong: have both machines set their clocks by NTP"
        )
    return f"its clock is within {max(abs(offset_s), took_s / 2):.2g} s of ours"


def _queries(client: PrometheusClient, patient: Patient) -> str:
    refused: list[SpecError] = []
    objectives = patient.objectives()
    for objective in objectives:
        try:
            check_queries([objective], client)
        except SpecError as error:
            refused.append(error)
    client.probe()  # a Prometheus that went away accepts everything: check_queries lets that pass
    if refused:
        more = f" (and so those of {len(refused) - 1} more objectives)" if len(refused) > 1 else ""
        raise SpecError(f"{refused[0]}{more}")
    return f"those of all {len(objectives)} objectives are accepted"


def _target_series(client: PrometheusClient, patient: Patient) -> str:
    wanted = patient.of_the_target()
    if not wanted:
        return "the SLO needs none: it asks only for what the load generator counts"
    missing = [one for one in wanted if not _scrapes(client, one)]
    if missing:
        raise PrometheusError(
            f"nothing matches {missing[0]} of the last {PRESENT.seconds // 60} minutes{_more(missing)}; is the target "
            "scraped, and does its server have a metric of that name, with these labels?"
        )
    down = [scrape for one in wanted for scrape in _scrapes(client, one) if _is_down(client, scrape)]
    if down:
        raise PrometheusError(
            f"the scrape of {_name(down[0])} fails now{_more(down)}; Prometheus' page of targets says why"
        )
    return f"all {len(wanted)} that the SLO asks for are there"


def _load_generator(client: PrometheusClient, patient: Patient) -> str:
    port = patient.experiment.metrics_port
    targets = client.targets()
    found = [target for target in targets or [] if target.port == port]
    out_of_reach = [target for target in found if target.error and _REFUSED not in target.error]
    if found and len(out_of_reach) == len(found):
        raise PrometheusError(
            f"it cannot reach {found[0].url} ({found[0].error}), and that is not for want of a run: let Prometheus "
            "through to this port, or correct the address in its scrape_configs"
        )
    if found:
        return _listed([f"{target.url} is {'up' if target.up else 'down while no run goes on'}" for target in found])
    if client.query(_up_of(port), utc_now()):
        return f"an instance with port {port} is scraped"
    if client.query(f"count(last_over_time(aftershock_requests_total[{_text(EARLIER)}]))", utc_now()):
        return "no target now, but it was scraped within the last day"
    if targets is None:
        raise NotCheckedError(f"it does not list its targets, and none with port {port} is known from before")
    raise PrometheusError(f"no target has port {port}, where the load generator is scraped; {_advice(patient)}")


def _advice(patient: Patient) -> str:
    """What to write into the configuration of Prometheus, in one line."""
    experiment = patient.experiment
    job = {
        "job_name": "aftershock-load",
        "scrape_interval": f"{experiment.scrape_interval_s:g}s",
        "static_configs": [{"targets": [f"{_own_address(experiment.prometheus_url)}:{experiment.metrics_port}"]}],
    }
    return f"add under scrape_configs: {json.dumps(job)}; or, where the load runs in pods, the PodMonitor of deploy/"


def _own_address(url: str) -> str:
    """This machine, as the machine of `url` sees it. Connecting a UDP socket sends nothing."""
    parts = urlsplit(url)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect((parts.hostname, parts.port or 9090))
            return str(probe.getsockname()[0])
    except OSError:
        return "ADDRESS"


def _scrape_interval(client: PrometheusClient, patient: Patient) -> str:
    given_s = patient.experiment.scrape_interval_s
    known = _intervals(client, patient)
    if not known:
        raise NotCheckedError("nothing that the SLO asks for is scraped yet, so there is no interval to see")
    real_s = max(known.values())
    seen = ", ".join(f"{name} every {cadence.shown(seconds)}" for name, seconds in known.items())
    if cadence.is_slower(real_s, given_s):
        raise InputError(
            f"scrape_interval_s={given_s:g}, but Prometheus scrapes {seen}; the last counts of a phase would be lost: "
            f"give --scrape-interval-s {real_s:.3g}, or have Prometheus scrape as often"
        )
    if cadence.is_faster(real_s, given_s):
        return f"{seen}; --scrape-interval-s {real_s:.3g} instead of {given_s:g} would make the run quicker"
    return seen


def _phases(client: PrometheusClient, patient: Patient) -> str:
    experiment = patient.experiment
    known = _intervals(client, patient)
    real_s = max(known.values(), default=experiment.scrape_interval_s)
    phases = {"baseline": experiment.baseline_s, "chaos": experiment.chaos_s, "recovery": experiment.recovery_s}
    complaints = cadence.short_phases(real_s, phases)
    complaints += too_few_slices(
        [one for one in patient.objectives() if one.severity != "info"], experiment.phase_seconds
    )
    for objective in patient.objectives():
        complaints += cadence.short_ranges(real_s, objective)
        complaints += cadence.short_slices(real_s, objective)
        if isinstance(objective.indicator, RecoveryIndicator):
            lookback_s = recovery_lookback_s(objective.indicator, experiment.scrape_interval_s)
            complaints += cadence.short_recovery(real_s, lookback_s, objective)
    if complaints:
        raise InputError(f"with a scrape every {cadence.shown(real_s)}: {'; '.join(complaints)}")
    fewest = min(phases.values()) / real_s
    return f"{fewest:.0f} scrapes or more in each, one every {cadence.shown(real_s)}{'' if known else ' as given'}"


def _intervals(client: PrometheusClient, patient: Patient) -> dict[str, float]:
    """How often what the SLO asks for is scraped: words for it -> seconds. By the samples, else as configured."""
    experiment = patient.experiment
    targets = client.targets() or []
    of_the_load = [target for target in targets if target.port == experiment.metrics_port]
    read_s = max(LEAST_READ_S, SCRAPES_READ * max([experiment.scrape_interval_s, *_configured(targets)]))
    seen = _usual(client.query(f"{_up_of(experiment.metrics_port)}[{duration(read_s)}]", utc_now()))
    known = {"the load generator": seen or max(_configured(of_the_load), default=None)}
    for selector in patient.of_the_target():
        with suppress(QueryRefusedError):  # that is another check's finding
            known[selector] = _interval_of(client, selector, targets, read_s)
    return {name: seconds for name, seconds in known.items() if seconds is not None}


def _interval_of(
    client: PrometheusClient, selector: str, targets: Sequence[ScrapeTarget], read_s: float
) -> float | None:
    """Of the scrapes that a selector's series come from; where they do not say from which, of the series themselves."""
    scrapes = _scrapes(client, selector)[:FEW]
    window = f"[{duration(read_s)}]"
    seen = [series for one in scrapes if one for series in client.query(_up(one) + window, utc_now())]
    own = [target for target in targets if any(one and one.items() <= target.labels.items() for one in scrapes)]
    return _usual(seen or client.query(selector + window, utc_now())) or max(_configured(own), default=None)


def _usual(series: Sequence[Series]) -> float | None:
    return cadence.interval_s([[at for at, _ in one.samples] for one in series])


def _configured(targets: Sequence[ScrapeTarget]) -> list[float]:
    return [target.interval_s for target in targets if target.interval_s is not None]


def _scrapes(client: PrometheusClient, selector: str) -> list[Scrapes]:
    """The scrapes that the series of `selector` come from now; none: there are no such series."""
    found = client.query(f"group by (job, instance) (last_over_time({selector}[{_text(PRESENT)}]))", utc_now())
    return [dict(series.labels) for series in found]


def _is_down(client: PrometheusClient, scrape: Scrapes) -> bool:
    return bool(scrape) and any(
        value == 0 for series in client.query(_up(scrape), utc_now()) for value in series.values
    )


def _up(scrape: Scrapes) -> str:
    return f"up{{{', '.join(f'{name}={json.dumps(value)}' for name, value in scrape.items())}}}"


def _up_of(port: int) -> str:
    """`up` has a sample for each scrape, also for those that fail: so it shows the interval while no run goes on."""
    return f'up{{instance=~".+:{port}"}}'


def _name(scrape: Scrapes) -> str:
    return " of job ".join(scrape[name] for name in ("instance", "job") if name in scrape)


def _listed(found: Sequence[str]) -> str:
    more = f" and {len(found) - FEW} more" if len(found) > FEW else ""
    return ", ".join(found[:FEW]) + more


def _more(found: Sequence[object]) -> str:
    return f" (and {len(found) - 1} more)" if len(found) > 1 else ""


def _text(delta: timedelta) -> str:
    return duration(delta.total_seconds())


def _selectors(objective: Objective) -> list[str]:
    return [one for query in queries(objective, LEAST_READ_S) for one in selectors(query)]
