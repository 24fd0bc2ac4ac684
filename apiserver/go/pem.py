"""A CA bundle: PEM as Go reads it, with at least one certificate (client-go/transport, crypto/x509).

Only the outline of certificates is checked; the TLS library reads the contents of their fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from noxu.apiserver.go import base64 as go_base64

_BLOCK: Final = re.compile(
    rb"^-----BEGIN (?P<type>[^\n]*?)-----[ \t\r]*\n(?P<headers>(?:[^\n:]*:[^\n]*\n)*)"
    rb"(?P<body>(?:(?!-----BEGIN )[^:])*?)^-----END (?P=type)-----[ \t\r]*(?:\n|\Z)",
    re.MULTILINE,
)


def load_error(bundle: bytes) -> str:
    """Why the bundle cannot be loaded, in Go's words; "" if it can."""
    if not bundle:
        return ""
    position, first = 0, ""
    for block in _blocks(bundle):
        position = block.end
        if not block.certificate:
            continue
        error = _certificate_error(block.content)
        if not error:
            return ""
        first = first or f"failed to parse certificate: x509: {error}"
    rest = bundle[position:]
    why = first or ("unable to parse bytes as PEM block" if rest else "no valid certificate authority data seen")
    return f"unable to load root certificates: {why}"


def certificates(bundle: bytes) -> Iterator[bytes]:
    """The certificates of a bundle that can be loaded, as DER."""
    return (block.content for block in _blocks(bundle) if block.certificate)


class _Block(NamedTuple):
    certificate: bool
    content: bytes
    end: int


def _blocks(bundle: bytes) -> Iterator[_Block]:
    for match in _BLOCK.finditer(bundle):
        body = match["body"].translate(None, b" \t").decode("latin-1")
        try:
            content = go_base64.decode(body)
        except ValueError:
            continue
        yield _Block(match["type"] == b"CERTIFICATE" and not match["headers"], content, match.end())


_INTEGER, _BIT_STRING, _SEQUENCE, _VERSION = 0x02, 0x03, 0x30, 0xA0


class _Malformed(Exception):
    pass


def _certificate_error(der: bytes) -> str:
    try:
        certificate, trailing = _element(der, _SEQUENCE, "certificate")
        tbs, rest = _element(certificate, _SEQUENCE, "tbs certificate")
        if tbs[:1] == bytes([_VERSION]):
            _, tbs = _element(tbs, _VERSION, "version")
        _, tbs = _element(tbs, _INTEGER, "serial number")
        inner, tbs = _element(tbs, _SEQUENCE, "signature algorithm identifier")
        outer, rest = _element(rest, _SEQUENCE, "algorithm identifier")
        if inner != outer:
            return "inner and outer signature algorithm identifiers don't match"
        for part in ("issuer", "validity", "issuer", "spki"):  # Go calls the subject issuer, too
            _, tbs = _element(tbs, _SEQUENCE, part)
        _element(rest, _BIT_STRING, "signature")
    except _Malformed as error:
        return str(error)
    return "trailing data" if trailing else ""


def _element(der: bytes, tag: int, part: str) -> tuple[bytes, bytes]:
    """(the content of the first DER element, the bytes after it): 02 01 05 ff gives (05, ff). Raises _Malformed."""
    length, start = (der[1], 2) if len(der) >= 2 else (0, 0)
    if start and length >= 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(der[2 : 2 + size], "big"), 2 + size
    if not start or der[0] != tag or len(der) < start + length:
        raise _Malformed(f"malformed {part}")
    return der[start : start + length], der[start + length :]
