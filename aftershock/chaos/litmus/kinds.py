"""The kinds of object that the backend deals with, and where the API server keeps each."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

LITMUS_GROUP = "litmuschaos.io"
LITMUS_API = f"/apis/{LITMUS_GROUP}/v1alpha1"


@dataclass(frozen=True)
class Kind:
    """One resource of the API."""

    api: str
    """Path of its group and version."""
    plural: str

    @property
    def group(self) -> str:
        """As RBAC names it; the core group is the empty string."""
        return self.api.split("/")[2] if self.api.startswith("/apis/") else ""

    def path(self, namespace: str | None, name: str = "", sub: str = "") -> str:
        """Of the collection in a namespace (None: of all, or a kind without), or of one object, or of a part of it."""
        parts = [self.api]
        if namespace is not None:
            parts += ["namespaces", quote(namespace, safe="")]
        parts.append(self.plural)
        parts += [quote(part, safe="") for part in (name, sub) if part]
        return "/".join(parts)


ENGINES = Kind(LITMUS_API, "chaosengines")
RESULTS = Kind(LITMUS_API, "chaosresults")
EXPERIMENTS = Kind(LITMUS_API, "chaosexperiments")
PODS = Kind("/api/v1", "pods")
EVENTS = Kind("/api/v1", "events")
NODES = Kind("/api/v1", "nodes")
NAMESPACES = Kind("/api/v1", "namespaces")
SERVICE_ACCOUNTS = Kind("/api/v1", "serviceaccounts")
JOBS = Kind("/apis/batch/v1", "jobs")
ACCESS_REVIEWS = Kind("/apis/authorization.k8s.io/v1", "subjectaccessreviews")
OWN_ACCESS_REVIEWS = Kind("/apis/authorization.k8s.io/v1", "selfsubjectaccessreviews")
