"""Calls to webhooks: the one place from which the server connects to anybody.

Redirects are never followed (a webhook could lead the server to hosts that only it can reach: CVE-2020-8561,
CVE-2022-3172), no proxy is asked, no cookie kept, an answer has a bound, and one deadline covers the connection, TLS and
the last byte of the body. Plain HTTP goes to this machine only. Failures are told in Go's words.
"""

from __future__ import annotations

import asyncio
import io
import ssl
import zlib
from collections.abc import Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import Final

import aiohttp
from yarl import URL

from noxu.apiserver.api.hosts import is_loopback
from noxu.apiserver.go.text import quote
from noxu.apiserver.http.dialing import failure_text
from noxu.apiserver.webhook.client import (
    MAX_ANSWER,
    USER_AGENT,
    CallFailed,
    Endpoint,
    Reply,
    Service,
    Unusable,
    describe,
)

KEPT_FOR: Final = 15.0  # seconds that an idle connection is kept: less than servers keep theirs
_HEADERS: Final = {
    "Accept": "application/json, */*",
    "Accept-Encoding": "gzip",
    "Content-Type": "application/json",
}


class Outgoing:
    """The server's `Caller`. Connections are made when first needed and used again; `close` ends them.

    `services` says where to connect to for a service of a cluster, as `host:port`; others are looked up by name.
    """

    def __init__(self, services: Mapping[Service, str] | None = None) -> None:
        self._services = services or {}
        self._session: aiohttp.ClientSession | None = None

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def __call__(
        self,
        endpoint: Endpoint,
        body: bytes,
        *,
        timeout: int,  # noqa: ASYNC109 - told to the webhook, too
        user_agent: str = USER_AGENT,
        limit: int = MAX_ANSWER,
    ) -> Reply:
        """POST a review. Raises CallFailed."""
        url, name, context = self._target(endpoint)
        headers = {**_HEADERS, "User-Agent": user_agent, "Host": URL(endpoint.url).raw_authority}
        answered = False
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            async with (
                asyncio.timeout_at(deadline),
                self._open().post(
                    url.with_query(f"timeout={timeout}s"),
                    data=io.BytesIO(body),  # of bytes aiohttp warns if they are many
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
        except (aiohttp.ClientError, OSError, zlib.error) as error:
            try:
                async with asyncio.timeout_at(deadline):
                    why = await failure_text(error, url, name, endpoint.ca_bundle)
            except TimeoutError:
                why = "context deadline exceeded"
            if endpoint.service is not None and isinstance(error, aiohttp.ClientConnectorDNSError):
                why = f"service {quote(endpoint.service.name)} not found"  # as upstream's resolver says
        if answered:
            raise CallFailed(f"unexpected error when reading response body. Please retry. Original error: {why}")
        raise CallFailed(f"{describe(endpoint, timeout)}: {why}")

    def _target(self, endpoint: Endpoint) -> tuple[URL, str, ssl.SSLContext | None]:
        """Where to connect to, whose certificate to expect, and how to check it. Raises Unusable."""
        url = URL(endpoint.url, encoded=True)
        name = url.host or ""
        if url.scheme != "https":
            if not is_loopback(url.host_subcomponent or ""):  # nothing else is accepted as a configuration
                raise Unusable("plain HTTP is for webhooks on this machine")
            return url, name, None
        if endpoint.service is not None and (address := self._services.get(endpoint.service)):
            host, _, port = address.rpartition(":")
            url = url.with_host(host.strip("[]")).with_port(int(port))
        return url, name, _context(endpoint.ca_bundle)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_FOR),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=None),
                trust_env=False,
                auto_decompress=False,  # it would have no bound
            )
        return self._session


@lru_cache(maxsize=200)  # as many clients as upstream keeps
def _context(ca_bundle: bytes) -> ssl.SSLContext:
    """How Go checks a server: by names in subjectAltName, trusting every certificate of the bundle. Raises Unusable."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.set_alpn_protocols(["http/1.1"])
    if not ca_bundle:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context
    try:
        context.load_verify_locations(cadata=ca_bundle.decode("ascii", "replace"))
    except ssl.SSLError as error:
        raise Unusable(f"unable to load root certificates: {error.reason}") from None
    return context


class _TooLong(Exception):
    pass


async def _read(answer: aiohttp.ClientResponse, limit: int) -> bytes:
    """The body, unpacked. Raises _TooLong as soon as it is too long."""
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
