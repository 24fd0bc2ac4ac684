"""Certificates and requests for them (PKCS #10) as Go reads them (crypto/x509): what of them is judged, and nothing else.

The outline of the elements is checked, and the contents of those that are judged: the subject, the alternative names. Keys
are left as they are, and no signatures are verified: whoever uses a key reads it from the DER that this module has split.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Final, NamedTuple

from noxu.go import der, distinguished_names, pem
from noxu.go import url as go_url
from noxu.go.der import BIT_STRING, BOOLEAN, IDENTIFIER, INTEGER, OCTET_STRING, SEQUENCE, SET, Malformed
from noxu.go.distinguished_names import Name

_VERSION, _ATTRIBUTES, _EXTENSIONS = 0xA0, 0xA0, 0xA3
_BASIC_CONSTRAINTS: Final = b"\x55\x1d\x13"  # 2.5.29.19
_ALTERNATIVE_NAMES: Final = b"\x55\x1d\x11"  # 2.5.29.17
_EXTENSION_REQUEST: Final = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x0e"  # 1.2.840.113549.1.9.14
_NO_REQUEST: Final = "PEM block type must be CERTIFICATE REQUEST"


class CertificateRequest(NamedTuple):
    """A request for a certificate, with the names that it asks for. `der` is all of it. Other names of it do not count."""

    der: bytes
    subject: Name
    dns: tuple[str, ...]
    addresses: tuple[str, ...]
    emails: tuple[str, ...]
    uris: tuple[str, ...]


class Extension(NamedTuple):
    """`kind` is the content of its object identifier."""

    kind: bytes
    value: bytes


# -- certificates -----------------------------------------------------------------------------------------------------


def load_error(bundle: bytes) -> str:
    """Why a bundle of CAs in PEM cannot be loaded, in Go's words; "" if it can (client-go/transport, AppendCertsFromPEM)."""
    if not bundle:
        return ""
    position, first = 0, ""
    for block in pem.blocks(bundle):
        position = block.end
        if block.type != pem.CERTIFICATE or block.has_headers:
            continue
        error = certificate_error(block.content)
        if not error:
            return ""
        first = first or f"failed to parse certificate: x509: {error}"
    rest = bundle[position:]
    why = first or ("unable to parse bytes as PEM block" if rest else "no valid certificate authority data seen")
    return f"unable to load root certificates: {why}"


def authorities(bundle: bytes) -> bytes:
    """The certificates of a bundle that can be loaded, in DER one after the other, as `ssl` takes them."""
    return b"".join(each for each in pem.certificates(bundle) if not certificate_error(each))


def certificate_error(certificate: bytes) -> str:
    """Why a certificate cannot be parsed, "" if it can."""
    try:
        content, trailing = der.element(certificate, SEQUENCE, "certificate")
        tbs, rest = der.element(content, SEQUENCE, "tbs certificate")
        if tbs[:1] == bytes([_VERSION]):
            _, tbs = der.element(tbs, _VERSION, "version")
        _, tbs = der.element(tbs, INTEGER, "serial number")
        inner, tbs = der.element(tbs, SEQUENCE, "signature algorithm identifier")
        outer, rest = der.element(rest, SEQUENCE, "algorithm identifier")
        if inner != outer:
            return "inner and outer signature algorithm identifiers don't match"
        for part in ("issuer", "validity", "issuer", "spki"):  # Go calls the subject issuer, too
            _, tbs = der.element(tbs, SEQUENCE, part)
        der.element(rest, BIT_STRING, "signature")
    except Malformed as error:
        return str(error)
    return "trailing data" if trailing else ""


def subject_of(certificate: bytes) -> Name:
    """The subject of a certificate. Raises Malformed."""
    rest = _fields(certificate)
    for tag, part in ((INTEGER, "serial number"), *((SEQUENCE, part) for part in ("algorithm", "issuer", "validity"))):
        _, rest = der.element(rest, tag, part)
    return distinguished_names.read(der.element(rest, SEQUENCE, "subject")[0])


def is_authority(certificate: bytes) -> bool:
    """Whether a certificate that can be parsed has the CA bit set in its basic constraints."""
    try:
        fields = list(der.elements(_fields(certificate), "field"))
        extensions = [content for tag, content in fields if tag == _EXTENSIONS]
        found = _extensions(extensions[0]) if extensions else []
        constraints = next((each.value for each in found if each.kind == _BASIC_CONSTRAINTS), b"")
        content, _ = der.element(constraints, SEQUENCE, "basic constraints")
        return next(der.elements(content, "basic constraints"), None) == (BOOLEAN, b"\xff")
    except Malformed:
        return False


def _fields(certificate: bytes) -> bytes:
    """The elements of a certificate behind its version. Raises Malformed."""
    content, trailing = der.element(certificate, SEQUENCE, "certificate")
    tbs, _ = der.element(content, SEQUENCE, "tbs certificate")
    if trailing:
        raise Malformed("trailing data")
    return der.element(tbs, _VERSION, "version")[1] if tbs[:1] == bytes([_VERSION]) else tbs


