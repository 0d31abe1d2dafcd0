"""What the documents of one text call each other by, and what becomes of a name that none of them has. No I/O.

An SLI or a DataSource that is not there is an error: without it nothing can be measured. An alert object that is not
there is a note, since nothing is made of it here and it may well stand in another file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from aftershock.slo import alerting, schema
from aftershock.slo.fields import Metadata
from aftershock.slo.yamltext import Place


@dataclass(frozen=True)
class Sli:
    """An indicator and where it stands: in its SLO, or in a document of its own."""

    place: Place
    metadata: Metadata
    spec: schema.SliSpec


@dataclass
class References:
    """The objects of one text that others may name."""

    slis: dict[str, Sli] = field(default_factory=dict)
    sources: set[str] = field(default_factory=set)
    alerts: set[tuple[str, str]] = field(default_factory=set)
    """Kind and name of the alert objects."""
    notes: list[str] = field(default_factory=list)

    def sli(self, place: Place, inline: schema.Indicator | None, ref: str | None) -> Sli:
        """The indicator of what is at `place`, written in it or beside it. Raises SpecError if there is none."""
        if inline is not None:
            found = Sli(place.below("indicator"), inline.metadata, inline.spec)
        elif ref in self.slis:
            found = self.slis[ref]
        else:
            known = ", ".join(sorted(self.slis)) or "none"
            raise place.below("indicatorRef").error(f"there is no SLI {ref!r} in this text; there are: {known}")
        self._check_sources(found)
        return found

    def note_alerts(self, place: Place, policies: Sequence[alerting.SloAlertPolicy]) -> None:
        """Look up what the `alertPolicies` of an SLO name."""
        for index, policy in enumerate(policies):
            here = place.below(index)
            if isinstance(policy, alerting.PolicyRef):
                self._note_missing(here.below("alertPolicyRef"), "AlertPolicy", policy.alert_policy_ref)
            else:
                self.note_policy(here.below("spec"), policy.spec)

    def note_policy(self, place: Place, policy: alerting.AlertPolicySpec) -> None:
        """Look up what an AlertPolicy names."""
        for index, condition in enumerate(policy.conditions):
            if isinstance(condition, alerting.ConditionRef):
                here = place.below("conditions", index, "conditionRef")
                self._note_missing(here, "AlertCondition", condition.condition_ref)
        for index, target in enumerate(policy.notification_targets):
            if isinstance(target, alerting.TargetRef):
                here = place.below("notificationTargets", index, "targetRef")
                self._note_missing(here, "AlertNotificationTarget", target.target_ref)

    def _note_missing(self, place: Place, kind: str, name: str) -> None:
        if (kind, name) not in self.alerts:
            self.notes.append(str(place.error(f"there is no {kind} {name!r} in this text; nothing alerts here anyway")))

    def _check_sources(self, sli: Sli) -> None:
        """A `metricSourceRef` must name a DataSource of this text, unless `type` says all that is needed."""
        for place, source in _metric_sources(sli):
            ref = source.metric_source_ref
            if ref is not None and ref not in self.sources and source.type is None:
                known = ", ".join(sorted(self.sources)) or "none"
                raise place.below("metricSourceRef").error(
                    f"there is no DataSource {ref!r} in this text; there are: {known}; or give type: Prometheus"
                )


def _metric_sources(sli: Sli) -> Iterator[tuple[Place, schema.Source]]:
    """Every metricSource of an indicator, and where it stands."""
    threshold, ratio = sli.spec.threshold_metric, sli.spec.ratio_metric
    if threshold is not None:
        yield sli.place.below("spec", "thresholdMetric", "metricSource"), threshold.metric_source
    if ratio is not None:
        for name in ("good", "bad", "total", "raw"):
            part = getattr(ratio, name)
            if part is not None:
                yield sli.place.below("spec", "ratioMetric", name, "metricSource"), part.metric_source
