"""Every rule on an engine that has its hazard, with the line, and on one that has not."""

from __future__ import annotations

import re
from dataclasses import dataclass

import jsonschema
import pytest
import yaml

from aftershock.chaos.lint.crd import schemas
from aftershock.chaos.lint.finding import Finding
from aftershock.chaos.lint.linter import lint, rules_text
from aftershock.chaos.lint.registry import RULES, engine_rule

HERE = "# HERE"

POD = """\
apiVersion: litmuschaos.io/v1alpha1
kind: ChaosEngine
metadata:
  name: bring-your-own
  namespace: inference
spec:
  engineState: active
  appinfo:
    appns: inference
    applabel: app=model-server
    appkind: deployment
  chaosServiceAccount: chaos
  terminationGracePeriodSeconds: 60
  experiments:
    - name: pod-delete
      spec:
        components:
          statusCheckTimeouts:
            delay: 2
            timeout: 300
          env:
            - name: TOTAL_CHAOS_DURATION
              value: "60"
            - name: PODS_AFFECTED_PERC
              value: "50"
        probe:
          - name: errors
            type: promProbe
            mode: Continuous
            promProbe/inputs:
              endpoint: http://prometheus.monitoring.svc:9090
              query: sum(rate(http_requests_total{code='500'}[1m]))
              comparator:
                criteria: "<="
                value: "0.1"
            runProperties:
              probeTimeout: 2s
              interval: 2s
              probePollingInterval: 5s
              initialDelay: 5s
              attempt: 2
              stopOnFailure: true
          - name: replicas
            type: cmdProbe
            mode: Edge
            cmdProbe/inputs:
              command: replicas
              comparator:
                type: int
                criteria: ">="
                value: "1"
            runProperties:
              probeTimeout: 2s
              interval: 2s
          - name: health
            type: httpProbe
            mode: SOT
            httpProbe/inputs:
              url: http://model-server:8000/health
              method:
                get:
                  criteria: ==
                  responseCode: "200"
            runProperties:
              probeTimeout: 2s
              interval: 2s
"""


def part(text: str, start: str, end: str) -> str:
    """From the first `start` up to the next `end`."""
    begin = text.index(start)
    return text[begin : text.index(end, begin)]


def env(*pairs: str) -> str:
    """The environment as YAML, from NAME=VALUE."""
    names = (pair.partition("=") for pair in pairs)
    return "".join(f"            - name: {name}\n              value: {value}\n" for name, _, value in names)


def one(fault: str, *pairs: str, spec: str = "") -> str:
    """An engine of one fault without probes."""
    start = POD[: POD.index("    - name: pod-delete")]
    return f"{start}    - name: {fault}\n      spec:\n        components:\n{spec}          env:\n{env(*pairs)}"


DURATION = 'TOTAL_CHAOS_DURATION="60"'
APPINFO = POD[POD.index("  appinfo:") : POD.index("  chaosServiceAccount:")]
NODE = one(
    "node-memory-hog",
    DURATION,
    'TARGET_NODES="worker-1"',
    'MEMORY_CONSUMPTION_PERCENTAGE="50"',
    'MEMORY_CONSUMPTION_MEBIBYTES="0"',
).replace(APPINFO, "")
AWAY = "          nodeSelector: {kubernetes.io/hostname: other}\n"
RUNNER = "  components:\n    runner:\n      nodeSelector: {kubernetes.io/hostname: other}\n"
DRAIN = one("node-drain", DURATION, 'TARGET_NODE="worker-1"', spec=AWAY).replace(APPINFO, RUNNER)
HTTP = one("pod-http-status-code", DURATION, 'TARGET_SERVICE_PORT="8000"', 'STATUS_CODE="503"')
NETWORK = one(
    "pod-network-latency",
    DURATION,
    'NETWORK_LATENCY="200"',
    "CONTAINER_RUNTIME=containerd",
    "SOCKET_PATH=/run/containerd/containerd.sock",
)
IO = one("pod-io-stress", DURATION, 'FILESYSTEM_UTILIZATION_PERCENTAGE="10"', 'FILESYSTEM_UTILIZATION_BYTES=""')
LOSS = one("pod-network-loss", DURATION, 'NETWORK_PACKET_LOSS_PERCENTAGE="10"')
TAINT = one("node-taint", DURATION, 'TARGET_NODE="worker-1"', "TAINTS=chaos=true:NoSchedule", spec=AWAY).replace(
    APPINFO, RUNNER
)
DNS = one("pod-dns-error", DURATION, """TARGET_HOSTNAMES='["model-server"]'""")
SCALE = one("pod-autoscaler", DURATION, 'REPLICA_COUNT="3"')
RATE = one("pod-network-rate-limit", DURATION, 'NETWORK_BANDWIDTH="1mbit"')
PARTITION = one("pod-network-partition", DURATION, "POLICY_TYPES=egress")
SPOOF = one("pod-dns-spoof", DURATION, """SPOOF_MAP='{"a": "b"}'""")
KILL = one("container-kill", DURATION, "SIGNAL=SIGKILL", 'CHAOS_INTERVAL="10"')
GOOD = (POD, NODE, DRAIN, HTTP, NETWORK, IO, LOSS, TAINT, DNS, SCALE, RATE, PARTITION, SPOOF, KILL)


