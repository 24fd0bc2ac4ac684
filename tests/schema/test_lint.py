"""Rules of structural schemas, with their paths and messages. (Checked against upstream's ValidateStructural.)"""

from __future__ import annotations

import pytest

from noxu.api.field import FieldError, forbidden, invalid
from noxu.schema.lint import explain, incomplete, remarks, structural_errors
from noxu.schema.structural import parse
from noxu.values import Json, Object
from tests.rows import rows

STRING = {"type": "string"}
OBJECT = {"type": "object"}


def of(**properties: Json) -> Object:
    return {"type": "object", "properties": properties}


FIELD = "Required value: must not be empty for specified object fields"
ITEM = "Required value: must not be empty for specified array items"
PRESERVE, EMBEDDED, EITHER = (
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
)

SPINE: list[tuple[str, Object, list[str]]] = [
    ("an object", OBJECT, []),
    ("everything in its place", of(a=STRING, b={"type": "array", "items": STRING}, c={"type": "object", "additionalProperties": {"type": "array", "items": OBJECT}}), []),
    ("nothing", {}, ["type: Required value: must not be empty at the root"]),
    ("a root of another type", {"type": "array", "items": STRING}, ['type: Invalid value: "array": must be object at the root']),
    ("a root that preserves unknown fields needs no type", {PRESERVE: True}, []),
    ("a field without a type", of(a={}), [f"properties[a].type: {FIELD}"]),
    ("a field that preserves unknown fields", of(a={PRESERVE: True}), []),
    ("an integer or string", of(a={EITHER: True}), []),
    ("items without a type", of(a={"type": "array", "items": {}}), [f"properties[a].items.type: {ITEM}"]),
    ("values without a type", of(a={"type": "object", "additionalProperties": {}}), [f"properties[a].additionalProperties.type: {FIELD}"]),
    ("values of any kind", of(a={"type": "object", "additionalProperties": True}), []),
    ("a list without items", of(a={"type": "array"}), ["properties[a].items: Required value: must be specified"]),
    ("a root that is a map", {**OBJECT, "additionalProperties": STRING}, ["additionalProperties: Forbidden: must not be used at the root"]),
    ("a root that says that it is no map", {**OBJECT, "additionalProperties": False}, ["additionalProperties: Forbidden: must not be used at the root"]),
    ("an integer or string that preserves", of(a={EITHER: True, PRESERVE: True}), [f"properties[a].{PRESERVE}: Invalid value: true: must be false if x-kubernetes-int-or-string is true"]),
    ("an integer or string that is a resource", of(a={EITHER: True, EMBEDDED: True, "type": "object", "properties": {"a": STRING}}), [f"properties[a].{EMBEDDED}: Invalid value: true: must be false if x-kubernetes-int-or-string is true"]),
    ("an integer or string with a type is let pass", of(a={EITHER: True, "type": "string"}), []),
    ("a pattern", of(a={**STRING, "pattern": "("}), ['properties[a].pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: error parsing regexp: missing closing ): `(`']),
    ("sorted by text", of(b={}, a={"type": "array"}, c={}), ["properties[a].items: Required value: must be specified", f"properties[b].type: {FIELD}", f"properties[c].type: {FIELD}"]),
]  # fmt: skip

