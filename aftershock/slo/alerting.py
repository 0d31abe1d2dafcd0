"""OpenSLO's alert objects as they are read: checked like all others, and then left out. No I/O.

A run is judged, and nobody is paged; but a document that is wrong is wrong, whoever reads it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from aftershock.slo.fields import (
    Description,
    Duration,
    DurationOrZero,
    Metadata,
    Number,
    Object,
    Operator,
    Strict,
    spelt,
)

FORMS = ("ref-form", "inline-form")
"""Tags that pydantic puts into the location of an error; they are no part of the document."""


class AlertConditionType(Strict):
    """When to alert."""

    kind: Annotated[Literal["burnrate"], spelt("burnrate")] = "burnrate"
    op: Operator | None = None
    threshold: Number = Field(description="the burn rate that is too much")
    lookback_window: Duration = Field(description="over how long it is looked at, such as 1h")
    alert_after: DurationOrZero = "0m"


class AlertConditionSpec(Strict):
    """When to alert, and how severe that is."""

    description: Description = ""
    severity: str = Field(description="such as page")
    condition: AlertConditionType = Field(description="kind, op, threshold and lookbackWindow")


class AlertNotificationTargetSpec(Strict):
    """Who is told."""

    target: str = Field(description="such as email")
    description: Description = ""


class ConditionRef(Strict):
    """An AlertCondition that stands elsewhere."""

    condition_ref: str


class InlineCondition(Strict):
    """An AlertCondition in its policy."""

    kind: Annotated[Literal["AlertCondition"], spelt("AlertCondition")] = Field(description="AlertCondition")
    metadata: Metadata = Field(description="at least its name")
    spec: AlertConditionSpec = Field(description="severity and condition")


class TargetRef(Strict):
    """An AlertNotificationTarget that stands elsewhere."""

    target_ref: str


class InlineTarget(Strict):
    """An AlertNotificationTarget in its policy."""

    kind: Annotated[Literal["AlertNotificationTarget"], spelt("AlertNotificationTarget")] = Field(
        description="AlertNotificationTarget"
    )
    metadata: Metadata = Field(description="at least its name")
    spec: AlertNotificationTargetSpec = Field(description="target")


def _ref_or_inline(data: Any) -> str:
    """Whether an item names an object or is one."""
    return "ref-form" if isinstance(data, dict) and any(str(key).endswith("Ref") for key in data) else "inline-form"


AlertPolicyCondition = Annotated[
    Annotated[ConditionRef, Tag("ref-form")] | Annotated[InlineCondition, Tag("inline-form")],
    Discriminator(_ref_or_inline),
]
AlertPolicyTarget = Annotated[
    Annotated[TargetRef, Tag("ref-form")] | Annotated[InlineTarget, Tag("inline-form")], Discriminator(_ref_or_inline)
]


class AlertPolicySpec(Strict):
    """On what condition who is told."""

    description: Description = ""
    alert_when_no_data: bool | None = None
    alert_when_resolved: bool | None = None
    alert_when_breaching: bool | None = None
    conditions: Annotated[list[AlertPolicyCondition], Field(min_length=1, max_length=1)] = Field(
        description="a list of one condition"
    )
    notification_targets: Annotated[list[AlertPolicyTarget], Field(min_length=1)] = Field(description="a list of who")


class PolicyRef(Strict):
    """An AlertPolicy that stands elsewhere."""

    alert_policy_ref: str


class InlinePolicy(Strict):
    """An AlertPolicy in its SLO."""

    kind: Annotated[Literal["AlertPolicy"], spelt("AlertPolicy")] = Field(description="AlertPolicy")
    metadata: Metadata = Field(description="at least its name")
    spec: AlertPolicySpec = Field(description="conditions and notificationTargets")


SloAlertPolicy = Annotated[
    Annotated[PolicyRef, Tag("ref-form")] | Annotated[InlinePolicy, Tag("inline-form")], Discriminator(_ref_or_inline)
]


class AlertPolicy(Object):
    """kind: AlertPolicy"""

    spec: AlertPolicySpec = Field(description="conditions and notificationTargets")


class AlertCondition(Object):
    """kind: AlertCondition"""

    spec: AlertConditionSpec = Field(description="severity and condition")


class AlertNotificationTarget(Object):
    """kind: AlertNotificationTarget"""

    spec: AlertNotificationTargetSpec = Field(description="target")
