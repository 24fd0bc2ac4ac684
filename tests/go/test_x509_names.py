"""Distinguished names: what each type of string is read as, and how a name is written anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from noxu.go.x509 import (
    COMMON_NAME,
    IDENTIFIER,
    ORGANIZATION,
    SEQUENCE,
    SERIAL_NUMBER,
    SET,
    UNIT,
    DistinguishedName,
    MalformedDer,
    element,
    encode_element,
    read_name,
    write_name,
)
from tests.rows import rows

MAIL = bytes.fromhex("2a864886f70d010901")
TYPES: list[tuple[str, int, bytes, str | None]] = [
    ("a UTF8String", 0x0C, "grüße".encode(), "grüße"),
    ("a UTF8String that is none", 0x0C, b"\xff", None),
    ("a NumericString", 0x12, b"12 3", "12 3"),
    ("a NumericString with letters", 0x12, b"system:masters", None),
    ("a PrintableString", 0x13, b"a*&", "a*&"),
    ("a PrintableString with a symbol", 0x13, b"a@b", None),
    ("a T61String", 0x14, b"\xfc", "ü"),
    ("an IA5String", 0x16, b"a@b\0", "a@b\0"),
    ("an IA5String beyond ASCII", 0x16, b"\xfc", None),
    ("a BMPString", 0x1E, "sys".encode("utf-16-be"), "sys"),
    ("a BMPString with a terminator", 0x1E, "sys\0".encode("utf-16-be"), "sys"),
    ("a BMPString of an odd length", 0x1E, b"\0a\0", None),
    ("a BMPString with a surrogate", 0x1E, "\U0001f600".encode("utf-16-be"), None),
    ("a BMPString with a noncharacter", 0x1E, b"\xff\xfe", None),
    ("an empty string", 0x0C, b"", ""),
    ("a UniversalString", 0x1C, "system:masters".encode("utf-32-be"), None),
    ("a VisibleString", 0x1A, b"system:masters", None),
    ("a GeneralString", 0x1B, b"system:masters", None),
    ("an OCTET STRING", 0x04, b"system:masters", None),
    ("an integer", 0x02, b"\1", None),
    ("a string in parts", 0x2C, encode_element(0x0C, b"a"), None),
]  # fmt: skip


def name_of(*attributes: tuple[bytes, int, bytes]) -> bytes:
    """The content of a name, each attribute in a set of its own."""
    return b"".join(
        encode_element(SET, encode_element(SEQUENCE, encode_element(IDENTIFIER, kind), encode_element(tag, value)))
        for kind, tag, value in attributes
    )


@rows(("tag", "value", "text"), [row[1:] for row in TYPES], ids=[row[0] for row in TYPES])
def test_a_value_is(tag: int, value: bytes, text: str | None) -> None:
    name = name_of((ORGANIZATION, tag, value))
    if text is None:
        with pytest.raises(MalformedDer):
            read_name(name)
    else:
        assert read_name(name).values(ORGANIZATION) == (text,)


ATTRIBUTE = encode_element(SEQUENCE, encode_element(IDENTIFIER, ORGANIZATION), encode_element(0x0C, b"a"))
MALFORMED: list[tuple[str, bytes]] = [
    ("no sets", ATTRIBUTE),
    ("a value that is cut off", encode_element(SET, ATTRIBUTE[:-1])),
    ("no value", encode_element(SET, encode_element(SEQUENCE, encode_element(IDENTIFIER, ORGANIZATION)))),
    ("two values", encode_element(SET, encode_element(SEQUENCE, encode_element(IDENTIFIER, ORGANIZATION), encode_element(0x0C, b"a") * 2))),
    ("a type in a longer form", encode_element(SET, encode_element(SEQUENCE, encode_element(IDENTIFIER, b"\x55\x80\x04\x0a"), encode_element(0x0C, b"a")))),
    ("a type without an end", encode_element(SET, encode_element(SEQUENCE, encode_element(IDENTIFIER, b"\x55\x84"), encode_element(0x0C, b"a")))),
    ("a length in a longer form", b"\x31\x81" + encode_element(SET, ATTRIBUTE)[1:]),
    ("a length without an end", b"\x31\x80" + ATTRIBUTE + b"\0\0"),
]  # fmt: skip


@pytest.mark.parametrize("content", [row[1] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_it_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedDer):
        read_name(content)


def test_one_set_may_have_several_attributes() -> None:
    other = ATTRIBUTE.replace(encode_element(0x0C, b"a"), encode_element(0x0C, b"b"))
    assert read_name(encode_element(SET, ATTRIBUTE, other) + encode_element(SET)).values(ORGANIZATION) == ("a", "b")


def test_a_name_is_written_as_go_does() -> None:
    given_name = DistinguishedName(
        ((COMMON_NAME, "x"), (MAIL, "a@b"), (ORGANIZATION, "b"), (UNIT, "ü"), (ORGANIZATION, "a"), (COMMON_NAME, "y"))
    )
    groups = [
        encode_element(SEQUENCE, encode_element(IDENTIFIER, ORGANIZATION), encode_element(0x13, group))
        for group in (b"a", b"b")
    ]
    expected = encode_element(
        SEQUENCE,
        encode_element(SET, *groups),
        name_of((UNIT, 0x0C, "ü".encode()), (COMMON_NAME, 0x13, b"y")),
    )
    assert write_name(given_name) == expected


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=9)


@given(st.lists(st.tuples(st.sampled_from([COMMON_NAME, ORGANIZATION, UNIT, SERIAL_NUMBER, MAIL]), texts)))
def test_what_is_written_is_read_as_the_same_user(attributes: list[tuple[bytes, str]]) -> None:
    name = DistinguishedName(tuple(attributes))
    again = read_name(element(write_name(name), SEQUENCE, "name")[0])
    assert again.last(COMMON_NAME) == name.last(COMMON_NAME)
    assert sorted(again.values(ORGANIZATION)) == sorted(name.values(ORGANIZATION))
    assert again.values(MAIL) == ()
