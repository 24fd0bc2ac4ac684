"""The internal form: hoisted fields, equality, and how messages print values."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from noxu.crd.internal import echo, echo_versions, go_name, internal, nodes, same
from noxu.crd.types import COLUMN, RULE, SCHEMA, SCHEMA_OR_LIST, SPEC, SUBRESOURCES, VALIDATION
from noxu.go.structs import List, decode
from noxu.values import Json, Object
from tests.rows import rows

Build = Callable[..., Object]


def version(name: str, **fields: Json) -> Object:
    return {"name": name, "served": True, "storage": name == "v1", **fields}


def spec_of(*versions: Object) -> Object:
    spec: Object = decode(SPEC, {"group": "g", "versions": list(versions)}).value
    return spec


HOISTED: list[tuple[str, list[Object], Object, list[str]]] = [
    (
        "everything of a single version",
        [version("v1", schema={}, subresources={"status": {}}, additionalPrinterColumns=[{"name": "a"}])],
        {"validation": {}, "subresources": {"status": {}}},
        [],
    ),
    (
        "what two versions have in common",
        [version("v1", schema={}, subresources={}), version("v2", schema={}, subresources={"status": {}})],
        {"validation": {}, "subresources": None},
        ["subresources"],
    ),
    (
        "no columns and an empty list of them are the same",
        [version("v1", additionalPrinterColumns=[]), version("v2")],
        {"validation": None},
        [],
    ),
    (
        "an empty subresources is not the same as none",
        [version("v1", subresources={}), version("v2")],
        {"subresources": None},
        ["subresources"],
    ),
    (
        "empty keywords make no difference",
        [
            version("v1", schema={"openAPIV3Schema": {"required": []}}),
            version("v2", schema={"openAPIV3Schema": {}}),
        ],
        {"validation": {"openAPIV3Schema": {"required": []}}},
        [],
    ),
    (
        "true and 1 are different defaults",
        [
            version("v1", schema={"openAPIV3Schema": {"default": True}}),
            version("v2", schema={"openAPIV3Schema": {"default": 1}}),
        ],
        {"validation": None},
        ["schema"],
    ),
]


@pytest.mark.parametrize(("versions", "top", "left"), [row[1:] for row in HOISTED], ids=[row[0] for row in HOISTED])
def test_fields_hoisted_from_versions(versions: list[Object], top: Object, left: list[str]) -> None:
    found = internal(spec_of(*versions))
    assert {name: getattr(found, name) for name in top} == top
    assert found.versions is not None
    assert [name for name in found.versions[0] if name not in ("name", "served", "storage")] == left
    assert found.version == "v1"


def test_without_versions_nothing_is_hoisted() -> None:
    assert internal(spec_of()).version == ""
    assert internal(decode(SPEC, {}).value).versions is None


def test_hoisting_leaves_the_spec_as_it_was() -> None:
    spec = spec_of(version("v1", schema={"openAPIV3Schema": {"type": "object"}}))
    internal(spec)
    assert "schema" in spec["versions"][0]


def test_the_schema_of_a_version() -> None:
    one, two = {"openAPIV3Schema": {"title": "1"}}, {"openAPIV3Schema": {"title": "2"}}
    hoisted = internal(spec_of(version("v1", schema=one)))
    assert hoisted.schema("v9") == one  # upstream does not look at the name then
    several = internal(spec_of(version("v1", schema=one), version("v2", schema=two)))
    assert several.schema("v2") == two
    with pytest.raises(LookupError):
        several.schema("v9")
    assert [schema["title"] for schema in hoisted.schemas()] == ["1"]
    assert [schema["title"] for schema in several.schemas()] == ["1", "2"]


def test_the_same() -> None:
    assert same(SUBRESOURCES, None, None)
    assert not same(SUBRESOURCES, {}, None)
    assert same(List(COLUMN), [], None)
    assert not same(VALIDATION, {"openAPIV3Schema": {"default": 1.0}}, {"openAPIV3Schema": {"default": 1}})
    deep: Json = 1
    for _ in range(2000):
        deep = [deep]
    holder = {"openAPIV3Schema": {"default": deep}}
    assert not same(VALIDATION, holder, {"openAPIV3Schema": {"default": [2]}})


RULES: list[tuple[str, Object, str]] = [
    (
        "pointers are null, values are zero",
        {"rule": "self"},
        '{"Rule":"self","Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null}',
    ),
    (
        "HTML is escaped",
        {"rule": "a < b && c", "reason": "FieldValueInvalid", "optionalOldSelf": False},
        '{"Rule":"a \\u003c b \\u0026\\u0026 c","Message":"","MessageExpression":"","Reason":"FieldValueInvalid",'
        '"FieldPath":"","OptionalOldSelf":false}',
    ),
]


@pytest.mark.parametrize(("rule", "text"), [row[1:] for row in RULES], ids=[row[0] for row in RULES])
def test_rules_are_echoed(rule: Object, text: str) -> None:
    assert echo(RULE, rule) == text


EMPTY = (
    '{"ID":"","Schema":"","Ref":null,"Description":"","Type":"","Nullable":false,"Format":"","Title":"","Default":null,'
    '"Maximum":null,"ExclusiveMaximum":false,"Minimum":null,"ExclusiveMinimum":false,"MaxLength":null,"MinLength":null,'
    '"Pattern":"","MaxItems":null,"MinItems":null,"UniqueItems":false,"MultipleOf":null,"Enum":null,"MaxProperties":null,'
    '"MinProperties":null,"Required":null,"Items":null,"AllOf":null,"OneOf":null,"AnyOf":null,"Not":null,'
    '"Properties":null,"AdditionalProperties":null,"PatternProperties":null,"Dependencies":null,"AdditionalItems":null,'
    '"Definitions":null,"ExternalDocs":null,"Example":null,"XPreserveUnknownFields":null,"XEmbeddedResource":false,'
    '"XIntOrString":false,"XListMapKeys":null,"XListType":null,"XMapType":null,"XValidations":null}'
)
SCHEMAS: list[tuple[str, Object, str, str]] = [
    ("nothing", {}, '"ID":""', '"ID":""'),
    ("a type", {"type": "object"}, '"Type":""', '"Type":"object"'),
    ("an empty list is not null", {"required": []}, '"Required":null', '"Required":[]'),
    ("an empty map is not null", {"properties": {}}, '"Properties":null', '"Properties":{}'),
    ("values have sorted keys", {"default": {"a": 1, "b": [None]}}, '"Default":null', '"Default":{"a":1,"b":[null]}'),
    ("limits as Go prints them", {"maximum": 1e21}, '"Maximum":null', '"Maximum":1e+21'),
    ("items", {"items": {}}, '"Items":null', f'"Items":{{"Schema":{EMPTY},"JSONSchemas":null}}'),
    ("lists of items", {"items": [{}]}, '"Items":null', f'"Items":{{"Schema":null,"JSONSchemas":[{EMPTY}]}}'),
    ("a schema for the rest", {"additionalProperties": {}}, '"AdditionalProperties":null', f'"AdditionalProperties":{{"Allows":true,"Schema":{EMPTY}}}'),
    ("true for the rest", {"additionalProperties": True}, '"AdditionalProperties":null', '"AdditionalProperties":{"Allows":true,"Schema":null}'),
    ("false for the rest", {"additionalItems": False}, '"AdditionalItems":null', '"AdditionalItems":{"Allows":false,"Schema":null}'),
    ("properties by name", {"properties": {"b": {}, "a": {}}}, '"Properties":null', f'"Properties":{{"a":{EMPTY},"b":{EMPTY}}}'),
    ("dependencies", {"dependencies": {"a": ["x"]}}, '"Dependencies":null', '"Dependencies":{"a":{"Schema":null,"Property":["x"]}}'),
    ("documentation", {"externalDocs": {"url": "u"}}, '"ExternalDocs":null', '"ExternalDocs":{"Description":"","URL":"u"}'),
]  # fmt: skip


@rows(("schema", "old", "new"), [row[1:] for row in SCHEMAS], ids=[row[0] for row in SCHEMAS])
def test_schemas_are_echoed(schema: Object, old: str, new: str) -> None:
    assert EMPTY.count(old) == 1
    assert echo(SCHEMA, schema) == EMPTY.replace(old, new)


def test_versions_are_echoed() -> None:
    assert echo_versions(None) == "null"
    assert echo_versions([]) == "[]"
    assert echo_versions(spec_of(version("v1", subresources={"scale": {}}, deprecationWarning="x"))["versions"]) == (
        '[{"Name":"v1","Served":true,"Storage":true,"Deprecated":false,"DeprecationWarning":"x","Schema":null,'
        '"Subresources":{"Status":null,"Scale":{"SpecReplicasPath":"","StatusReplicasPath":"","LabelSelectorPath":null}},'
        '"AdditionalPrinterColumns":null,"SelectableFields":null}]'
    )
    assert echo(List(COLUMN), [{"name": "a", "type": "b", "jsonPath": "."}]) == (
        '[{"Name":"a","Type":"b","Format":"","Description":"","Priority":0,"JSONPath":"."}]'
    )
    assert echo(SCHEMA_OR_LIST, []) == '{"Schema":null,"JSONSchemas":[]}'


def test_go_names() -> None:
    names = ["id", "$ref", "not", "x-kubernetes-int-or-string", "jsonPath", "openAPIV3Schema", "maxItems"]
    assert list(map(go_name, names)) == [
        "ID", "Ref", "Not", "XIntOrString", "JSONPath", "OpenAPIV3Schema", "MaxItems",
    ]  # fmt: skip


def test_all_nodes_are_visited_outermost_first() -> None:
    leaf = iter("abcdefghijklmnop")

    def node(**below: Json) -> Object:
        return {"title": next(leaf), **below}

    schema = node(
        items=[node()],
        allOf=[node()],
        anyOf=[node()],
        oneOf=[node()],
        properties={"x": {**node(), "not": node()}},
        additionalProperties=node(),
        patternProperties={"x": node()},
        dependencies={"x": node(), "y": ["z"]},
        additionalItems=True,
        definitions={"x": node()},
    )
    titles = [node["title"] for node in nodes(schema)]
    assert sorted(titles) == sorted(set(titles))
    assert len(titles) == 11
    assert titles[0] == schema["title"]
