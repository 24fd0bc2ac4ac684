"""The kubeconfig of a running server. It is written atomically: when the file exists, the server is ready."""

from __future__ import annotations

import base64
import json
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from noxu.files import write_whole
from noxu.values import Json, Object


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


MAX_SIZE: Final = 64 * 1024
"""Bytes of a file that may be one of ours."""


def text(access: Access) -> str:
    """The content of the file: JSON, which is also YAML."""
    return orjson.dumps(kubeconfig(access), option=orjson.OPT_INDENT_2).decode() + "\n"


def is_own(path: Path) -> bool:
    """Whether a file was written by `write_kubeconfig` and is unchanged, or is empty. Raises OSError.

    Other programs merge kubeconfigs, and people edit them. Only the exact text that a server writes is sure to be from one.
    """
    with os.fdopen(
        os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb"
    ) as file:  # a FIFO would wait for a writer
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return False
        found = file.read(MAX_SIZE)
    try:
        return not found or found == text(_access_in(json.loads(found))).encode()
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return False


def _access_in(value: Json) -> Access:
    """What a kubeconfig of ours was made of. Raises ValueError, LookupError, TypeError, AttributeError for others."""
    cluster, user = value["clusters"][0]["cluster"], value["users"][0]["user"]
    if not isinstance(user.get("token", ""), str):
        raise TypeError("a token is a text")
    return Access(
        cluster["server"],
        base64.b64decode(cluster.get("certificate-authority-data", "")),
        base64.b64decode(user.get("client-certificate-data", "")),
        base64.b64decode(user.get("client-key-data", "")),
        user.get("token", ""),
    )


def _encode(pem: bytes) -> str:
    return base64.b64encode(pem).decode("ascii")


def write_kubeconfig(path: Path, access: Access) -> None:
    """Write the kubeconfig, readable by its owner only: it has a credential. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, text(access).encode())
