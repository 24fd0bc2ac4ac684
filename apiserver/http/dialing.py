"""Why a webhook could not be reached, in the words of Go's net, crypto/tls, crypto/x509 and net/http."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import os
import socket
import ssl
from typing import Final

import aiohttp
from yarl import URL

from apiserver.api.gotext import quote


async def failure_text(error: BaseException, url: URL, name: str) -> str:
    """What Go would say. `name` is whose certificate was expected at `url`."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"dial tcp: lookup {url.host}: no such host"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate_text(error.certificate_error, name)
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


def _errno_text(error: OSError) -> str:
    known = {errno.ECONNRESET: "connection reset by peer", errno.EPIPE: "broken pipe"}
    number = error.errno or errno.ECONNRESET
    text = known.get(number) or os.strerror(number)
    return text[:1].lower() + text[1:]  # Go's have no capital


async def _address(url: URL) -> str:
    """`ip:port` of a URL's host."""
    host, port = url.host or "", url.port or 0
    try:
        ipaddress.ip_address(host)
    except ValueError:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError:
            return f"{host}:{port}"
        host = str(found[0][4][0])
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _tls_text(error: ssl.SSLError) -> str:
    if error.reason in ("WRONG_VERSION_NUMBER", "HTTP_REQUEST"):
        return "http: server gave HTTP response to HTTPS client"
    return f"remote error: tls: {(error.reason or 'internal error').lower().replace('_', ' ')}"


def _certificate_text(error: BaseException, name: str) -> str:
    why = _WRONG_CERTIFICATE.get(getattr(error, "verify_code", 0), "certificate signed by unknown authority")
    return f"tls: failed to verify certificate: x509: {why.format(name=name)}"


_WRONG_CERTIFICATE: Final = {  # by OpenSSL's X509_V_ERR_…
    9: "certificate has expired or is not yet valid",
    10: "certificate has expired or is not yet valid",
    62: "certificate is not valid for any names, but wanted to match {name}",
    64: "cannot validate certificate for {name} because it doesn't contain any IP SANs",
}