ONLY_NAMES = (
    "Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified"
)
RESOURCE = {"type": "object", EMBEDDED: True, PRESERVE: True}
META: list[tuple[str, Object, list[str]]] = [
    ("what is implied", of(apiVersion=STRING, kind=STRING, metadata=OBJECT), []),
    ("of other types", of(apiVersion=OBJECT, kind={"type": "integer"}, metadata=STRING), ['properties[apiVersion].type: Invalid value: "object": must be string', 'properties[kind].type: Invalid value: "integer": must be string', 'properties[metadata].type: Invalid value: "string": must be object']),
    ("without a type, which is reported twice", of(kind={}), ['properties[kind].type: Invalid value: "": must be string', f"properties[kind].type: {FIELD}"]),
    ("names may be restricted", of(metadata=of(name={**STRING, "maxLength": 3}, generateName=STRING)), []),
    ("labels may not", of(metadata=of(name=STRING, labels=OBJECT)), [f"properties[metadata]: {ONLY_NAMES}"]),
    ("nor may metadata itself", of(metadata={**OBJECT, "required": ["name"]}), [f"properties[metadata]: {ONLY_NAMES}"]),
    ("other empty lists are nothing", of(metadata={**OBJECT, "enum": [], "anyOf": []}), []),
    ("not even by requiring nothing", of(metadata={**OBJECT, "required": []}), [f"properties[metadata]: {ONLY_NAMES}"]),
    ("not even by keys of no list", of(metadata={**OBJECT, "x-kubernetes-list-map-keys": []}), [f"properties[metadata]: {ONLY_NAMES}"]),
    ("not even by no rules", of(metadata={**of(), "x-kubernetes-validations": []}), [f"properties[metadata]: {ONLY_NAMES}"]),
    ("not even by an empty documentation", of(metadata={**OBJECT, "externalDocs": {}}), [f"properties[metadata]: {ONLY_NAMES}"]),
    ("nor by forbidding more fields", of(metadata={**OBJECT, "additionalProperties": False}), [f"properties[metadata]: {ONLY_NAMES}"]),
    ("without properties", of(metadata=of()), []),
    ("nor be described", of(metadata={**OBJECT, "description": "d"}), [f"properties[metadata]: {ONLY_NAMES}"]),
    ("defaults are not checked here", of(metadata={**OBJECT, "default": {}}), []),
    ("metadata elsewhere is a field like others", of(a=of(metadata=STRING, kind=OBJECT)), []),
    ("an embedded resource", of(a={**RESOURCE, "properties": {"kind": STRING, "metadata": of(labels=OBJECT)}}), []),
    ("an embedded resource of the wrong types", of(a={**RESOURCE, "properties": {"kind": OBJECT, "metadata": STRING}}), ['properties[a].properties[kind].type: Invalid value: "object": must be string', 'properties[a].properties[metadata].type: Invalid value: "string": must be object']),
    ("an embedded resource without a type", of(a={EMBEDDED: True, PRESERVE: True}), ["properties[a].type: Required value: must be object if x-kubernetes-embedded-resource is true"]),
    ("an embedded string", of(a={**RESOURCE, "type": "string"}), ['properties[a].type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true']),
    ("an embedded map", of(a={**RESOURCE, "additionalProperties": STRING}), ["properties[a].additionalProperties: Forbidden: must not be used if x-kubernetes-embedded-resource is set"]),
    ("an embedded resource without fields", of(a={"type": "object", EMBEDDED: True}), ["properties[a].properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"]),
]  # fmt: skip


def junctors(branch: Object) -> Object:
    return of(a={"type": "object", "anyOf": [branch], "allOf": [{}, branch], "oneOf": [branch], "not": branch})


