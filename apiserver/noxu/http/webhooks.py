"""The HTTP client for webhooks: the only place where the server opens connections that its clients can choose.

It follows no redirects (a webhook could lead the server to hosts that only it can reach: CVE-2020-8561, CVE-2022-3172),
uses no proxy, keeps no cookies, limits the size of an answer, and one deadline covers the connection, TLS and the whole
body. Plain HTTP is for this machine only. Failures have the messages of Go's net, crypto/tls, crypto/x509 and net/http.

Most servers have no webhooks, and aiohttp's client takes 62 ms to import (`lazy_client`): a thread does it for the first
call.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import ipaddress
import os
import socket
import ssl
import weakref
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from yarl import URL

from noxu.api.names import is_loopback
from noxu.go import url as go_url
from noxu.go import x509
from noxu.go.text import quote
from noxu.http.trace_context import TRACE_CONTEXT
from noxu.registry.offload import imported
from noxu.webhook import certificates
from noxu.webhook.client import (
    MAX_ANSWER,
    USER_AGENT,
    BadAnswer,
    CallFailed,
    Intercept,
    Service,
    Unusable,
    WebhookEndpoint,
    WebhookReply,
    describe,
)

CLOSE_WITHIN: Final = 1.0  # seconds for which `close` waits for connections
IDLE_DEADLINE: Final = 15.0  # seconds that an idle connection stays open: less than servers keep theirs
_HEADERS: Final = {
    "Accept": "application/json, */*",
    "Accept-Encoding": "gzip",
    "Content-Type": "application/json",
}


class WebhookClient:
    """The server's `Caller`. Connections are opened on demand and reused; `close` closes them.

    `services` has the address of a cluster's services as `host:port`; others are looked up by name.
    """

    def __init__(self, services: Mapping[Service, str] | None = None) -> None:
        self._services = services or {}
        self.intercept: Intercept | None = None
        """Asked before each call, also of functions in the place of webhooks; what it returns is the answer. Faults stand here."""
        self._session: aiohttp.ClientSession | None = None
        self._sockets: weakref.WeakSet[socket.socket] = weakref.WeakSet()

    async def close(self) -> None:
        """Return when all connections are closed.

        aiohttp does not wait for those that it has closed before, whose TLS may still wait for the webhook's goodbye.
        """
        if self._session is not None:
            await self._session.close()
        for connection in list(self._sockets):
            with contextlib.suppress(OSError):  # closed already, or never connected
                connection.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_WITHIN):
                while any(connection.fileno() >= 0 for connection in self._sockets):  # noqa: ASYNC110 - nothing says so
                    await asyncio.sleep(0)

    async def __call__(
        self,
        endpoint: WebhookEndpoint,
        body: bytes,
        *,
        timeout: int,  # noqa: ASYNC109 - sent to the webhook, too
        user_agent: str = USER_AGENT,
        limit: int = MAX_ANSWER,
    ) -> WebhookReply:
        """POST a review. Raises CallFailed."""
        if self.intercept is not None and (reply := await self.intercept(endpoint, body, timeout)) is not None:
            return reply
        if self._session is None:
            await imported("aiohttp.client")
        try:
            url, name, context = self._target(endpoint)
            headers = {**_HEADERS, "User-Agent": user_agent, "Host": URL(endpoint.url).raw_authority}
            if (trace := TRACE_CONTEXT.get()) is not None:
                headers |= trace.headers
        except ValueError:  # Go parses more URLs than yarl
            raise CallFailed(f"{describe(endpoint, timeout)}: {address_failure(endpoint.url)}") from None
        answered = False
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            async with (
                asyncio.timeout_at(deadline),
                self._open().post(
                    url.with_query(f"timeout={timeout}s"),
                    data=io.BytesIO(body),  # aiohttp warns about large bytes
                    headers=headers,
                    allow_redirects=False,
                    ssl=context or False,
                    server_hostname=name if context else None,
                ) as answer,
            ):
                answered = True
                content = await _read(answer, limit)
                return WebhookReply(answer.status, answer.headers.get("Content-Type"), content)
        except TimeoutError:
            why = "context deadline exceeded"
        except _TooLong:
            raise CallFailed(f"{describe(endpoint, timeout)}: the answer has more than {limit} bytes") from None
        except aiohttp.InvalidURL:
            why = address_failure(endpoint.url)
        except (aiohttp.ClientError, OSError, zlib.error) as error:
            try:
                async with asyncio.timeout_at(deadline):
                    why = await failure_text(error, url, name, endpoint.ca_bundle)
            except TimeoutError:
                why = "context deadline exceeded"
            if endpoint.service is not None and isinstance(error, aiohttp.ClientConnectorDNSError):
                why = f"service {quote(endpoint.service.name)} not found"  # as upstream's resolver says
            if isinstance(error, aiohttp.ClientResponseError):  # the text quotes what the webhook sent
                raise BadAnswer(f"{describe(endpoint, timeout)}: {why}") from None
        except ValueError:  # a name that cannot be looked up; some errors of TLS are ValueErrors, too
            why = address_failure(endpoint.url)
        if answered:
            raise CallFailed(f"unexpected error when reading response body. Please retry. Original error: {why}")
        raise CallFailed(f"{describe(endpoint, timeout)}: {why}")

    def _target(self, endpoint: WebhookEndpoint) -> tuple[URL, str, ssl.SSLContext | None]:
        """The URL to connect to, the name that its certificate must have, and the TLS context. Raises Unusable."""
        url = URL(endpoint.url, encoded=True)
        name = url.host or ""
        if url.scheme != "https":
            if not is_loopback(url.host_subcomponent or ""):  # validation of configurations refuses the rest
                raise Unusable("plain HTTP is for webhooks on this machine")
            return url, name, None
        if endpoint.service is not None and (address := self._services.get(endpoint.service)):
            host, _, port = address.rpartition(":")
            url = url.with_host(host.strip("[]")).with_port(int(port))
        return url, name, _context(endpoint.ca_bundle)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    limit=0, keepalive_timeout=IDLE_DEADLINE, socket_factory=self._new_socket
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                trust_env=False,
                auto_decompress=False,  # aiohttp does not limit the decompressed size
            )
        return self._session

    def _new_socket(self, address: tuple[Any, ...]) -> socket.socket:
        """A socket for an address as getaddrinfo returns it."""
        family, kind, protocol, *_ = address
        sock = socket.socket(family, kind, protocol)
        self._sockets.add(sock)
        return sock


@lru_cache(maxsize=200)  # as many clients as upstream keeps
def _context(ca_bundle: bytes) -> ssl.SSLContext:
    """A context that verifies like Go: names in subjectAltName, every certificate of the bundle trusted. Raises Unusable."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if not ca_bundle:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context
    try:
        context.load_verify_locations(cadata=x509.authorities(ca_bundle))
    except ssl.SSLError as error:
        raise Unusable(f"unable to load root certificates: {error.reason}") from None
    return context


