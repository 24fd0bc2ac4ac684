"""Values of objects, converted as their schemas say, and maps that expressions make."""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.errors import Cancelled, CelError
from noxu.cel.values.numbers import Uint
from noxu.cel.values.times import Duration, Timestamp
from noxu.cel.values.values import (
    ABSENT,
    FailedConversion,
    JsonList,
    JsonObject,
    LazyMap,
    MapValue,
    Preserved,
    UntypedMap,
    from_json,
    from_json_or_failed,
    size,
    type_of,
    untyped,
)
from noxu.schema.structural import parse
from tests.rows import rows

STRING = {"type": "string"}
CONVERTED: list[tuple[str, dict[str, Any], Any, Any]] = [
    ("an integer", {"type": "integer"}, 1, 1),
    ("a number is a double", {"type": "number"}, 1, 1.0),
    ("a string", STRING, "a", "a"),
    ("a boolean", {"type": "boolean"}, True, True),
    ("a null", {**STRING, "nullable": True}, None, None),
    ("an int-or-string", {"x-kubernetes-int-or-string": True}, 80, 80),
    ("a duration", {**STRING, "format": "duration"}, "1h", Duration(3600 * 10**9)),
    ("a date", {**STRING, "format": "date"}, "1970-01-02", Timestamp(86400)),
    ("a date and a time", {**STRING, "format": "date-time"}, "1970-01-01T00:00:01Z", Timestamp(1)),
    ("bytes", {**STRING, "format": "byte"}, "aGk=", b"hi"),
    ("a string of another format", {**STRING, "format": "email"}, "x", "x"),
]


@rows(("schema", "raw", "value"), [row[1:] for row in CONVERTED], ids=[row[0] for row in CONVERTED])
def test_a_value_of_an_object(schema: dict[str, Any], raw: Any, value: Any) -> None:
    found = from_json(raw, parse(schema))
    assert (type(found), found) == (type(value), value)


WRONG: list[tuple[str, dict[str, Any], Any, str]] = [
    ("a null", STRING, None, "invalid data, got null for schema with nullable=false"),
    ("a string for an integer", {"type": "integer"}, "1", "invalid data, expected int, got string"),
    ("a float for an integer", {"type": "integer"}, 1.0, "invalid data, expected int, got float64"),
    ("a boolean for a number", {"type": "number"}, True, "invalid data, expected float, got bool"),
    ("an integer for a string", STRING, 1, "invalid data, expected string, got int64"),
    ("a list for a boolean", {"type": "boolean"}, [], "invalid data, expected bool, got []interface {}"),
    (
        "a map for a list",
        {"type": "array", "items": STRING},
        {},
        "invalid data, expected an array for the provided schema with type=array",
    ),
    ("a list for an object", {"type": "object"}, [], "invalid data, expected a map for the provided schema with type=object"),
    ("a list without items", {"type": "array"}, [], "invalid array type, expected Items with a non-empty Schema"),
    (
        "a float for an int-or-string",
        {"x-kubernetes-int-or-string": True},
        1.5,
        "invalid data, expected XIntOrString value to be either a string or integer",
    ),
    ("a wrong duration", {**STRING, "format": "duration"}, "x", "Invalid duration x: unable to parse x as duration"),
    (
        "wrong bytes",
        {**STRING, "format": "byte"},
        "a",
        "Invalid byte formatted string a: illegal base64 data at input byte 0",
    ),
]  # fmt: skip


