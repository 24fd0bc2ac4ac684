"""The HTTP client for webhooks: the only place where the server opens connections.

It follows no redirects (a webhook could lead the server to hosts that only it can reach: CVE-2020-8561, CVE-2022-3172),
uses no proxy, keeps no cookies, limits the size of an answer, and one deadline covers the connection, TLS and the whole
body. Plain HTTP is for this machine only. Failures have Go's messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import socket
import ssl
import weakref
import zlib
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final

import aiohttp
from yarl import URL

from noxu.api.names import is_loopback
from noxu.go import x509
from noxu.go.text import quote
from noxu.http.webhook_failures import address_failure, failure_text
from noxu.webhook.client import (
    MAX_ANSWER,
    USER_AGENT,
    BadAnswer,
    CallFailed,
    Endpoint,
    Reply,
    Service,
    Unusable,
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
        endpoint: Endpoint,
        body: bytes,
        *,
        timeout: int,  # noqa: ASYNC109 - sent to the webhook, too
        user_agent: str = USER_AGENT,
        limit: int = MAX_ANSWER,
    ) -> Reply:
        """POST a review. Raises CallFailed."""
        try:
            url, name, context = self._target(endpoint)
            headers = {**_HEADERS, "User-Agent": user_agent, "Host": URL(endpoint.url).raw_authority}
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
                return Reply(answer.status, answer.headers.get("Content-Type"), content)
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

    def _target(self, endpoint: Endpoint) -> tuple[URL, str, ssl.SSLContext | None]:
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
        made = socket.socket(family, kind, protocol)
        self._sockets.add(made)
        return made


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
