"""Keys and certificates of a cluster, made anew at each start, and the kubeconfigs that hold them."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from aftershock.stack.private import private_folder, write_private
from tests.cluster.rig.network import API_URL, NODE_ADDRESS

NODE = "node1"
SERVICE_ADDRESS = "10.96.0.1"
"""Of the Service `kubernetes`: the first address of the Services' range."""
LIFETIME = datetime.timedelta(days=365)
NAMES = ("localhost", NODE, "kubernetes", "kubernetes.default", "kubernetes.default.svc")
ADDRESSES = ("127.0.0.1", NODE_ADDRESS, SERVICE_ADDRESS)

MEMBERS = {
    "apiserver": ("kube-apiserver", None),
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", None),
    "scheduler": ("system:kube-scheduler", None),
    "proxy": ("system:kube-proxy", None),
    "kubelet": (f"system:node:{NODE}", "system:nodes"),
}
"""File name: user and group, by which the API server knows their rights."""


@dataclass(frozen=True)
class _Authority:
    """Who signs."""

    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate


def write_pki(folder: Path) -> None:
    """Write all keys, certificates and kubeconfigs of a new cluster into `folder`, closed to other users."""
    private_folder(folder)
    authority = _authority("kubernetes")
    _write(folder / "ca", authority.key, authority.certificate)
    for name, (user, group) in MEMBERS.items():
        _issue(folder / name, authority, user, group)
    for name in set(MEMBERS) - {"apiserver"}:
        write_private(folder / f"{name}.kubeconfig", _kubeconfig(folder, name))
    # The front proxy's authority has to be another one: whoever it vouches for may name any user.
    front = _authority("front-proxy")
    _write(folder / "front-ca", front.key, front.certificate)
    _issue(folder / "front", front, "front-proxy-client", None)
    _write_service_account_keys(folder)


def _authority(name: str) -> _Authority:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    certificate = (
        _builder(subject, subject, key)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _Authority(key, certificate)


def _issue(path: Path, authority: _Authority, user: str, group: str | None) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    names = [x509.NameAttribute(NameOID.COMMON_NAME, user)]
    if group:
        names.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    alternatives = [
        *map(x509.DNSName, NAMES),
        *(x509.IPAddress(ipaddress.ip_address(address)) for address in ADDRESSES),
    ]
    certificate = (
        _builder(x509.Name(names), authority.certificate.subject, key)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    _write(path, key, certificate)


def _builder(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + LIFETIME)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _write(path: Path, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    write_private(path.with_suffix(".key"), _private_pem(key))
    write_private(path.with_suffix(".crt"), certificate.public_bytes(serialization.Encoding.PEM).decode())


def _write_service_account_keys(folder: Path) -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    write_private(folder / "service-accounts.key", _private_pem(key))
    write_private(folder / "service-accounts.pub", public.decode())


def _private_pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


def _kubeconfig(folder: Path, name: str) -> str:
    def data(file: str) -> str:
        return base64.b64encode((folder / file).read_bytes()).decode()

    return json.dumps(  # JSON is YAML
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "rig", "cluster": {"server": API_URL, "certificate-authority-data": data("ca.crt")}}],
            "users": [
                {
                    "name": name,
                    "user": {
                        "client-certificate-data": data(f"{name}.crt"),
                        "client-key-data": data(f"{name}.key"),
                    },
                }
            ],
            "contexts": [{"name": "rig", "context": {"cluster": "rig", "user": name}}],
            "current-context": "rig",
        },
        indent=2,
    )
