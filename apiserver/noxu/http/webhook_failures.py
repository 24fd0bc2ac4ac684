"""The errors of calls to webhooks, with the messages of Go's net, crypto/tls, crypto/x509 and net/http."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from datetime import UTC, datetime
from typing import Final

import aiohttp
from yarl import URL

from noxu.go import url as go_url
from noxu.go.text import quote
from noxu.webhook import certificates

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
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, ValueError):
            return f"{host}:{port}"
        host = str(found[0][4][0])
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