JUNCTOR_PATHS = ["allOf[1]", "anyOf[0]", "not", "oneOf[0]"]
EMPTY, UNDEFINED, FALSE = (f"must be {word} to be structural" for word in ("empty", "undefined", "false"))
BRANCHES: list[tuple[str, Object, list[tuple[str, str]]]] = [
    ("value validations", {"minProperties": 1, "required": ["a"], "externalDocs": {"url": "u"}, "example": 1}, []),
    ("a type", STRING, [("type", EMPTY)]),
    ("words", {"title": "t", "description": "d"}, [("description", EMPTY), ("title", EMPTY)]),
    ("a default, though it is false", {"default": False}, [("default", UNDEFINED)]),
    ("null", {"nullable": True}, [("nullable", FALSE)]),
    ("extensions", {PRESERVE: True, EMBEDDED: True, EITHER: True}, [(EMBEDDED, FALSE), (EITHER, FALSE), (PRESERVE, FALSE)]),
    ("list types", {"x-kubernetes-list-type": "set", "x-kubernetes-list-map-keys": ["k"], "x-kubernetes-map-type": ""}, [("x-kubernetes-list-map-keys", EMPTY), ("x-kubernetes-list-type", UNDEFINED), ("x-kubernetes-map-type", UNDEFINED)]),
    ("rules", {"x-kubernetes-validations": [{"rule": "true"}]}, [("x-kubernetes-validations", EMPTY)]),
    ("values of a map", {"additionalProperties": {"minLength": 1}}, [("additionalProperties", UNDEFINED)]),
    ("values of any kind", {"additionalProperties": True}, [("additionalProperties", UNDEFINED)]),
    ("no other fields", {"additionalProperties": False}, []),
    ("metadata", {"properties": {"metadata": {}}}, [("properties[metadata]", "must not be specified in a nested context")]),
    ("below fields and items", {"properties": {"x": {"items": STRING}}}, [("properties[x].items.type", EMPTY)]),
    ("junctors in junctors", {"allOf": [STRING], "not": {"anyOf": [STRING]}}, [("allOf[0].type", EMPTY), ("not.anyOf[0].type", EMPTY)]),
    ("integer or string is no exception in here", {"anyOf": [{"anyOf": [{"type": "integer"}, STRING]}]}, [("anyOf[0].anyOf[0].type", EMPTY), ("anyOf[0].anyOf[1].type", EMPTY)]),
]  # fmt: skip


def texts(schema: Object, path: str = "") -> list[str]:
    return [str(error) for error in structural_errors(parse(schema), path)]


@rows(("schema", "errors"), [row[1:] for row in SPINE], ids=[row[0] for row in SPINE])
def test_the_spine(schema: Object, errors: list[str]) -> None:
    assert texts(schema) == errors


@rows(("schema", "errors"), [row[1:] for row in META], ids=[row[0] for row in META])
def test_apiversion_kind_and_metadata(schema: Object, errors: list[str]) -> None:
    assert texts(schema) == errors


@rows(("branch", "errors"), [row[1:] for row in BRANCHES], ids=[row[0] for row in BRANCHES])
def test_junctors(branch: Object, errors: list[tuple[str, str]]) -> None:
    found = [text for text in texts(junctors(branch)) if "because it is defined" not in text]
    assert found == sorted(
        f"properties[a].{junctor}.{field}: Forbidden: {why}" for junctor in JUNCTOR_PATHS for field, why in errors
    )


