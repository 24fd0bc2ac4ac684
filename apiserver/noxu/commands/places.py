"""Places of the stored objects that a command reads: a running server, a data directory that no server uses, or etcd.

`validate --stored` and `export` take the same options for it (`--server`, `--kubeconfig`, `--etcd-servers`, `--data`),
and have the same errors about the place. Each reads it in its own way. `ApiClient` is a blocking client of a running
server: requests, lists in pages, and the access data in a kubeconfig.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import binascii
import contextlib
import http.client
import ssl
from collections.abc import Iterator, Mapping
from email.message import Message
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit

from noxu import files
from noxu.api import codec
from noxu.commands import progress
from noxu.config import DEFAULT_DATA
from noxu.process import stores
from noxu.values import Json, Object
from noxu_storage.snapshot import snapshot
from noxu_storage.types import EVERYTHING, Key, KeyValue, OpenError, Prefix, Revision

# -- places ------------------------------------------------------------------------------------------------------------


class StoreState(Protocol):
    """The state of a store at one revision: `snapshot.Snapshot`, `etcd_state.EtcdSnapshot`."""

    corrupt: dict[Key, Revision]

    def values(self, prefix: Prefix) -> Iterator[KeyValue]: ...

    def count(self, prefix: Prefix) -> int: ...


class UnusablePlace(Exception):
    """There is nothing to read; the message says why and what to do."""


@contextlib.contextmanager
def opened(options: argparse.Namespace, instead: str) -> Iterator[ApiClient | StoreState]:
    """The place that the options name: a client of a running server, or the state of a store.

    `instead`: what to do with a server that uses the data directory, such as `export from it`. Raises Unusable, RequestError,
    StartError.
    """
    if options.server or options.kubeconfig:
        with contextlib.closing(ApiClient(endpoint_from_options(options))) as client:
            yield client
        return
    if options.etcd is not None:
        access = stores.etcd_access(options.etcd)
        from noxu_storage.etcd import state as etcd_state

        with progress.shown("read etcd", "keys", quiet=options.quiet) as show:
            read = asyncio.run(etcd_state.snapshot(*access, progress=show))
        if not read.count(EVERYTHING):
            where = f"etcd at {', '.join(options.etcd.servers)}"
            raise UnusablePlace(f"{where} has no objects under {options.etcd.prefix}; see --etcd-prefix")
        yield read
        return
    directory = options.data or DEFAULT_DATA
    try:
        with snapshot(directory / stores.FILE) as state:
            yield state
    except OpenError as error:
        hint = ""
        if "in use" in str(error):
            hint = f"; {instead} with --kubeconfig {directory / 'kubeconfig'}, or stop it"
        elif not (directory / stores.FILE).exists():
            hint = (
                "; name a data directory with --data, a running server with --server or --kubeconfig, or --etcd-servers"
            )
        raise UnusablePlace(f"{error}{hint}") from None


# -- the client of a running server ------------------------------------------------------------------------------------


PAGE_SIZE: Final = 500  # objects
TIMEOUT: Final = 60.0  # seconds for an answer
_NOT_SUPPORTED: Final = ("exec", "auth-provider", "tokenFile")


class RequestError(Exception):
    """The server does not answer, or refuses; the message says which, and what to do."""


class ServerEndpoint(NamedTuple):
    """How to connect to a server. Certificates and the key are PEM texts."""

    url: str
    certificate_authority: bytes = b""
    client_certificate: bytes = b""
    client_key: bytes = b""
    authorization: str = ""
    skip_tls_verify: bool = False


class ServerReply(NamedTuple):
    """An answer. `value` is None if the body is not a JSON object."""

    status: int
    reason: str
    headers: Message
    value: Object | None

    @property
    def message(self) -> str:
        """The message of a refusal."""
        return str((self.value or {}).get("message") or self.reason)


class ApiClient:
    """A client of one server. Every method raises RequestError."""

    def __init__(self, endpoint: ServerEndpoint) -> None:
        parts = urlsplit(endpoint.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise RequestError(f"{endpoint.url} is not the URL of a server, such as https://HOST:PORT")
        self.url = endpoint.url
        self._base = parts.path.rstrip("/")
        self._headers = {"Accept": codec.JSON, "User-Agent": "noxu"}
        if endpoint.authorization:
            self._headers["Authorization"] = endpoint.authorization
        if parts.scheme == "http":
            self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=TIMEOUT)
        else:
            self._connection = http.client.HTTPSConnection(
                parts.hostname, parts.port, timeout=TIMEOUT, context=ssl_context(endpoint)
            )

    def send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str | int] | None = None,
        value: Object | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> ServerReply:
        """Send a request, with `value` as its JSON body. Returns the answer, also if it is a refusal."""
        target = f"{self._base}{path}{f'?{urlencode(query)}' if query else ''}"
        body = None if value is None else codec.encode(value, sort_keys=False)
        content_type = {} if value is None else {"Content-Type": codec.JSON}
        try:
            self._connection.request(method, target, body, {**self._headers, **content_type, **headers})
            answer = self._connection.getresponse()
            received = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise RequestError(f"{self.url} does not answer: {_reason(error)}") from None
        try:
            answered = codec.decode_json(received).value
        except ValueError:
            answered = None
        return ServerReply(
            answer.status, answer.reason, answer.headers, answered if isinstance(answered, dict) else None
        )

    def get(self, path: str, query: Mapping[str, str | int] | None = None) -> Object:
        """The JSON object at a path."""
        reply = self.send("GET", path, query)
        if reply.status != 200 or reply.value is None:
            raise RequestError(f"GET {self.url}{path}: {reply.status} {reply.message}")
        return reply.value

    def list(self, path: str) -> Iterator[Object]:
        """The objects of a collection, with the apiVersion and kind that the items of a list lack."""
        query: dict[str, str | int] = {"limit": PAGE_SIZE}
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


def _reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"{error.verify_message}; give --kubeconfig, or --insecure-skip-tls-verify to skip the verification"
    return (error.strerror if isinstance(error, OSError) else "") or str(error) or "the connection was closed"


def ssl_context(endpoint: ServerEndpoint) -> ssl.SSLContext:
    """How to connect to a server over TLS. Raises RequestError."""
    try:
        authority = endpoint.certificate_authority
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
        if endpoint.skip_tls_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if endpoint.client_certificate:
            files.load_certificate(context, endpoint.client_certificate, endpoint.client_key)
    except (ssl.SSLError, ValueError) as error:
        raise RequestError(f"the certificates for {endpoint.url} cannot be used: {error}") from None
    return context


# -- kubeconfig -------------------------------------------------------------------------------------------------------


def endpoint_from_options(options: argparse.Namespace) -> ServerEndpoint:
    """The endpoint given by --server, --kubeconfig, --context and --insecure-skip-tls-verify. Raises RequestError."""
    skip_tls_verify = options.insecure_skip_tls_verify
    if options.kubeconfig:
        return endpoint_from_kubeconfig(options.kubeconfig, options.context or "", skip_tls_verify=skip_tls_verify)
    return ServerEndpoint(options.server, skip_tls_verify=skip_tls_verify)


def endpoint_from_kubeconfig(path: Path, context: str = "", *, skip_tls_verify: bool = False) -> ServerEndpoint:
    """The endpoint of a context of a kubeconfig, by default of its current context. Raises RequestError."""
    try:
        config = codec.decode_yaml(path.read_bytes()).value
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise RequestError(f"{path}: {error}") from None
    if not isinstance(config, dict):
        raise RequestError(f"{path} is not a kubeconfig")
    name = context or config.get("current-context") or ""
    if not name:
        raise RequestError(f"{path} has no current context; name one with --context")
    chosen = _named(path, config, "context", name)
    cluster = _named(path, config, "cluster", chosen.get("cluster") or "")
    user = _named(path, config, "user", chosen["user"]) if chosen.get("user") else {}
    for kind in _NOT_SUPPORTED:
        if user.get(kind):
            raise RequestError(
                f"{path}: user {chosen['user']} authenticates with {kind}, which is not supported; use a token"
            )
    return ServerEndpoint(
        str(cluster.get("server") or ""),
        _pem(path, cluster, "certificate-authority"),
        _pem(path, user, "client-certificate"),
        _pem(path, user, "client-key"),
        _authorization(user),
        skip_tls_verify or bool(cluster.get("insecure-skip-tls-verify")),
    )


def _named(path: Path, config: Object, kind: str, name: str) -> Object:
    """The `kind` (context, cluster or user) of this name. Raises RequestError."""
    entries: Json = config.get(f"{kind}s")
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
            member: Object = entry[kind]
            return member
    raise RequestError(f"{path} has no {kind} {name!r}")


def _pem(path: Path, entry: Object, name: str) -> bytes:
    """A certificate or a key: in the entry itself, or in a file next to the kubeconfig."""
    try:
        if data := entry.get(f"{name}-data"):
            return base64.b64decode(data)
        return (path.parent / entry[name]).read_bytes() if entry.get(name) else b""
    except OSError as error:
        raise RequestError(f"{path}: {name}: {entry[name]}: {error.strerror or error}") from None
    except (TypeError, binascii.Error) as error:
        raise RequestError(f"{path}: {name}: {error}") from None


def _authorization(user: Object) -> str:
    if user.get("token"):
        return f"Bearer {user['token']}"
    if user.get("username"):
        return "Basic " + base64.b64encode(f"{user['username']}:{user.get('password', '')}".encode()).decode()
    return ""
