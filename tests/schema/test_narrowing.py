"""What a new schema refuses, drops or fills in that the former one did not, keyword by keyword."""

from __future__ import annotations

from typing import Any

from noxu.schema.narrowing import PRUNED, narrowings
from tests.rows import rows

STRING, INTEGER, NUMBER, BOOLEAN = ({"type": name} for name in ("string", "integer", "number", "boolean"))
ANY: Any = {"x-kubernetes-preserve-unknown-fields": True}
INT_OR_STRING: Any = {"x-kubernetes-int-or-string": True}
TEXT_OR_NUMBER = [{"type": "integer"}, {"type": "string"}]
Rows = list[tuple[str, Any, Any, list[str]]]


def of(**fields: Any) -> Any:
    return {"type": "object", "properties": fields}


def items(item: Any, **more: Any) -> Any:
    return {"type": "array", "items": item, **more}


def values(value: Any, **more: Any) -> Any:
    return {"type": "object", "additionalProperties": value, **more}


def rules(*texts: str, **more: Any) -> Any:
    return {**of(), "x-kubernetes-validations": [{"rule": text, **more} for text in texts]}


# (what differs, the former schema, the new one, the findings)
TYPES: Rows = [
    ("nothing", STRING, STRING, []),
    ("texts", {**STRING, "description": "a", "title": "b", "example": 1}, {**STRING, "description": "c"}, []),
    ("an integer that is a string", INTEGER, STRING, ["type: the type was integer, and is string now"]),
    ("a string that is an integer", STRING, INTEGER, ["type: the type was string, and is integer now"]),
    ("an integer that is a number", INTEGER, NUMBER, []),
    ("a number that is an integer", NUMBER, INTEGER, ["type: the type was number, and is integer now"]),
    ("a boolean that is a string", BOOLEAN, STRING, ["type: the type was boolean, and is string now"]),
    ("an integer that may be a string", INTEGER, INT_OR_STRING, []),
    ("a string that may be an integer", STRING, INT_OR_STRING, []),
    ("a number that may be a string", NUMBER, INT_OR_STRING, ["type: the type was number, and is integer or string now"]),
    ("either that is an integer", INT_OR_STRING, INTEGER, ["type: the type was integer or string, and is integer now"]),
    ("a string that may be anything", STRING, ANY, []),
    ("an object that may be anything", of(a=STRING), ANY, []),
    ("a list that may be anything", items(STRING), ANY, []),
    ("anything that is a string", ANY, STRING, ["type: the type was anything, and is string now"]),
    ("anything that is an object", ANY, {**of(), **ANY}, ["type: the type was anything, and is object now"]),
    ("a list that is an object", items(STRING), of(), ["type: the type was array, and is object now"]),
    ("nothing below another type", of(a=STRING), items(INTEGER), ["type: the type was object, and is array now"]),
    ("null", {**STRING, "nullable": True}, STRING, ["null is no longer accepted"]),
    ("no null", STRING, {**STRING, "nullable": True}, []),
    ("null in both", {**STRING, "nullable": True}, {**STRING, "nullable": True}, []),
    ("null that is false", {**STRING, "nullable": True}, {**STRING, "nullable": False}, ["null is no longer accepted"]),
    ("a whole object", {**of(), **ANY}, {**of(), **ANY, "x-kubernetes-embedded-resource": True}, ["x-kubernetes-embedded-resource: it must be a whole object now, with apiVersion, kind and metadata"]),
    ("no whole object", {**of(), "x-kubernetes-embedded-resource": True}, of(kind=STRING), ["the former schema keeps apiVersion, metadata; now they are pruned"]),
    ("no whole object that is kept", {**of(), "x-kubernetes-embedded-resource": True}, {**of(), **ANY}, []),
]  # fmt: skip

