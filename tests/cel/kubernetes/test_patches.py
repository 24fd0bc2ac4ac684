"""JSON patches and apply configurations as JSON. (More of them: tests/admission/test_mutations.py.)"""

from __future__ import annotations

from typing import Any

import pytest

from noxu.cel.kubernetes.admission import Composition, Purpose
from noxu.cel.kubernetes.patches import PatchError, apply_configuration, json_patch
from noxu.go.text import GoValue


def evaluated(text: str, purpose: Purpose) -> Any:
    expression = Composition(params=False).expression(text, purpose)
    assert expression.error == ""
    outcome = expression.evaluate({})
    assert outcome.error is None
    return outcome.value


def patch(operation: str) -> Any:
    (found,) = json_patch(evaluated(f"[JSONPatch{{{operation}}}]", Purpose.JSON_PATCH)).value
    return found


OPERATIONS: list[tuple[str, str, dict[str, Any]]] = [
    ("with a value", "op: 'add', path: '/a', value: [1.5, 2.0]", {"op": "add", "path": "/a", "value": [1.5, 2]}),
    ("with a null", "op: 'add', path: '/a', value: null", {"op": "add", "path": "/a", "value": None}),
    ("without a value", "op: 'remove', path: '/a'", {"op": "remove", "path": "/a"}),
    ("from another place", "op: 'copy', from: '/a', path: '/b'", {"op": "copy", "from": "/a", "path": "/b"}),
    ("with a large integer", "op: 'x', path: '', value: 9007199254740993", {"op": "x", "path": "", "value": "9007199254740993"}),
    ("with an object", "op: 'x', path: '', value: Object.spec{a: 1}", {"op": "x", "path": "", "value": {"a": 1}}),
]  # fmt: skip


@pytest.mark.parametrize(("operation", "expected"), [row[1:] for row in OPERATIONS], ids=[row[0] for row in OPERATIONS])
def test_an_operation(operation: str, expected: dict[str, Any]) -> None:
    assert patch(operation) == expected


def test_a_test_for_null_has_a_value_that_equals_nothing() -> None:
    value = patch("op: 'test', path: '/a', value: null")["value"]
    assert value is not None
    assert value != {}


REFUSED = [
    ("a key that is no text", "op: 'x', path: '', value: {1: 2}", "unsupported type conversion from 'int' to string"),
    ("a type", "op: 'x', path: '', value: int", "type conversion not supported for 'type'"),
    ("nothing", "op: 'x', path: '', value: optional.none()", "optional.none() dereference"),
]


@pytest.mark.parametrize(("operation", "error"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED])
def test_a_value_that_is_no_json(operation: str, error: str) -> None:
    with pytest.raises(PatchError) as caught:
        patch(operation)
    prefix = "JSONPath valueExpression evaluated to a type that could not marshal to JSON: "
    assert str(caught.value) == prefix + error


def configuration(fields: str) -> Any:
    return apply_configuration(evaluated(f"Object{{{fields}}}", Purpose.APPLY_CONFIGURATION)).value


FIELDS: list[tuple[str, str, dict[str, Any]]] = [
    ("scalars", "a: 1, b: 'x', c: 1.5", {"a": 1, "b": "x", "c": 1.5}),
    ("objects", "spec: Object.spec{a: 1}", {"spec": {"a": 1}}),
    ("a list of objects", "spec: [Object.spec{a: 1}]", {"spec": [{"a": 1}]}),
    ("a map of objects", "spec: {'k': Object.spec{a: 1}}", {"spec": {"k": {"a": 1}}}),
    ("an empty optional", "?a: optional.none()", {}),
    ("an unsigned number", "a: 1u", {"a": GoValue("1", "0x1", "uint64")}),
    ("null", "a: null", {"a": GoValue("NULL_VALUE", "0", "structpb.NullValue")}),
    ("a list in a list", "a: [[1, 2]]", {"a": [GoValue("[1 2]", "[]ref.Val", "[]ref.Val")]}),
    ("bytes", "a: b'hi'", {"a": GoValue("[104 105]", "[]uint8{0x68, 0x69}", "[]uint8")}),
]


@pytest.mark.parametrize(("fields", "expected"), [row[1:] for row in FIELDS], ids=[row[0] for row in FIELDS])
def test_a_configuration(fields: str, expected: dict[str, Any]) -> None:
    assert configuration(fields) == expected


MISPLACED = [
    ("an object in another place", "spec: Object.status{}", 'unexpected type name "Object.status", expected "Object.spec"'),
    ("in a list", "spec: [Object{}]", 'unexpected type name "Object", expected "Object.spec"'),
    ("deeper", "spec: Object.spec{a: {'k': Object.a{}}}", 'unexpected type name "Object.a", expected "Object.spec.a"'),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "error"), [row[1:] for row in MISPLACED], ids=[row[0] for row in MISPLACED])
def test_an_object_in_the_wrong_place(fields: str, error: str) -> None:
    with pytest.raises(PatchError) as caught:
        configuration(fields)
    assert str(caught.value) == f"type mismatch: {error}, which matches field name path from root Object type"


def test_a_map_with_a_key_that_is_no_text() -> None:
    with pytest.raises(PatchError, match=r"invalid return type: \*dynamic.ObjectVal"):
        configuration("a: {1: 2}")
