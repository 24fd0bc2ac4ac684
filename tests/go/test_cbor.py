"""CBOR bytes in, values or upstream's errors out. Bytes are in hexadecimal; spaces separate items."""

from __future__ import annotations

from typing import Any, Final

import pytest

from noxu.go.cbor import CborError, KnownField, read, read_map, read_struct, type_meta
from noxu.values import Json
from tests.rows import rows

VALUES: Final[list[tuple[str, str, Json]]] = [
    ("an integer in the head", "17", 23),
    ("an integer of one byte", "18 18", 24),
    ("an integer of two bytes", "19 03e8", 1000),
    ("an integer of four bytes", "1a 000f4240", 1000000),
    ("the largest integer", "1b 7fffffffffffffff", 2**63 - 1),
    ("the smallest integer", "3b 7fffffffffffffff", -(2**63)),
    ("an integer that is longer than necessary", "1b 0000000000000001", 1),
    ("half a float", "f9 3e00", 1.5),
    ("a single float", "fa 47c35000", 100000.0),
    ("a double float", "fb 3ff199999999999a", 1.1),
    ("minus zero", "f9 8000", -0.0),
    ("a subnormal float", "f9 0001", 5.960464477539063e-08),
    ("false, true and null", "83 f4 f5 f6", [False, True, None]),
    ("a text string", "64 c3bc c3bc", "üü"),
    ("a byte string is a string", "42 c3bc", "ü"),
    ("byte by byte what is no UTF-8", "43 ff 61 fe", "\ufffda\ufffd"),
    ("a long string", "58 19" + "61" * 25, "a" * 25),
    ("a longer string", "59 0100" + "61" * 256, "a" * 256),
    ("chunks of bytes", "5f 41 61 40 42 6263 ff", "abc"),
    ("a character in two chunks of bytes", "5f 41 c3 41 bc ff", "ü"),
    ("chunks of text", "7f 61 61 62 c3bc ff", "aü"),
    ("no chunks", "5f ff", ""),
    ("an endless array", "9f 01 80 ff", [1, []]),
    ("an endless map", "bf 41 61 01 61 62 a0 ff", {"a": 1, "b": {}}),
    ("a map", "a2 41 61 82 01 02 61 62 f6", {"a": [1, 2], "b": None}),
    ("the self-described tag", "d9d9f7 01", 1),
    ("the self-described tag everywhere", "d9d9f7 d9d9f7 a1 d9d9f7 41 61 d9d9f7 82 d9d9f7 01 02", {"a": [1, 2]}),
    ("an unknown tag", "d8 20 61 61", "a"),
    ("unknown tags around everything", "c4 82 c6 01 d8 64 a1 c5 41 61 c5 02", [1, {"a": 2}]),
    ("base64", "d6 43 fbff61", "+/9h"),
    ("base64url without padding", "d5 42 fbff", "-_8"),
    ("hexadecimal", "d7 42 fbff", "fbff"),
    ("base64 of everything inside", "d6 82 41 61 a1 41 62 41 63", ["YQ==", {"Yg==": "Yw=="}]),
    ("not of text strings", "d6 61 61", "a"),
    ("nor of what follows", "82 d6 41 61 41 61", ["YQ==", "a"]),
    ("the innermost encoding", "d6 82 d7 41 61 41 61", ["61", "YQ=="]),
    ("the last of two encodings", "d6 d7 41 61", "61"),
    ("a time", "c0 74 323031332d30332d32315432303a30343a30305a", "2013-03-21T20:04:00Z"),
    ("a time in another zone", "c0 78 1b 323031332d30332d32315432303a30343a30302e352b30313a3330", "2013-03-21T20:04:00.5+01:30"),
    ("seconds", "c1 1a 514b67b0", "2013-03-21T20:04:00Z"),
    ("seconds before 1970", "c1 20", "1969-12-31T23:59:59Z"),
    ("half seconds", "c1 fb 41d452d9ec200000", "2013-03-21T20:04:00.5Z"),
    ("half seconds before 1970", "c1 f9 b800", "1969-12-31T23:59:59.5Z"),
    ("the year 1", "c1 3b 0000000e7791f6ff", "0001-01-01T00:00:00Z"),
    ("the first second", "c1 3b 0000000e79747bff", "0000-01-01T00:00:00Z"),
    ("the last second", "c1 1b 0000003afff4417f", "9999-12-31T23:59:59Z"),
    ("a time as a key is its text", "a1 c0 61 61 01", {"a": 1}),
    ("null as the first key", "a1 f6 01", {"": 1}),
    ("null as another key repeats the one before", "a2 41 61 f6 41 62 01", {"a": None, "b": 1}),
    ("a repeated key in different containers", "82 a1 41 61 01 a1 41 61 01", [{"a": 1}, {"a": 1}]),
    ("depth", "81" * 10_000 + "f6", None),
]  # fmt: skip


