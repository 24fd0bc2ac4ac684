"""Certificates and certificate requests (PKCS #10) as Go reads them (crypto/x509), as far as the server judges them.

The outline of the elements is checked, and the contents of those that are judged: the subject, the alternative names.
Keys are left as they are, and no signatures are verified: the user of a key reads it from the DER that this module has
split.

DER is read as encoding/asn1 and x/crypto's cryptobyte read it. A length is written in the shortest form, a tag in one byte.
Everything else (BER) is malformed, so that two readers cannot take the same bytes for different elements.

    02 01 05 04 00   is   (02, 05), (04, "")

Distinguished names, the subjects, are read and written as in crypto/x509/pkix. There is one reader: admission and
signers check the same name that authentication sees. A name is a list of sets of attributes, which a reader flattens.
Only the six types of strings that Go knows are read; a value of any other type makes the name malformed, because a
reader that knows the type would see another user (Go ignores such a value in a request, and refuses it in a
certificate). A name is written anew from the attributes that Go knows, each kind as one set; other attributes are
dropped.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from noxu.go import pem
from noxu.go import url as go_url

BOOLEAN, INTEGER, BIT_STRING, OCTET_STRING, IDENTIFIER, SEQUENCE, SET = 0x01, 0x02, 0x03, 0x04, 0x06, 0x30, 0x31
_LONG_TAG: Final = 0x1F
_LONG: Final = 0x80
_MAX_LENGTH_BYTES: Final = 4


class MalformedDer(ValueError):
    """The bytes are not the expected elements. The message has no prefix of a package."""


def first_element(der: bytes, part: str) -> tuple[int, bytes, bytes]:
    """(the tag of the first element, its content, the bytes after it). Raises MalformedDer, which names the part."""
    start, end = _bounds(der, 0, part)
    return der[0], der[start:end], der[end:]


def element(der: bytes, tag: int, part: str) -> tuple[bytes, bytes]:
    """(the content of the first element, the bytes after it): 02 01 05 ff gives (05, ff).

    Raises MalformedDer, which names the part, also if the element has another tag.
    """
    actual, content, rest = first_element(der, part)
    if actual != tag:
        raise MalformedDer(f"malformed {part}")
    return content, rest


def elements(der: bytes, part: str) -> Iterator[tuple[int, bytes]]:
    """All elements as (tag, content). Raises MalformedDer, which names the part."""
    position = 0
    while position < len(der):
        start, end = _bounds(der, position, part)
        yield der[position], der[start:end]
        position = end


def elements_with_tag(der: bytes, tag: int, part: str) -> Iterator[bytes]:
    """The contents of all elements, which have this tag. Raises MalformedDer, which names the part."""
    for actual, content in elements(der, part):
        if actual != tag:
            raise MalformedDer(f"malformed {part}")
        yield content


def _bounds(der: bytes, position: int, part: str) -> tuple[int, int]:
    """Where the content of the element at a position begins and ends. Raises MalformedDer, which names the part."""
    head = der[position : position + 2 + _MAX_LENGTH_BYTES]
    if len(head) < 2 or head[0] & _LONG_TAG == _LONG_TAG:
        raise MalformedDer(f"malformed {part}")
    length, start = head[1], position + 2
    if length & _LONG:
        size = length & ~_LONG
        digits = head[2 : 2 + size]
        length, start = int.from_bytes(digits, "big"), start + size
        if not size or len(digits) < size or length < _LONG or not digits[0]:  # none, too many, or more than needed
            raise MalformedDer(f"malformed {part}")
    if start + length > len(der):
        raise MalformedDer(f"malformed {part}")
    return start, start + length


def object_identifier(content: bytes, part: str) -> bytes:
    """The content of an object identifier in the shortest form: equal ones have equal bytes. Raises MalformedDer."""
    is_whole = bool(content) and not content[-1] & _LONG
    starts = [0, *(at + 1 for at, byte in enumerate(content[:-1]) if not byte & _LONG)]
    if not is_whole or any(content[at] == _LONG for at in starts):
        raise MalformedDer(f"malformed {part}")
    return content


def encode_element(tag: int, *contents: bytes) -> bytes:
    """An element whose content is these bytes: encode(0x02, 05) gives 02 01 05."""
    content = b"".join(contents)
    if len(content) < _LONG:
        return bytes([tag, len(content)]) + content
    length = len(content).to_bytes((len(content).bit_length() + 7) // 8, "big")
    return bytes([tag, _LONG | len(length)]) + length + content


COMMON_NAME, SERIAL_NUMBER, COUNTRY, LOCALITY, PROVINCE, STREET, ORGANIZATION, UNIT, POSTAL_CODE = (
    bytes([0x55, 0x04, number]) for number in (3, 5, 6, 7, 8, 9, 10, 11, 17)
)
"""The object identifiers of attributes, 2.5.4.3 and so on."""
_MANY: Final = (COUNTRY, PROVINCE, LOCALITY, STREET, POSTAL_CODE, ORGANIZATION, UNIT)
_ONE: Final = (COMMON_NAME, SERIAL_NUMBER)

_UTF8, _NUMERIC, _PRINTABLE, _T61, _IA5, _BMP = 0x0C, 0x12, 0x13, 0x14, 0x16, 0x1E
_DIGITS: Final = frozenset(b"0123456789 ")
_LETTERS: Final = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 '()+,-./:=?")
_PRINTABLE_READ: Final = _LETTERS | frozenset(b"*&")
"""More than a PrintableString may have: there are certificates with wildcards and ampersands."""


class DistinguishedName(NamedTuple):
    """The attributes of a name in order: (object identifier, text)."""

    attributes: tuple[tuple[bytes, str], ...]

    def values(self, kind: bytes) -> tuple[str, ...]:
        return tuple(text for oid, text in self.attributes if oid == kind)

    def last(self, kind: bytes) -> str:
        """The value of an attribute that a name has once, the last one of several; "" if there is none."""
        return next(reversed(self.values(kind)), "")


def read_name(content: bytes) -> DistinguishedName:
    """The name whose sequence has this content. Raises MalformedDer."""
    attributes = []
    for relative in elements_with_tag(content, SET, "relative name"):
        for attribute in elements_with_tag(relative, SEQUENCE, "attribute"):
            kind, rest = element(attribute, IDENTIFIER, "attribute type")
            tag, value, rest = first_element(rest, "attribute value")
            if rest:
                raise MalformedDer("malformed attribute")
            attributes.append((object_identifier(kind, "attribute type"), _name_text(tag, value)))
    return DistinguishedName(tuple(attributes))


def write_name(name: DistinguishedName) -> bytes:
    """The sequence of a name with the attributes that Go keeps (Name.ToRDNSequence)."""
    sets = [_name_set(kind, name.values(kind)) for kind in _MANY]
    sets += [_name_set(kind, [name.last(kind)] if name.last(kind) else []) for kind in _ONE]
    return encode_element(SEQUENCE, *sets)


def _name_set(kind: bytes, texts: Iterable[str]) -> bytes:
    encoded = [encode_element(SEQUENCE, encode_element(IDENTIFIER, kind), _string(text)) for text in texts]
    return encode_element(SET, *sorted(encoded)) if encoded else b""


def _string(text: str) -> bytes:
    data = text.encode()
    return encode_element(_PRINTABLE if _LETTERS.issuperset(data) else _UTF8, data)


def _name_text(tag: int, value: bytes) -> str:
    decode = _STRINGS.get(tag)
    if decode is None:
        raise MalformedDer(f"attribute value of an unsupported type (tag {tag})")
    return decode(value)


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise MalformedDer("invalid UTF-8 string") from None


def _of(alphabet: frozenset[int], kind: str) -> Callable[[bytes], str]:
    def decode(value: bytes) -> str:
        if not alphabet.issuperset(value):
            raise MalformedDer(f"{kind} contains invalid character")
        return value.decode("ascii")

    return decode


def _bmp(value: bytes) -> str:
    """UCS-2: code points of 16 bits, without those that UTF-16 reserves. A terminator is no part of the text."""
    if len(value) % 2:
        raise MalformedDer("invalid BMPString")
    try:
        text = value.removesuffix(b"\0\0").decode("utf-16-be")
    except UnicodeDecodeError:
        raise MalformedDer("invalid BMPString") from None
    if any(char > "\uffff" or char in "\ufffe\uffff" or "\ufdd0" <= char <= "\ufdef" for char in text):
        raise MalformedDer("invalid BMPString")
    return text


_STRINGS: Final[dict[int, Callable[[bytes], str]]] = {
    _UTF8: _utf8,
    _NUMERIC: _of(_DIGITS, "NumericString"),
    _PRINTABLE: _of(_PRINTABLE_READ, "PrintableString"),
    _T61: lambda value: value.decode("latin-1"),
    _IA5: _of(frozenset(range(128)), "IA5String"),
    _BMP: _bmp,
}


_VERSION, _ATTRIBUTES, _EXTENSIONS = 0xA0, 0xA0, 0xA3
_BASIC_CONSTRAINTS: Final = b"\x55\x1d\x13"  # 2.5.29.19
_ALTERNATIVE_NAMES: Final = b"\x55\x1d\x11"  # 2.5.29.17
_EXTENSION_REQUEST: Final = b"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x0e"  # 1.2.840.113549.1.9.14
_NO_REQUEST: Final = "PEM block type must be CERTIFICATE REQUEST"


class CertificateRequest(NamedTuple):
    """A certificate request (`der`), with the names of the kinds that count."""

    der: bytes
    subject: DistinguishedName
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
    return b"".join(certificate for certificate in pem.certificates(bundle) if not certificate_error(certificate))


def certificate_error(certificate: bytes) -> str:
    """Why a certificate cannot be parsed, "" if it can."""
    try:
        content, trailing = element(certificate, SEQUENCE, "certificate")
        tbs, rest = element(content, SEQUENCE, "tbs certificate")
        if tbs[:1] == bytes([_VERSION]):
            _, tbs = element(tbs, _VERSION, "version")
        _, tbs = element(tbs, INTEGER, "serial number")
        inner, tbs = element(tbs, SEQUENCE, "signature algorithm identifier")
        outer, rest = element(rest, SEQUENCE, "algorithm identifier")
        if inner != outer:
            return "inner and outer signature algorithm identifiers don't match"
        for part in ("issuer", "validity", "issuer", "spki"):  # Go calls the subject issuer, too
            _, tbs = element(tbs, SEQUENCE, part)
        element(rest, BIT_STRING, "signature")
    except MalformedDer as error:
        return str(error)
    return "trailing data" if trailing else ""


def subject_of(certificate: bytes) -> DistinguishedName:
    """The subject of a certificate. Raises MalformedDer."""
    rest = _fields(certificate)
    for tag, part in ((INTEGER, "serial number"), *((SEQUENCE, part) for part in ("algorithm", "issuer", "validity"))):
        _, rest = element(rest, tag, part)
    return read_name(element(rest, SEQUENCE, "subject")[0])


def is_authority(certificate: bytes) -> bool:
    """Whether a certificate that can be parsed has the CA bit set in its basic constraints."""
    try:
        fields = list(elements(_fields(certificate), "field"))
        sequences = [content for tag, content in fields if tag == _EXTENSIONS]
        extensions = _extensions(sequences[0]) if sequences else []
        constraints = next((extension.value for extension in extensions if extension.kind == _BASIC_CONSTRAINTS), b"")
        content, _ = element(constraints, SEQUENCE, "basic constraints")
        return next(elements(content, "basic constraints"), None) == (BOOLEAN, b"\xff")
    except MalformedDer:
        return False


def _fields(certificate: bytes) -> bytes:
    """The elements of a certificate behind its version. Raises MalformedDer."""
    content, trailing = element(certificate, SEQUENCE, "certificate")
    tbs, _ = element(content, SEQUENCE, "tbs certificate")
    if trailing:
        raise MalformedDer("trailing data")
    return element(tbs, _VERSION, "version")[1] if tbs[:1] == bytes([_VERSION]) else tbs


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
    except MalformedDer as error:
        raise ValueError(f"asn1: structure error: {error}") from None


def _request(request: bytes) -> CertificateRequest:
    content, trailing = element(request, SEQUENCE, "certificate request")
    info, rest = element(content, SEQUENCE, "certification request info")
    _, info = element(info, INTEGER, "version")
    subject, info = element(info, SEQUENCE, "subject")
    _, info = element(info, SEQUENCE, "subject public key info")
    attributes, info = element(info, _ATTRIBUTES, "attributes") if info else (b"", b"")
    _, rest = element(rest, SEQUENCE, "signature algorithm identifier")
    _, rest = element(rest, BIT_STRING, "signature")
    if trailing or info or rest:
        raise ValueError("asn1: syntax error: trailing data")
    extensions = [
        extension
        for attribute in elements_with_tag(attributes, SEQUENCE, "attribute")
        for extension in _requested(attribute)
    ]
    if len({extension.kind for extension in extensions}) < len(extensions):
        raise ValueError("x509: certificate request contains duplicate requested extensions")
    names = next((extension.value for extension in extensions if extension.kind == _ALTERNATIVE_NAMES), None)
    kinds = _alternative_names(names) if names is not None else ((), (), (), ())
    return CertificateRequest(request, read_name(subject), *kinds)


def _requested(attribute: bytes) -> list[Extension]:
    """The extensions that an attribute of a request asks for. Raises MalformedDer, ValueError."""
    kind, values = element(attribute, IDENTIFIER, "attribute type")
    if object_identifier(kind, "attribute type") != _EXTENSION_REQUEST:
        return []
    content, trailing = element(values, SET, "attribute values")
    if trailing or len(list(elements(content, "attribute value"))) != 1:  # Go takes the first of several
        raise MalformedDer("malformed attribute values")
    return _extensions(content)


def _extensions(sequence: bytes) -> list[Extension]:
    """Raises MalformedDer."""
    content, _ = element(sequence, SEQUENCE, "extensions")
    return [_extension(extension) for extension in elements_with_tag(content, SEQUENCE, "extension")]


def _extension(content: bytes) -> Extension:
    kind, rest = element(content, IDENTIFIER, "extension id")
    if rest[:1] == bytes([BOOLEAN]):
        _, rest = element(rest, BOOLEAN, "extension criticality")
    value, rest = element(rest, OCTET_STRING, "extension value")
    if rest:
        raise MalformedDer("malformed extension")
    return Extension(object_identifier(kind, "extension id"), value)


# -- alternative names ------------------------------------------------------------------------------------------------

_Kinds = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...], tuple[str, ...]]


def _alternative_names(value: bytes) -> _Kinds:
    """The DNS names, addresses, mail addresses and URIs of an extension; other names do not count. Raises ValueError."""
    content, trailing = element(value, SEQUENCE, "subject alternative names")
    if trailing:
        raise MalformedDer("malformed subject alternative names")
    names: dict[int, list[str]] = {_DNS: [], _IP: [], _EMAIL: [], _URI: []}
    for tag, name in elements(content, "subject alternative name"):
        if tag in names:
            names[tag].append(_READERS[tag](name))
    return tuple(names[_DNS]), tuple(names[_IP]), tuple(names[_EMAIL]), tuple(names[_URI])


def _ascii(kind: str) -> Callable[[bytes], str]:
    def read(content: bytes) -> str:
        if not content.isascii():
            raise ValueError(f"x509: SAN {kind} is malformed")
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