FIELDS: Rows = [
    ("a field that is gone", of(a=STRING, b=STRING), of(a=STRING), [f"properties[b]: {PRUNED}"]),
    ("a field that is new", of(a=STRING), of(a=STRING, b=INTEGER), []),
    ("a field of another type", of(a=STRING), of(a=INTEGER), ["properties[a].type: the type was string, and is integer now"]),
    ("a field of a field", of(a=of(b=STRING)), of(a=of(b=INTEGER)), ["properties[a].properties[b].type: the type was string, and is integer now"]),
    ("a name with a dot", of(**{"a.b": STRING}), of(), [f"properties[a.b]: {PRUNED}"]),
    ("all unknown fields are kept", of(a=STRING), {**of(), **ANY}, []),
    ("unknown fields are kept no more", {**of(a=STRING), **ANY}, of(a=STRING), ["the former schema keeps unknown fields; now they are pruned"]),
    ("unknown fields are kept in a map", {**of(a=STRING), **ANY}, values(True), []),
    ("an unknown field is described", {**of(), **ANY}, {**of(b=STRING), **ANY}, ["properties[b]: it may be anything in the former schema; now it must satisfy a schema"]),
    ("an unknown field is described as anything", {**of(), **ANY}, {**of(b=ANY), **ANY}, []),
    ("an unknown field is described as anything or null", {**of(), **ANY}, {**of(b={**ANY, "nullable": True}), **ANY}, []),
    ("an unknown field is described as an open object", {**of(), **ANY}, {**of(b={**of(), **ANY}), **ANY}, ["properties[b]: it may be anything in the former schema; now it must satisfy a schema"]),
    ("a map becomes fields", values(STRING), of(a=STRING), ["the former schema keeps all fields of this map; now those that it does not name are pruned"]),
    ("a map becomes fields of another type", values(STRING), of(a=INTEGER), ["properties[a].type: the type was string, and is integer now", "the former schema keeps all fields of this map; now those that it does not name are pruned"]),
    ("a map becomes open", values(STRING), {**of(), **ANY}, []),
    ("fields become a map", of(a=STRING), values(STRING), []),
    ("fields become a map of another type", of(a=STRING), values(INTEGER), ["additionalProperties.type: the type was string, and is integer now"]),
    ("fields become an open map", of(a=STRING), values(True), []),
    ("the values of a map", values(STRING), values({**STRING, "maxLength": 3}), ["additionalProperties.maxLength: there is a maxLength now: 3"]),
    ("any value of a map", values(True), values(STRING), ["additionalProperties: it may be anything in the former schema; now it must satisfy a schema"]),
    ("any value of a map, as before", values(True), values(ANY), []),
    ("no map", values(True), of(), ["the former schema keeps all fields of this map; now those that it does not name are pruned"]),
    ("a map that never was open", values(False), of(), []),
    ("the items of a list", items(STRING), items(INTEGER), ["items.type: the type was string, and is integer now"]),
    ("the fields of items", items(of(a=STRING, b=STRING)), items(of(b=STRING)), [f"items.properties[a]: {PRUNED}"]),
    ("lists in lists", items(items(STRING)), items(items({**STRING, "enum": ["a"]})), ['items.items.enum: only "a" is accepted now']),
]  # fmt: skip

REQUIRED: Rows = [
    ("a field that is required", of(a=STRING), {**of(a=STRING), "required": ["a"]}, ["required[0]: a is required now"]),
    ("another field", {**of(a=STRING, b=STRING), "required": ["a"]}, {**of(a=STRING, b=STRING), "required": ["a", "b"]}, ["required[1]: b is required now"]),
    ("a field that is required no more", {**of(a=STRING), "required": ["a"]}, of(a=STRING), []),
    ("the order", {**of(), "required": ["a", "b"]}, {**of(), "required": ["b", "a"]}, []),
    ("a field that has a default", of(a={**STRING, "default": ""}), {**of(a={**STRING, "default": ""}), "required": ["a"]}, []),
    ("a new field that has a default", of(), {**of(a={**STRING, "default": ""}), "required": ["a"]}, []),
    ("a new field without one", of(), {**of(a=STRING), "required": ["a"]}, ["required[0]: a is required now"]),
    ("what every object has", of(), {**of(), "required": ["apiVersion", "kind", "metadata"]}, []),
    ("what only whole objects have", of(a=of()), of(a={**of(), "required": ["kind"]}), ["properties[a].required[0]: kind is required now"]),
    ("what a whole object has", of(a={**of(), "x-kubernetes-embedded-resource": True}), of(a={**of(), "x-kubernetes-embedded-resource": True, "required": ["kind"]}), []),
]  # fmt: skip

ENUMS: Rows = [
    ("a value that is gone", {**STRING, "enum": ["a", "b"]}, {**STRING, "enum": ["a"]}, ['enum: "b" is no longer accepted']),
    ("two values that are gone", {**STRING, "enum": ["a", "b", "c"]}, {**STRING, "enum": ["c"]}, ['enum: "a", "b" are no longer accepted']),
    ("a value that is new", {**STRING, "enum": ["a"]}, {**STRING, "enum": ["a", "b"]}, []),
    ("the order", {**STRING, "enum": ["a", "b"]}, {**STRING, "enum": ["b", "a"]}, []),
    ("values that were free", STRING, {**STRING, "enum": ["a", "b"]}, ['enum: only "a", "b" are accepted now']),
    ("values that are free", {**STRING, "enum": ["a"]}, STRING, []),
    ("a renamed value", {**STRING, "enum": ["a"]}, {**STRING, "enum": ["A"]}, ['enum: "a" is no longer accepted']),
    ("numbers", {**INTEGER, "enum": [1, 2]}, {**INTEGER, "enum": [2]}, ["enum: 1 is no longer accepted"]),
    ("objects", {**of(), "enum": [{"a": 1}]}, {**of(), "enum": [{}]}, ['enum: {"a":1} is no longer accepted']),
]  # fmt: skip