@dataclass(frozen=True)
class Case:
    """`good` holds `old`; with `new` in its place it has the hazard, in the lines that say HERE."""

    rule: str
    good: str
    old: str
    new: str


PODS = "  selectors:\n    pods:\n      - namespace: inference\n        names: model-server-0{here}\n"
WORKLOADS = """\
  selectors:
    workloads:
      - kind: deployment
        namespace: inference
        names: model-server{here}
"""

WORKER = f"\n            kubernetes.io/hostname: worker-1  {HERE}"

CASES = [
    Case("label-comma", POD, "app=model-server", f"app=model-server,tier=prod  {HERE}"),
    Case(
        "label-comma",
        POD,
        APPINFO,
        WORKLOADS.format(here="").replace("names: model-server", f"labels: a=b,c=d  {HERE}"),
    ),
    Case("label-set", POD, "app=model-server", f"app in (a, b)  {HERE}"),
    Case("label-set", POD, "app=model-server", f"app!=model-server  {HERE}"),
    Case("label-set", POD, "app=model-server", f"model-server  {HERE}"),
    Case("label-set", POD, "app=model-server", f"app==model-server  {HERE}"),
    Case("kind-case", POD, "appkind: deployment", f"appkind: Deployment  {HERE}"),
    Case("kind-case", POD, "appkind: deployment", f"appkind: leaderworkerset  {HERE}"),
    Case("kind-job", POD, "appkind: deployment", f"appkind: job  {HERE}"),
    Case(
        "appinfo-incomplete",
        POD,
        APPINFO,
        APPINFO.replace("appinfo:", f"appinfo:  {HERE}").replace("    appkind: deployment\n", ""),
    ),
    Case("appinfo-namespace-only", POD, APPINFO, f"  appinfo:\n    appns: inference  {HERE}\n"),
    Case("selectors-win", POD, APPINFO, APPINFO + PODS.format(here="").replace("selectors:", f"selectors:  {HERE}")),
    Case("selectors-choice", POD, APPINFO, f"  selectors:  {HERE}\n    pods: []\n    workloads: []\n"),
    Case(
        "target-missing",
        POD,
        part(POD, "  appinfo:", "\n      spec:"),
        part(POD, "  chaosServiceAccount:", "\n      spec:") + f"  {HERE}",
    ),
    Case("target-by-name", SCALE, APPINFO, WORKLOADS.format(here=f"  {HERE}")),
    Case(
        "target-by-name",
        DRAIN,
        "  chaosServiceAccount",
        PODS.format(here="").replace("pods:", f"pods:  {HERE}") + "  chaosServiceAccount",
    ),
    Case(
        "node-missing",
        NODE,
        "          env:\n" + env(DURATION, 'TARGET_NODES="worker-1"'),
        f"          env:  {HERE}\n" + env(DURATION, 'TARGET_NODES=""'),
    ),
    Case(
        "node-of-a-pod",
        one("node-drain", DURATION, 'TARGET_NODE="worker-1"'),
        "env:\n" + env(DURATION, 'TARGET_NODE="worker-1"'),
        f"env:  {HERE}\n" + env(DURATION),
    ),
    Case(
        "node-label-ignored",
        POD,
        env(DURATION),
        env(DURATION, "TARGET_PODS=a", f"NODE_LABEL=b=c  {HERE}"),
    ),
    Case(
        "share-ignored",
        POD.replace("PODS_AFFECTED_PERC", "NODE_LABEL").replace(APPINFO, PODS.format(here="")),
        'NODE_LABEL\n              value: "50"',
        f'PODS_AFFECTED_PERC\n              value: "50"  {HERE}',
    ),
    Case("autoscaler-kind", SCALE, "appkind: deployment", f"appkind: daemonset  {HERE}"),
    Case("field-removed", POD, "  engineState", f"  annotationCheck: 'true'  {HERE}\n  engineState"),
    Case("field-removed", POD, "  engineState", f"  monitoring: true  {HERE}\n  engineState"),
    Case("field-removed", POD, "        components:\n", f"        rank: 1  {HERE}\n        components:\n"),
    Case(
        "field-removed", POD, "  engineState", f"  components:\n    runner:\n      type: ansible  {HERE}\n  engineState"
    ),
    Case("field-pruned", POD, "    appns:", f"    appNamespace: x  {HERE}\n    appns:"),
    Case("field-pruned", POD, "apiVersion", f"description: x  {HERE}\napiVersion"),
    Case(
        "field-unknown",
        POD,
        "  terminationGracePeriodSeconds: 60",
        f"  terminationGracePeriodSeconds: 60\n  jobCleanupPolicy: delete  {HERE}",
    ),
    Case(
        "field-partly",
        POD,
        "              stopOnFailure: true",
        f"              stopOnFailure: true\n              verbosity: debug  {HERE}",
    ),
    Case("field-type", POD, "            timeout: 300", f'            timeout: "300"  {HERE}'),
    Case("field-type", POD, "chaosServiceAccount: chaos", f"chaosServiceAccount: 123  {HERE}"),
    Case("field-value", POD, "  engineState: active", f"  engineState: Active  {HERE}"),
    Case("field-value", POD, "  engineState: active", f"  engineState: active\n  jobCleanUpPolicy: always  {HERE}"),
    Case(
        "field-missing",
        POD,
        "            httpProbe/inputs:\n              url: http://model-server:8000/health\n",
        f"            httpProbe/inputs:  {HERE}\n",
    ),
    Case("key-twice", POD, "    appns: inference", f"    appns: other\n    appns: inference  {HERE}"),
    Case("name-long", POD, "bring-your-own", f"{'a' * 64}  {HERE}"),
    Case("name-long", POD, "  name: bring-your-own", f"  generateName: {'a' * 59}  {HERE}"),
    Case("name-long", POD, "bring-your-own", f"Bring_Your_Own  {HERE}"),
    Case("name-long", POD, "metadata:\n  name: bring-your-own\n", f"metadata:  {HERE}\n"),
    Case(
        "status-applied",
        POD,
        "spec:\n  engineState",
        f"status:  {HERE}\n  engineStatus: completed\nspec:\n  engineState",
    ),
    Case(
        "dumped", POD, "  namespace: inference\nspec", f"  namespace: inference\n  resourceVersion: '7'  {HERE}\nspec"
    ),
    Case("engine-stopped", POD, "active", f"stop  {HERE}"),
    Case(
        "account-missing",
        POD,
        "spec:\n  engineState: active\n" + APPINFO + "  chaosServiceAccount: chaos\n",
        f"spec:  {HERE}\n  engineState: active\n" + APPINFO,
    ),
    Case(
        "grace-missing",
        NETWORK,
        NETWORK[NETWORK.index("spec:") : NETWORK.index("  experiments:")],
        NETWORK[NETWORK.index("spec:") : NETWORK.index("  experiments:")]
        .replace("  terminationGracePeriodSeconds: 60\n", "")
        .replace("spec:", f"spec:  {HERE}"),
    ),
    Case("grace-missing", NETWORK, "Seconds: 60", f"Seconds: 0  {HERE}"),
    Case(
        "experiments-missing",
        POD,
        POD[POD.index("spec:\n  e") :],
        f"spec:  {HERE}\n  experiments: []\n  chaosServiceAccount: chaos\n",
    ),
    Case(
        "experiment-twice",
        POD,
        POD[POD.index("    - name: pod-delete") :],
        POD[POD.index("    - name: pod-delete") :] + f"    - name: pod-delete  {HERE}\n",
    ),
    Case("experiment-unknown", POD, "name: pod-delete", f"name: pod-deletes  {HERE}"),
    Case("env-not-string", POD, 'value: "60"', f"value: 60  {HERE}"),
    Case("env-not-string", POD, 'value: "50"', f"value: true  {HERE}"),
    Case(
        "env-twice",
        POD,
        "            - name: PODS",
        f'            - name: TOTAL_CHAOS_DURATION\n              value: "30"  {HERE}\n            - name: PODS',
    ),
    Case("tunable-misspelt", POD, "name: PODS_AFFECTED_PERC", f"name: POD_AFFECTED_PERC  {HERE}"),
    Case(
        "tunable-misspelt",
        HTTP,
        'STATUS_CODE\n              value: "503"',
        f'STATUS_CODE\n              value: "503"\n            - name: TARGET_PORT  {HERE}\n              value: "80"',
    ),
    Case("tunable-misspelt", DRAIN, "name: TARGET_NODE\n", f"name: TARGET_NODES  {HERE}\n"),
    Case("tunable-unread", POD, "name: PODS_AFFECTED_PERC", f"name: NETWORK_LATENCY  {HERE}"),
    Case("tunable-unread", POD, "name: PODS_AFFECTED_PERC", f"name: LIB  {HERE}"),
    Case("tunable-unread", POD, "name: PODS_AFFECTED_PERC", f"name: POD_TERMINATION_ORDER  {HERE}"),
    Case(
        "tunable-reserved",
        POD,
        'name: PODS_AFFECTED_PERC\n              value: "50"',
        f"name: CHAOS_UID\n              value: x  {HERE}",
    ),
    Case(
        "tunable-forced",
        POD,
        'name: PODS_AFFECTED_PERC\n              value: "50"',
        f"name: STATUS_CHECK_TIMEOUT\n              value: '9'  {HERE}",
    ),
    Case("tunable-number", NETWORK, '"200"', f"200ms  {HERE}"),
    Case("tunable-number", POD, '"60"', f'"1m"  {HERE}'),
    Case("tunable-number", POD, '"50"', f'"half"  {HERE}'),
    Case("tunable-bounds", POD, '"50"', f'"150"  {HERE}'),
    Case("tunable-bounds", POD, '"50"', f'"50-150"  {HERE}'),
    Case("tunable-bounds", POD, '"60"', f'"0"  {HERE}'),
    Case("tunable-bounds", HTTP, '"8000"', f'"80000"  {HERE}'),
    Case("duration-ceiling", POD, '"60"', f'"100000"  {HERE}'),
    Case(
        "duration-missing",
        POD,
        'env:\n            - name: TOTAL_CHAOS_DURATION\n              value: "60"',
        f"env:  {HERE}",
    ),
    Case("tunable-choice", NETWORK, "value: containerd", f"value: cri-o  {HERE}"),
    Case("tunable-choice", HTTP, '"503"', f'"503,999"  {HERE}'),
    Case("tunable-json", DNS, """'["model-server"]'""", f"model-server  {HERE}"),
    Case("runtime-socket", NETWORK, "/run/containerd/containerd.sock", f"/var/run/docker.sock  {HERE}"),
    Case(
        "runtime-socket",
        NETWORK,
        "value: containerd\n            - name: SOCKET_PATH\n              value: /run/containerd/containerd.sock\n",
        f"value: crio  {HERE}\n",
    ),
    Case(
        "http-port",
        HTTP,
        "env:\n" + env(DURATION, 'TARGET_SERVICE_PORT="8000"'),
        f"env:  {HERE}\n" + env(DURATION),
    ),
    Case(
        "status-code-random",
        HTTP,
        HTTP[HTTP.index("env:") :],
        HTTP[HTTP.index("env:") :].replace("503", "").replace("env:", f"env:  {HERE}"),
    ),
    Case("sizes-both", IO, '_BYTES\n              value: ""', f'_BYTES\n              value: "1"  {HERE}'),
    Case(
        "sizes-both",
        IO,
        env('FILESYSTEM_UTILIZATION_PERCENTAGE="10"', 'FILESYSTEM_UTILIZATION_BYTES=""'),
        env(f'FILESYSTEM_UTILIZATION_BYTES="5"  {HERE}'),
    ),
    Case(
        "sizes-both",
        IO,
        '"10"\n            - name: FILESYSTEM_UTILIZATION_BYTES\n              value: ""',
        f'""\n            - name: FILESYSTEM_UTILIZATION_BYTES\n              value: "5"  {HERE}',
    ),
    Case(
        "memory-sizes", NODE, '_PERCENTAGE\n              value: "50"', f'_PERCENTAGE\n              value: ""  {HERE}'
    ),
    Case(
        "memory-sizes",
        NODE,
        NODE[NODE.index("env:") :],
        f"env:  {HERE}\n" + env(DURATION, 'TARGET_NODES="worker-1"', 'MEMORY_CONSUMPTION_MEBIBYTES="9"'),
    ),
    Case(
        "memory-sizes",
        NODE,
        env('MEMORY_CONSUMPTION_PERCENTAGE="50"', 'MEMORY_CONSUMPTION_MEBIBYTES="0"'),
        env(f'MEMORY_CONSUMPTION_PERCENTAGE="0"  {HERE}'),
    ),
    Case("memory-sizes", NODE, '_MEBIBYTES\n              value: "0"', f'_MEBIBYTES\n              value: "9"  {HERE}'),
    Case(
        "taint-missing",
        TAINT,
        TAINT[TAINT.index("env:") :],
        TAINT[TAINT.index("env:") :].replace("chaos=true:NoSchedule", "''").replace("env:", f"env:  {HERE}"),
    ),
    Case(
        "health-check-overridden", POD, "  terminationGrace", f"  defaultHealthCheck: true  {HERE}\n  terminationGrace"
    ),
    Case("status-check-short", POD, "timeout: 300", f"timeout: 8  {HERE}"),
    Case("scrape-cut", LOSS, '"10"', f'"100"  {HERE}'),
    Case("scrape-cut", LOSS, '"10"', f'"30"  {HERE}'),
    Case("scrape-cut", LOSS, '"10"', f'"5-90"  {HERE}'),
    Case("scrape-cut", NETWORK, '"200"', f'"60000"  {HERE}'),
    Case("scrape-cut", RATE, '"1mbit"', f'"1kbit"  {HERE}'),
    Case("scrape-cut", PARTITION, "value: egress", f"value: ingress  {HERE}"),
    Case("status-check-half", POD, "Timeouts:\n            delay: 2\n", f"Timeouts:  {HERE}\n"),
    Case(
        "status-check-half",
        POD,
        "Timeouts:\n            delay: 2\n            timeout: 300\n",
        f"Timeouts:  {HERE}\n            delay: 2\n",
    ),
    Case("status-check-half", POD, "delay: 2", f"delay: 0  {HERE}"),
    Case("status-check-half", POD, "timeout: 300", f"timeout: 0  {HERE}"),
    Case("replicas-missing", SCALE, "env:\n" + env(DURATION, 'REPLICA_COUNT="3"'), f"env:  {HERE}\n" + env(DURATION)),
    Case("tunable-bounds", SCALE, '"3"', f'"0"  {HERE}'),
    Case("map-empty", SPOOF, '\'{"a": "b"}\'', f"'{{}}'  {HERE}"),
    Case(
        "map-empty",
        SPOOF,
        SPOOF[SPOOF.index("env:") :],
        SPOOF[SPOOF.index("env:") :].replace("env:", f"env:  {HERE}").replace("SPOOF_MAP", "TARGET_CONTAINER"),
    ),
    Case(
        "proxy-port",
        HTTP,
        'value: "503"',
        f'value: "503"\n            - name: PROXY_PORT\n              value: "8000"  {HERE}',
    ),
    Case("proxy-port", HTTP, '"8000"', f'"20000"  {HERE}'),
    Case(
        "body-shell",
        HTTP,
        'value: "503"',
        f'value: "503"\n            - name: RESPONSE_BODY\n              value: a $(id)  {HERE}',
    ),
    Case("taint-of-others", TAINT, "chaos=true", f"nvidia.com/gpu=present:NoSchedule  {HERE} #"),
    Case("tunable-shape", TAINT, "chaos=true:NoSchedule", f"chaos  {HERE}"),
    Case(
        "tunable-shape",
        NETWORK,
        'value: "200"',
        f'value: "200"\n            - name: SOURCE_PORTS\n              value: 8000-8010  {HERE}',
    ),
    Case(
        "tunable-shape",
        NETWORK,
        'value: "200"',
        f'value: "200"\n            - name: DESTINATION_IPS\n              value: 10.0.0.0/33  {HERE}',
    ),
    Case("tunable-shape", RATE, '"1mbit"', f'"1 MB/s"  {HERE}'),
    Case(
        "tunable-shape",
        POD,
        'value: "50"',
        f'value: "50"\n            - name: INSTANCE_ID\n              value: Run_1  {HERE}',
    ),
    Case("tunable-choice", KILL, "SIGKILL", f"KILL  {HERE}"),
    Case("tunable-choice", HTTP, '"503"', f'"500, 503"  {HERE}'),
    Case("tunable-number", POD, 'value: "50"', f'value: "33.3"  {HERE}'),
    Case(
        "tunable-number",
        POD,
        'PODS_AFFECTED_PERC\n              value: "50"',
        f'CHAOS_INTERVAL\n              value: "5-10"  {HERE}',
    ),
    Case(
        "tunable-number",
        POD,
        'PODS_AFFECTED_PERC\n              value: "50"',
        f'CHAOS_INTERVAL\n              value: "0.5"  {HERE}',
    ),
    Case("tunable-number", KILL, 'value: "10"', f'value: "5-10"  {HERE}'),
    Case("tunable-range", POD, 'value: "50"', f'value: "80-20"  {HERE}'),
    Case(
        "tunable-range",
        one("pod-delete", DURATION, "RANDOMNESS='true'", "CHAOS_INTERVAL='5-10'"),
        "'5-10'",
        f"'10-10'  {HERE}",
    ),
    Case(
        "pods-gone",
        POD,
        'value: "50"',
        f'value: "50"\n            - name: TARGET_PODS\n              value: vllm-abc-def  {HERE}',
    ),
    Case(
        "selectors-empty",
        POD.replace("PODS_AFFECTED_PERC", "NODE_LABEL").replace(APPINFO, PODS.format(here="")),
        PODS.format(here=""),
        f"  selectors:\n    pods: []  {HERE}\n",
    ),
    Case(
        "target-second",
        PARTITION.replace(APPINFO, WORKLOADS.format(here="").replace("names: model-server", "labels: a=b")),
        "        labels: a=b\n",
        f"        labels: a=b\n      - namespace: other  {HERE}\n        kind: deployment\n        labels: a=b\n",
    ),
    Case(
        "target-missing",
        PARTITION,
        APPINFO + PARTITION[PARTITION.index("  chaosServiceAccount") : PARTITION.index("\n      spec:")],
        PARTITION[PARTITION.index("  chaosServiceAccount") : PARTITION.index("\n      spec:")] + f"  {HERE}",
    ),
    Case("api-version", POD, "v1alpha1", f"v1beta1  {HERE}"),
    Case("api-version", POD, "apiVersion: litmuschaos.io/v1alpha1\nkind: ChaosEngine", f"kind: ChaosEngine  {HERE}"),
    Case("name-long", POD, "bring-your-own", f"vllm-  {HERE}"),
    Case("name-long", POD, "bring-your-own", f"a..b  {HERE}"),
    Case("sidecar-idle", POD, "  engineState", f"  components:\n    sidecar:  {HERE}\n      - image: x\n  engineState"),
    Case("probe-twice", POD, "name: replicas", f"name: errors  {HERE}"),
    Case(
        "stop-ignored",
        POD,
        "          env:",
        f"          experimentImage: litmuschaos/go-runner:3.18.0  {HERE}\n          env:",
    ),
    Case("env-not-string", POD, 'value: "60"', f"value: 6e1  {HERE}"),
    Case(
        "comparator",
        POD,
        'criteria: ">="\n                value: "1"',
        f'criteria: ">="\n                value: "0.5"  {HERE}',
    ),
    Case("comparator", POD, 'value: "0.1"', f'value: "1,000"  {HERE}'),
    Case("comparator", POD, '"<="\n                value: "0.1"', f'between\n                value: "1, 5"  {HERE}'),
    Case("comparator", POD, '"<="\n                value: "0.1"', f'between\n                value: "[1,5]"  {HERE}'),
    Case("comparator", POD, '"<="\n                value: "0.1"', f'oneOf\n                value: "5"  {HERE}'),
    Case("comparator", POD, 'responseCode: "200"', f'responseCode: "2xx"  {HERE}'),
    Case(
        "query-quotes",
        POD,
        "query: sum(rate(http_requests_total{code='500'}[1m]))",
        f"query: 'sum(rate(x{{ns=\"{{{{workflow.parameters.ns}}}}\"}}[1m]))'  {HERE}",
    ),
    Case(
        "query-shell",
        POD,
        "query: sum(rate(http_requests_total{code='500'}[1m]))",
        f"query: sum(rate(x{{ns='{{{{ns}}}}',a='$b'}}[1m]))  {HERE}",
    ),
    Case(
        "node-own",
        DRAIN,
        f"node-drain\n      spec:\n        components:\n{AWAY}",
        f"node-drain  {HERE}\n      spec:\n        components:\n",
    ),
    Case("node-own", DRAIN, AWAY, AWAY.replace("{kubernetes.io/hostname: other}", WORKER)),
    Case("probe-type", POD, "type: promProbe", f"type: promprobe  {HERE}"),
    Case("probe-type", POD, "name: errors\n            type: promProbe\n", f"name: errors  {HERE}\n"),
    Case("probe-mode", POD, "mode: SOT", f"mode: sot  {HERE}"),
    Case("probe-mode", POD, "mode: SOT", f"mode: Always  {HERE}"),
    Case("probe-inputs", POD, "type: cmdProbe", f"type: k8sProbe  {HERE}"),
    Case(
        "probe-run-properties",
        POD,
        "          - name: replicas",
        f"          - name: pods  {HERE}\n            type: k8sProbe\n            mode: SOT\n"
        "            k8sProbe/inputs: {version: v1, resource: pods, operation: present}\n"
        "          - name: replicas",
    ),
    Case(
        "probe-run-properties",
        POD,
        part(POD, "runProperties:", "              probePollingInterval"),
        f"runProperties:  {HERE}\n              interval: 2s\n",
    ),
    Case("probe-duration", POD, "initialDelay: 5s", f"initialDelay: 5  {HERE}"),
    Case("probe-duration", POD, "initialDelay: 5s", f'initialDelay: "5"  {HERE}'),
    Case("probe-duration", POD, "initialDelay: 5s", f"initialDelay: 5 sec  {HERE}"),
    Case("probe-initial-delay-seconds", POD, "initialDelay: 5s", f"initialDelaySeconds: 5  {HERE}"),
    Case("probe-count", POD, "attempt: 2", f'attempt: "2"  {HERE}'),
    Case("probe-count", POD, "stopOnFailure: true", f"stopOnFailure: 'true'  {HERE}"),
    Case("probe-property-unknown", POD, "attempt: 2", f"attempts: 2  {HERE}"),
    Case("probe-slo", POD, "type: cmdProbe", f"type: sloProbe  {HERE}"),
    Case("probe-source-text", POD, "command: replicas", f"command: replicas\n              source: inline  {HERE}"),
    Case("probe-source-text", POD, "command: replicas", f"command: replicas\n              source: alpine  {HERE}"),
    Case("probe-post", POD, "                get:", f"                post:  {HERE}"),
    Case(
        "probe-response-timeout",
        POD,
        "              method:",
        f"              responseTimeout: 5  {HERE}\n              method:",
    ),
    Case(
        "probe-initial-delay",
        POD.replace("mode: Continuous", "mode: OnChaos").replace(
            "5s\n              attempt", "0s\n              attempt"
        ),
        "initialDelay: 0s",
        f"initialDelay: 3s  {HERE}",
    ),
    Case("probe-too-late", POD, "initialDelay: 5s", f"initialDelay: 90s  {HERE}"),
    Case(
        "probe-timeout-long",
        POD,
        "probeTimeout: 2s\n              interval: 2s\n              probePolling",
        f"probeTimeout: 6s  {HERE}\n              interval: 2s\n              probePolling",
    ),
    Case(
        "comparator-type",
        POD,
        '                criteria: "<="',
        f'                type: float  {HERE}\n                criteria: "<="',
    ),
    Case("comparator-type", POD, "type: int", f"type: Int  {HERE}"),
    Case("comparator-type", POD, "comparator:\n                type: int", f"comparator:  {HERE}"),
    Case("comparator", POD, 'value: "0.1"', f"value: 0.1  {HERE}"),
    Case("comparator", POD, 'value: "0.1"', f'value: "100ms"  {HERE}'),
    Case("comparator", POD, 'criteria: "<="', f"criteria: less  {HERE}"),
    Case("comparator", POD, "criteria: ==", f"criteria: =>  {HERE}"),
    Case(
        "query-missing",
        POD,
        part(POD, "promProbe/inputs:", "              comparator"),
        f"promProbe/inputs:  {HERE}\n              endpoint: http://prometheus.monitoring.svc:9090\n",
    ),
    Case("query-missing", POD, "sum(rate(http_requests_total{code='500'}[1m]))", f"' '  {HERE}"),
    Case("query-quotes", POD, "{code='500'}[1m]))", f'{{code="500"}}[1m]))  {HERE}'),
    Case("query-shell", POD, "code='500'}[1m]))", f"code=~'5$code'}}[1m]))  {HERE}"),
    Case("query-shell", POD, "code='500'}[1m]))", f"code=~'5\\\\d'}}[1m]))  {HERE}"),
    Case("query-endpoint", POD, "monitoring.svc:9090", f"monitoring.svc:9090/;id  {HERE}"),
    Case("query-many", POD, "sum(rate(http_requests_total{code='500'}[1m]))", f"rate(http_requests_total[1m])  {HERE}"),
    Case(
        "query-nan",
        POD,
        "sum(rate(http_requests_total{code='500'}[1m]))",
        f"sum(rate(a[1m])) / sum(rate(b[1m]))  {HERE}",
    ),
]