class _TooLong(Exception):
    pass


async def _read(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    """The decompressed body. Raises _TooLong as soon as it exceeds the limit."""
    inflate = None
    if answer.headers.get("Content-Encoding", "").lower() == "gzip":
        inflate = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    parts, length = [], 0
    async for chunk in answer.content.iter_any():
        part = chunk if inflate is None else inflate.decompress(chunk, limit + 1 - length)
        length += len(part)
        if length > limit:
            raise _TooLong
        parts.append(part)
    if inflate is not None and parts and not inflate.eof:
        raise aiohttp.ClientPayloadError("the gzip stream ends early")
    return b"" if answer.status == HTTPStatus.NO_CONTENT else b"".join(parts)


# -- failures ----------------------------------------------------------------------------------------------------------


_MAX_PORT: Final = 65535
_PORT_DIGITS: Final = 20  # longer numbers are not parsed; a number may have leading zeros


async def failure_text(error: BaseException, url: URL, name: str, ca_bundle: bytes) -> str:
    """Go's message for an error. The server at `url` should have a certificate for `name`, verified by the bundle."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {url.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return await _certificate_text(url, name, ca_bundle)
    if isinstance(error, aiohttp.ClientConnectorError):
        inner = error.os_error
        if isinstance(inner, ssl.SSLError):
            return _tls_text(inner)
        return f"dial tcp {await _address(url)}: connect: {_errno_text(inner)}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "unexpected EOF"
    if isinstance(error, aiohttp.ClientResponseError):
        return f"net/http: HTTP/1.x transport connection broken: malformed HTTP response {quote(error.message)}"
    if isinstance(error, OSError):
        return f"read tcp {await _address(url)}: read: {_errno_text(error)}"
    return str(error)


def address_failure(text: str) -> str:
    """Go's message for a URL whose host cannot be looked up, or whose port is out of range."""
    host, colon, port = go_url.parse(text).host.rpartition(":")
    if not colon or port.endswith("]"):
        host, port = f"{host}{colon}{port}", ""
    if port and (len(port) > _PORT_DIGITS or int(port) > _MAX_PORT):
        return f"dial tcp: address {port}: invalid port"
    return f"dial tcp: lookup {host.strip('[]')}: no such host"


def _errno_text(error: OSError) -> str:
    texts = {errno.ECONNRESET: "connection reset by peer", errno.EPIPE: "broken pipe"}
    number = error.errno or errno.ECONNRESET
    text = texts.get(number) or os.strerror(number)
    return text[:1].lower() + text[1:]  # Go's messages start in lower case


async def _address(url: URL) -> str:
    """`ip:port` of a URL's host."""
    host, port = url.host or "", url.port or 0
    try:
        ipaddress.ip_address(host)
    except ValueError:
        try:
            addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, ValueError):
            return f"{host}:{port}"
        host = str(addresses[0][4][0])
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _tls_text(error: ssl.SSLError) -> str:
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return "http: server gave HTTP response to HTTPS client"
    return f"remote error: tls: {(error.reason or 'internal error').lower().replace('_', ' ')}"


async def _certificate_text(url: URL, name: str, ca_bundle: bytes) -> str:
    """Connect again without verification, because the library does not return a certificate that fails it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    der = None
    try:
        _, writer = await asyncio.open_connection(url.host, url.port, ssl=context, server_hostname=name)
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.transport.abort()
    except (OSError, ValueError):  # a name that TLS cannot send
        pass
    return certificates.verification_error(der or b"", name, ca_bundle, datetime.now(UTC))
