"""What the fast path accepts and what it leaves to the readable path. (tests/properties checks that it never accepts too much.)"""

from __future__ import annotations

from typing import Any

import pytest

from noxu.schema import compiled, conditions
from noxu.schema.compiled import Compiled
from noxu.schema.structural import parse
from noxu.values import ABSENT, Object, copy
from tests.rows import rows

TYPE_META = {"apiVersion": "example.com/v1", "kind": "Example"}
NAMED: Object = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}
MAP_LIST = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"], "items": NAMED}
SET = {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}}
PRESERVED = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, **PRESERVED}
INT_OR_STRING = {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]}
POD = {"apiVersion": "v1", "kind": "Pod"}


def fast(**properties: Any) -> Compiled:
    return Compiled(parse({"type": "object", "properties": properties}), warm_up=0)


def accepts(schema: Object, value: Any) -> bool:
    return fast(spec=schema).accepts({**TYPE_META, "metadata": {}, "spec": copy(value)})


CLEAN = {
    "a string": ({"type": "string", "maxLength": 3, "pattern": "^a"}, "abc"),
    "a string of a format": ({"type": "string", "format": "ipv4"}, "10.0.0.1"),
    "a string of an unknown format": ({"type": "string", "format": "whatever"}, "x"),
    "a member of an enum": ({"type": "string", "enum": ["a", "b"]}, "b"),
    "an integer within its limits": ({"type": "integer", "minimum": 1, "maximum": 3}, 3),
    "an int32": ({"type": "integer", "format": "int32"}, 2**31 - 1),
    "an integer where numbers go": ({"type": "number"}, 1),
    "a multiple": ({"type": "number", "multipleOf": 0.5}, 1.5),
    "a boolean": ({"type": "boolean"}, False),
    "null where it may be": ({"type": "string", "nullable": True}, None),
    "an integer where strings go, too": (INT_OR_STRING, 1),
    "a string where integers go, too": (INT_OR_STRING, "50%"),
    "anything where all is preserved": (PRESERVED, [{"a": None}]),
    "a list": ({"type": "array", "items": {"type": "integer"}, "maxItems": 2}, [1, 2]),
    "a list of lists": ({"type": "array", "items": {"type": "array", "items": {"type": "string"}}}, [["a"], []]),
    "a set": (SET, ["a", "b"]),
    "a list by keys": (MAP_LIST, [{"k": "a", "v": 1}, {"k": "b", "v": 1}]),
    "a map": ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": "b"}),
    "an object without some of its fields": (NAMED, {"k": "a"}),
    "an object with what it needs": ({**NAMED, "required": ["k"]}, {"k": "a"}),
    "a field that is not described, preserved": ({**NAMED, **PRESERVED}, {"k": "a", "x": {"y": 1}}),
    "one of two fields": ({**NAMED, "oneOf": [{"required": ["k"]}, {"required": ["v"]}]}, {"v": 1}),
    "a branch with more than presence": ({**NAMED, "anyOf": [{"properties": {"v": {"minimum": 3}}}]}, {"v": 3}),
    "an embedded resource": (EMBEDDED, {**POD, "metadata": {"name": "a"}, "spec": {}}),
}
INEXACT = {
    "an integer where numbers go",
    "a multiple",
    "anything where all is preserved",
    "a field that is not described, preserved",
    "an embedded resource",
}
"""Cases of CLEAN whose schema accepts floats, or 1 as well as True."""
LOOSE: dict[str, tuple[Object, Any]] = {
    "a list of anything": ({"type": "array"}, [1]),
    "a preserved list": ({"type": "array", **PRESERVED}, [{"a": 1}]),
    "a map of scalars": ({"type": "object", "additionalProperties": True}, {"a": 1}),
    "a preserved map": ({"type": "object", **PRESERVED}, {"a": 1}),
    "a map of numbers": ({"type": "object", "additionalProperties": {"type": "number"}}, {"a": 1}),
}
"""Further values of such schemas."""
DOUBTFUL = {
    "a string that is too long": ({"type": "string", "maxLength": 3}, "abcd"),
    "a string that does not match": ({"type": "string", "pattern": "^a"}, "b"),
    "a string of another format": ({"type": "string", "format": "ipv4"}, "10.0.0"),
    "no member of an enum": ({"type": "string", "enum": ["a", "b"]}, "c"),
    "another type": ({"type": "string"}, 1),
    "a boolean for an integer": ({"type": "integer"}, True),
    "a whole float for an integer": ({"type": "integer"}, 1.0),
    "an integer beyond its limit": ({"type": "integer", "maximum": 3, "exclusiveMaximum": True}, 3),
    "an integer with a limit that is none": ({"type": "integer", "maximum": 2.5}, 1),
    "no int32": ({"type": "integer", "format": "int32"}, 2**31),
    "no multiple": ({"type": "number", "multipleOf": 0.5}, 1.7),
    "null, to be dropped": ({"type": "string"}, None),
    "null, though an enum lists it": ({"type": "string", "nullable": True, "enum": ["a", None]}, None),
    "null where all is preserved": (PRESERVED, None),
    "a list that is too long": ({"type": "array", "items": {"type": "integer"}, "maxItems": 1}, [1, 2]),
    "a wrong item": ({"type": "array", "items": {"type": "integer"}}, [1, "2"]),
    "a member twice": (SET, ["a", "a"]),
    "a key twice": (MAP_LIST, [{"k": "a"}, {"k": "a", "v": 1}]),
    "a wrong value in a map": ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": 1}),
    "a missing field": ({**NAMED, "required": ["k"]}, {"v": 1}),
    "a missing field that is not described": ({**NAMED, "required": ["x"]}, {"v": 1}),
    "an unknown field": (NAMED, {"x": 1}),
    "an unknown field in an item": (MAP_LIST, [{"k": "a", "x": 1}]),
    "a field where none is described": ({"type": "object"}, {"x": 1}),
    "an object below `additionalProperties: true`": ({"type": "object", "additionalProperties": True}, {"a": {}}),
    "both of two fields": ({**NAMED, "oneOf": [{"required": ["k"]}, {"required": ["v"]}]}, {"k": "a", "v": 1}),
    "no branch": ({**NAMED, "anyOf": [{"properties": {"v": {"minimum": 3}}}]}, {"v": 2}),
    "too few fields": ({**NAMED, "minProperties": 2}, {"v": 2}),
    "an embedded resource without a kind": (EMBEDDED, {"apiVersion": "v1"}),
    "embedded metadata to coerce": (EMBEDDED, {**POD, "metadata": {"creationTimestamp": None}}),
    "embedded metadata with an unknown field": (EMBEDDED, {**POD, "metadata": {"x": 1}}),
}


