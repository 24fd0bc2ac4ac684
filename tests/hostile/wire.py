"""Talking to a server in ways that no client library would: whole requests, and raw bytes.

The same tables can be put to the reference: `NOXU_REFERENCE=https://127.0.0.1:6443 pytest tests/hostile`.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

http.client._MAXHEADERS = 100_000  # type: ignore[attr-defined]  # 4 KiB of short warnings are more than its 100

GROUP = "hostile.example.com"
JSON = "application/json"
YAML = "application/yaml"


class Reply(NamedTuple):
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def message(self) -> str:
        """What a Status says; of a body that is no Status, the text."""
        try:
            return str(self.json["message"])
        except (ValueError, KeyError, TypeError):
            return self.body.decode(errors="replace")

    @property
    def warnings(self) -> list[str]:
        return self.headers.get_all("Warning") or []


class Target:
    """A server that is talked to."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self.host, self.port, self.tls = parts.hostname, parts.port, parts.scheme == "https"

    def connect(self, timeout: float = 20.0) -> socket.socket:
        plain = socket.create_connection((self.host, self.port), timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return _insecure().wrap_socket(plain) if self.tls else plain

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | Iterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = 20.0,
    ) -> Reply:
        """One request on a connection of its own. An iterator is sent in chunks."""
        with contextlib.closing(http.client.HTTPConnection(self.host, self.port)) as connection:
            connection.sock = self.connect(timeout)
            given = {"Content-Type": JSON, **(headers or {})} if body is not None else {**(headers or {})}
            connection.request(method, path, body, given, encode_chunked=not isinstance(body, (bytes, type(None))))
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers, answer.read())

    @staticmethod
    def read(heard: bytes) -> Reply:
        """An answer in raw bytes, taken apart."""
        head, _, body = heard.partition(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        headers = http.client.parse_headers(io.BytesIO(fields + b"\r\n\r\n"))
        if headers.get("Transfer-Encoding") == "chunked":
            body = _joined(body)
        return Reply(int(line.split()[1]), headers, body)

    def say(self, data: bytes, timeout: float = 5.0) -> bytes:
        """Raw bytes, and all that comes back until the server closes or has nothing more to say."""
        with self.connect(timeout) as connection:
            connection.sendall(data)
            return hear(connection)


def _joined(chunks: bytes) -> bytes:
    """The body that came in chunks."""
    body = b""
    while chunks:
        size, _, rest = chunks.partition(b"\r\n")
        length = int(size, 16)
        body, chunks = body + rest[:length], rest[length + 2 :]
        if not length:
            break
    return body


def hear(connection: socket.socket, silence: float = 0.3) -> bytes:
    """What the server says until it closes, or is silent for so many seconds after its last word."""
    heard = b""
    with contextlib.suppress(TimeoutError, ConnectionError):
        while piece := connection.recv(65536):
            heard += piece
            connection.settimeout(silence)
    return heard


def status_of(heard: bytes) -> int:
    """The code of the first answer in raw bytes, 0 if there is none."""
    return int(heard.split(b" ", 2)[1]) if heard.startswith(b"HTTP/") else 0


def _insecure() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


# -- what there is on the server --------------------------------------------------------------------------------------

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural: str, spec: object = None, *, scope: str = "Namespaced", **version: object) -> dict[str, Any]:
    """A CustomResourceDefinition whose schema has this `spec`: anything, if nothing is said."""
    kind = plural.removesuffix("s").capitalize()
    schema = {"type": "object", "properties": {"spec": ANYTHING if spec is None else spec}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": [served]},
    }


def thing(kind: str, name: str, spec: object = None, **more: object) -> dict[str, Any]:
    """A custom resource."""
    value = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, **more}
    return value if spec is None else {**value, "spec": spec}


def path_of(plural: str, name: str = "", namespace: str = "default") -> str:
    place = f"/apis/{GROUP}/v1/{f'namespaces/{namespace}/' if namespace else ''}{plural}"
    return f"{place}/{name}" if name else place