@rows(("schema", "raw", "error"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_a_value_is_not_as_its_schema_says(schema: dict[str, Any], raw: Any, error: str) -> None:
    with pytest.raises(CelError) as caught:
        from_json(raw, parse(schema))
    assert caught.value.message == error
    failed = from_json_or_failed(raw, parse(schema))
    assert isinstance(failed, FailedConversion)
    assert failed.message == error


def test_a_value_without_a_type_can_only_be_compared() -> None:
    value = from_json({"a": 1}, parse({"x-kubernetes-preserve-unknown-fields": True}))
    assert isinstance(value, Preserved)
    assert type_of(value).name == "unknown"


OBJECT = JsonObject(
    {"a-b": 1, "for": "x", "none": None, "unknown": 1, "items": [1, "x"]},
    parse(
        {
            "type": "object",
            "properties": {
                "a-b": {"type": "integer"},
                "for": STRING,
                "none": {**STRING, "nullable": True},
                "items": {"type": "array", "items": {"type": "integer"}},
                "absent": STRING,
            },
        }
    ),
)


def test_fields_of_an_object_are_found_by_escaped_names() -> None:
    assert OBJECT.find("a__dash__b") == 1
    assert OBJECT.find("__for__") == "x"
    assert [OBJECT.find(name) for name in ("a-b", "none", "absent", "unknown", "x__y__z")] == [1, *[ABSENT] * 4]
    assert list(OBJECT) == ["a__dash__b", "__for__", "none", "items"]


def test_elements_of_a_list_are_converted_when_they_are_accessed() -> None:
    items = OBJECT.find("items")
    assert isinstance(items, JsonList)
    assert (len(items), items[0]) == (2, 1)
    with pytest.raises(CelError, match="invalid data, expected int, got string"):
        list(items)


def test_a_map_of_an_object_keeps_nulls() -> None:
    schema = parse({"type": "object", "additionalProperties": {**STRING, "nullable": True}})
    labels = JsonObject({"a-b": "x", "n": None}, schema)
    assert [labels.find(key) for key in ("a-b", "n", "a__dash__b")] == ["x", None, ABSENT]
    with pytest.raises(CelError, match="no such overload"):
        labels.find(1)


def test_keys_of_a_map_are_found_by_any_equal_number() -> None:
    entries = MapValue([(1, "int"), ("1", "string"), (True, "bool")])
    keys = [1, Uint(1), 1.0, "1", True, 2, 1.5, -1]
    assert [entries.find(key) for key in keys] == ["int", "int", "int", "string", "bool", ABSENT, ABSENT, ABSENT]
    entries.set(Uint(1), "uint")
    assert (len(entries), entries.find(1), entries.find(Uint(1))) == (4, "int", "uint")
    entries.remove(1)
    assert entries.find(1) == "uint"


def test_a_key_may_be_given_twice_and_the_last_counts() -> None:
    assert MapValue([("a", 1), ("a", 2)]).find("a") == 2


def test_bytes_are_no_key() -> None:
    with pytest.raises(Cancelled, match="hash of unhashable type"):
        MapValue([(b"a", 1)])


def test_a_list_is_a_key_equal_to_itself_only() -> None:
    key: list[int] = []
    entries = MapValue([(key, 1)])
    assert (entries.find(key), entries.find([])) == (1, ABSENT)


def test_lazy_fields_are_computed_once() -> None:
    computed: list[str] = []

    def fail() -> Any:
        computed.append("bad")
        raise CelError("no")

    lazy = LazyMap({"good": lambda: computed.append("good") or 1, "bad": fail})  # type: ignore[func-returns-value]
    assert computed == []
    assert [lazy.find("good"), lazy.find("good"), lazy.find("other")] == [1, 1, ABSENT]
    for _ in range(2):
        with pytest.raises(CelError, match="no"):
            lazy.find("bad")
    assert computed == ["good", "bad"]


def test_values_without_a_schema() -> None:
    value = untyped({"a": [1, {"b": None}]})
    assert isinstance(value, UntypedMap)
    assert value.find("a")[1].find("b") is None
    assert (value.find("x"), value.find(1)) == (ABSENT, ABSENT)
    assert untyped("a") == "a"


SIZES: list[tuple[Any, int]] = [
    ("aé😀", 3), (b"ab", 2), ([1, 2], 2), (MapValue([("a", 1)]), 1), (1, 1), (None, 1), (LazyMap({}), 1),
]  # fmt: skip


@pytest.mark.parametrize(("value", "expected"), SIZES, ids=[type_of(row[0]).name for row in SIZES])
def test_sizes_count_elements_and_characters(value: Any, expected: int) -> None:
    assert size(value) == expected