@pytest.mark.parametrize(("schema", "value"), CLEAN.values(), ids=CLEAN)
def test_clean(schema: Object, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert accepts(schema, value)
    monkeypatch.setattr(conditions, "WIDE", 0)
    assert accepts(schema, value)


@pytest.mark.parametrize(("schema", "value"), DOUBTFUL.values(), ids=DOUBTFUL)
def test_doubtful(schema: Object, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not accepts(schema, value)
    monkeypatch.setattr(conditions, "WIDE", 0)
    assert not accepts(schema, value)


DEFAULTED: Object = {
    "type": "object",
    "properties": {
        "a": {"type": "string", "default": "x"},
        "b": {"type": "object", "default": {}, "properties": {"c": {"type": "integer", "default": 1}}},
    },
}


@pytest.mark.parametrize("wide", [0, conditions.WIDE])
def test_defaults_are_filled_in_on_the_way(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "WIDE", wide)
    schema = fast(spec=DEFAULTED)
    values: list[Object] = [{**TYPE_META, "spec": {}} for _ in range(2)]
    for value in values:
        assert schema.accepts(value)
        assert value["spec"] == {"a": "x", "b": {"c": 1}}
        value["spec"]["b"]["c"] = 2  # the next one gets its own


@pytest.mark.parametrize(
    ("default", "filled"),
    [("x", True), ({"y": 1}, True), ({"y": 1, "unknown": 2}, False), ({"y": None}, False)],
    ids=["a scalar", "an object", "an object that pruning would change", "an object with a null to drop"],
)
def test_a_default_that_pruning_would_change_is_left_to_the_readable_path(default: Any, filled: bool) -> None:
    kind: Object = (
        {"type": "string"} if default == "x" else {"type": "object", "properties": {"y": {"type": "integer"}}}
    )
    value: Object = {**TYPE_META, "spec": {}}
    schema = fast(spec={"type": "object", "properties": {"a": {**kind, "default": default}}})
    assert schema.accepts(value) is filled
    assert ("a" in value["spec"]) is filled


def test_metadata_and_rules_of_the_root_are_checked_on_the_complete_object() -> None:
    name = {"type": "object", "properties": {"name": {"type": "string", "maxLength": 2}}}
    schema = Compiled(parse({"type": "object", "properties": {"metadata": name}, "required": ["status"]}), warm_up=0)
    value: Object = {**TYPE_META, "metadata": {"name": "abc", "labels": {"a": "b"}}}
    assert schema.accepts(value)
    assert not schema.is_complete({**value, "status": {}})
    assert not schema.is_complete({**value, "metadata": {"name": "ab"}})
    assert schema.is_complete({**value, "metadata": {"name": "ab", "labels": {}}, "status": {}})


def test_a_status_is_checked_alone() -> None:
    schema = fast(status={"type": "object", "properties": {"ready": {"type": "boolean"}}})
    assert schema.accepts_status({"ready": True})
    assert not schema.accepts_status({"ready": "yes"})
    assert not schema.accepts_status({"ready": True, "unknown": 1})


def test_nothing_is_compiled_for_a_handful_of_objects() -> None:
    schema = Compiled(parse({"type": "object"}), warm_up=3)
    assert [schema.accepts(dict(TYPE_META)) for _ in range(5)] == [False, False, False, True, True]


def test_an_object_that_uses_many_nodes_does_not_have_them_all_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "MAX_COMPILED_AT_ONCE", 3)
    record = {"type": "object", "properties": {"x": {"type": "string"}}}
    names = [f"n{n}" for n in range(6)]
    schema = fast(spec={"type": "object", "properties": dict.fromkeys(names, record)})
    value = {**TYPE_META, "spec": {name: {"x": "a"} for name in names}}
    assert [schema.accepts(copy(value)) for _ in range(4)] == [False, False, True, True]


@pytest.mark.parametrize("wide", [0, conditions.WIDE])
@rows("case", [*CLEAN, *LOOSE])
def test_a_schema_is_exact_as_long_as_it_accepts_neither_floats_nor_numbers_in_several_forms(
    case: str, wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "WIDE", wide)
    schema, value = {**CLEAN, **LOOSE}[case]
    compiled = fast(spec=schema, number={"type": "number"})
    assert compiled.accepts({**TYPE_META, "metadata": {}, "spec": copy(value)})
    is_narrow = wide > 0  # else each property is compiled when it is first used, and the number is not used
    assert compiled.is_exact == (case not in INEXACT and case not in LOOSE and not is_narrow)
    without = fast(spec=schema)
    assert without.is_exact
    assert without.accepts({**TYPE_META, "metadata": {}, "spec": copy(value)})
    assert without.is_exact == (case not in INEXACT and case not in LOOSE)


WITH_DEFAULT = {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "default": 1}}}
CHANGES: dict[str, tuple[Object, Any, Any, bool]] = {
    "another object": (NAMED, {"k": "a"}, {"k": "b"}, True),
    "another object, which is wrong": (NAMED, {"k": "a"}, {"k": 1}, False),
    "a field that is not described": (NAMED, {"k": "a"}, {"k": "a", "x": 1}, False),
    "an object where there was none": (NAMED, ABSENT, {"k": "a"}, True),
    "a wrong object where there was none": (NAMED, ABSENT, {"k": 1}, False),
    "null where there was nothing": (NAMED, ABSENT, None, False),
    "an object where there was null": ({**NAMED, "nullable": True}, None, {"k": "a"}, True),
    "a wrong object where there was null": ({**NAMED, "nullable": True}, None, {"k": 1}, False),
    "null where there was an object": ({**NAMED, "nullable": True}, {"k": "a"}, None, True),
    "another list": ({"type": "array", "items": {"type": "integer"}}, [1], [2], True),
    "a list that is equal only in Python": ({"type": "array", "items": {"type": "integer"}}, [1], [True], False),
    "a default that is filled in": (WITH_DEFAULT, {"k": "a"}, {"k": "b"}, True),
}


