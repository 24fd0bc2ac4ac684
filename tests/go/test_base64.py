"""Base64 as Go reads it: accepted text, its canonical form, and the offset of errors."""

import pytest

from noxu.go.base64 import canonical, decode, decoded_length, encode
from noxu.go.structs import BYTES, Field, Presence, Struct
from noxu.go.structs import decode as decode_struct
from tests.rows import rows

ACCEPTED = [
    ("nothing at all", "", ""),
    ("one byte", "Zg==", "Zg=="),
    ("two bytes", "Zm8=", "Zm8="),
    ("three bytes", "Zm9v", "Zm9v"),
    ("line ends anywhere", "\r\nZm\n9v\nZg=\n=\r\n", "Zm9vZg=="),
    ("unused bits that are set", "Zh==", "Zg=="),
    ("unused bits in the second place", "Zm9=", "Zm8="),
    ("nothing but line ends", "\n\n", ""),
]
REFUSED = [
    ("a foreign character", "Zm9*", 3),
    ("a foreign character at the start", "*", 0),
    ("a foreign character beyond ASCII", "Zmé=", 2),
    ("a quantum cut off", "Zm9vZ", 4),
    ("a quantum cut off behind line ends", "Zm9vZ\n", 5),
    ("padding that is missing", "Zg", 0),
    ("half of the padding", "Zg=", 3),
    ("half of the padding, then a line end", "Zg=\n", 4),
    ("something else where the second = belongs", "Zg=v", 2),
    ("padding too early", "Z===", 1),
    ("only padding", "====", 0),
    ("text behind the padding", "Zg==Zg==", 4),
    ("the URL alphabet", "-_-_", 0),
]


@pytest.mark.parametrize(("text", "written"), [row[1:] for row in ACCEPTED], ids=[row[0] for row in ACCEPTED])
def test_accepted_base64_is_written_in_canonical_form(text: str, written: str) -> None:
    assert canonical(text) == written


@rows(("text", "position"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_invalid_base64_is_refused_at_the_same_byte_as_in_go(text: str, position: int) -> None:
    with pytest.raises(ValueError, match=rf"^illegal base64 data at input byte {position}$"):
        decode(text)


def test_all_bytes_survive() -> None:
    data = bytes(range(256))
    assert decode(encode(data)) == data


@pytest.mark.parametrize("length", range(7))
def test_the_length_is_known_without_decoding(length: int) -> None:
    assert decoded_length(encode(bytes(length))) == length


HOLDER = Struct("Holder").define(Field("first", BYTES), Field("second", BYTES, 0, Presence.ALWAYS))
IN_STRUCTS = [
    ("text is made canonical", {"first": "Zh=="}, {"first": "Zg==", "second": None}, ""),
    ("an array of numbers is bytes, too", {"first": [102, None]}, {"first": "ZgA=", "second": None}, ""),
    ("unset bytes without omitempty are null", {}, {"second": None}, ""),
    ("empty bytes are written as such", {"second": ""}, {"second": ""}, ""),
    ("bad text names no field", {"first": "*"}, {"second": None}, "illegal base64 data at input byte 0"),
    (
        "a number",
        {"second": 1},
        {"second": None},
        "json: cannot unmarshal number into Go struct field Holder.second of type []uint8",
    ),
    (
        "an array of text",
        {"first": ["a"]},
        {"second": None},
        "json: cannot unmarshal string into Go struct field Holder.first of type uint8",
    ),
    (
        "a number beyond a byte",
        {"first": [256]},
        {"second": None},
        "json: cannot unmarshal number 256 into Go struct field Holder.first of type uint8",
    ),
    (
        "the first of two errors",
        {"first": "*", "second": 1},
        {"second": None},
        "illegal base64 data at input byte 0",
    ),
]


@rows(("given", "value", "error"), [row[1:] for row in IN_STRUCTS], ids=[row[0] for row in IN_STRUCTS])
def test_bytes_in_structs(given: dict[str, object], value: dict[str, object], error: str) -> None:
    decoded = decode_struct(HOLDER, given)
    assert (decoded.value, decoded.error) == (value, error)
