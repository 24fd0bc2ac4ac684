"""What a client needs to use a server as one user: an address and credentials, and the kubeconfig that has them."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

import orjson

from noxu.values import Object


@dataclass(frozen=True, slots=True)
class Access:
    """What a client needs to use a server, as its administrator. Certificates and the key are in PEM, empty without TLS."""

    url: str
    certificate_authority: bytes = b""
    client_certificate: bytes = b""
    client_key: bytes = field(default=b"", repr=False)
    token: str = field(default="", repr=False)


def kubeconfig(access: Access) -> Object:
    """A kubeconfig for a server.

    `insecure-skip-tls-verify` has no effect over http, but the Node client refuses `http://` without it.
    """
    cluster: Object = {"server": access.url}
    if access.certificate_authority:
        cluster["certificate-authority-data"] = _encode(access.certificate_authority)
    else:
        cluster["insecure-skip-tls-verify"] = True
    user: Object = {}
    if access.client_certificate:
        user["client-certificate-data"] = _encode(access.client_certificate)
        user["client-key-data"] = _encode(access.client_key)
    if access.token:
        user["token"] = access.token
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "noxu",
        "clusters": [{"name": "noxu", "cluster": cluster}],
        "users": [{"name": "noxu", "user": user}],
        "contexts": [{"name": "noxu", "context": {"cluster": "noxu", "user": "noxu", "namespace": "default"}}],
    }


def text(access: Access) -> str:
    """The content of the file: JSON, which is also YAML."""
    return orjson.dumps(kubeconfig(access), option=orjson.OPT_INDENT_2).decode() + "\n"


def _encode(pem: bytes) -> str:
    return base64.b64encode(pem).decode("ascii")