@pytest.mark.parametrize("wide", [0, conditions.WIDE])
@pytest.mark.parametrize(("schema", "old", "new", "accepted"), CHANGES.values(), ids=CHANGES)
def test_a_change_of_an_accepted_object(
    schema: Object, old: Any, new: Any, accepted: bool, wide: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conditions, "WIDE", wide)
    compiled, before = fast(spec=schema), {**TYPE_META, "metadata": {}}
    if old is not ABSENT:
        before["spec"] = copy(old)
    assert compiled.accepts(before)
    after = {**before, "spec": copy(new)}
    assert compiled.accepts(after, before) == accepted
    if accepted and schema is WITH_DEFAULT:
        assert after["spec"]["v"] == 1


@pytest.mark.parametrize("wide", [0, conditions.WIDE])
def test_what_a_change_shares_with_the_old_object_is_not_looked_at(wide: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conditions, "WIDE", wide)
    compiled = fast(spec={"type": "object", "properties": {"a": NAMED, "b": MAP_LIST, "n": {"type": "integer"}}})
    old: Object = {**TYPE_META, "metadata": {}, "spec": {"a": {"k": "a"}, "b": [{"k": "b"}], "n": 1}}
    assert compiled.accepts(old)
    old["spec"]["a"]["k"], old["spec"]["b"][0]["k"] = 1, 2  # which would be wrong
    assert not compiled.accepts(old)
    assert compiled.accepts({**old, "metadata": {"name": "b"}}, old)
    new = {**old, "spec": {**old["spec"], "n": 2}}
    assert compiled.accepts(new, old) == (wide > 0)  # a function that loops over the members looks at a whole member
    assert not compiled.accepts({**old, "spec": {**old["spec"], "n": "2"}}, old)
