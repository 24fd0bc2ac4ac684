"""Defaults must be values that an object may have."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noxu.crd import types
from noxu.crd.default_values import default_errors, has_unknown_fields
from noxu.crd.types import default
from noxu.crd.validation import validate
from noxu.schema.structural import parse
from noxu.values import Json, Object
from tests.rows import rows

Build = Callable[..., Object]
PATH = "spec.validation.openAPIV3Schema"
STRING = {"type": "string"}


def of(**properties: Json) -> Object:
    return {"type": "object", "properties": properties}


EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}


def resource(**metadata: Json) -> Object:
    return {"apiVersion": "v1", "kind": "Foo", "metadata": metadata}


def embedding(name: str, **schema: Json) -> Object:
    """An embedded resource with a default for one of its own fields."""
    return {**EMBEDDED, "properties": {name: schema}}


UNKNOWN = "must not have unknown fields"
NO_LABEL = "may have mixed case, but should otherwise match: a DNS-1035 label"
ROWS: list[tuple[str, Object, list[str]]] = [
    ("valid ones", of(a={**STRING, "default": "x"}, b={"type": "array", "items": STRING, "default": []}), []),
    ("null is no default", of(a={**STRING, "default": None}), []),
    ("of the wrong type", of(a={**STRING, "default": 1}), ['.properties[a].default: Invalid value: "integer":  in body must be of type string: "integer"']),
    ("an empty list of the wrong type", of(a={**STRING, "default": []}), ['.properties[a].default: Invalid value: "array":  in body must be of type string: "array"']),
    ("of an unknown format, a list is any string", of(a={**STRING, "format": "foo", "default": []}), []),
    ("of an unknown format", of(a={**STRING, "format": "foo", "default": 1}), ['.properties[a].default: Invalid value: "int64":  in body must be of type foo: "int64"']),
    ("of an object with a format", of(a={"type": "object", "format": "foo", "default": "x"}), []),
    ("of an integer with a string's format", of(a={"type": "integer", "format": "date", "default": "x"}), ['.properties[a].default: Invalid value: "string":  in body must be of type integer: "string"', '.properties[a].default: Invalid value: "x":  in body must be of type date: "x"']),
    ("too small", of(a={"type": "integer", "minimum": 3, "default": 1}), [".properties[a].default: Invalid value: 1:  in body should be greater than or equal to 3"]),
    ("not in the enum", of(a={**STRING, "enum": ["x"], "default": "y"}), ['.properties[a].default: Unsupported value: "y": supported values: "x"']),
    ("with an unknown field", of(a={**of(x=STRING), "default": {"x": "1", "y": 1}}), [f'.properties[a].default: Invalid value: {{"x":"1","y":1}}: {UNKNOWN}']),
    ("with an unknown field that is kept", of(a={**of(x=STRING), "x-kubernetes-preserve-unknown-fields": True, "default": {"y": 1}}), []),
    ("with an unknown field and a wrong one", of(a={**of(x=STRING), "default": {"x": 1, "y": 1}}), [f'.properties[a].default: Invalid value: {{"x":1,"y":1}}: {UNKNOWN}', '.properties[a].default.x: Invalid value: "integer": x in body must be of type string: "integer"']),
    ("with an unknown field in a list", of(a={"type": "array", "items": of(x=STRING), "default": [{"y": 1}]}), [f'.properties[a].default: Invalid value: [{{"y":1}}]: {UNKNOWN}']),
    ("of items", of(a={"type": "array", "items": {**STRING, "default": 1}}), ['.properties[a].items.default: Invalid value: "integer":  in body must be of type string: "integer"']),
    ("of values in a map are not checked", of(a={"type": "object", "additionalProperties": {**STRING, "default": 1}}), []),
    ("of integers or strings anything goes", of(a={"x-kubernetes-int-or-string": True, "default": {}}), []),
    ("unless it is spelt out", of(a={"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}], "default": True}), ['.properties[a].default: Invalid value: "": "" must validate at least one schema (anyOf)', '.properties[a].default: Invalid value: "boolean":  in body must be of type integer: "boolean"']),
    ("of the root", {**of(a=STRING), "default": {"a": "x"}}, [".default.apiVersion: Required value", ".default.kind: Required value"]),
    ("an embedded resource", of(a={**EMBEDDED, "default": resource(name="x")}), []),
    ("an embedded resource without a type", of(a={**EMBEDDED, "default": {}}), [".properties[a].default.apiVersion: Required value", ".properties[a].default.kind: Required value"]),
    ("an embedded resource with a bad name", of(a={**EMBEDDED, "default": resource(name="a/")}), ['.properties[a].default.metadata.name: Invalid value: "a/": may not contain \'/\'']),
    ("an embedded resource with metadata of a wrong type", of(a={**EMBEDDED, "default": resource(labels={"a": 1})}), ['.properties[a].default.metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string']),
    ("an embedded resource with a kind of a wrong type", of(a={**EMBEDDED, "default": {"apiVersion": "v1", "kind": 1}}), [".properties[a].default.kind: Invalid value: 1: must be a string"]),
    ("an embedded kind", of(a=embedding("kind", type="string", default="Foo")), []),
    ("an embedded kind that is none", of(a=embedding("kind", type="string", default="f_")), [f'.properties[a].properties[kind].default: Invalid value: "f_": must result in valid metadata: kind: Invalid value: "f_": {NO_LABEL}']),
    ("an embedded name", of(a=embedding("metadata", type="object", properties={"name": {**STRING, "default": "x"}})), []),
    ("an embedded name that is none", of(a=embedding("metadata", type="object", properties={"name": {**STRING, "default": "a/"}})), ['.properties[a].properties[metadata].properties[name].default: Invalid value: "a/": must result in valid metadata: metadata.name: Invalid value: "a/": may not contain \'/\'']),
    ("embedded labels of a wrong type", of(a=embedding("metadata", type="object", default={"labels": {"a": 1}})), ['.properties[a].properties[metadata].default: Invalid value: {"labels":{"a":1}}: must result in valid metadata: metadata: Invalid value: {"labels":{"a":1}}: json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string']),
    ("embedded finalizers, one by one", of(a=embedding("metadata", type="object", properties={"finalizers": {"type": "array", "items": {**STRING, "default": "a b"}}})), ['.properties[a].properties[metadata].properties[finalizers].items.default: Invalid value: "a b": must result in valid metadata: metadata.finalizers: Invalid value: "a b": name part must consist of']),
]  # fmt: skip


@rows(("schema", "errors"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_defaults(build: Build, messages: Callable[..., list[str]], schema: Object, errors: list[str]) -> None:
    found = messages(build(schema))
    assert len(found) == len(errors)
    for text, beginning in zip(found, errors, strict=True):
        assert text.startswith(PATH + beginning)


def test_unknown_metadata_of_embedded_resources_is_dropped_from_the_crd(build: Build) -> None:
    """Upstream types a default in place while it validates it."""
    schema = of(a={**EMBEDDED, "default": resource(name="x", foo=1)})
    crd = default(types.decode(build(schema)).value)
    assert validate(crd) == []
    kept = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["a"]["default"]
    assert kept == resource(name="x")


def test_rules_are_evaluated_for_valid_defaults_only() -> None:
    calls: list[tuple[Json, str, bool]] = []

    def check_rules(schema: object, value: Json, path: str, root: bool) -> list[object]:
        calls.append((value, path, root))
        return []

    schema = {
        **of(a={**STRING, "default": "x"}, b={**STRING, "default": 1}),
        "default": {"apiVersion": "v1", "kind": "Foo"},
    }
    errors = default_errors(parse(schema), "s", may_have_unknown=lambda: False, check_rules=check_rules)  # type: ignore[arg-type]
    assert [error.field for error in errors] == ["s.properties[b].default"]
    assert calls == [
        ({"apiVersion": "v1", "kind": "Foo"}, "s.default", True),
        ("x", "s.properties[a].default", False),
    ]


STORED: list[tuple[str, Object, bool]] = [
    ("no defaults", of(a=STRING), False),
    ("a pruned one", of(a={**of(x=STRING), "default": {"x": "1"}}), False),
    ("an unknown field", of(a={**of(x=STRING), "default": {"y": "1"}}), True),
    ("an unknown field deep inside", of(a=of(l={"type": "array", "items": {**of(x=STRING), "default": {"y": 1}}})), True),
    ("an unknown field in a map's value", of(a={"type": "object", "additionalProperties": {**of(x=STRING), "default": {"y": 1}}}), True),
    ("unknown metadata", of(a={**EMBEDDED, "default": resource(foo=1)}), True),
    ("a schema without structure", of(a={"default": {"y": 1}}), False),
    ("a schema without a structural form", of(a={**of(), "id": "x", "default": {"y": 1}}), False),
    ("a root default that is no object", {**of(a={**of(x=STRING), "default": {"y": 1}}), "default": 1}, False),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "unknown"), [row[1:] for row in STORED], ids=[row[0] for row in STORED])
def test_stored_schemas_with_unpruned_defaults(schema: Object, unknown: bool) -> None:
    assert has_unknown_fields(schema) is unknown
