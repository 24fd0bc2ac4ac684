"""PEM as Go reads it: CA bundles, certificates, requests for certificates (encoding/pem, crypto/x509, client-go/transport).

Only the outline of certificates and requests is checked; the TLS library reads the contents of their fields, and no
signatures are verified.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from noxu.apiserver.expressions import expression
from noxu.apiserver.go import base64 as go_base64
from noxu.apiserver.records import NamedTuple

_BLOCK: Final = expression(
    rb"^-----BEGIN (?P<type>[^\n]*?)-----[ \t\r]*\n(?P<headers>(?:[^\n:]*:[^\n]*\n)*)"
    rb"(?P<body>(?:(?!-----BEGIN )[^:])*?)^-----END (?P=type)-----[ \t\r]*(?:\n|\Z)",
    re.MULTILINE,
)


def load_error(bundle: bytes) -> str:
    """Why the bundle cannot be loaded, in Go's words; "" if it can."""
    if not bundle:
        return ""
    position, first = 0, ""
    for block in blocks(bundle):
        position = block.end
        if block.type != CERTIFICATE or block.has_headers:
            continue
        error = certificate_error(block.content)
        if not error:
            return ""
        first = first or f"failed to parse certificate: x509: {error}"
    rest = bundle[position:]
    why = first or ("unable to parse bytes as PEM block" if rest else "no valid certificate authority data seen")
    return f"unable to load root certificates: {why}"


def certificates(bundle: bytes) -> Iterator[bytes]:
    """The certificates of a bundle that can be loaded, as DER."""
    return (block.content for block in blocks(bundle) if block.type == CERTIFICATE and not block.has_headers)


class Block(NamedTuple):
    """A block of PEM with its content, and the position of its end."""

    type: str
    has_headers: bool
    content: bytes
    end: int


def blocks(bundle: bytes) -> Iterator[Block]:
    for match in _BLOCK.finditer(bundle):
        body = match["body"].translate(None, b" \t").decode("latin-1")
        try:
            content = go_base64.decode(body)
        except ValueError:
            continue
        yield Block(match["type"].decode("utf-8", "replace"), bool(match["headers"]), content, match.end())


CERTIFICATE: Final = "CERTIFICATE"
REQUEST: Final = "CERTIFICATE REQUEST"
_INTEGER, _BIT_STRING, _IDENTIFIER, _SEQUENCE, _SET, _VERSION, _ATTRIBUTES = 0x02, 0x03, 0x06, 0x30, 0x31, 0xA0, 0xA0
_EXTENSIONS: Final = 0xA3
_BASIC_CONSTRAINTS: Final = b"\x06\x03\x55\x1d\x13"  # the OID 2.5.29.19
_TRUE: Final = b"\x01\x01\xff"


_ORGANIZATION: Final = b"\x55\x04\x0a"  # the OID 2.5.4.10
_STRINGS: Final = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}
"""The encodings of UTF8String, PrintableString, T61String, IA5String and BMPString."""


class _Malformed(Exception):
    pass


def certificate_error(der: bytes) -> str:
    """Why a certificate cannot be parsed, "" if it can."""
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


def request_error(der: bytes) -> str:
    """Why a request for a certificate (PKCS #10) cannot be parsed, "" if it can."""
    try:
        request, trailing = _element(der, _SEQUENCE, "certificate request")
        info, rest = _element(request, _SEQUENCE, "certification request info")
        _, info = _element(info, _INTEGER, "version")
        for part in ("subject", "subject public key info"):
            _, info = _element(info, _SEQUENCE, part)
        if info:
            _element(info, _ATTRIBUTES, "attributes")
        _, rest = _element(rest, _SEQUENCE, "signature algorithm identifier")
        _element(rest, _BIT_STRING, "signature")
    except _Malformed as error:
        return f"asn1: structure error: {error}"
    return "asn1: syntax error: trailing data" if trailing else ""


def organizations(der: bytes) -> list[str]:
    """The organizations (O) in the subject of a request for a certificate. Raises ValueError.

    The subject is a SEQUENCE OF SET OF SEQUENCE { type OBJECT IDENTIFIER, value }; Go writes several organizations into one
    set.
    """
    if error := request_error(der):
        raise ValueError(error)
    found = []
    try:
        request, _ = _element(der, _SEQUENCE, "certificate request")
        info, _ = _element(request, _SEQUENCE, "certification request info")
        _, info = _element(info, _INTEGER, "version")
        subject, _ = _element(info, _SEQUENCE, "subject")
        while subject:
            relative, subject = _element(subject, _SET, "relative name")
            while relative:
                attribute, relative = _element(relative, _SEQUENCE, "attribute")
                kind, value = _element(attribute, _IDENTIFIER, "attribute type")
                if kind == _ORGANIZATION and value and value[0] in _STRINGS:
                    text, _ = _element(value, value[0], "attribute value")
                    found.append(text.decode(_STRINGS[value[0]]))
    except _Malformed as malformed:
        raise ValueError(f"asn1: structure error: {malformed}") from None
    return found


def is_authority(der: bytes) -> bool:
    """Whether a certificate that can be parsed has the CA bit set in its basic constraints."""
    certificate, _ = _element(der, _SEQUENCE, "certificate")
    rest, _ = _element(certificate, _SEQUENCE, "tbs certificate")
    while rest and rest[0] != _EXTENSIONS:
        _, rest = _element(rest, rest[0], "field")
    if not rest:
        return False
    extensions, _ = _element(rest, _EXTENSIONS, "extensions")
    extensions, _ = _element(extensions, _SEQUENCE, "extensions")
    while extensions:
        extension, extensions = _element(extensions, _SEQUENCE, "extension")
        if extension.startswith(_BASIC_CONSTRAINTS):
            return _TRUE in extension[len(_BASIC_CONSTRAINTS) :].removeprefix(_TRUE)  # the first may be "critical"
    return False


def _element(der: bytes, tag: int, part: str) -> tuple[bytes, bytes]:
    """(the content of the first DER element, the bytes after it): 02 01 05 ff gives (05, ff). Raises _Malformed."""
    length, start = (der[1], 2) if len(der) >= 2 else (0, 0)
    if start and length >= 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(der[2 : 2 + size], "big"), 2 + size
    if not start or der[0] != tag or len(der) < start + length:
        raise _Malformed(f"malformed {part}")
    return der[start : start + length], der[start + length :]
