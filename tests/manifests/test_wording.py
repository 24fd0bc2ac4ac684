"""Messages in plain words: which field they are about, and nothing of Go."""

from __future__ import annotations

import pytest

from noxu.manifests.wording import Said, located, plain, without_rule
from noxu.values import Json
from tests.rows import rows

MESSAGES: list[tuple[str, list[Said]]] = [
    ("name or generateName is required", [Said("name or generateName is required")]),
    ('ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal number into Go struct field ConfigMap.data of type string', [Said("must be a string, not a number", "data", found="number")]),
    ("json: cannot unmarshal string into Go struct field Pod.spec.containers of type []v1.Container", [Said("must be a list, not a string", "spec.containers", found="string")]),
    ("json: cannot unmarshal array into Go struct field Deployment.spec.template of type v1.PodTemplateSpec", [Said("must not be a list", "spec.template", found="array")]),
    ("json: cannot unmarshal string into Go struct field Deployment.spec.template of type v1.PodTemplateSpec", [Said("must be an object, not a string", "spec.template", found="string")]),
    ("json: cannot unmarshal bool into Go struct field Deployment.spec.replicas of type int32", [Said("must be an integer, not a boolean", "spec.replicas", found="bool")]),
    ("json: cannot unmarshal number 1.5 into Go struct field Deployment.spec.replicas of type int32", [Said("must be an integer, not number 1.5", "spec.replicas", found="number")]),
    ("json: cannot unmarshal object into Go value of type string", [Said("must be a string, not an object", found="object")]),
    ("json: cannot unmarshal number into Go value of type v1.ObjectMeta", [Said("must be an object, not a number", "metadata")]),
    ("yaml: line 3: did not find expected key", [Said("not valid YAML: did not find expected key")]),
    ("yaml: unknown anchor 'a' referenced", [Said("not valid YAML: unknown anchor 'a' referenced")]),
    ("unexpected end of JSON input", [Said("not valid JSON: unexpected end of JSON input")]),
    ("invalid character '}' after object key", [Said("not valid JSON: invalid character '}' after object key")]),
    ('unknown field "spec.a"', [Said("unknown field", "spec.a")]),
    ('duplicate field "spec.a"', [Said("the key is repeated; its last value counts", "spec.a")]),
    ('line 6: key "size" already set in map', [Said('the key "size" is repeated; its last value counts', line=6)]),
    ('Widget in version "v1" cannot be handled as a Widget: strict decoding error: yaml: unmarshal errors:\n  line 6: key "size" already set in map\n  line 7: key "a" already set in map, unknown field "spec.b"', [Said('the key "size" is repeated; its last value counts', line=6), Said('the key "a" is repeated; its last value counts', line=7), Said("unknown field", "spec.b")]),
    ("value: <nil> is not allowed", [Said("value: null is not allowed")]),
]  # fmt: skip


@rows(("message", "said"), MESSAGES, ids=[row[0][:60] for row in MESSAGES])
def test_a_message_in_plain_words(message: str, said: list[Said]) -> None:
    assert plain(message) == said


RULE = (
    '{"Rule":"self == \'}: \'","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}'
)
WITHOUT_RULE: list[tuple[str, str]] = [
    (f"Invalid value: {RULE}: compilation failed: ERROR: <input>:1:5: undefined field 'b'\n | self.b\n | ....^", "compilation failed: undefined field 'b'\n | self.b\n | ....^"),
    (f"{RULE}: oldSelf cannot be used", "oldSelf cannot be used"),
    ('Invalid value: {"a":1}: no', 'Invalid value: {"a":1}: no'),
    ("failed rule: self.a", "failed rule: self.a"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "text"), WITHOUT_RULE)
def test_a_message_about_a_rule_does_not_repeat_it(message: str, text: str) -> None:
    assert without_rule(message) == text


LOCATED: list[tuple[str, Json, str, str, str]] = [
    ("a field", {"a": {"b": 1}}, "a.b", "number", "a.b"),
    ("an item", {"a": [{"b": "x"}, {"b": 1}]}, "a.b", "number", "a[1].b"),
    ("a key of a map", {"data": {"x": "1", "y": 2}}, "data", "number", "data[y]"),
    ("a list in a map", {"extra": {"x": ["1", 2]}}, "extra", "number", "extra[x][1]"),
    ("a field below a map", {"properties": {"spec": {"type": 7}}}, "properties.type", "number", "properties[spec].type"),
    ("a key with the name of the field", {"properties": {"type": {"maxLength": 1}, "spec": {"type": 7}}}, "properties.type", "number", "properties[spec].type"),
    ("the first of several", {"a": [{"b": 1}, {"b": 2}]}, "a.b", "number", "a[0].b"),
    ("the object itself", {"b": {"a": 3}, "a": 1}, "a", "number", "a"),
    ("nothing", {"a": {"b": 1}}, "a.c", "string", "a.c"),
    ("null", {"a": {"b": None}}, "a.b", "string", "a.b"),
]  # fmt: skip


@rows(("value", "field", "found", "path"), [row[1:] for row in LOCATED], ids=[row[0] for row in LOCATED])  # fmt: skip
def test_where_the_value_is_that_a_message_is_about(value: Json, field: str, found: str, path: str) -> None:
    assert located(value, field, found) == path


@pytest.mark.slow
def test_the_search_for_a_value_ends() -> None:
    wide: Json = {"a": [{"x": n} for n in range(200_000)] + [{"b": 1}]}
    assert located(wide, "a.b", "number") == "a.b"
    deep: Json = 1
    for _ in range(20_000):
        deep = [deep]
    assert located({"a": deep}, "a.b", "number") == "a.b"