EITHER_OR = [{"type": "integer"}, STRING]
EXCEPTIONS: list[tuple[str, Object, list[str]]] = [
    ("integer or string", {EITHER: True, "anyOf": EITHER_OR}, []),
    ("in the first allOf, with more", {EITHER: True, "allOf": [{"anyOf": EITHER_OR}, {"pattern": "x"}]}, []),
    ("even without the extension, but then a type is missing", {"anyOf": EITHER_OR}, [f"properties[a].type: {FIELD}"]),
    ("the other way round", {EITHER: True, "anyOf": EITHER_OR[::-1]}, [f"properties[a].anyOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
    ("with a limit", {EITHER: True, "anyOf": [{"type": "integer", "minimum": 1}, STRING]}, [f"properties[a].anyOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
    ("with an empty list", {EITHER: True, "anyOf": [{"type": "integer", "required": []}, STRING]}, [f"properties[a].anyOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
    ("with empty properties", {EITHER: True, "anyOf": [{"type": "integer", "properties": {}}, STRING]}, [f"properties[a].anyOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
    ("with empty keys, in an allOf", {EITHER: True, "allOf": [{"anyOf": [{"type": "integer"}, {**STRING, "x-kubernetes-list-map-keys": []}]}]}, [f"properties[a].allOf[0].anyOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
    ("with no rules", {EITHER: True, "anyOf": [{"type": "integer", "x-kubernetes-validations": []}, STRING]}, [f"properties[a].anyOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
    ("with an empty documentation", {EITHER: True, "anyOf": [{"type": "integer", "externalDocs": {}}, STRING]}, [f"properties[a].anyOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
    ("with other empty lists, which are nothing", {EITHER: True, "anyOf": [{"type": "integer", "enum": [], "oneOf": [], "items": [], "additionalProperties": False}, STRING]}, []),
    ("with a third", {EITHER: True, "anyOf": [*EITHER_OR, {}]}, [f"properties[a].anyOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
    ("in oneOf", {EITHER: True, "oneOf": EITHER_OR}, [f"properties[a].oneOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
    ("in the second allOf", {EITHER: True, "allOf": [{}, {"anyOf": EITHER_OR}]}, [f"properties[a].allOf[1].anyOf[{n}].type: Forbidden: {EMPTY}" for n in (0, 1)]),
]  # fmt: skip


@rows(("schema", "errors"), [row[1:] for row in EXCEPTIONS], ids=[row[0] for row in EXCEPTIONS])
def test_integer_or_string(schema: Object, errors: list[str]) -> None:
    assert texts(of(a=schema)) == errors


COMPLETE: list[tuple[str, Object, list[str]]] = [
    ("a field of the spine", {**of(a=STRING), "anyOf": [{"properties": {"a": {"minLength": 1}}}]}, []),
    ("an unknown field", {**OBJECT, "allOf": [{"properties": {"a": {}}}]}, ["s.properties[a]: Required value: because it is defined in s.allOf[0].properties[a]"]),
    ("an unknown field below a known one", {**of(a=OBJECT), "oneOf": [{"properties": {"a": {"properties": {"b": {}}}}}]}, ["s.properties[a].properties[b]: Required value: because it is defined in s.oneOf[0].properties[a].properties[b]"]),
    ("in junctors of junctors", {**OBJECT, "not": {"anyOf": [{"properties": {"a": {}}}]}}, ["s.properties[a]: Required value: because it is defined in s.not.anyOf[0].properties[a]"]),
    ("items of no list", {**of(a={PRESERVE: True}), "anyOf": [{"properties": {"a": {"items": {}}}}]}, ["s.properties[a].items: Required value: because it is defined in s.anyOf[0].properties[a].items"]),
    ("values of a map are no fields", {**of(a={"type": "object", "additionalProperties": STRING}), "anyOf": [{"properties": {"a": {"properties": {"b": {}}}}}]}, ["s.properties[a].properties[b]: Required value: because it is defined in s.anyOf[0].properties[a].properties[b]"]),
    ("upstream looks at the root's junctors only", of(a={**OBJECT, "anyOf": [{"properties": {"b": {}}}]}), []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "errors"), [row[1:] for row in COMPLETE], ids=[row[0] for row in COMPLETE])
def test_completeness(schema: Object, errors: list[str]) -> None:
    assert texts(schema, "s") == errors


EXPLAINED: list[tuple[str, Object, str]] = [
    ("a root without a type", {}, "Write `type: object` at the root"),
    ("a field without a type", of(a={}), "Give it a `type`."),
    ("a list without items", of(a={"type": "array"}), "Describe the items of the list"),
    ("a type in a junctor", of(a={**OBJECT, "not": STRING}), "Move it out of anyOf, allOf, oneOf and not"),
    ("an incomplete spine", {**OBJECT, "allOf": [{"properties": {"a": {}}}]}, "Declare it outside of anyOf"),
    ("metadata", of(metadata={**OBJECT, "required": ["x"]}), "Keep only `type: object`"),
    ("a pattern", of(a={**STRING, "pattern": "("}), "Patterns are Go regular expressions"),
]


@pytest.mark.parametrize(("schema", "advice"), [row[1:] for row in EXPLAINED], ids=[row[0] for row in EXPLAINED])
def test_explanations(schema: Object, advice: str) -> None:
    [error] = structural_errors(parse(schema))
    assert explain(error).startswith(advice)


def test_other_errors_have_advice_of_their_own() -> None:
    others: list[FieldError] = [
        forbidden("a", "definitions is not supported"),
        forbidden("a", "id is not supported"),
        invalid("a", 1, "must be atomic as item of a list with x-kubernetes-list-type=set"),
    ]
    assert all(explain(error).endswith(".") for error in others)
    assert len(set(map(explain, others))) == 3


def test_a_message_that_says_everything_has_no_advice() -> None:
    assert explain(invalid("a", 1, "must be 2")) == ""


# -- what servers accept

UNDECLARED: list[tuple[str, Object, list[str]]] = [
    ("fields that are declared", of(a={**of(b=STRING), "anyOf": [{"required": ["b"], "properties": {"b": {"minLength": 1}}}]}), []),
    ("a field only in not", of(a={**OBJECT, "not": {"properties": {"b": {}}}}), ["properties[a].properties[b]"]),
    ("below items", of(a={"type": "array", "items": {**OBJECT, "anyOf": [{"properties": {"b": {}}}]}}), ["properties[a].items.properties[b]"]),
    ("below additionalProperties", of(a={"type": "object", "additionalProperties": {**OBJECT, "oneOf": [{"properties": {"b": {}}}]}}), ["properties[a].additionalProperties.properties[b]"]),
    ("deep in a branch", of(a={**of(b=OBJECT), "allOf": [{"anyOf": [{"properties": {"b": {"properties": {"c": {}}}}}]}]}), ["properties[a].properties[b].properties[c]"]),
    ("those of the root are reported by servers", {**OBJECT, "not": {"properties": {"b": {}}}}, []),
    ("each only once", of(a={**OBJECT, "not": {"properties": {"b": {}, "c": {}}}}), ["properties[a].properties[b]", "properties[a].properties[c]"]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "paths"), [row[1:] for row in UNDECLARED], ids=[row[0] for row in UNDECLARED])
def test_fields_of_nested_validations_that_are_not_declared(schema: Object, paths: list[str]) -> None:
    assert [error.field for error in incomplete(parse(schema))] == paths


def items(*required: str, **properties: Json) -> Object:
    return of(a={"type": "array", "items": {**of(**properties), "required": list(required)}})


REMARKS: list[tuple[str, Object, list[tuple[str, str]]]] = [
    ("nothing", of(a=STRING), []),
    ("nullable", of(a={**STRING, "nullable": True}), []),
    ("a default", of(a={**STRING, "default": "x"}), []),
    ("nullable with a default", of(a={**STRING, "nullable": True, "default": "x"}), [("properties[a]", "nullable-default")]),
    ("nullable with the default null", of(a={**STRING, "nullable": True, "default": None}), []),
    ("a list of items with a name", items("name", name=STRING), [("properties[a]", "list-type")]),
    ("whose name is optional", items(name=STRING), []),
    ("whose name is an object", items("name", name=OBJECT), []),
    ("a list of strings", of(a={"type": "array", "items": STRING}), []),
    ("with a list type", of(a={**items("name", name=STRING)["properties"]["a"], "x-kubernetes-list-type": "atomic"}), []),
    ("below a map", of(m={"type": "object", "additionalProperties": items("key", key=STRING)}), [("properties[m].additionalProperties.properties[a]", "list-type")]),
]  # fmt: skip


@rows(("schema", "found"), [row[1:] for row in REMARKS], ids=[row[0] for row in REMARKS])
def test_remarks(schema: Object, found: list[tuple[str, str]]) -> None:
    assert [(remark.path, remark.rule) for remark in remarks(parse(schema))] == found


def test_the_advice_names_the_key_of_a_list() -> None:
    [remark] = remarks(parse(items("type", "key", type=STRING, key=STRING)))
    assert "`x-kubernetes-list-map-keys: [key]` if no two items have the same key" in remark.advice


@pytest.mark.parametrize("path", ["spec.validation.openAPIV3Schema", "spec.a[b]", "a.items", "a.additionalProperties"])
def test_nothing_advises_to_remove_a_schema(path: str) -> None:
    assert "do not remove it" in explain(forbidden(path, "for some reason"))
