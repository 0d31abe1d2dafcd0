"""Who we are to the API server, and becoming that again when it no longer counts.

A token may be replaced in its file, a plugin may have to be asked for the next one, certificates run out: all of them
are read anew from where they came from, once the API server has said 401. That is done in a thread of its own, because
a plugin may wait for somebody to log in, and a fault has to be stopped meanwhile, or at least its deadlines kept.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from aftershock.errors import ChaosError

PATIENCE_S = 10.0
"""How long a request waits for new credentials."""
BETWEEN_S = 5.0
"""From one reading to the next, if the API server does not accept what was read either."""
HUNG_S = 60.0
"""After this, a reading that has not ended is taken for one that will not, and a second one may be tried."""

log = logging.getLogger(__name__)


class Credentials:
    """The `kubernetes.client.ApiClient` that holds the present ones. Safe to use from several threads."""

    def __init__(self, api: Any, load: Callable[[], Any] | None = None) -> None:
        """`load` makes a new ApiClient from the same source; without it, credentials stay what they are."""
        self._api = api
        self._load = load
        self._changed = threading.Condition()
        self._loading = False
        self._began_s: float | None = None

    @property
    def api(self) -> Any:
        """The ApiClient to send the next request with."""
        return self._api

    def replaced(self, rejected: Any) -> bool:
        """The API server did not accept those of `rejected`: whether there are others by now.

        Waits at most PATIENCE_S for them.
        """
        if self._load is None:
            return False
        with self._changed:
            if self._api is not rejected:
                return True
            now_s = time.monotonic()
            pause_s = HUNG_S if self._loading else BETWEEN_S
            if self._began_s is None or now_s - self._began_s >= pause_s:
                self._loading, self._began_s = True, now_s
                threading.Thread(target=self._reload, args=(self._load,), name="credentials", daemon=True).start()
            left_s = self._began_s + PATIENCE_S - now_s
            self._changed.wait_for(lambda: not self._loading, max(left_s, 0.0))
            return self._api is not rejected

    def _reload(self, load: Callable[[], Any]) -> None:
        fresh = None
        try:
            fresh = load()
            if fresh.configuration.host != self._api.configuration.host:
                fresh = None
                log.warning("the credentials are not read again: their source now names another API server")
            elif not _any(fresh.configuration) and _any(self._api.configuration):
                fresh = None
                log.warning("the credentials are not replaced: their source gives none any more")
        except Exception as error:
            log.warning("the credentials cannot be read again: %s", error, exc_info=True)
        with self._changed:
            self._api = fresh or self._api
            self._loading = False
            self._changed.notify_all()


def connected(context: str) -> tuple[Any, Callable[[], Any]]:
    """An ApiClient, and how to make another one from the same source. Sends nothing yet.

    The source is a kubeconfig (`context`, or its current one) or, inside a pod, its service account. Raises ChaosError
    if neither is to be had.
    """
    from kubernetes import config

    try:
        try:
            # By name: somebody may switch the current context while the run goes on.
            load = partial(_by_kubeconfig, context or _current_context())
            return load(), load
        except config.ConfigException:
            if context:
                raise
            return _in_cluster(), _in_cluster
    except Exception as error:  # of the file, of YAML in it, or of whatever plugin it names
        why = " ".join(str(error).split()) or type(error).__name__
        raise ChaosError(
            f"no access to a cluster ({why}); set KUBECONFIG, name a context of it with --kube-context, "
            "or run in a pod with a service account"
        ) from error


def _current_context() -> str:
    from kubernetes import config

    _, current = config.list_kube_config_contexts()
    return str(current["name"])


def _by_kubeconfig(context: str) -> Any:
    from kubernetes import client, config

    settings = client.Configuration()
    config.load_kube_config(context=context, client_configuration=settings)
    return _client(settings)


def _in_cluster() -> Any:
    from kubernetes import client, config

    settings = client.Configuration()
    config.load_incluster_config(client_configuration=settings)
    return _client(settings)


def _client(settings: Any) -> Any:
    from kubernetes import client

    settings.retries = False  # what to try again, and when, is decided by the run
    settings.refresh_api_key_hook = None  # it would run plugins within a request, for as long as they like
    return client.ApiClient(configuration=settings)


def _any(settings: Any) -> bool:
    return bool(settings.api_key.get("authorization") or settings.cert_file)
