"""An HTTP client that sends what no client library would: raw bytes, malformed heads, bodies that never end."""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from noxu.security.certificates import CertifiedKey
from noxu.testing.handle import Noxu
from tests.security.handshakes import client_context
from tests.timing import HANGS_AFTER

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
        """The message of a Status; the text of a body that is no Status."""
        try:
            return str(self.json["message"])
        except (ValueError, KeyError, TypeError):
            return self.body.decode(errors="replace")

    @property
    def warnings(self) -> list[str]:
        return self.headers.get_all("Warning") or []


def set_limits(monkeypatch: pytest.MonkeyPatch, noxu: Noxu, **limits: float) -> None:
    """Replace limits of a running server, for what its clients do from now on."""
    clients = noxu._server.clients
    monkeypatch.setattr(clients, "limits", replace(clients.limits, **limits))  # type: ignore[arg-type]


class Target:
    """The server under attack. `tls`: how to connect to one that serves HTTPS."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        parts = urlsplit(url)
        assert parts.hostname
        assert parts.port
        self.host, self.port, self.tls = parts.hostname, parts.port, tls
        self.origin = url.rstrip("/")

    @classmethod
    def by_client(cls, noxu: Noxu) -> Target:
        """A running server, whose client is not its administrator."""
        user = noxu.user("client")
        if user.certificate_authority is None or user.certificate is None or user.key is None:
            return cls(noxu.url)
        identity = CertifiedKey(user.certificate.read_bytes(), user.key.read_bytes())
        return cls(noxu.url, client_context(user.certificate_authority.read_bytes(), identity))

    @classmethod
    def of(cls, noxu: Noxu) -> Target:
        """A running server, with or without TLS. Over TLS the client is its administrator."""
        access = noxu._server.access()
        if not access.certificate_authority:
            return cls(noxu.url)
        return cls(
            noxu.url,
            client_context(access.certificate_authority, CertifiedKey(access.client_certificate, access.client_key)),
        )

    def connect(self, receive_buffer: int = 0) -> socket.socket:
        """`receive_buffer`: the bytes that the kernel buffers for this client; 0: its default."""
        connection = socket.socket()
        if receive_buffer:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        connection.settimeout(HANGS_AFTER)
        connection.connect((self.host, self.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection if self.tls is None else self.tls.wrap_socket(connection, server_hostname=self.host)

    def send(
        self,
        method: str,
        path: str,
        body: bytes | Iterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send one request on a connection of its own. An iterator is sent in chunks."""
        with contextlib.closing(http.client.HTTPConnection(self.host, self.port)) as connection:
            connection.sock = self.connect()
            sent_headers = {"Content-Type": JSON, **(headers or {})} if body is not None else {**(headers or {})}
            connection.request(
                method, path, body, sent_headers, encode_chunked=not isinstance(body, (bytes, type(None)))
            )
            answer = connection.getresponse()
            return Reply(answer.status, answer.headers, answer.read())

    def send_raw(self, data: bytes, *, answers: int | None = None) -> bytes:
        """Send raw bytes. Return the bytes that the server sends until it closes, or until `answers` complete answers."""
        with self.connect() as connection:
            connection.sendall(data)
            return receive(connection, answers=answers)


def receive(connection: socket.socket, *, answers: int | None = None) -> bytes:
    """The bytes that the server sends until it closes the connection, or until `answers` complete answers have arrived.

    Raises TimeoutError if neither happens.
    """
    received = b""
    with contextlib.suppress(ConnectionError):
        while answers is None or len(split_answers(received)) < answers:
            piece = connection.recv(65536)
            if not piece:
                break
            received += piece
    return received


def receive_head(connection: socket.socket) -> bytes:
    """The head of an answer whose body need not end, such as that of a watch."""
    received = b""
    while b"\r\n\r\n" not in received:
        piece = connection.recv(65536)
        assert piece, received
        received += piece
    return received


def split_answers(received: bytes) -> list[Reply]:
    """The complete answers at the beginning of a byte stream. An answer without a length ends with the connection.

    >>> split_answers(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nokHTTP/1.1 404 No")
    [Reply(status=200, …, body=b'ok')]
    """
    answers = []
    while b"\r\n\r\n" in received:
        head, _, rest = received.partition(b"\r\n\r\n")
        line, _, fields = head.partition(b"\r\n")
        headers = http.client.parse_headers(io.BytesIO(fields + b"\r\n\r\n"))
        if headers.get("Transfer-Encoding") == "chunked":
            body, received, complete = _unchunk(rest)
        else:
            length = int(headers.get("Content-Length", "0"))
            body, received, complete = rest[:length], rest[length:], len(rest) >= length
        if not complete:
            break
        answers.append(Reply(int(line.split()[1]), headers, body))
    return answers


def parse_answer(received: bytes) -> Reply:
    """The only answer on a connection that is closed. The answer to HEAD has a length and no body."""
    head, _, body = received.partition(b"\r\n\r\n")
    line, _, fields = head.partition(b"\r\n")
    headers = http.client.parse_headers(io.BytesIO(fields + b"\r\n\r\n"))
    if headers.get("Transfer-Encoding") == "chunked":
        body, _, _ = _unchunk(body)
    return Reply(int(line.split()[1]), headers, body)


def _unchunk(data: bytes) -> tuple[bytes, bytes, bool]:
    """The body in chunks at the beginning of `data`, what follows it, and whether the last chunk has come.

    >>> _unchunk(b"2\\r\\nok\\r\\n0\\r\\n\\r\\nHTTP/1.1 …")
    (b'ok', b'HTTP/1.1 …', True)
    """
    body = b""
    while b"\r\n" in data:
        size, _, rest = data.partition(b"\r\n")
        length = int(size, 16)
        if len(rest) < length + 2:
            break
        body, data = body + rest[:length], rest[length + 2 :]
        if not length:
            return body, data, True
    return body, data, False


def status_of(received: bytes) -> int:
    """The status code of the first answer in raw bytes, 0 if there is none."""
    return int(received.split(b" ", 2)[1]) if received.startswith(b"HTTP/") else 0


# -- definitions and objects ------------------------------------------------------------------------------------------

ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(plural: str, spec: object = None, *, scope: str = "Namespaced", **version: object) -> dict[str, Any]:
    """A CustomResourceDefinition with this schema of `spec`; without one, `spec` may be anything."""
    kind = plural.removesuffix("s").capitalize()
    schema = {"type": "object", "properties": {"spec": ANYTHING if spec is None else spec}}
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}, **version}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": scope, "names": {"plural": plural, "kind": kind}, "versions": [served]},
    }


def custom_resource(kind: str, name: str, spec: object = None, **more: object) -> dict[str, Any]:
    value = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": name}, **more}
    return value if spec is None else {**value, "spec": spec}


def path_of(plural: str, name: str = "", namespace: str = "default") -> str:
    collection = f"/apis/{GROUP}/v1/{f'namespaces/{namespace}/' if namespace else ''}{plural}"
    return f"{collection}/{name}" if name else collection