@rows(("data", "value"), [row[1:] for row in VALUES], ids=[row[0] for row in VALUES])
def test_values(data: str, value: Json) -> None:
    found = read(bytes.fromhex(data))
    while type(found) is list and type(value) is not list:
        [found] = found
    assert repr(found) == repr(value)


ERRORS: Final = [
    ("nothing", "", "EOF"),
    ("no item in an array", "81", "unexpected EOF"),
    ("no value in a map", "a1 41 61", "unexpected EOF"),
    ("no end of an endless array", "9f 01", "unexpected EOF"),
    ("no end of chunks", "5f 41 61", "unexpected EOF"),
    ("half a head", "19 01", "unexpected EOF"),
    ("half a string", "43 61", "unexpected EOF"),
    ("nothing after a tag", "c0", "unexpected EOF"),
    ("a length that is not there", "5b 7fffffffffffffff", "unexpected EOF"),
    ("an array that is not there", "9a 7fffffff", "unexpected EOF"),
    ("a length beyond int64", "5b ffffffffffffffff", "cbor: byte string length 18446744073709551615 is too large, causing integer overflow"),
    ("an array beyond int64", "9b ffffffffffffffff", "cbor: array length 18446744073709551615 is too large, it would cause integer overflow"),
    ("too many elements", "9b 0000000080000000", "cbor: exceeded max number of elements 2147483647 for CBOR array"),
    ("too many pairs", "ba 00200001", "cbor: exceeded max number of key-value pairs 2097152 for CBOR map"),
    ("two items", "01 02 03", "cbor: 2 bytes of extraneous data starting at index 1"),
    ("a reserved head", "82 01 1c", "cbor: invalid additional information 28 for type positive integer"),
    ("an endless integer", "3f", "cbor: invalid additional information 31 for type negative integer"),
    ("an endless tag", "df", "cbor: invalid additional information 31 for type tag"),
    ("a break", "ff", 'cbor: unexpected "break" code'),
    ("a break in an array", "81 ff", 'cbor: unexpected "break" code'),
    ("a break instead of a value", "bf 41 61 ff", 'cbor: unexpected "break" code'),
    ("text in chunks of bytes", "5f 61 61 ff", "cbor: wrong element type UTF-8 text string for indefinite-length byte string"),
    ("chunks in chunks", "7f 7f ff ff", "cbor: indefinite-length UTF-8 text string chunk is not definite-length"),
    ("a simple value that is too short", "f8 1f", "cbor: invalid simple value 31 for type primitives"),
    ("NaN", "f9 7e00", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point NaN"),
    ("infinity", "fa ff800000", "cbor: data item of cbor type primitives is not accepted by protocol: floating-point infinity"),
    ("a bignum", "c2 41 01", "cbor: data item of cbor type tag is not accepted by protocol: bignum"),
    ("a bignum that is not used", "d8 20 c3 01", "cbor: data item of cbor type tag is not accepted by protocol: bignum"),
    ("too much depth", "81" * 10_001 + "f6", "cbor: exceeded max nested level 10000"),
    ("too many tags", "c5" * 10_002 + "f6", "cbor: exceeded max nested level 10000"),
    ("an integer beyond int64", "1b 8000000000000000", "cbor: cannot unmarshal positive integer into Go value of type int64 (9223372036854775808 overflows Go's int64)"),
    ("a negative integer beyond int64", "3b 8000000000000000", "cbor: cannot unmarshal negative integer into Go value of type int64 (-9223372036854775809 overflows Go's int64)"),
    ("undefined", "f7", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"),
    ("an unassigned simple value", "f8 ff", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 255 is not recognized"),
    ("text that is no UTF-8", "61 ff", "cbor: invalid UTF-8 string"),
    ("a surrogate", "63 eda080", "cbor: invalid UTF-8 string"),
    ("a character in two chunks of text", "7f 61 c3 61 bc ff", "cbor: invalid UTF-8 string"),
    ("a repeated key", "a2 41 61 01 61 61 02", 'cbor: found duplicate map key "a" at map element index 1'),
    ("an integer as a key", "a1 01 02", "cbor: cannot unmarshal positive integer into Go value of type string"),
    ("an array as a key", "a1 81 01 02", "cbor: cannot unmarshal array into Go value of type string"),
    ("a map as a key", "a1 a0 02", "cbor: cannot unmarshal map into Go value of type string"),
    ("a float as a key", "a1 f9 3e00 02", "cbor: cannot unmarshal primitives into Go value of type string"),
    ("a huge negative key", "a1 3b ffffffffffffffff 02", "cbor: cannot unmarshal negative integer into Go value of type string (-18446744073709551616 overflows Go's int64)"),
    ("a time that is no text", "c0 01", "cbor: tag number 0 must be followed by text string, got positive integer"),
    ("a time that is bytes", "c0 41 61", "cbor: tag number 0 must be followed by text string, got byte string"),
    ("seconds that are text", "c1 61 61", "cbor: tag number 1 must be followed by integer or floating-point number, got UTF-8 text string"),
    ("no time", "c0 61 78", 'cbor: cannot set x for time.Time: parsing time "x" as "2006-01-02T15:04:05Z07:00": cannot parse "x" as "2006"'),
    ("seconds beyond the year 9999", "c1 1b 0000003afff44180", "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: Time.MarshalText: year outside of range [0,9999]"),
    ("seconds beyond int64", "c1 1b ffffffffffffffff", "cbor: cannot unmarshal positive integer into Go value of type time.Time (18446744073709551615 overflows Go's int64)"),
    ("seconds beyond every integer", "c1 fb 7e37e43c8800759c", "cbor: cannot unmarshal primitives into Go value of type time.Time (1e+300 overflows Go's int64)"),
    ("a zone of a day", "c0 78 19 323031332d30332d32315432303a30343a30302b32343a3030", "cbor: decoded time cannot be represented in RFC3339 format with sub-second precision: Time.MarshalText: timezone hour outside of range [0,23]"),
    ("of two errors the first", "82 f7 61 ff", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"),
    ("of two errors that of the form", "82 f7 1c", "cbor: invalid additional information 28 for type positive integer"),
    ("of two errors that of the repeated key", "a3 41 61 f7 41 62 01 41 62 02", 'cbor: found duplicate map key "b" at map element index 2'),
    ("a key whose value is an error is not repeated", "a2 41 61 f7 41 61 01", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"),
    ("nothing is an error after a repeated key", "82 a3 41 61 01 41 61 01 01 f7 f7", 'cbor: found duplicate map key "a" at map element index 1'),
    ("seconds that are true", "c1 f4", "cbor: tag number 1 must be followed by integer or floating-point number, got primitives"),
    ("a misplaced tag before a container", "82 c0 82 f7 01 01", "cbor: tag number 0 must be followed by text string, got array"),
]  # fmt: skip


@rows(("data", "why"), [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors(data: str, why: str) -> None:
    with pytest.raises(CborError) as raised:
        read(bytes.fromhex(data))
    assert str(raised.value) == why


MAPS: Final = [
    ("a map", "d9d9f7 a1 41 61 01", {"a": 1}),
    ("a map under any tag", "c4 bf ff", {}),
    ("null", "f6", None),
    ("an array", "80", "cbor: cannot unmarshal array into Go value of type map[string]interface {}"),
    ("bytes", "40", "cbor: cannot unmarshal byte string into Go value of type map[string]interface {}"),
    ("bad text", "61 ff", "cbor: invalid UTF-8 string"),
    ("true", "f5", "cbor: cannot unmarshal primitives into Go value of type map[string]interface {}"),
    ("undefined", "f7", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"),
    ("a large integer", "1b ffffffffffffffff", "cbor: cannot unmarshal positive integer into Go value of type map[string]interface {}"),
    ("a huge negative integer", "3b ffffffffffffffff", "cbor: cannot unmarshal negative integer into Go value of type map[string]interface {} (-18446744073709551616 overflows Go's int64)"),
]  # fmt: skip


@rows(("data", "expected"), [row[1:] for row in MAPS], ids=[row[0] for row in MAPS])
def test_maps(data: str, expected: Json) -> None:
    if not isinstance(expected, str):
        assert read_map(bytes.fromhex(data)) == expected
        return
    with pytest.raises(CborError) as raised:
        read_map(bytes.fromhex(data))
    assert str(raised.value) == expected


KIND, API_VERSION = b"\x44kind".hex(), b"\x4aapiVersion".hex()
KINDS: Final = [
    ("both", f"a2 {KIND} 41 61 {API_VERSION} 61 62", ("b", "a")),
    ("neither", "a0", ("", "")),
    ("null", "f6", ("", "")),
    ("null as a kind", f"a1 {KIND} f6", ("", "")),
    ("among values that are no values", f"bf 41 61 f7 {KIND} 41 61 42 6262 c001 ff", ("", "a")),
    ("among keys that are integers", f"a2 01 01 {KIND} 41 61", ("", "a")),
    ("a tagged kind", f"a1 {KIND} d6 41 61", ("", "YQ==")),
    ("an array", "80", "cbor: cannot unmarshal array into Go value of type v1.TypeMeta (cannot decode CBOR array to struct without toarray option)"),
    ("a number as a kind", f"a1 {KIND} 01", "cbor: cannot unmarshal positive integer into Go struct field v1.TypeMeta.kind of type string"),
    ("two kinds", f"a2 {KIND} 41 61 {KIND} 41 61", 'cbor: found duplicate map key "kind" at map element index 1'),
    ("two unknown keys", "a2 41 61 01 61 61 01", 'cbor: found duplicate map key "a" at map element index 1'),
    ("two integers", "a2 20 01 20 01", "cbor: found duplicate map key -1 at map element index 1"),
    ("a float as a key", "a1 f9 3e00 01", "cbor: cannot unmarshal primitives into Go value of type string (map key is of type primitives and cannot be used to match struct field name)"),
    ("a misplaced tag", "c0 a0", "cbor: tag number 0 must be followed by text string, got map"),
    ("malformed", "a1 41 61", "unexpected EOF"),
]  # fmt: skip


FIELDS: Final = {
    "p": KnownField(is_pointer=True),
    "n": KnownField(False),
    "s": KnownField(True, {"p": KnownField(True)}),
}
STRUCTS: Final[list[tuple[str, str, Any]]] = [
    ("known fields", "a2 61 70 01 61 6e 02", {"p": 1, "n": 2}),
    ("an undefined pointer", "a1 61 70 f7", {}),
    ("a null pointer", "a1 61 70 f6", {"p": None}),
    ("an undefined value", "a1 61 6e f7", "cbor: data item of cbor type primitives is not accepted by protocol: simple value 23 is not recognized"),
    ("other keys, whatever they hold", "bf 61 78 f7 01 f8 63 61 79 a1 01 02 61 70 03 ff", {"p": 3}),
    ("a struct in it", "a1 61 73 a3 61 70 f7 61 78 f7 01 02", {"s": {}}),
    ("something else than a struct", "a1 61 73 80", {"s": []}),
    ("an undefined struct", "a1 61 73 f7", {}),
    ("null", "f6", None),
    ("a described map", "d9d9f7 a1 61 70 01", {"p": 1}),
]  # fmt: skip


@rows(("data", "expected"), [row[1:] for row in STRUCTS], ids=[row[0] for row in STRUCTS])
def test_a_struct_has_its_fields_only(data: str, expected: Any) -> None:
    if not isinstance(expected, str):
        assert read_struct(bytes.fromhex(data), FIELDS) == expected
        return
    with pytest.raises(CborError) as raised:
        read_struct(bytes.fromhex(data), FIELDS)
    assert str(raised.value) == expected


@rows(("data", "expected"), [row[1:] for row in KINDS], ids=[row[0] for row in KINDS])
def test_what_an_object_says_it_is(data: str, expected: tuple[str, str] | str) -> None:
    if isinstance(expected, tuple):
        assert type_meta(bytes.fromhex(data)) == expected
        return
    with pytest.raises(CborError) as raised:
        type_meta(bytes.fromhex(data))
    assert str(raised.value) == expected
