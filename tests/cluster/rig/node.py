"""The node: containerd and kubelet with their configuration, in a mount namespace of their own.

What they mount is seen by nobody else and goes with them, and the folders and settings of the machine that they would
write to are covered by the cluster's own.
"""

from __future__ import annotations

import shlex
from pathlib import Path

from aftershock.files import write_json, write_text
from tests.cluster.rig.certificates import NODE
from tests.cluster.rig.images import IMAGE
from tests.cluster.rig.layout import Layout
from tests.cluster.rig.network import NODE_ADDRESS, POD_RANGE

COVERED_FOLDERS = ("/var/lib/kubelet", "/var/lib/cni", "/var/log", "/run/containerd", "/run/netns")
"""Paths that no option of kubelet, containerd or CNI can move."""
COVERED_SETTINGS = (
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/vm/panic_on_oom",
    "/proc/sys/kernel/panic",
    "/proc/sys/kernel/panic_on_oops",
    "/proc/sys/kernel/keys/root_maxkeys",
    "/proc/sys/kernel/keys/root_maxbytes",
)
"""Settings of the whole machine that a kubelet changes at its start."""


def containerd(layout: Layout) -> list[str]:
    """Makes the mount namespace and covers what has to be covered, then becomes containerd."""
    script = ["set -e"]
    for path in (*COVERED_FOLDERS, *COVERED_SETTINGS):
        cover = shlex.quote(str(_cover(layout, path)))
        if path in COVERED_FOLDERS:
            script.append(f"mkdir -p {cover} {path}")
        else:
            script.append(f"cat {path} > {cover}")
        script.append(f"mount --bind {cover} {path}")
    script.append(f"exec containerd --config {shlex.quote(str(layout.directory / 'containerd.toml'))}")
    return ["unshare", "--mount", "--propagation=private", "sh", "-c", "\n".join(script)]


def kubelet(layout: Layout, containerd_pid: int) -> list[str]:
    """In the mount namespace of the containerd that is process `containerd_pid`: both have to see the pods' volumes."""
    return [
        "nsenter",
        f"--mount=/proc/{containerd_pid}/ns/mnt",
        "--",
        str(layout.programs / "kubelet"),
        f"--kubeconfig={layout.pki / 'kubelet.kubeconfig'}",
        f"--config={layout.directory / 'kubelet.yaml'}",
        f"--root-dir={layout.directory / 'kubelet'}",
        f"--cert-dir={layout.pki}",
        f"--hostname-override={NODE}",
        f"--node-ip={NODE_ADDRESS}",
    ]


def write_configuration(layout: Layout) -> None:
    """Write what both read at their start."""
    for path in COVERED_SETTINGS:
        _cover(layout, path).parent.mkdir(parents=True, exist_ok=True)
    _write_kubelet(layout)
    _write_containerd(layout)
    # ptp, not bridge: each packet between pods is routed by the node, so that kube-proxy's rules see all of them.
    write_json(
        layout.directory / "cni" / "pods.conflist",
        {
            "cniVersion": "0.4.0",
            "name": "pods",
            "plugins": [
                {
                    "type": "ptp",
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": POD_RANGE}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                        "dataDir": str(layout.directory / "addresses"),
                    },
                }
            ],
        },
    )


def _cover(layout: Layout, path: str) -> Path:
    return layout.directory / "machine" / path.strip("/").replace("/", "-")


def _write_kubelet(layout: Layout) -> None:
    pki = layout.pki
    write_json(
        layout.directory / "kubelet.yaml",  # JSON is YAML
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "failSwapOn": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{layout.name}",
            "enforceNodeAllocatable": [],
            "containerRuntimeEndpoint": f"unix://{layout.containerd_socket}",
            "address": NODE_ADDRESS,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(pki / "ca.crt")},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(pki / "kubelet.crt"),
            "tlsPrivateKeyFile": str(pki / "kubelet.key"),
            "resolvConf": "",  # nobody answers names here
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "podLogsDir": str(layout.directory / "pod-logs"),
            "volumePluginDir": str(layout.directory / "volume-plugins"),
        },
    )


def _write_containerd(layout: Layout) -> None:
    write_text(
        layout.directory / "containerd.toml",
        f"""version = 2
root = "{layout.directory}/containerd"
state = "{layout.directory}/containerd-state"

[grpc]
  address = "{layout.containerd_socket}"

[plugins."io.containerd.internal.v1.opt"]
  path = "{layout.directory}/opt"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{IMAGE}"
  disable_apparmor = true
  restrict_oom_score_adj = true

[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = "/usr/lib/cni"
  conf_dir = "{layout.directory}/cni"
""",
    )