TEXTS: Rows = [
    ("a pattern", STRING, {**STRING, "pattern": "^a"}, ['pattern: there is a pattern now: "^a"']),
    ("another pattern", {**STRING, "pattern": "a"}, {**STRING, "pattern": "^a"}, ['pattern: the pattern was "a", and is "^a" now']),
    ("no pattern", {**STRING, "pattern": "a"}, STRING, []),
    ("the same pattern", {**STRING, "pattern": "a"}, {**STRING, "pattern": "a"}, []),
    ("a pattern of a number", INTEGER, {**INTEGER, "pattern": "a"}, []),
    ("a pattern of either", INT_OR_STRING, {**INT_OR_STRING, "pattern": "a"}, ['pattern: there is a pattern now: "a"']),
    ("a format", STRING, {**STRING, "format": "date"}, ['format: there is a format now: "date"']),
    ("another format", {**STRING, "format": "date"}, {**STRING, "format": "date-time"}, ['format: the format was "date", and is "date-time" now']),
    ("no format", {**STRING, "format": "date"}, STRING, []),
    ("a format that nobody knows", STRING, {**STRING, "format": "zzz"}, []),
    ("a format of other types", STRING, {**STRING, "format": "int32"}, []),
    ("a smaller integer", {**INTEGER, "format": "int64"}, {**INTEGER, "format": "int32"}, ['format: the format was "int64", and is "int32" now']),
    ("a larger integer", {**INTEGER, "format": "int32"}, {**INTEGER, "format": "int64"}, []),
    ("an integer of any size", {**INTEGER, "format": "int32"}, INTEGER, []),
    ("an integer of a size", INTEGER, {**INTEGER, "format": "int32"}, ['format: there is a format now: "int32"']),
]  # fmt: skip


def bounds(keyword: str, node: Any, other: Any, *, least: bool) -> Rows:
    """Rows about a bound of a type."""
    low, high = ({**node, keyword: limit} for limit in (2, 5))
    narrow, wide = (high, low) if least else (low, high)
    change = f"{keyword}: the {keyword} was {wide[keyword]}, and is {narrow[keyword]} now"
    return [
        (f"{keyword}: narrower", wide, narrow, [change]),
        (f"{keyword}: wider", narrow, wide, []),
        (f"{keyword}: the same", narrow, narrow, []),
        (f"{keyword}: new", node, narrow, [f"{keyword}: there is a {keyword} now: {narrow[keyword]}"]),
        (f"{keyword}: gone", narrow, node, []),
        (f"{keyword}: of another type", other, {**other, keyword: 3}, []),
        (f"{keyword}: in a field", of(a=wide), of(a=narrow), [f"properties[a].{change}"]),
        (f"{keyword}: in items", items(wide), items(narrow), [f"items.{change}"]),
    ]


LIST, MAP = items(STRING), values(STRING)
BOUNDS: Rows = [
    *bounds("minimum", INTEGER, STRING, least=True),
    *bounds("maximum", INTEGER, STRING, least=False),
    *bounds("minimum", NUMBER, BOOLEAN, least=True),
    *bounds("maximum", NUMBER, BOOLEAN, least=False),
    *bounds("minimum", INT_OR_STRING, LIST, least=True),
    *bounds("maxLength", INT_OR_STRING, MAP, least=False),
    *bounds("minLength", STRING, INTEGER, least=True),
    *bounds("maxLength", STRING, INTEGER, least=False),
    *bounds("minItems", LIST, STRING, least=True),
    *bounds("maxItems", LIST, MAP, least=False),
    *bounds("minProperties", MAP, LIST, least=True),
    *bounds("maxProperties", MAP, STRING, least=False),
    ("a least length of 0", STRING, {**STRING, "minLength": 0}, []),
    ("a minimum that is excluded", {**INTEGER, "minimum": 1}, {**INTEGER, "minimum": 1, "exclusiveMinimum": True}, ["exclusiveMinimum: 1 itself is no longer accepted"]),
    ("a minimum that is included", {**INTEGER, "minimum": 1, "exclusiveMinimum": True}, {**INTEGER, "minimum": 1}, []),
    ("a lower minimum that is excluded", {**INTEGER, "minimum": 2}, {**INTEGER, "minimum": 1, "exclusiveMinimum": True}, []),
    ("a maximum that is excluded", {**NUMBER, "maximum": 1.5}, {**NUMBER, "maximum": 1.5, "exclusiveMaximum": True}, ["exclusiveMaximum: 1.5 itself is no longer accepted"]),
    ("a multiple", INTEGER, {**INTEGER, "multipleOf": 2}, ["multipleOf: there is a multipleOf now: 2"]),
    ("a multiple of a multiple", {**INTEGER, "multipleOf": 4}, {**INTEGER, "multipleOf": 2}, []),
    ("another multiple", {**INTEGER, "multipleOf": 2}, {**INTEGER, "multipleOf": 3}, ["multipleOf: the multipleOf was 2, and is 3 now"]),
    ("multiples of fractions, which are inexact", {**NUMBER, "multipleOf": 0.2}, {**NUMBER, "multipleOf": 0.1}, ["multipleOf: the multipleOf was 0.2, and is 0.1 now"]),
    ("no multiple", {**INTEGER, "multipleOf": 2}, INTEGER, []),
]  # fmt: skip