def of_rule(text: str, rule: str) -> list[Finding]:
    return [finding for finding in lint(text, "mine.yaml") if finding.rule == rule]


@pytest.mark.parametrize("text", GOOD, ids=lambda text: re.search(r"experiments:\n    - name: (\S+)", text)[1])
def test_good_engines_have_no_findings(text: str) -> None:
    assert [finding.line_text() for finding in lint(text, "mine.yaml")] == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_rule_finds_its_hazard_where_it_is_and_nowhere_else(case: Case) -> None:
    assert case.good.count(case.old) >= 1, "the case does not change its engine"
    bad = case.good.replace(case.old, case.new, 1)
    expected = [number for number, line in enumerate(bad.splitlines(), 1) if HERE in line]
    found = of_rule(bad, case.rule)
    assert [finding.line for finding in found] == expected
    assert of_rule(case.good, case.rule) == []
    assert all(finding.severity is RULES[case.rule].severity for finding in found)


FINE = {
    "criteria": (POD, 'criteria: ">="\n                value: "1"', 'criteria: OneOf\n                value: "1,2"'),
    "criteria of text": (
        POD,
        'type: int\n                criteria: ">="',
        "type: string\n                criteria: Contains",
    ),
    "sequence": (POD, 'PODS_AFFECTED_PERC\n              value: "50"', "SEQUENCE\n              value: Serial"),
    "policy types": (PARTITION, "value: egress", "value: Egress"),
    "signal of docker": (
        KILL,
        "value: SIGKILL",
        "value: KILL\n            - {name: CONTAINER_RUNTIME, value: docker}\n"
        "            - {name: SOCKET_PATH, value: /var/run/docker.sock}",
    ),
    "number with a sign": (POD, '"60"', '"+60"'),
    "long number": (POD, "PODS_AFFECTED_PERC\n", "INSTANCE_ID\n"),
    "share of memory alone": (NODE, env('MEMORY_CONSUMPTION_MEBIBYTES="0"'), ""),
    "share of memory and an empty size": (
        NODE,
        '_MEBIBYTES\n              value: "0"',
        '_MEBIBYTES\n              value: ""',
    ),
    "size of files with a 0": (
        IO,
        '"10"\n            - name: FILESYSTEM_UTILIZATION_BYTES\n              value: ""',
        '"0"\n            - name: FILESYSTEM_UTILIZATION_BYTES\n              value: "5"',
    ),
    "random interval": (
        POD,
        'PODS_AFFECTED_PERC\n              value: "50"',
        'CHAOS_INTERVAL\n              value: "5-10"\n            - {name: RANDOMNESS, value: "true"}',
    ),
    "part of a percent": (LOSS, '"10"', '"0.5"'),
    "both timeouts 0": (POD, "delay: 2\n            timeout: 300", "delay: 0\n            timeout: 0"),
    "pods of a StatefulSet": (
        POD,
        'PODS_AFFECTED_PERC\n              value: "50"',
        "TARGET_PODS\n              value: a-0,a-1",
    ),
    "names of pods, once": (
        POD,
        'PODS_AFFECTED_PERC\n              value: "50"',
        'TARGET_PODS\n              value: vllm-abc-def\n            - {name: CHAOS_INTERVAL, value: "60"}',
    ),
    "end of an expression": (POD, "code='500'", "code=~'5..$'"),
    "addresses with ports": (
        NETWORK,
        "CONTAINER_RUNTIME\n              value: containerd",
        "DESTINATION_IPS\n              value: 10.0.0.1|80|443,fd00::/64",
    ),
    "all ports but one": (
        NETWORK,
        "CONTAINER_RUNTIME\n              value: containerd",
        'SOURCE_PORTS\n              value: "!22"',
    ),
    "type of the DNS fault": (DNS, env(DURATION), env(DURATION, "CHAOS_TYPE=error")),
    "name of which more is made": (POD, "  name: bring-your-own", "  generateName: vllm-"),
    "sidecar that is started": (
        POD,
        "  namespace: inference\nspec:\n",
        "  namespace: inference\n  annotations: {sidecar/enabled: 'true'}\nspec:\n"
        "  components: {sidecar: [{image: x}]}\n",
    ),
    "ratio by a number": (POD, "sum(rate(http_requests_total{code='500'}[1m]))", "sum(rate(a[1m])) / 60 * 100"),
    "expression with a string": (POD, "appns: inference", 'appns: {{ .Values.ns | default "n" }}'),
    "expression of sprig": (POD, "app=model-server", '{{=sprig.default("x", a)}}'),
    "expression with both quotes": (POD, "app=model-server", '"app={{ .Values.app | default "x" }}"'),
}


