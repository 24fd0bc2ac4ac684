"""Protobuf's wire format: varints, tags, lengths, and values that are skipped."""

from __future__ import annotations

from itertools import product

import pytest

from noxu.go.protobuf import (
    BYTES,
    END_GROUP,
    FIXED32,
    FIXED64,
    START_GROUP,
    VARINT,
    BadTag,
    read_length,
    read_tag,
    read_varint,
    skip_field,
    tag_bytes,
    varint_bytes,
)
from tests.rows import rows

VARINTS = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (150, "9601"),
    (2**32, "8080808010"),
    (2**63, "80808080808080808001"),
    (2**64 - 1, "ffffffffffffffffff01"),
]


@pytest.mark.parametrize(("value", "text"), VARINTS)
def test_varints(value: int, text: str) -> None:
    data = bytes.fromhex(text)
    assert varint_bytes(value) == data
    assert read_varint(b"xx" + data + b"xx", 2, 2 + len(data)) == (value, 2 + len(data))


def test_a_varint_keeps_64_bits() -> None:
    data = bytes.fromhex("ffffffffffffffffff7f")
    assert read_varint(data, 0, len(data)) == (2**64 - 1, len(data))


MALFORMED_VARINTS = [("", "unexpected EOF"), ("80", "unexpected EOF"), ("80" * 10 + "01", "proto: integer overflow")]


@pytest.mark.parametrize(("text", "message"), MALFORMED_VARINTS)
def test_malformed_varints(text: str, message: str) -> None:
    data = bytes.fromhex(text)
    with pytest.raises(ValueError, match=f"^{message}$"):
        read_varint(data, 0, len(data))


def test_a_varint_ends_with_its_message() -> None:
    with pytest.raises(ValueError, match="unexpected EOF"):
        read_varint(b"\x96\x01", 0, 1)


@rows("number, wire_type", product([1, 15, 16, 2047, 2**29 - 1], [VARINT, FIXED64, BYTES, START_GROUP, FIXED32]))
def test_tags(number: int, wire_type: int) -> None:
    data = tag_bytes(number, wire_type)
    assert read_tag(data, 0, len(data)) == (number, wire_type, len(data))


BAD_TAGS = [
    ("the end of a group", tag_bytes(1, END_GROUP), "wiretype end group for non-group"),
    ("number 0", varint_bytes(BYTES), "illegal tag 0 (wire type 2)"),
    ("a negative number", varint_bytes((2**32 - 1) << 3), "illegal tag -1 (wire type 34359738360)"),
]


@pytest.mark.parametrize(("data", "message"), [row[1:] for row in BAD_TAGS], ids=[row[0] for row in BAD_TAGS])
def test_bad_tags(data: bytes, message: str) -> None:
    with pytest.raises(BadTag) as raised:
        read_tag(data, 0, len(data))
    assert str(raised.value) == message


def test_lengths() -> None:
    assert read_length(b"\x03abc", 0, 4) == (4, 1)
    assert read_length(b"\x00", 0, 1) == (1, 1)
    with pytest.raises(ValueError, match="unexpected EOF"):
        read_length(b"\x03abc", 0, 3)
    with pytest.raises(ValueError, match="negative length"):
        read_length(varint_bytes(2**63), 0, 10)


def group(number: int, *parts: bytes) -> bytes:
    return tag_bytes(number, START_GROUP) + b"".join(parts) + tag_bytes(number, END_GROUP)


SKIPPED = [
    ("a varint", VARINT, b"\x96\x01"),
    ("eight bytes", FIXED64, bytes(8)),
    ("four bytes", FIXED32, bytes(4)),
    ("bytes", BYTES, b"\x03abc"),
    ("an empty group", START_GROUP, group(1)[1:]),
    ("a group with fields", START_GROUP, group(1, tag_bytes(2, BYTES) + b"\x01x", tag_bytes(3, VARINT) + b"\x05")[1:]),
    ("groups in a group", START_GROUP, group(1, group(2, group(3)), group(4))[1:]),
    ("many groups", START_GROUP, tag_bytes(1, START_GROUP) * 10_000 + tag_bytes(1, END_GROUP) * 10_001),
]


@pytest.mark.parametrize(("wire_type", "data"), [row[1:] for row in SKIPPED], ids=[row[0] for row in SKIPPED])
def test_values_are_skipped(wire_type: int, data: bytes) -> None:
    assert skip_field(wire_type, data + b"rest", 0, len(data) + 4) == len(data)
    with pytest.raises(ValueError, match="unexpected EOF"):
        skip_field(wire_type, data, 0, len(data) - 1)


def test_unknown_wire_types() -> None:
    with pytest.raises(ValueError, match=r"^proto: illegal wireType 7$"):
        skip_field(7, b"", 0, 0)