# -- requests ---------------------------------------------------------------------------------------------------------


def read_request(text: bytes) -> CertificateRequest:
    """The request in PEM: the first block, which has to be one (certificates.ParseCSR). Raises ValueError."""
    block = next(pem.blocks(text), None)
    if block is None or block.type != pem.REQUEST:
        raise ValueError(_NO_REQUEST)
    return parse_request(block.content)


def parse_request(request: bytes) -> CertificateRequest:
    """Raises ValueError."""
    try:
        return _request(request)
    except Malformed as error:
        raise ValueError(f"asn1: structure error: {error}") from None


def _request(request: bytes) -> CertificateRequest:
    content, trailing = der.element(request, SEQUENCE, "certificate request")
    info, rest = der.element(content, SEQUENCE, "certification request info")
    _, info = der.element(info, INTEGER, "version")
    subject, info = der.element(info, SEQUENCE, "subject")
    _, info = der.element(info, SEQUENCE, "subject public key info")
    attributes, info = der.element(info, _ATTRIBUTES, "attributes") if info else (b"", b"")
    _, rest = der.element(rest, SEQUENCE, "signature algorithm identifier")
    _, rest = der.element(rest, BIT_STRING, "signature")
    if trailing or info or rest:
        raise ValueError("asn1: syntax error: trailing data")
    found = [each for attribute in der.all_of(attributes, SEQUENCE, "attribute") for each in _requested(attribute)]
    if len({each.kind for each in found}) < len(found):
        raise ValueError("x509: certificate request contains duplicate requested extensions")
    names = next((each.value for each in found if each.kind == _ALTERNATIVE_NAMES), None)
    kinds = _alternative_names(names) if names is not None else ((), (), (), ())
    return CertificateRequest(request, distinguished_names.read(subject), *kinds)


def _requested(attribute: bytes) -> list[Extension]:
    """The extensions that an attribute of a request asks for. Raises Malformed, ValueError."""
    kind, values = der.element(attribute, IDENTIFIER, "attribute type")
    if der.identifier(kind, "attribute type") != _EXTENSION_REQUEST:
        return []
    content, trailing = der.element(values, SET, "attribute values")
    if trailing or len(list(der.elements(content, "attribute value"))) != 1:  # Go takes the first of several
        raise Malformed("malformed attribute values")
    return _extensions(content)


def _extensions(sequence: bytes) -> list[Extension]:
    """Raises Malformed."""
    content, _ = der.element(sequence, SEQUENCE, "extensions")
    return [_extension(each) for each in der.all_of(content, SEQUENCE, "extension")]


def _extension(content: bytes) -> Extension:
    kind, rest = der.element(content, IDENTIFIER, "extension id")
    if rest[:1] == bytes([BOOLEAN]):
        _, rest = der.element(rest, BOOLEAN, "extension criticality")
    value, rest = der.element(rest, OCTET_STRING, "extension value")
    if rest:
        raise Malformed("malformed extension")
    return Extension(der.identifier(kind, "extension id"), value)


# -- alternative names ------------------------------------------------------------------------------------------------

_Kinds = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _alternative_names(value: bytes) -> _Kinds:
    """The DNS names, addresses, mail addresses and URIs of an extension; other names do not count. Raises ValueError."""
    content, trailing = der.element(value, SEQUENCE, "subject alternative names")
    if trailing:
        raise Malformed("malformed subject alternative names")
    found: dict[int, list[str]] = {_DNS: [], _IP: [], _EMAIL: [], _URI: []}
    for tag, name in der.elements(content, "subject alternative name"):
        if tag in found:
            found[tag].append(_READERS[tag](name))
    return tuple(found[_DNS]), tuple(found[_IP]), tuple(found[_EMAIL]), tuple(found[_URI])


def _ascii(what: str) -> Callable[[bytes], str]:
    def read(content: bytes) -> str:
        if not content.isascii():
            raise ValueError(f"x509: SAN {what} is malformed")
        return content.decode("ascii")

    return read


def _address(content: bytes) -> str:
    try:
        return str(ipaddress.ip_address(content))
    except ValueError:
        raise ValueError(f"x509: cannot parse IP address of length {len(content)}") from None


def _uri(content: bytes) -> str:
    text = _ascii("uniformResourceIdentifier")(content)
    try:
        go_url.parse(text)
    except ValueError as error:
        raise ValueError(f'x509: cannot parse URI "{text}": {error}') from None
    return text


_EMAIL, _DNS, _URI, _IP = 0x81, 0x82, 0x86, 0x87
_READERS: Final[dict[int, Callable[[bytes], str]]] = {
    _EMAIL: _ascii("rfc822Name"),
    _DNS: _ascii("dNSName"),
    _URI: _uri,
    _IP: _address,
}