@pytest.mark.parametrize(("good", "old", "new"), FINE.values(), ids=FINE)
def test_what_litmus_takes_has_no_findings(good: str, old: str, new: str) -> None:
    assert good.count(old) == 1, "the case does not change its engine"
    assert [finding.line_text() for finding in lint(good.replace(old, new), "mine.yaml")] == []


def test_every_rule_has_a_case() -> None:
    assert {case.rule for case in CASES} == set(RULES)


def test_a_finding_says_what_where_and_what_to_do_in_one_line() -> None:
    bad = POD.replace("app=model-server", '"app=model\\nserver,tier=x"')
    (finding,) = of_rule(bad, "label-comma")
    line = finding.line_text()
    assert re.fullmatch(r"mine\.yaml:10: error label-comma: spec\.appinfo\.applabel=.+; fix: .+", line)
    assert "\n" not in line
    assert finding.path == "spec.appinfo.applabel"
    assert finding.engine == "bring-your-own"
    assert finding.column == 15
    assert finding.to_dict()["severity"] == "error"


def test_two_rules_of_one_name_are_refused() -> None:
    rule = RULES["label-comma"]
    with pytest.raises(ValueError, match="two rules called label-comma"):
        engine_rule(rule.id, rule.severity, rule.title, rule.reference)(rule.check)