DEFAULTS: Rows = [
    ("another default", of(a={**STRING, "default": "x"}), of(a={**STRING, "default": "y"}), ['properties[a].default: the default was "x", and is "y" now']),
    ("a default", of(a=STRING), of(a={**STRING, "default": "y"}), ['properties[a].default: there is a default now: "y"']),
    ("no default", of(a={**STRING, "default": "x"}), of(a=STRING), ['properties[a].default: the default was "x", and there is none now']),
    ("the same default", of(a={**of(), "default": {}}), of(a={**of(), "default": {}}), []),
    ("a new field with a default", of(), of(a={**STRING, "default": "y"}), []),
    ("a new field with a default that may be too many", {**of(), "maxProperties": 1}, {**of(a={**STRING, "default": "y"}), "maxProperties": 1}, ['properties[a].default: it is filled in with "y" now, where other keywords may refuse that']),
    ("a new field with a default below a rule, which is taken to say the same", of(a=rules("r")), of(a={**rules("r"), **of(b={**INTEGER, "default": 1})}), []),
    ("a new field with a default that an alternative may refuse", of(a={**of(), "not": {"required": ["b"]}}), of(a={**of(b={**INTEGER, "default": 1}), "not": {"required": ["b"]}}), ["properties[a].properties[b].default: it is filled in with 1 now, where other keywords may refuse that"]),
]  # fmt: skip

RULE = "x-kubernetes-validations[{}].rule: this rule is {}: {}"
RULES: Rows = [
    ("a rule", rules(), rules("a"), [RULE.format(0, "new", "a")]),
    ("a second rule", rules("a"), rules("a", "b"), [RULE.format(1, "new", "b")]),
    ("another rule", rules("a"), rules("b"), [RULE.format(0, "new or has changed", "b")]),
    ("no rule", rules("a"), rules(), []),
    ("the order of rules", rules("a", "b"), rules("b", "a"), []),
    ("the message of a rule", rules("a"), rules("a", message="b"), []),
    ("a rule that holds for new objects, too", rules("a"), rules("a", optionalOldSelf=True), [RULE.format(0, "new or has changed", "a")]),
    ("a rule of a field", of(a=of()), of(a=rules("b")), ["properties[a]." + RULE.format(0, "new", "b")]),
]  # fmt: skip

