"""Which schemas a CRD may have, and when its rules are checked."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noxu.api.field import FieldError, Path, forbidden, invalid
from noxu.crd.schemas import RuleSite
from noxu.schema.structural import Structural
from noxu.values import Json, Object
from tests.rows import rows

Build = Callable[..., Object]
Messages = Callable[..., list[str]]
ROOT = "spec.validation.openAPIV3Schema"
SPEC = f"{ROOT}.properties[spec]"


def of(spec: Object, **root: Json) -> Object:
    return {"type": "object", "properties": {"spec": spec}, **root}


OBJECT = {"type": "object"}
STRING = {"type": "string"}
TYPES = 'supported values: "array", "boolean", "integer", "number", "object", "string"'

# Schemas of `spec`, and the errors below it.
NODES: list[tuple[str, Object, list[str]]] = [
    ("every type", {**OBJECT, "properties": {"a": {"type": "array", "items": {"type": "number"}}, "b": {"type": "boolean"}, "i": {"type": "integer"}}}, []),
    ("an unknown type", {"type": "any"}, [f'.type: Unsupported value: "any": {TYPES}']),
    ("null", {"type": "null"}, [f'.type: Unsupported value: "null": {TYPES}', ".type: Forbidden: type cannot be set to null, use nullable as an alternative"]),
    ("keywords without a place", {**OBJECT, "id": "x", "additionalItems": False, "patternProperties": {"a": STRING}, "definitions": {"a": STRING}, "dependencies": {"a": ["b"]}, "$ref": "#"}, [f".{name}: Forbidden: {name} is not supported" for name in ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")]),
    ("some of them while empty", {**OBJECT, "id": "", "additionalItems": {}, "patternProperties": {}, "definitions": {}, "dependencies": {}, "$ref": ""}, [".additionalItems: Forbidden: additionalItems is not supported", ".dependencies: Forbidden: dependencies is not supported", ".$ref: Forbidden: $ref is not supported"]),
    ("their subschemas are checked, too", {**OBJECT, "definitions": {"a": {"type": "x"}}, "dependencies": {"b": {"type": "y"}, "c": ["d"]}}, [".definitions: Forbidden: definitions is not supported", ".dependencies: Forbidden: dependencies is not supported", f'.definitions[a].type: Unsupported value: "x": {TYPES}', f'.dependencies[b].type: Unsupported value: "y": {TYPES}']),
    ("lists of items", {"type": "array", "items": [STRING, {"type": "x"}]}, [".items: Forbidden: items must be a schema object and not an array", f'.items[1].type: Unsupported value: "x": {TYPES}']),
    ("unique items", {"type": "array", "items": STRING, "uniqueItems": True}, [".uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"]),
    ("a struct that is a map", {**OBJECT, "properties": {"a": STRING}, "additionalProperties": STRING}, [".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"]),
    ("a struct without more", {**OBJECT, "properties": {"a": STRING}, "additionalProperties": False}, [".additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive"]),
    ("a struct with anything more", {**OBJECT, "properties": {"a": STRING}, "additionalProperties": True}, []),
    ("an empty struct that is a map", {**OBJECT, "properties": {}, "additionalProperties": STRING}, []),
    ("preserving nothing", {**OBJECT, "x-kubernetes-preserve-unknown-fields": False}, [".x-kubernetes-preserve-unknown-fields: Invalid value: false: must be true or undefined"]),
    ("junctors and what is below maps", {**OBJECT, "additionalProperties": {"type": "a", "not": {"type": "b"}, "oneOf": [{"type": "c"}]}}, [".additionalProperties.not.type: Forbidden: must be empty to be structural", ".additionalProperties.oneOf[0].type: Forbidden: must be empty to be structural", f'.additionalProperties.type: Unsupported value: "a": {TYPES}', f'.additionalProperties.not.type: Unsupported value: "b": {TYPES}', f'.additionalProperties.oneOf[0].type: Unsupported value: "c": {TYPES}']),
    ("structure comes first, then the walk", {"type": "x", "properties": {"a": {}}}, [".properties[a].type: Required value: must not be empty for specified object fields", f'.type: Unsupported value: "x": {TYPES}']),
    ("a keyword that only conversion knows", {**OBJECT, "$schema": "x"}, []),
]  # fmt: skip


@rows(("schema", "errors"), [row[1:] for row in NODES], ids=[row[0] for row in NODES])
def test_nodes(build: Build, messages: Messages, schema: Object, errors: list[str]) -> None:
    expected = [SPEC + error for error in errors]
    if "$schema" in schema:
        expected = [f"{ROOT}: Invalid value: \"\": OpenAPIV3Schema 'schema' is not supported"]
    assert messages(build(of(schema))) == expected


def test_a_failed_conversion_is_reported_if_it_is_the_only_error(build: Build, messages: Messages) -> None:
    schema = of({"$schema": "x", "type": "array", "items": STRING, "uniqueItems": True})
    assert messages(build(schema)) == [
        f"{SPEC}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
    ]


ALLOWED = (
    "[Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern MaxItems "
    "MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]"
)
STATUS_ROOTS: list[tuple[str, Object, str]] = [
    ("nothing but an object", OBJECT, ""),
    ("what is allowed", {**OBJECT, "description": "d", "required": ["spec"], "properties": {"spec": OBJECT}, "x-kubernetes-preserve-unknown-fields": True}, ""),
    ("another type", STRING, '.type: Invalid value: "string": only "object" is allowed as the type at the root of the schema if the status subresource is enabled'),
    ("a limit", {**OBJECT, "maxProperties": 3}, f'"MaxProperties":3,"MinProperties":null|: only {ALLOWED} fields are allowed at the root of the schema if the status subresource is enabled'),
    ("a junctor", {**OBJECT, "anyOf": [{"required": ["spec"]}]}, f'"AnyOf":[{{"ID":""|: only {ALLOWED} fields are allowed at the root of the schema if the status subresource is enabled'),
    ("an empty junctor", {**OBJECT, "anyOf": []}, f'"AnyOf":[],"Not":null|: only {ALLOWED} fields are allowed at the root of the schema if the status subresource is enabled'),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "error"), [row[1:] for row in STATUS_ROOTS], ids=[row[0] for row in STATUS_ROOTS])
def test_roots_that_a_status_is_cut_out_of(build: Build, messages: Messages, schema: Object, error: str) -> None:
    found = [
        text
        for text in messages(build(schema, version={"subresources": {"status": {}}}))
        if "status subresource" in text
    ]
    if not error:
        assert found == []
    elif "|" not in error:
        assert found == [ROOT + error]
    else:
        echo, detail = error.split("|")
        assert [text.startswith(f'{ROOT}: Invalid value: {{"ID":"","Schema":""') for text in found] == [True]
        assert echo in found[0]
        assert found[0].endswith(detail)
    assert not any("status subresource" in text for text in messages(build(schema)))


def test_only_the_first_root_keyword_is_reported(build: Build, messages: Messages) -> None:
    schema = {"type": "string", "maxProperties": 3, "not": {}}
    found = messages(build(schema, version={"subresources": {"status": {}}}))
    assert [text.partition(":")[0] for text in found] == [f"{ROOT}.type", f"{ROOT}.type"]


def test_the_root_is_not_null(build: Build, messages: Messages) -> None:
    assert messages(build({**OBJECT, "nullable": True})) == [
        f"{ROOT}.nullable: Forbidden: nullable cannot be true at the root"
    ]


EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}
META: list[tuple[str, Object, list[str]]] = [
    ("a default for the kind", {"kind": {**STRING, "default": "Foo"}}, ["[kind].default: Forbidden: must not be set in top-level kind"]),
    ("a default in metadata", {"metadata": {**OBJECT, "properties": {"name": {**STRING, "default": "x"}}}}, ["[metadata].properties[name].default: Forbidden: must not be set in top-level metadata"]),
    ("an embedded resource as metadata", {"metadata": EMBEDDED}, ["[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified", "[metadata].x-kubernetes-embedded-resource: Forbidden: must not be used inside of resource meta"]),
    ("a default in a map of metadata", {"spec": {**EMBEDDED, "properties": {"metadata": {**OBJECT, "properties": {"labels": {**OBJECT, "additionalProperties": {**STRING, "default": "x"}}}}}}}, ["[spec].properties[metadata].properties[labels].additionalProperties.default: Forbidden: must not be set inside additionalProperties applying to object metadata"]),
    ("a default in embedded metadata", {"spec": {**EMBEDDED, "properties": {"metadata": {**OBJECT, "properties": {"name": {**STRING, "default": "x"}}}}}}, []),
]  # fmt: skip


@pytest.mark.parametrize(("properties", "errors"), [row[1:] for row in META], ids=[row[0] for row in META])
def test_meta_fields(build: Build, messages: Messages, properties: Object, errors: list[str]) -> None:
    assert messages(build({**OBJECT, "properties": properties})) == [f"{ROOT}.properties{error}" for error in errors]


AT = f"{SPEC}.x-kubernetes-validations[0]"
SHAPES: list[tuple[str, Object, list[str]]] = [
    ("a rule", {"rule": "true"}, []),
    ("no rule", {"rule": " \t\u2003"}, [".rule: Required value: rule is not specified"]),
    ("a blank message", {"rule": "true", "message": " "}, ['.message: Invalid value: " ": must be non-empty if specified']),
    ("a message of two lines", {"rule": "true", "message": "a\r\nb"}, ['.message: Invalid value: "a\\r\\nb": must not contain line breaks']),
    ("a message with a line break at its end", {"rule": "true", "message": "a\n"}, []),
    ("a rule of two lines needs a message", {"rule": "true\n&& true"}, [".message: Required value: message must be specified if rule contains line breaks"]),
    ("and may have one", {"rule": "true\n&& true", "message": "m"}, []),
    ("a blank message expression", {"rule": "true", "messageExpression": " "}, [".messageExpression: Required value: messageExpression must be non-empty if specified"]),
    ("another reason", {"rule": "true", "reason": "a<b"}, ['.reason: Unsupported value: "a\\u003cb": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"']),
    ("a field path", {"rule": "true", "fieldPath": ".a"}, []),
    ("a field path in brackets", {"rule": "true", "fieldPath": "['a']"}, []),
    ("a blank field path", {"rule": "true", "fieldPath": " "}, ['.fieldPath: Invalid value: " ": must be non-empty if specified', '.fieldPath: Invalid value: " ": must be a valid path']),
    ("a field path of two lines", {"rule": "true", "fieldPath": ".a\n.b"}, ['.fieldPath: Invalid value: ".a\\n.b": must not contain line breaks', '.fieldPath: Invalid value: ".a\\n.b": must be a valid path']),
    ("a field path to nowhere", {"rule": "true", "fieldPath": ".b"}, ['.fieldPath: Invalid value: ".b": must be a valid path']),
    ("several things wrong", {"rule": "", "message": " ", "reason": "", "fieldPath": "a"}, [".rule: Required value: rule is not specified", '.reason: Unsupported value: "": supported values: "FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"', '.fieldPath: Invalid value: "a": must be a valid path']),
]  # fmt: skip


@rows(("rule", "errors"), [row[1:] for row in SHAPES], ids=[row[0] for row in SHAPES])
def test_shapes_of_rules(build: Build, messages: Messages, rule: Object, errors: list[str]) -> None:
    schema = {**OBJECT, "properties": {"a": STRING}, "x-kubernetes-validations": [rule]}
    assert messages(build(of(schema))) == [AT + error for error in errors]


def test_field_paths_are_not_resolved_without_a_structural_schema(build: Build, messages: Messages) -> None:
    schema = {**OBJECT, "id": "x", "x-kubernetes-validations": [{"rule": "true", "fieldPath": ".nowhere"}]}
    assert messages(build(of(schema))) == [f"{SPEC}.id: Forbidden: id is not supported"]


# -- the checker ------------------------------------------------------------------------------------------------------


class Recorder:
    """Reports an error at every node with rules, and records its calls."""

    def __init__(self, **made: object) -> None:
        self.made = made
        self.sites: list[RuleSite] = []
        self.defaults: list[tuple[Json, Path, bool]] = []

    def check(self, site: RuleSite) -> list[FieldError]:
        self.sites.append(site)
        return [invalid(f"{site.path}.rules", site.echo(0), "checked")]

    def check_default(self, schema: Structural, default: Json, path: Path, root: bool) -> list[FieldError]:
        self.defaults.append((default, path, root))
        return [invalid(path, default, "no")] if default == "bad" else []

    def totals(self, path: Path) -> list[FieldError]:
        return [forbidden(path, "too expensive")]


class Recorders:
    def __init__(self) -> None:
        self.all: list[Recorder] = []

    def __call__(self, root: Structural, **made: object) -> Recorder:
        self.all.append(Recorder(**made))
        return self.all[-1]


RULES = [{"rule": "true"}]


def ruled(schema: Object) -> Object:
    return {**schema, "x-kubernetes-validations": RULES}


def sites_of(build: Build, messages: Messages, schema: Object) -> dict[Path, RuleSite]:
    checkers = Recorders()
    messages(build(schema), checkers)
    [checker] = checkers.all
    return {site.path.removeprefix(ROOT): site for site in checker.sites}


def test_rules_are_reported_after_the_schema_and_totals_last(build: Build, messages: Messages) -> None:
    echo = '{"Rule":"true","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}'
    inner = ruled({"type": "array", "items": STRING})
    schema = {**ruled(of(inner)), "not": {"uniqueItems": True}}
    assert messages(build(schema), Recorders()) == [
        f"{ROOT}.not.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
        f"{SPEC}.rules: Invalid value: {echo}: checked",
        f"{ROOT}: Forbidden: too expensive",
    ]  # the root's own rules are not checked, because a child has errors


def test_rules_are_not_looked_at_without_structure(build: Build, messages: Messages) -> None:
    checkers = Recorders()
    assert messages(build(ruled(of({}))), checkers) == [
        f"{SPEC}.type: Required value: must not be empty for specified object fields"
    ]
    assert checkers.all[0].sites == []


def test_rules_are_not_looked_at_after_a_bad_default(build: Build, messages: Messages) -> None:
    checkers = Recorders()
    schema = ruled(of({**STRING, "default": "bad"}))
    assert messages(build(schema), checkers) == [f'{SPEC}.default: Invalid value: "bad": no']
    assert checkers.all[0].sites == []
    assert checkers.all[0].defaults == [("bad", f"{SPEC}.default", False)]


def test_rules_in_junctors_are_no_rules(build: Build, messages: Messages) -> None:
    checkers = Recorders()
    messages(build(of({**OBJECT, "allOf": [ruled({})]})), checkers)
    assert checkers.all[0].sites == []


def test_resources_are_roots(build: Build, messages: Messages) -> None:
    sites = sites_of(build, messages, ruled(of({**OBJECT, "properties": {"e": ruled(EMBEDDED), "o": ruled(OBJECT)}})))
    assert {path: site.root for path, site in sites.items()} == {
        "": True,
        ".properties[spec].properties[e]": True,
        ".properties[spec].properties[o]": False,
    }
    assert sites[".properties[spec].properties[o]"].schema.type == "object"


LEAF = ruled(STRING)
CARDINALITIES: list[tuple[str, Object, str, int | None]] = [
    ("fields", of(LEAF), "", 1),
    ("a list", {"type": "array", "items": LEAF}, ".items", None),
    ("a list with a limit", {"type": "array", "maxItems": 3, "items": LEAF}, ".items", 3),
    ("a list with a senseless limit", {"type": "array", "maxItems": -3, "items": LEAF}, ".items", 0),
    ("a map", {**OBJECT, "additionalProperties": LEAF}, ".additionalProperties", None),
    ("a map with a limit", {**OBJECT, "maxProperties": 5, "additionalProperties": LEAF}, ".additionalProperties", 5),
    ("a map of lists", {**OBJECT, "maxProperties": 5, "additionalProperties": {"type": "array", "maxItems": 3, "items": LEAF}}, ".additionalProperties.items", 15),
    ("a list without a limit in a map with one", {**OBJECT, "maxProperties": 5, "additionalProperties": {"type": "array", "items": {"type": "array", "maxItems": 3, "items": LEAF}}}, ".additionalProperties.items.items", None),
    ("limits beyond uint64", {"type": "array", "maxItems": 2**62, "items": {"type": "array", "maxItems": 2**62, "items": LEAF}}, ".items.items", 2**64 - 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "path", "most"), [row[1:] for row in CARDINALITIES], ids=[row[0] for row in CARDINALITIES]
)
def test_how_many_values_there_are_at_most(
    build: Build, messages: Messages, spec: Object, path: str, most: int | None
) -> None:
    schema = spec if "properties" in spec else of(spec)
    [site] = sites_of(build, messages, schema).values()
    assert site.path == SPEC + path
    assert site.cardinality == most


def keyed(items: Object) -> Object:
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}
    properties = {"k": STRING, **items.get("properties", {})}
    return {"type": "array", **keys, "items": {**items, "properties": properties, "required": ["k"]}}


UNCORRELATABLE: list[tuple[str, Object, str | None]] = [
    ("fields and maps", {**OBJECT, "additionalProperties": LEAF}, None),
    ("atomic maps", {**OBJECT, "x-kubernetes-map-type": "atomic", "properties": {"a": LEAF}}, None),
    ("lists", {"type": "array", "items": LEAF}, ""),
    ("sets", {"type": "array", "x-kubernetes-list-type": "set", "items": LEAF}, ""),
    ("lists with keys", keyed(ruled(OBJECT)), None),
    ("a list in a list with keys", keyed({**OBJECT, "properties": {"l": {"type": "array", "items": LEAF}}}), ".items.properties[l]"),
    ("the outermost list", {"type": "array", "items": {"type": "array", "items": LEAF}}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "path"), [row[1:] for row in UNCORRELATABLE], ids=[row[0] for row in UNCORRELATABLE])
def test_where_old_values_cannot_be_found(build: Build, messages: Messages, spec: Object, path: str | None) -> None:
    [site] = sites_of(build, messages, of(spec)).values()
    assert site.uncorrelatable == (None if path is None else SPEC + path)


def test_a_checker_is_made_for_every_schema(build: Build, messages: Messages) -> None:
    checkers = Recorders()
    versions = [
        {
            "name": name,
            "served": True,
            "storage": name == "v1",
            "schema": {"openAPIV3Schema": {**OBJECT, "title": name}},
        }
        for name in ("v1", "v2")
    ]
    messages(build(versions=versions), checkers)
    everything = {"stored_rules": frozenset(), "stored_messages": frozenset(), "limit_each": True}
    assert [checker.made for checker in checkers.all] == [everything, everything]
