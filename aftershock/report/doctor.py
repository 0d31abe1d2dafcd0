"""What must be true of the object store for the history to be kept. Asks, writes nothing.

Whether the key may write is therefore not tried: the only proof of that is an object, and a bucket of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from aftershock.checkup import Check
from aftershock.errors import StoreError
from aftershock.report.history import Store

GROUP = "object store"
DEADLINE_S = 40.0
"""The client tries three times, each up to three seconds to connect; a store that hangs is given up in between."""


def checks(connect: Callable[[], Store]) -> list[Check]:
    """All checks of the store that `connect` opens."""
    reachable = Check(GROUP, "reachable", lambda: _reachable(connect()), deadline_s=DEADLINE_S)
    return [reachable, Check(GROUP, "bucket", lambda: _bucket(connect()), (reachable,), DEADLINE_S)]


def _reachable(store: Store) -> str:
    if not store.ready():
        raise StoreError(
            f"no object store answers at {store.endpoint}; start it, correct --store-endpoint, "
            "or keep no history with --store-endpoint none"
        )
    return f"{store.endpoint} answers, and accepts the key"


def _bucket(store: Store) -> str:
    if not store.has_bucket():
        return f"there is no bucket {store.bucket} yet; the first run makes it, if its key may"
    return f"{store.bucket} holds {len(store.list_runs())} runs; whether the key may write is not tried"
