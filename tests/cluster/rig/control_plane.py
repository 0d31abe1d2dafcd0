"""Command lines of etcd and of Kubernetes' own programs, the kubelet apart."""

from __future__ import annotations

from tests.cluster.rig.certificates import NODE
from tests.cluster.rig.layout import Layout
from tests.cluster.rig.network import API_PORT, NODE_ADDRESS, SERVICE_RANGE

ETCD_URL = "http://127.0.0.1:2379"
ETCD_PEER_URL = "http://127.0.0.1:2380"


def etcd(layout: Layout) -> list[str]:
    """Without waiting for the disk: it is killed, but the machine is not."""
    return [
        "etcd",
        f"--data-dir={layout.directory / 'etcd'}",
        f"--listen-client-urls={ETCD_URL}",
        f"--advertise-client-urls={ETCD_URL}",
        f"--listen-peer-urls={ETCD_PEER_URL}",
        f"--initial-advertise-peer-urls={ETCD_PEER_URL}",
        f"--initial-cluster=default={ETCD_PEER_URL}",
        "--unsafe-no-fsync",
    ]


def apiserver(layout: Layout) -> list[str]:
    """It makes itself known under the node's address, which pods reach by way of the Service `kubernetes`."""
    pki = layout.pki
    return [
        "kube-apiserver",
        f"--etcd-servers={ETCD_URL}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={NODE_ADDRESS}",
        f"--secure-port={API_PORT}",
        f"--tls-cert-file={pki / 'apiserver.crt'}",
        f"--tls-private-key-file={pki / 'apiserver.key'}",
        f"--client-ca-file={pki / 'ca.crt'}",
        f"--service-cluster-ip-range={SERVICE_RANGE}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={pki / 'service-accounts.pub'}",
        f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--kubelet-client-certificate={pki / 'admin.crt'}",
        f"--kubelet-client-key={pki / 'admin.key'}",
        f"--kubelet-certificate-authority={pki / 'ca.crt'}",
        "--kubelet-preferred-address-types=InternalIP",
        f"--requestheader-client-ca-file={pki / 'front-ca.crt'}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={pki / 'front.crt'}",
        f"--proxy-client-key-file={pki / 'front.key'}",
        "--profiling=false",
    ]


def controller_manager(layout: Layout) -> list[str]:
    """Each controller under an account of its own, as in any cluster."""
    pki = layout.pki
    return [
        "kube-controller-manager",
        *_kubeconfigs(layout, "controller-manager"),
        f"--service-account-private-key-file={pki / 'service-accounts.key'}",
        f"--root-ca-file={pki / 'ca.crt'}",
        "--use-service-account-credentials",
        f"--flex-volume-plugin-dir={layout.directory / 'volume-plugins'}",  # it makes the folder, by default in /usr
        "--leader-elect=false",
        "--kube-api-qps=200",  # by default its start takes 5 s, only because it waits between its own requests
        "--kube-api-burst=400",
        "--node-monitor-period=1s",  # how soon a ready node may have pods; 5 s by default
        "--bind-address=127.0.0.1",
        "--profiling=false",
    ]


def scheduler(layout: Layout) -> list[str]:
    """The default one."""
    return [
        "kube-scheduler",
        *_kubeconfigs(layout, "scheduler"),
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        "--profiling=false",
    ]


def proxy(layout: Layout) -> list[str]:
    """It leaves the table of connections as it is: its size is the whole machine's."""
    return [
        "kube-proxy",
        f"--kubeconfig={layout.pki / 'proxy.kubeconfig'}",
        "--proxy-mode=iptables",
        f"--hostname-override={NODE}",
        "--conntrack-max-per-core=0",
        "--conntrack-min=0",
        "--conntrack-tcp-timeout-established=0s",
        "--conntrack-tcp-timeout-close-wait=0s",
        "--metrics-bind-address=127.0.0.1:10249",
        "--healthz-bind-address=127.0.0.1:10256",
    ]


def _kubeconfigs(layout: Layout, name: str) -> list[str]:
    file = layout.pki / f"{name}.kubeconfig"
    return [f"--kubeconfig={file}", f"--authentication-kubeconfig={file}", f"--authorization-kubeconfig={file}"]
