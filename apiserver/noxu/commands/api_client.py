"""A running server, as commands reach it: a blocking client, and the endpoint in a kubeconfig.

Without an option the kubeconfig is found as kubectl finds it: the files of $KUBECONFIG, else ~/.kube/config. Of several
files, the first that has a current context says which it is, and the first entry of a name counts (clientcmd's loading
rules); paths in a file are relative to it. Files that do not exist are skipped.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import contextlib
import http.client
import os
import ssl
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from noxu import files
from noxu.api import codec
from noxu.values import Json, Object

PIECE: Final = 256 * 1024  # bytes of a file that are read at a time
PAGE_SIZE: Final = 500  # objects
TIMEOUT: Final = 60.0  # seconds for an answer
HTTP_ERRORS: Final = 400
"""The first status of an error."""
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

    def checked(self, url: str) -> Object:
        """The object that a path below /_noxu/ has answered with. Raises RequestError for a refusal, as a sentence."""
        if self.value is None or (self.status >= HTTP_ERRORS and self.value.get("kind") != "Status"):
            raise RequestError(
                f"{url} is no Noxu server, or an older one: it has no /_noxu/ ({self.status} {self.reason})"
            )
        if self.status >= HTTP_ERRORS:
            raise RequestError(self.message)
        return self.value


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
        return _reply(answer, received)

    @contextlib.contextmanager
    def held(self, method: str, path: str, value: Object) -> Iterator[Object]:
        """The first line of an answer that stays open: as long as the context does, or this process.

        The connection is this client's: it sends nothing else meanwhile.
        """
        try:
            self._connection.request(
                method,
                f"{self._base}{path}",
                codec.encode(value, sort_keys=False),
                {**self._headers, "Content-Type": codec.JSON},
            )
            answer = self._connection.getresponse()
            received = answer.readline() if answer.status < HTTP_ERRORS else answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise RequestError(f"{self.url} does not answer: {_reason(error)}") from None
        reply = _reply(answer, received)
        try:
            yield reply.checked(self.url)
        finally:
            self._connection.close()

    def call(
        self, method: str, path: str, query: Mapping[str, str | int] | None = None, value: Object | None = None
    ) -> Object:
        """What a path below /_noxu/ answers."""
        return self.send(method, path, query, value).checked(self.url)

    def download(self, path: str, query: Mapping[str, str | int] | None = None) -> Iterator[bytes]:
        """The pieces of a file below /_noxu/. Raises RequestError also if not all of it arrives."""
        target = f"{self._base}{path}{f'?{urlencode(query)}' if query else ''}"
        try:
            self._connection.request("GET", target, headers=self._headers)
            answer = self._connection.getresponse()
            if answer.status != http.HTTPStatus.OK or answer.headers.get_content_type() == codec.JSON:
                _reply(answer, answer.read()).checked(self.url)
                raise RequestError(f"GET {self.url}{path}: {answer.status} {answer.reason}")
            while piece := answer.read(PIECE):
                yield piece
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise RequestError(f"{self.url} does not send all of it: {_reason(error)}") from None

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


def _reply(answer: http.client.HTTPResponse, received: bytes) -> ServerReply:
    try:
        answered = codec.decode_json(received).value
    except ValueError:
        answered = None
    return ServerReply(answer.status, answer.reason, answer.headers, answered if isinstance(answered, dict) else None)


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
    """The endpoint given by --server, --kubeconfig, --context and --insecure-skip-tls-verify. Raises RequestError.

    Without --server and --kubeconfig: that of the user's kubeconfig.
    """
    skip_tls_verify = options.insecure_skip_tls_verify
    if options.server:
        return ServerEndpoint(options.server, skip_tls_verify=skip_tls_verify)
    paths = [options.kubeconfig] if options.kubeconfig else users_kubeconfigs(os.environ)
    if not any(path.exists() for path in paths) and not options.kubeconfig:
        raise RequestError(
            f"no server is named, and there is no {os.pathsep.join(map(str, paths))}; "
            "give --server or --kubeconfig, or set KUBECONFIG"
        )
    return endpoint_from_kubeconfig(*paths, context=options.context or "", skip_tls_verify=skip_tls_verify)


def users_kubeconfigs(environment: Mapping[str, str]) -> Sequence[Path]:
    """The files that kubectl reads without --kubeconfig. Raises RequestError."""
    named = [Path(path) for path in environment.get("KUBECONFIG", "").split(os.pathsep) if path]
    if named:
        return named
    try:
        return [Path.home() / ".kube" / "config"]
    except RuntimeError as error:
        raise RequestError(f"{error}; give --server or --kubeconfig, or set KUBECONFIG") from None


def endpoint_from_kubeconfig(*paths: Path, context: str = "", skip_tls_verify: bool = False) -> ServerEndpoint:
    """The endpoint of a context of a kubeconfig, by default of its current context. Raises RequestError.

    Of several files, those that do not exist are skipped.
    """
    loaded = {path: _read(path) for path in paths if len(paths) == 1 or path.exists()}
    where = os.pathsep.join(map(str, paths))
    name = context or next(
        (str(each["current-context"]) for each in loaded.values() if each.get("current-context")), ""
    )
    if not name:
        raise RequestError(f"{where} has no current context; name one with --context")
    _, chosen = _named(loaded, "context", name, where)
    cluster_path, cluster = _named(loaded, "cluster", chosen.get("cluster") or "", where)
    user_path, user = _named(loaded, "user", chosen["user"], where) if chosen.get("user") else (cluster_path, {})
    for kind in _NOT_SUPPORTED:
        if user.get(kind):
            raise RequestError(
                f"{user_path}: user {chosen['user']} authenticates with {kind}, which is not supported; use a token"
            )
    return ServerEndpoint(
        str(cluster.get("server") or ""),
        _pem(cluster_path, cluster, "certificate-authority"),
        _pem(user_path, user, "client-certificate"),
        _pem(user_path, user, "client-key"),
        _authorization(user),
        skip_tls_verify or bool(cluster.get("insecure-skip-tls-verify")),
    )


def _read(path: Path) -> Object:
    """Raises RequestError."""
    try:
        config = codec.decode_yaml(path.read_bytes()).value
    except OSError as error:
        raise RequestError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise RequestError(f"{path}: {error}") from None
    if not isinstance(config, dict):
        raise RequestError(f"{path} is not a kubeconfig")
    return config


def _named(loaded: Mapping[Path, Object], kind: str, name: str, where: str) -> tuple[Path, Object]:
    """The first `kind` (context, cluster or user) of this name, and its file. Raises RequestError."""
    for path, config in loaded.items():
        entries: Json = config.get(f"{kind}s")
        for entry in entries if isinstance(entries, list) else ():
            if isinstance(entry, dict) and entry.get("name") == name and isinstance(entry.get(kind), dict):
                return path, entry[kind]
    raise RequestError(f"{where} has no {kind} {name!r}")


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