JUNCTORS: Rows = [
    ("an allOf", STRING, {**STRING, "allOf": [{"pattern": "a"}]}, ["allOf[0]: this condition is new or has changed"]),
    ("one more in an allOf", {**STRING, "allOf": [{"pattern": "a"}]}, {**STRING, "allOf": [{"pattern": "a"}, {"minLength": 1}]}, ["allOf[1]: this condition is new or has changed"]),
    ("one less in an allOf", {**STRING, "allOf": [{"pattern": "a"}, {"minLength": 1}]}, {**STRING, "allOf": [{"minLength": 1}]}, []),
    ("an anyOf", of(), {**of(), "anyOf": [{"required": ["a"]}]}, ["anyOf: an alternative is missing or has changed"]),
    ("one less in an anyOf", {**of(), "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {**of(), "anyOf": [{"required": ["a"]}]}, ["anyOf: an alternative is missing or has changed"]),
    ("one more in an anyOf", {**of(), "anyOf": [{"required": ["a"]}]}, {**of(), "anyOf": [{"required": ["b"]}, {"required": ["a"]}]}, []),
    ("no anyOf", {**of(), "anyOf": [{"required": ["a"]}]}, of(), []),
    ("a oneOf", of(), {**of(), "oneOf": [{"required": ["a"]}]}, ["oneOf: the alternatives have changed"]),
    ("one more in a oneOf", {**of(), "oneOf": [{"required": ["a"]}]}, {**of(), "oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, ["oneOf: the alternatives have changed"]),
    ("the same oneOf with other texts", {**of(), "oneOf": [{"required": ["a"], "description": "x"}]}, {**of(), "oneOf": [{"required": ["a"], "description": "y"}]}, []),
    ("no oneOf", {**of(), "oneOf": [{"required": ["a"]}]}, of(), []),
    ("a not", of(), {**of(), "not": {"required": ["a"]}}, ["not: what is excluded has changed"]),
    ("an empty not", of(), {**of(), "not": {}}, ["not: what is excluded has changed"]),
    ("another not", {**of(), "not": {"required": ["a"]}}, {**of(), "not": {"required": ["b"]}}, ["not: what is excluded has changed"]),
    ("a field that is named like a text", {**of(), "not": {"properties": {"description": {"minLength": 1}}}}, {**of(), "not": {"properties": {"description": {"minLength": 2}}}}, ["not: what is excluded has changed"]),
    ("no not", {**of(), "not": {}}, of(), []),
    ("alternatives that only repeat the type", INT_OR_STRING, {**INT_OR_STRING, "anyOf": TEXT_OR_NUMBER}, []),
    ("alternatives that repeat it in an allOf", INT_OR_STRING, {**INT_OR_STRING, "allOf": [{"anyOf": TEXT_OR_NUMBER}]}, []),
]  # fmt: skip

LISTS: Rows = [
    ("a list that is a set", items(STRING), items(STRING, **{"x-kubernetes-list-type": "set"}), ["x-kubernetes-list-type: the list type was atomic, and is set now: no item may occur twice"]),
    ("a list that is a map", items(of()), items(of(), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}), ["x-kubernetes-list-type: the list type was atomic, and is map now: no two items may have the same keys"]),
    ("a map that is a list", items(of(), **{"x-kubernetes-list-type": "map"}), items(of()), ["x-kubernetes-list-type: the list type was map, and is atomic now: with server-side apply it has one owner as a whole"]),
    ("atomic by name", items(of()), items(of(), **{"x-kubernetes-list-type": "atomic"}), []),
    ("other keys", items(of(), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a", "b"]}), items(of(), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["a"]}), ["x-kubernetes-list-map-keys: the keys of the items were a, b, and are a now"]),
    ("an object that is atomic", of(), {**of(), "x-kubernetes-map-type": "atomic"}, ["x-kubernetes-map-type: the map was granular, and is atomic now: with server-side apply it has one owner as a whole"]),
    ("an object that is granular", {**of(), "x-kubernetes-map-type": "atomic"}, of(), []),
]  # fmt: skip

ROWS = [*TYPES, *FIELDS, *REQUIRED, *ENUMS, *TEXTS, *BOUNDS, *DEFAULTS, *RULES, *JUNCTORS, *LISTS]


@rows(("old", "new", "found"), [row[1:] for row in ROWS], ids=[row[0] for row in ROWS])
def test_findings(old: Any, new: Any, found: list[str]) -> None:
    assert [f"{each.path}: {each.message}".removeprefix(": ") for each in narrowings(old, new)] == found


@rows("schema", [row[1] for row in ROWS], ids=[row[0] for row in ROWS])
def test_a_schema_is_not_narrower_than_itself(schema: Any) -> None:
    assert narrowings(schema, schema) == []


def test_the_path_begins_with_that_of_the_schema() -> None:
    assert [each.path for each in narrowings(of(a=STRING), of(a=INTEGER), "spec.schema")] == ["spec.schema.properties[a].type"]  # fmt: skip


def test_the_names_of_findings() -> None:
    found = {each.rule for _, old, new, _ in ROWS for each in narrowings(old, new)}
    assert sorted(found) == [
        "default-changed",
        "list-type-changed",
        "narrower-all-of",
        "narrower-any-of",
        "narrower-enum",
        "narrower-format",
        "narrower-max-items",
        "narrower-max-length",
        "narrower-max-properties",
        "narrower-maximum",
        "narrower-min-items",
        "narrower-min-length",
        "narrower-min-properties",
        "narrower-minimum",
        "narrower-multiple-of",
        "narrower-not",
        "narrower-nullable",
        "narrower-one-of",
        "narrower-pattern",
        "narrower-required",
        "narrower-rule",
        "narrower-type",
        "no-longer-kept",
    ]
