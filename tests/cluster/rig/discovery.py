"""Finds the pods for a Prometheus that was built without Kubernetes' service discovery, as Debian's is.

    python -m tests.cluster.rig.discovery --namespace inference --app model-server --port 8000 --file FILE

Runs beside Prometheus in its pod, under its service account, and writes a file for `file_sd_configs`. Prometheus acts
on changes of targets every five seconds at most, wherever they come from.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path
from typing import Any

from aftershock.files import write_json

POLL_S = 0.5
ANSWER_S = 5.0

log = logging.getLogger(__name__)


def main() -> None:
    """Write the file whenever the pods change, until the container is killed."""
    parser = argparse.ArgumentParser(prog="python -m tests.cluster.rig.discovery", description=__doc__)
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--app", required=True, help="value of the pods' label `app`")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--file", type=Path, required=True)
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, stream=sys.stdout, format="%(asctime)s %(message)s")
    watch(options.namespace, options.app, options.port, options.file)


def watch(namespace: str, app: str, port: int, file: Path) -> None:
    """Ask for the pods again and again; while the API server is away, the targets stay as they were."""
    from kubernetes import client, config
    from urllib3.exceptions import HTTPError

    config.load_incluster_config()
    api = client.CoreV1Api()
    written: list[dict[str, Any]] | None = None
    while True:
        try:
            pods = api.list_namespaced_pod(namespace, label_selector=f"app={app}", _request_timeout=ANSWER_S).items
        except (client.ApiException, HTTPError) as error:
            log.warning("the pods of %s cannot be listed: %s", namespace, str(error).splitlines()[0])
        else:
            groups = [_group(pod, port) for pod in pods if pod.status.pod_ip and pod.status.phase in _SCRAPED]
            if groups != written:
                write_json(file, groups)
                written = groups
                log.info("targets: %s", ", ".join(group["labels"]["pod"] for group in groups) or "none")
        time.sleep(POLL_S)


_SCRAPED = ("Pending", "Running")
"""Phases of pods whose server may answer; a Terminating one is still Running."""


def _group(pod: Any, port: int) -> dict[str, Any]:
    labels = {"namespace": pod.metadata.namespace, "pod": pod.metadata.name, "app": pod.metadata.labels["app"]}
    return {"targets": [f"{pod.status.pod_ip}:{port}"], "labels": labels}


if __name__ == "__main__":
    main()