def test_the_list_of_rules_names_each_with_its_severity_and_reference() -> None:
    text = rules_text()
    assert len(text.splitlines()) == len(RULES)
    assert re.search(r"^probe-post +error +An httpProbe that posts \(.+\)$", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("app=model-server", "app={{workflow.parameters.app}}"),
        ("app=model-server", "{{workflow.parameters.label}}"),
        ('value: "60"', "value: {{workflow.parameters.seconds}}"),
        ('value: "60"', "value: ${SECONDS}"),
        ("name: bring-your-own", "generateName: chaos-{{workflow.name}}-"),
        ("appkind: deployment", 'appkind: "{{inputs.parameters.kind}}"'),
        ("query: sum(rate(http_requests_total{code='500'}[1m]))", "query: '{{workflow.parameters.query}}'"),
        ('value: "60"', "value:\n            - name: FORCE\n              value: 'True'"),
        ('value: "60"', "valueFrom: {configMapKeyRef: {name: chaos, key: seconds}}"),
        ("name: pod-delete", "name: our-own-fault"),
    ],
)
def test_what_something_else_fills_in_is_left_alone(old: str, new: str) -> None:
    findings = {finding.rule for finding in lint(POD.replace(old, new, 1), "mine.yaml")}
    assert findings <= {"duration-missing"}


