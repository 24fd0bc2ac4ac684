"""Protobuf messages by struct tables, read and written: presence, order, malformed and hostile messages."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.crd.types import NUMBER
from noxu.go.protobuf import MAX_DEPTH, read
from noxu.go.protobuf_writer import write
from noxu.go.structs import (
    BOOL,
    BYTES,
    INT32,
    INT64,
    INT_OR_STRING,
    MICRO_TIME,
    RAW_EXTENSION,
    STRING,
    TIME,
    Field,
    List,
    Map,
    Presence,
    Struct,
    Union,
)
from noxu.values import Object
from tests.rows import rows
from tests.timing import cpu_seconds

# A message to take apart

CHOICE = Union(
    "Choice", {"object": Field("One", Struct("One").define(Field("x", STRING, 1)), 2), "bool": Field("Is", BOOL, 1)}
)
PART = Struct("Part").define(Field("name", STRING, 1), Field("count", INT32, 2))
THING = Struct("Thing").define(
    Field("text", STRING, 1),
    Field("maybe", STRING, 2, Presence.POINTER),
    Field("always", STRING, 3, Presence.ALWAYS),
    Field("flag", BOOL, 4),
    Field("small", INT32, 5),
    Field("large", INT64, 6),
    Field("real", NUMBER, 7, Presence.POINTER),
    Field("data", BYTES, 8),
    Field("when", TIME, 9),
    Field("exactly", MICRO_TIME, 10),
    Field("either", INT_OR_STRING, 11, Presence.POINTER),
    Field("any", RAW_EXTENSION, 12),
    Field("part", PART, 13, Presence.ALWAYS),
    Field("parts", List(PART), 14),
    Field("names", List(STRING), 15),
    Field("labels", Map(STRING), 16),
    Field("blobs", Map(BYTES), 17),
    Field("byName", Map(PART), 18),
    Field("extra", Map(List(STRING, "v1.Extra", wrapped=True)), 19),
    Field("choice", CHOICE, 20, Presence.POINTER),
    Field("inner", STRING, 1, inline="Outer.Inner", within=(21, 2)),
    Field("outer", STRING, 1, inline="Outer", within=(21,)),
    Field("none", BYTES, 22, Presence.ALWAYS),
    Field("null", INT64, 23, Presence.NULL),
    Field("notInProtobuf", STRING),
)
ZERO: Object = {"always": "", "part": {}, "none": None, "null": None}


def varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)
    return varint(number << 3 | 2) + varint(len(value)) + value


MESSAGES: list[tuple[str, bytes, Object]] = [
    ("nothing", b"", {}),
    ("an optional string that is empty stays", field(2, b""), {"maybe": ""}),
    ("a plain string that is empty goes", field(1, b"") + field(3, b""), {}),
    ("numbers and booleans that are zero go", field(4, 0) + field(5, 0) + field(6, 0), {}),
    ("the last of several counts", field(1, b"a") + field(1, b"b"), {"text": "b"}),
    ("messages merge", field(13, field(1, b"a")) + field(13, field(2, 5)), {"part": {"name": "a", "count": 5}}),
    ("any nonzero number is true", field(4, 2), {"flag": True}),
    ("negative numbers", field(5, -1) + field(6, -(2**63)), {"small": -1, "large": -(2**63)}),
    ("a small number keeps 32 bits", field(5, 2**32 + 7), {"small": 7}),
    ("a double", b"\x39" + bytes.fromhex("000000000000f83f"), {"real": 1.5}),
    ("bytes", field(8, b"\x00\xff"), {"data": "AP8="}),
    ("bytes that are no UTF-8 are replaced one by one", field(1, b"a\xff\xe2\x82b"), {"text": "a\ufffd\ufffd\ufffdb"}),
    ("a time drops its nanoseconds", field(9, field(1, 1) + field(2, 999)), {"when": "1970-01-01T00:00:01Z"}),
    ("a time before 1970", field(9, field(1, -1)), {"when": "1969-12-31T23:59:59Z"}),
    ("a time in the year 1", field(9, field(1, -62135596799)), {"when": "0001-01-01T00:00:01Z"}),
    ("the zero time, empty or spelled out", field(9, b"") + field(10, field(1, -62135596800)), {}),
    ("microseconds", field(10, field(1, 1) + field(2, 1999)), {"exactly": "1970-01-01T00:00:01.000001Z"}),
    ("a number of int-or-string", field(11, field(1, 0) + field(2, 80) + field(3, b"no")), {"either": 80}),
    ("a text of int-or-string", field(11, field(1, 1) + field(3, b"80%")), {"either": "80%"}),
    ("an int-or-string of zero", field(11, b""), {"either": 0}),
    ("JSON inside", field(12, field(1, b'{"b": [1, null]}')), {"any": {"b": [1, None]}}),
    ("no JSON inside", field(12, b""), {}),
    ("repeated messages", field(14, field(1, b"a")) + field(14, b""), {"parts": [{"name": "a"}, {}]}),
    ("repeated strings", field(15, b"a") + field(1, b"x") + field(15, b""), {"text": "x", "names": ["a", ""]}),
    ("a map", field(16, field(1, b"b") + field(2, b"2")) + field(16, field(2, b"1")), {"labels": {"b": "2", "": "1"}}),
    (
        "a map entry without value",
        field(16, field(1, b"a")) + field(17, field(1, b"a")),
        {"labels": {"a": ""}, "blobs": {"a": ""}},
    ),
    (
        "a map entry again",
        field(16, field(1, b"a") + field(2, b"1")) + field(16, field(1, b"a") + field(2, b"2")),
        {"labels": {"a": "2"}},
    ),
    (
        "a map of messages",
        field(18, field(1, b"a") + field(2, field(2, 1))) + field(18, b""),
        {"byName": {"a": {"count": 1}, "": {}}},
    ),
    (
        "a map of wrapped lists",
        field(19, field(1, b"a") + field(2, field(1, b"x") + field(1, b"y"))) + field(19, b""),
        {"extra": {"a": ["x", "y"], "": []}},
    ),
    ("a union that holds an object", field(20, field(1, 1) + field(2, field(1, b"v"))), {"choice": {"x": "v"}}),
    ("a union that holds a boolean", field(20, field(1, 1)), {"choice": True}),
    ("an empty union", field(20, b""), {"choice": False}),
    ("embedded structs", field(21, field(2, field(1, b"i")) + field(1, b"o")), {"inner": "i", "outer": "o"}),
    (
        "embedded structs in two pieces",
        field(21, field(1, b"o")) + field(21, field(2, field(1, b"i"))),
        {"inner": "i", "outer": "o"},
    ),
    ("a pointer without omitempty", field(23, 0), {"null": 0}),
    (
        "unknown fields of all wire types",
        field(99, 1) + field(99, b"x") + varint(99 << 3 | 1) + bytes(8) + varint(99 << 3 | 5) + bytes(4),
        {},
    ),
    (
        "an unknown group with a group inside",
        varint(99 << 3 | 3)
        + varint(98 << 3 | 3)
        + field(1, b"x")
        + varint(98 << 3 | 4)
        + varint(99 << 3 | 4)
        + field(1, b"t"),
        {"text": "t"},
    ),
    ("unknown fields in nested messages", field(13, field(99, 1) + field(1, b"a")), {"part": {"name": "a"}}),
    ("a number longer than need be", b"\x28\x85\x80\x80\x00", {"small": 5}),
]


@rows(("data", "value"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES])
def test_messages(data: bytes, value: Object) -> None:
    assert read(THING, data) == ZERO | value


def test_fields_come_out_in_the_order_of_declaration() -> None:
    data = (
        field(21, field(1, b"o"))
        + field(16, b"")
        + field(2, b"")
        + field(1, b"t")
        + field(13, field(2, 1) + field(1, b"n"))
    )
    value = read(THING, data)
    assert list(value) == ["text", "maybe", "always", "part", "labels", "outer", "none", "null"]
    assert list(value["part"]) == ["name", "count"]


MALFORMED: list[tuple[str, bytes, str]] = [
    ("a tag without value", b"\x0a", "unexpected EOF"),
    ("a string cut off", b"\x0a\x05abc", "unexpected EOF"),
    ("a string longer than its message", field(13, b"\x0a\x05abc") + b"xxxxx", "unexpected EOF"),
    ("a number cut off", b"\x28\x80", "unexpected EOF"),
    ("a double cut off", b"\x39\x00", "unexpected EOF"),
    ("an unknown double cut off", varint(99 << 3 | 1) + b"\x00", "unexpected EOF"),
    ("a number of more than 64 bits", b"\x28" + b"\x80" * 10 + b"\x01", "proto: integer overflow"),
    ("a tag of more than 64 bits", b"\x80" * 10 + b"\x01", "proto: integer overflow"),
    ("a negative length", b"\x0a" + varint(2**64 - 1), "proto: negative length found during unmarshaling"),
    ("field 0", b"\x02\x00", "proto: Thing: illegal tag 0 (wire type 2)"),
    ("a negative field number", varint(2**34 + 2), "proto: Thing: illegal tag -2147483648 (wire type 17179869186)"),
    ("field 0 in a nested message", field(13, b"\x00\x00"), "proto: Part: illegal tag 0 (wire type 0)"),
    ("the end of a group that did not begin", b"\x0c", "proto: Thing: wiretype end group for non-group"),
    ("a group that does not end", varint(99 << 3 | 3), "unexpected EOF"),
    ("an unknown wire type", varint(99 << 3 | 6), "proto: illegal wireType 6"),
    ("text where a number belongs", field(5, b"x"), "proto: wrong wireType = 2 for field Small"),
    ("a number where text belongs", field(1, 1), "proto: wrong wireType = 0 for field Text"),
    (
        "a time before the calendar",
        field(9, field(1, -(2**62))),
        "proto: timestamp -4611686018427387904 is out of range",
    ),
    ("a time behind the calendar", field(9, field(1, 2**62)), "proto: timestamp 4611686018427387904 is out of range"),
    ("a double that is no number", b"\x39" + bytes.fromhex("000000000000f87f"), "json: unsupported value: NaN"),
    ("what should be JSON and is not", field(12, field(1, b"{")), "unexpected end of JSON input"),
]


@rows(("data", "error"), [row[1:] for row in MALFORMED], ids=[row[0] for row in MALFORMED])
def test_malformed_messages(data: bytes, error: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - compared whole
        read(THING, data)
    assert str(caught.value) == error


# Writing


def test_fields_that_are_not_pointers_are_written_even_if_zero() -> None:
    expected = (
        field(1, b"") + field(3, b"") + field(4, 0) + field(5, 0) + field(6, 0) + field(9, b"") + field(10, b"")
        + field(12, b"") + field(13, field(1, b"") + field(2, 0)) + field(21, field(1, b"") + field(2, field(1, b"")))
    )  # fmt: skip
    assert write(THING, {}) == expected


WRITTEN: list[tuple[str, Object, int, bytes]] = [
    ("an optional string that is empty", {"maybe": ""}, 2, field(2, b"")),
    ("a negative number", {"small": -1}, 5, field(5, -1)),
    (
        "map entries sorted by key",
        {"labels": {"b": "2", "a": "1"}},
        16,
        field(16, field(1, b"a") + field(2, b"1")) + field(16, field(1, b"b") + field(2, b"2")),
    ),
    ("a wrapped list", {"extra": {"a": ["x"]}}, 19, field(19, field(1, b"a") + field(2, field(1, b"x")))),
    ("an object in a union", {"choice": {"x": "v"}}, 20, field(20, field(1, 1) + field(2, field(1, b"v")))),
    ("a boolean in a union", {"choice": False}, 20, field(20, field(1, 0))),
    ("text of int-or-string", {"either": "a"}, 11, field(11, field(1, 1) + field(2, 0) + field(3, b"a"))),
    ("a number of int-or-string", {"either": -5}, 11, field(11, field(1, 0) + field(2, -5) + field(3, b""))),
    ("microseconds", {"exactly": "1969-12-31T23:59:59.250000Z"}, 10, field(10, field(1, -1) + field(2, 250_000_000))),
    ("seconds", {"when": "2024-05-06T07:08:09Z"}, 9, field(9, field(1, 1714979289) + field(2, 0))),
    ("JSON", {"any": {"é": [1]}}, 12, field(12, field(1, '{"é":[1]}'.encode()))),
]


@rows(("value", "number", "data"), [row[1:] for row in WRITTEN], ids=[row[0] for row in WRITTEN])
def test_written_fields(value: Object, number: int, data: bytes) -> None:
    assert data in write(THING, value)
    assert data not in write(THING, {})
    again = read(THING, write(THING, value))
    name = next(iter(value))
    assert again[name] == value[name]
    assert THING.fields[name].number == number


texts = st.text(st.characters(codec="utf-8"), max_size=5)
things = st.fixed_dictionaries(
    {"always": texts, "part": st.just({}), "none": st.none(), "null": st.none() | st.integers(-(2**63), 2**63 - 1)},
    optional={
        "maybe": texts,
        "flag": st.just(True),
        "small": st.integers(-(2**31), -1),
        "real": st.floats(allow_nan=False, allow_infinity=False).map(NUMBER.read),  # whole numbers are integers
        "exactly": st.datetimes().map(lambda moment: moment.isoformat(timespec="microseconds") + "Z"),
        "either": texts | st.integers(-(2**31), 2**31 - 1),
        "parts": st.lists(st.fixed_dictionaries({}, optional={"count": st.integers(1, 9)}), min_size=1, max_size=3),
        "labels": st.dictionaries(texts, texts, min_size=1, max_size=3),
        "extra": st.dictionaries(texts, st.lists(texts, max_size=2), min_size=1, max_size=2),
        "choice": st.booleans() | st.just({"x": "v"}),
        "inner": texts.filter(bool),
    },
)


@given(things)
@settings(max_examples=100, deadline=None)
def test_reading_undoes_writing(value: Object) -> None:
    if value.get("exactly") == "0001-01-01T00:00:00.000000Z":
        del value["exactly"]
    assert read(THING, write(THING, value)) == value


# Hostile bodies


@given(st.binary(max_size=60))
@settings(max_examples=300, deadline=None)
def test_any_bytes_give_a_value_or_a_value_error(data: bytes) -> None:
    assert outcome(lambda: read(THING, data))


def outcome(work: Callable[[], Object]) -> Object | str:
    try:
        return work()
    except ValueError as error:
        return str(error)


NODE = Struct("Node")
NODE.define(Field("next", NODE, 1, Presence.POINTER), Field("all", List(NODE), 2), Field("name", STRING, 3))


def nested(depth: int) -> bytes:
    heads: list[bytes] = []
    length = 0
    for _ in range(depth):
        heads.append(varint(1 << 3 | 2) + varint(length))
        length += len(heads[-1])
    return b"".join(reversed(heads))


def test_messages_nest_up_to_the_limit() -> None:
    value = read(NODE, nested(MAX_DEPTH))
    for _ in range(MAX_DEPTH):
        value = value["next"]
    assert value == {}


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100_000])
def test_deeper_messages_are_refused(depth: int) -> None:
    with pytest.raises(ValueError, match=r"^exceeded max depth$"):
        read(NODE, nested(depth))


@pytest.mark.slow
def test_deep_messages_are_written() -> None:
    value: Object = {}
    for _ in range(MAX_DEPTH):
        value = {"next": value}
    again = read(NODE, write(NODE, value))
    for _ in range(MAX_DEPTH):
        again = again["next"]
    assert again == {}


HOSTILE: list[tuple[str, Callable[[int], bytes]]] = [
    ("empty messages", lambda n: field(2, b"") * n),
    ("one message again and again", lambda n: field(1, field(3, b"x")) + field(1, b"") * n),
    ("unknown numbers", lambda n: field(99, 1) * n),
    ("unknown groups, one in the other", lambda n: varint(99 << 3 | 3) * n + varint(99 << 3 | 4) * n),
    ("bytes that are no text", lambda n: field(3, b"\xff" * n)),
]


@pytest.mark.parametrize("body", [row[1] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_time_is_linear_in_the_body(body: Callable[[int], bytes]) -> None:
    def seconds(count: int) -> float:
        data = body(count)
        return cpu_seconds(lambda: read(NODE, data))

    few = max(seconds(2_000), 0.001)
    assert seconds(20_000) < 40 * few  # ten times the work; a hundred times if it were quadratic
