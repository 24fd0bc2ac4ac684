"""A Kubernetes API over HTTP: with what a kubeconfig says, and lists in pages.

It blocks: commands have nothing else to do meanwhile.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import http.client
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from email.message import Message
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from apiserver.api import codec
from apiserver.api.types import Json, Object

PAGE: Final = 500  # objects asked for at a time
PATIENCE: Final = 60.0  # seconds for an answer
_NOT_SUPPORTED: Final = ("exec", "auth-provider", "tokenFile")


class Unreachable(Exception):
    """There is no answer, or a refusal; the message says which, and what to do."""


class Access(NamedTuple):
    """How to reach a server. The certificates are PEM texts."""

    url: str
    authority: bytes = b""
    certificate: bytes = b""
    key: bytes = b""
    authorization: str = ""
    believe_anybody: bool = False


class Reply(NamedTuple):
    """What a server answered. `value` is None if that is no JSON object."""

    status: int
    reason: str
    headers: Message
    value: Object | None

    @property
    def told(self) -> str:
        """What a refusal says."""
        return str((self.value or {}).get("message") or self.reason)


class Cluster:
    """A server that answers at a URL. Every method raises Unreachable."""

    def __init__(self, access: Access) -> None:
        parts = urlsplit(access.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Unreachable(f"{access.url} is no URL of a server: it has to look like https://HOST:PORT")
        self.url = access.url
        self._base = parts.path.rstrip("/")
        self._headers = {"Accept": codec.JSON, "User-Agent": "noxu"}
        if access.authorization:
            self._headers["Authorization"] = access.authorization
        if parts.scheme == "http":
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=PATIENCE)
        else:
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=PATIENCE, context=_tls(access)
            )

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        value: Object | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> Reply:
        """Send a request, with a JSON body if there is a `value`; whatever the server says to it."""
        target = f"{self._base}{path}{f'?{urlencode(query)}' if query else ''}"
        body = None if value is None else codec.encode(value, sort_keys=False)
        content_type = {} if value is None else {"Content-Type": codec.JSON}
        try:
            self._connection.request(method, target, body, {**self._headers, **content_type, **headers})
            answer = self._connection.getresponse()
            received = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise Unreachable(f"{self.url} does not answer: {_why(error)}") from None
        try:
            answered = codec.decode_json(received).value
        except ValueError:
            answered = None
        return Reply(answer.status, answer.reason, answer.headers, answered if isinstance(answered, dict) else None)

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Object:
        """The JSON object at a path."""
        reply = self.send("GET", path, query)
        if reply.status != 200 or reply.value is None:
            raise Unreachable(f"GET {self.url}{path}: {reply.status} {reply.told}")
        return reply.value

    def list(self, path: str) -> Iterator[Object]:
        """The objects of a collection, with the apiVersion and kind that a list leaves out."""
        query: dict[str, str | int] = {"limit": PAGE}
        while True:
            page = self.get(path, query)
            kind = str(page.get("kind", "")).removesuffix("List")
            for item in page.get("items") or []:
                yield {"apiVersion": page.get("apiVersion"), "kind": kind, **item}
            token = (page.get("metadata") or {}).get("continue")
            if not token:
                return
            query["continue"] = token

    def close(self) -> None:
        self._connection.close()


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message}; give --kubeconfig, or --insecure-skip-tls-verify to believe it all the same"
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or "the connection was closed"


def _tls(access: Access) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=access.authority.decode() if access.authority else None)
        if access.believe_anybody:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if access.certificate:
            with tempfile.TemporaryDirectory(prefix="noxu-") as directory:  # ssl reads it from files only
                certificate, key = Path(directory) / "certificate", Path(directory) / "key"
                certificate.write_bytes(access.certificate)
                key.write_bytes(access.key)
                context.load_cert_chain(certificate, key)
    except (ssl.SSLError, ValueError) as error:
        raise Unreachable(f"the certificates for {access.url} cannot be used: {error}") from None
    return context


# -- kubeconfig -------------------------------------------------------------------------------------------------------


def access(given: argparse.Namespace) -> Access:
    """How the options --server, --kubeconfig, --context and --insecure-skip-tls-verify say to reach a server.

    Raises Unreachable.
    """
    anybody = given.insecure_skip_tls_verify
    if given.kubeconfig:
        return from_kubeconfig(given.kubeconfig, given.context or "", believe_anybody=anybody)
    return Access(given.server, believe_anybody=anybody)


def from_kubeconfig(path: Path, context: str = "", *, believe_anybody: bool = False) -> Access:
    """How a kubeconfig says to reach its current context, or another one. Raises Unreachable."""
    try:
        config = codec.decode_yaml(path.read_bytes()).value
    except OSError as error:
        raise Unreachable(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise Unreachable(f"{path}: {error}") from None
    if not isinstance(config, dict):
        raise Unreachable(f"{path} is no kubeconfig")
    name = context or config.get("current-context") or ""
    if not name:
        raise Unreachable(f"{path} has no current context; name one with --context")
    chosen = _named(path, config, "context", name)
    cluster = _named(path, config, "cluster", chosen.get("cluster") or "")
    user = _named(path, config, "user", chosen["user"]) if chosen.get("user") else {}
    for kind in _NOT_SUPPORTED:
        if user.get(kind):
            raise Unreachable(f"{path}: user {chosen['user']} is known by {kind}, which is not supported; give a token")
    return Access(
        str(cluster.get("server") or ""),
        _pem(path, cluster, "certificate-authority"),
        _pem(path, user, "client-certificate"),
        _pem(path, user, "client-key"),
        _authorization(user),
        believe_anybody or bool(cluster.get("insecure-skip-tls-verify")),
    )


def _named(path: Path, config: Object, what: str, name: str) -> Object:
    entries: Json = config.get(f"{what}s")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(what), dict):
            found: Object = entry[what]
            return found
    raise Unreachable(f"{path}: there is no {what} {name!r} in it")


def _pem(path: Path, entry: Object, name: str) -> bytes:
    """A certificate or a key: in the entry itself, or in a file beside the kubeconfig."""
    try:
        if data := entry.get(f"{name}-data"):
            return base64.b64decode(data)
        return (path.parent / entry[name]).read_bytes() if entry.get(name) else b""
    except OSError as error:
        raise Unreachable(f"{path}: {name}: {entry[name]}: {error.strerror or error}") from None
    except (TypeError, binascii.Error) as error:
        raise Unreachable(f"{path}: {name}: {error}") from None


def _authorization(user: Object) -> str:
    if user.get("token"):
        return f"Bearer {user['token']}"
    if user.get("username"):
        return "Basic " + base64.b64encode(f"{user['username']}:{user.get('password', '')}".encode()).decode()
    return ""
