"""Probes that Litmus runs beside the fault: those that are given, and those made of the SLO's stop conditions.

They go into every experiment of the engine, for Litmus runs its experiments one after the other, and a brake that holds
for the first fault only is none. All are held against the rules of `lint/` and the published CRDs, and a warning
refuses too: what is rendered here passes our own linter.
"""

from __future__ import annotations

import re
from typing import Any

import yaml

from aftershock.chaos.dump import to_yaml
from aftershock.chaos.engine import LOADER
from aftershock.chaos.given import Given, read_given
from aftershock.chaos.lint.reading import read_probes
from aftershock.chaos.slo_probes import slo_probes
from aftershock.errors import EngineError, InputError
from aftershock.experiment import NO_FAULT, NOTHING, Experiment

_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PATH = re.compile(r"spec\.experiments\[\d+\]\.spec\.")
"""Where a list of probes is put, which its author need not know."""

Probe = dict[str, Any]


def add_probes(engine_text: str, experiment: Experiment, *, cluster: bool) -> str:
    """The engine with the experiment's probes; as it is where there are none.

    Raises InputError for a probe that Litmus would refuse, misread or not run, and for any probe without a cluster.
    """
    refuse_idle_probes(experiment, cluster=cluster)
    added: list[Probe] = []
    if experiment.probes != NOTHING:
        added += _checked(read_given(experiment.probes, "probes", EngineError), engine_text)
    if experiment.slo_probes != NOTHING:
        made = slo_probes(experiment)
        added += _checked(Given(to_yaml(made, "slo_probes"), "slo_probes"), engine_text)
    if not added:
        return engine_text
    document = yaml.load(engine_text, Loader=LOADER)
    for item in document["spec"]["experiments"]:
        item["spec"] = dict(item.get("spec") or {})
        item["spec"]["probe"] = [*(item["spec"].get("probe") or []), *added]
        _refuse_equal_names(item["name"], item["spec"]["probe"])
    return _remarks(engine_text) + to_yaml(document, "engine with its probes")


def read_probes_text(reference: str) -> str:
    """The YAML that `probes` means, so that it can travel to where the file is not. Raises EngineError."""
    return reference if reference == NOTHING else read_given(reference, "probes", EngineError).text


def refuse_idle_probes(experiment: Experiment, *, cluster: bool) -> None:
    """Raise InputError for probes that nobody would run: their silence would look like a Pass."""
    for name in ("probes", "slo_probes"):
        if getattr(experiment, name) == NOTHING:
            continue
        if experiment.fault == NO_FAULT:
            raise InputError(f"{name}: a control run has no ChaosEngine that probes could run in; give {name}=none")
        if not cluster:
            raise InputError(
                f"{name}: the local backend runs no probes, they are Litmus'; give --backend litmus, or {name}=none "
                "(stop conditions of the SLO are watched without them)"
            )


def _checked(given: Given, engine_text: str) -> list[Probe]:
    found = read_probes(given.text, given.source, engine_text)
    if found.findings:
        first, more = found.findings[0], len(found.findings) - 1
        rest = f"; {more} more after it" if more else ""
        what, fix = (_PATH.sub("", text) for text in (first.what, first.fix))
        raise EngineError(f"{first.source}:{first.line}: {first.rule}: {what}; {fix}{rest}")
    for probe, line in zip(found.probes, found.lines, strict=True):
        if not _NAME.fullmatch(str(probe.get("name"))):
            raise EngineError(
                f"{given.source}:{line}: name={str(probe.get('name'))[:60]!r}: must be 1 to 63 of a-z, 0-9 and -; "
                "Litmus names pods after it"
            )
    return list(found.probes)


def _refuse_equal_names(experiment: str, probes: list[Probe]) -> None:
    names = [str(probe.get("name")) for probe in probes]
    for name in names:
        if names.count(name) > 1:
            raise EngineError(
                f"experiment {experiment}: two probes are called {name}; Litmus tells them by their names"
            )


def _remarks(text: str) -> str:
    """The comments at its top."""
    match = re.match(r"(#[^\n]*\n)*", text)
    return match[0] if match else ""
