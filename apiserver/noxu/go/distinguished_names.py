"""Distinguished names: the subjects of certificates and of requests for them, read and written as Go does (crypto/x509/pkix).

There is one reader: what admission and signers check is what authentication sees. A name is a list of sets of attributes,
which a reader flattens. Only the six types of strings that Go knows are read; a value of any other type makes the name
malformed, because a reader that knows the type would see another user (Go ignores such a value in a request, and refuses it
in a certificate).

A name is written anew from the attributes that Go knows, each kind as one set: of others nothing remains.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from noxu.go import der
from noxu.go.der import IDENTIFIER, SEQUENCE, SET, Malformed

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


class Name(NamedTuple):
    """The attributes of a name in order: (object identifier, text)."""

    attributes: tuple[tuple[bytes, str], ...]

    def values(self, kind: bytes) -> tuple[str, ...]:
        return tuple(text for oid, text in self.attributes if oid == kind)

    def last(self, kind: bytes) -> str:
        """The value of an attribute that a name has once, the last one of several; "" if there is none."""
        return next(reversed(self.values(kind)), "")


def read(content: bytes) -> Name:
    """The name whose sequence has this content. Raises Malformed."""
    found = []
    for relative in der.all_of(content, SET, "relative name"):
        for attribute in der.all_of(relative, SEQUENCE, "attribute"):
            kind, rest = der.element(attribute, IDENTIFIER, "attribute type")
            tag, value, rest = der.first(rest, "attribute value")
            if rest:
                raise Malformed("malformed attribute")
            found.append((der.identifier(kind, "attribute type"), _text(tag, value)))
    return Name(tuple(found))


def write(name: Name) -> bytes:
    """The sequence of a name with what Go keeps of it (Name.ToRDNSequence)."""
    sets = [_set(kind, name.values(kind)) for kind in _MANY]
    sets += [_set(kind, [name.last(kind)] if name.last(kind) else []) for kind in _ONE]
    return der.encode(SEQUENCE, *sets)


def _set(kind: bytes, texts: Iterable[str]) -> bytes:
    encoded = [der.encode(SEQUENCE, der.encode(IDENTIFIER, kind), _string(text)) for text in texts]
    return der.encode(SET, *sorted(encoded)) if encoded else b""


def _string(text: str) -> bytes:
    data = text.encode()
    return der.encode(_PRINTABLE if _LETTERS.issuperset(data) else _UTF8, data)


def _text(tag: int, value: bytes) -> str:
    decode = _STRINGS.get(tag)
    if decode is None:
        raise Malformed(f"attribute value of an unsupported type (tag {tag})")
    return decode(value)


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise Malformed("invalid UTF-8 string") from None


def _of(alphabet: frozenset[int], kind: str) -> Callable[[bytes], str]:
    def decode(value: bytes) -> str:
        if not alphabet.issuperset(value):
            raise Malformed(f"{kind} contains invalid character")
        return value.decode("ascii")

    return decode


def _bmp(value: bytes) -> str:
    """UCS-2: code points of 16 bits, without those that UTF-16 reserves. A terminator is no part of the text."""
    if len(value) % 2:
        raise Malformed("invalid BMPString")
    try:
        text = value.removesuffix(b"\0\0").decode("utf-16-be")
    except UnicodeDecodeError:
        raise Malformed("invalid BMPString") from None
    if any(char > "\uffff" or char in "\ufffe\uffff" or "\ufdd0" <= char <= "\ufdef" for char in text):
        raise Malformed("invalid BMPString")
    return text


_STRINGS: Final[dict[int, Callable[[bytes], str]]] = {
    _UTF8: _utf8,
    _NUMERIC: _of(_DIGITS, "NumericString"),
    _PRINTABLE: _of(_PRINTABLE_READ, "PrintableString"),
    _T61: lambda value: value.decode("latin-1"),
    _IA5: _of(frozenset(range(128)), "IA5String"),
    _BMP: _bmp,
}
