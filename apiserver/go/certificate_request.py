"""Requests for certificates (PKCS #10, RFC 2986), as far as their subject is concerned; the signature is not verified.

CertificationRequest ::= SEQUENCE { SEQUENCE { version INTEGER, subject Name, … }, … }
Name                 ::= SEQUENCE OF SET OF SEQUENCE { type OBJECT IDENTIFIER, value }
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Final

_PEM: Final = re.compile(
    rb"-----BEGIN CERTIFICATE REQUEST-----\s(?:[^\n:]+:[^\n]*\n)*(.*?)-----END CERTIFICATE REQUEST-----", re.DOTALL
)
_SEQUENCE, _SET, _INTEGER, _IDENTIFIER = 0x30, 0x31, 0x02, 0x06
_ORGANIZATION: Final = bytes((0x55, 0x04, 0x0A))  # 2.5.4.10
_ENCODINGS: Final = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1E: "utf-16-be"}
"""The types of strings: UTF8String, PrintableString, T61String, IA5String, BMPString."""


def organizations(request: str) -> list[str]:
    """The organizations (O) in the subject of a request: base64 of PEM, as in a CertificateSigningRequest.

    Raises ValueError.
    """
    try:
        found = _PEM.search(base64.b64decode(request, validate=True))
        if found is None:
            raise ValueError("PEM block type must be CERTIFICATE REQUEST")
        der = base64.b64decode(b"".join(found[1].split()), validate=True)
    except binascii.Error:
        raise ValueError("PEM block type must be CERTIFICATE REQUEST") from None
    whole = _only(der, _SEQUENCE)
    info = _content(next(_elements(whole), None), _SEQUENCE)
    elements = _elements(info)
    _content(next(elements, None), _INTEGER)
    names = []
    for tag, relative in _elements(_content(next(elements, None), _SEQUENCE)):
        for pair in _elements(_content((tag, relative), _SET)):
            attribute = _elements(_content(pair, _SEQUENCE))
            identifier, value = _content(next(attribute, None), _IDENTIFIER), next(attribute, None)
            if identifier == _ORGANIZATION and value is not None and value[0] in _ENCODINGS:
                names.append(value[1].decode(_ENCODINGS[value[0]]))
    return names


def _only(der: bytes, tag: int) -> bytes:
    """The content of the one element of which `der` consists."""
    elements = list(_elements(der))
    if len(elements) != 1:
        raise ValueError("asn1: syntax error: trailing data" if elements else "asn1: syntax error: sequence truncated")
    return _content(elements[0], tag)


def _content(element: tuple[int, bytes] | None, tag: int) -> bytes:
    if element is None:
        raise ValueError("asn1: syntax error: sequence truncated")
    if element[0] != tag:
        raise ValueError("asn1: structure error: tags don't match")
    return element[1]


def _elements(der: bytes) -> Iterator[tuple[int, bytes]]:
    """The elements of a sequence in DER: (tag, content)."""
    at = 0
    while at < len(der):
        header = der[at : at + 2]
        if len(header) < 2:
            raise ValueError("asn1: syntax error: truncated tag or length")
        tag, size, at = header[0], header[1], at + 2
        if size >= 0x80:
            octets = size & 0x7F
            if not 1 <= octets <= 4:
                raise ValueError("asn1: syntax error: length too large")
            size, at = int.from_bytes(der[at : at + octets], "big"), at + octets
        if at + size > len(der):
            raise ValueError("asn1: syntax error: data truncated")
        yield tag, der[at : at + size]
        at += size