def test_an_own_experiment_may_have_any_tunables() -> None:
    text = one("our-own-fault", 'TOTAL_CHAOS_DURATION="60"', "LATENCY=quite some", "WHATEVER=x")
    assert lint(text, "mine.yaml") == []
    assert of_rule(text.replace('"60"', '"60s"'), "tunable-number")


def test_merged_mappings_count() -> None:
    text = POD.replace("  appinfo:\n    appns: inference\n", "  appinfo:\n    <<: {appns: inference}\n")
    assert lint(text, "mine.yaml") == []


def test_suggestions_name_what_was_meant() -> None:
    (finding,) = of_rule(POD.replace("PODS_AFFECTED_PERC", "POD_AFECTED_PERC"), "tunable-misspelt")
    assert finding.fix == "did you mean PODS_AFFECTED_PERC?"
    (finding,) = of_rule(POD.replace("appns:", "appNs:"), "field-pruned")
    assert finding.fix == "did you mean appns?"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_whatever_a_published_crd_refuses_has_a_finding(case: Case) -> None:
    text = case.good.replace(case.old, case.new, 1)
    document = yaml.safe_load(text)
    refusals = {
        "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.absolute_path).lstrip(".")
        for schema in schemas().values()
        for error in jsonschema.Draft7Validator(schema).iter_errors(document)
    }
    paths = [finding.path for finding in lint(text, "mine.yaml")]
    assert [refused for refused in refusals if not any(path.startswith(refused) for path in paths)] == []
