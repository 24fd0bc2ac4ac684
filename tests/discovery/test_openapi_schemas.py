"""The published form of a custom resource's schema, by the rules of apiextensions' OpenAPI builder."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from noxu.discovery import openapi_schemas as schemas
from noxu.discovery.openapi_schemas import V2, V3, kind_schema, list_schema, lowered, published
from noxu.registry.custom import CODEC
from noxu.registry.resource import CUSTOM, Resource
from tests.rows import rows

Schema = dict[str, Any]

EITHER = [{"type": "integer"}, {"type": "string"}]
IOS = {"x-kubernetes-int-or-string": True}
PRESERVE = {"x-kubernetes-preserve-unknown-fields": True}
EMBEDDED = {"type": "object", "x-kubernetes-embedded-resource": True}
TEXT = {"type": "string"}


def obj(**properties: Schema) -> Schema:
    return {"type": "object", "properties": properties}


def resource(schema: Schema | None, **more: Any) -> Resource:
    given: dict[str, Any] = {
        "group": "example.com",
        "version": "v1",
        "plural": "widgets",
        "singular": "widget",
        "kind": "Widget",
    }
    given |= {
        "type": CUSTOM,
        "list_kind": "WidgetList",
        "namespaced": True,
        "codec": CODEC,
        "raw_schema": schema,
    }
    return Resource(**(given | more))


def bare(value: Any) -> Any:
    """Without descriptions."""
    if isinstance(value, dict):
        return {k: bare(v) for k, v in value.items() if k != "description" or not isinstance(v, str)}
    return [bare(item) for item in value] if isinstance(value, list) else value


def metadata(style: str) -> Schema:
    target = {"$ref": style + "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    return target if style == V2 else {"allOf": [target]}


def type_meta(style: str) -> Schema:
    return {"apiVersion": TEXT, "kind": TEXT, "metadata": metadata(style)}


# -- v3: a self-contained subtree is published unchanged --------------------------------------------------------------

UNTOUCHED: list[tuple[str, Schema]] = [
    ("nothing", {}),
    ("a scalar with validations", {"type": "integer", "format": "int32", "minimum": 1, "maximum": 5.5, "default": 3}),
    ("a nullable enum", {"type": "string", "nullable": True, "enum": ["a", None]}),
    ("alternatives", {"type": "object", "oneOf": [{"required": ["a"]}], "not": {"required": ["b"]}, "allOf": [{}]}),
    ("rules", {"type": "string", "x-kubernetes-validations": [{"rule": "self != ''", "message": "m"}]}),
    ("a map of anything", {"type": "object", "additionalProperties": True}),
    ("a closed object", {"type": "object", "additionalProperties": False}),
    ("a map list", {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                    "items": obj(k=TEXT)}),
    ("unknown fields are kept", obj(a=TEXT) | PRESERVE),
    ("docs and examples", {"type": "string", "title": "t", "externalDocs": {"url": "http://x"}, "example": ""}),
    ("int-or-string, spelled out", IOS | {"anyOf": EITHER}),
    ("int-or-string, spelled out among others", IOS | {"allOf": [{"anyOf": EITHER}, {"pattern": "x"}]}),
]  # fmt: skip


@rows(("case", "schema"), UNTOUCHED)
@pytest.mark.parametrize("where", ["itself", "in properties", "in items", "in a map"])
def test_v3_publishes_it_unchanged(case: str, schema: Schema, where: str) -> None:
    whole = {
        "itself": schema,
        "in properties": obj(a=schema, b=TEXT),
        "in items": {"type": "array", "items": schema},
        "in a map": {"type": "object", "additionalProperties": schema},
    }[where]
    assert published(whole) == whole


CHANGED_IN_V3: list[tuple[str, Schema, Schema]] = [
    ("int-or-string", IOS, IOS | {"anyOf": EITHER}),
    (
        "int-or-string with anyOf of its own gets one more condition",
        IOS | {"anyOf": [{"pattern": "x"}], "allOf": [{"maxLength": 3}]},
        IOS | {"anyOf": [{"pattern": "x"}], "allOf": [{"anyOf": EITHER}, {"maxLength": 3}]},
    ),
    (
        "the order of integer and string counts",
        IOS | {"anyOf": EITHER[::-1]},
        IOS | {"anyOf": EITHER[::-1], "allOf": [{"anyOf": EITHER}]},
    ),
    (
        "other conditions stay",
        IOS | {"allOf": [{"pattern": "x"}]},
        IOS | {"allOf": [{"pattern": "x"}], "anyOf": EITHER},
    ),
    (
        "embedded resources have what every object has",
        EMBEDDED | PRESERVE,
        EMBEDDED | PRESERVE | {"properties": type_meta(V3), "required": ["kind", "apiVersion"]},
    ),
    (
        "and may say more, but not of metadata",
        EMBEDDED | {"properties": {"spec": TEXT, "metadata": obj(name=TEXT)}, "required": ["apiVersion", "spec"]},
        EMBEDDED | {"properties": {"spec": TEXT} | type_meta(V3), "required": ["apiVersion", "spec", "kind"]},
    ),
    (
        "deep down, too",
        obj(a={"type": "array", "items": {"type": "object", "additionalProperties": obj(b=IOS)}}),
        obj(
            a={
                "type": "array",
                "items": {"type": "object", "additionalProperties": obj(b=IOS | {"anyOf": EITHER})},
            }
        ),
    ),
]


@pytest.mark.parametrize(("case", "schema", "expected"), CHANGED_IN_V3)
def test_v3(case: str, schema: Schema, expected: Schema) -> None:
    assert bare(published(schema)) == expected


# -- v2 ---------------------------------------------------------------------------------------------------------------

LOWERED: list[tuple[str, Schema, Schema]] = [
    ("what v2 knows stays", {"type": "string", "format": "uuid", "pattern": "x"},
     {"type": "string", "format": "uuid", "pattern": "x"}),
    ("rules and list types stay", {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"},
     {"type": "array", "items": TEXT, "x-kubernetes-list-type": "set"}),
    ("there are no defaults", {"type": "integer", "default": 0}, {"type": "integer"}),
    ("there are no alternatives", {"type": "object", "allOf": [{}], "anyOf": [{}], "oneOf": [{}], "not": {}},
     {"type": "object"}),
    ("int-or-string is anything", IOS, IOS),
    ("int-or-string is anything, spelled out or not", IOS | {"anyOf": EITHER}, IOS),
    ("what is nullable has no type", {"type": "string", "nullable": True, "enum": ["a"]}, {"enum": ["a"]}),
    ("nor children", obj(a=TEXT) | {"nullable": True, "required": ["a"]}, {"required": ["a"]}),
    ("a nullable map keeps its values", {"type": "object", "nullable": True, "additionalProperties": TEXT},
     {"additionalProperties": TEXT}),
    ("a nullable list has no items", {"type": "array", "nullable": True, "items": TEXT}, {}),
    ("nullable: false is nothing", {"type": "string", "nullable": False}, {"type": "string"}),
    ("where unknown fields are preserved, properties are not published", obj(a=TEXT) | PRESERVE, PRESERVE),
    ("a list that keeps unknown fields is no list", {"type": "array", "items": TEXT} | PRESERVE, PRESERVE),
    ("a list without items is no list", {"type": "array", "maxItems": 1}, {"maxItems": 1}),
    ("a scalar that keeps unknown fields is still a scalar", TEXT | PRESERVE, TEXT | PRESERVE),
    ("a map that keeps unknown fields", {"type": "object", "additionalProperties": TEXT} | PRESERVE,
     {"additionalProperties": TEXT} | PRESERVE),
    ("what may be null is not required", obj(a=TEXT | {"nullable": True}, b=TEXT) | {"required": ["a", "b"]},
     obj(a={}, b=TEXT) | {"required": ["b"]}),
    ("and then perhaps nothing is", obj(a=TEXT | {"nullable": True}) | {"required": ["a"]}, obj(a={})),
    ("what is not described is still required", obj(a=TEXT) | {"required": ["z"]}, obj(a=TEXT) | {"required": ["z"]}),
    ("nothing is required of a map whose values may be null",
     {"type": "object", "required": ["a"], "additionalProperties": TEXT | {"nullable": True}},
     {"type": "object", "additionalProperties": {}}),
    ("an embedded resource", EMBEDDED | {"properties": {"spec": TEXT}},
     EMBEDDED | {"properties": {"spec": TEXT} | type_meta(V2), "required": ["kind", "apiVersion"]}),
    ("one of which nothing is known", EMBEDDED | PRESERVE,
     {"x-kubernetes-embedded-resource": True} | PRESERVE),
    ("one that may be null is known all the same", EMBEDDED | {"nullable": True, "properties": {"spec": TEXT}},
     {"x-kubernetes-embedded-resource": True, "properties": type_meta(V2), "required": ["kind", "apiVersion"]}),
    ("everything, deep down", obj(a={"type": "array", "items": obj(b={"type": "integer", "default": 1})}),
     obj(a={"type": "array", "items": obj(b={"type": "integer"})})),
]  # fmt: skip


@rows(("case", "schema", "expected"), LOWERED)
@pytest.mark.parametrize("deep", [False, True])
def test_v2(case: str, schema: Schema, expected: Schema, *, deep: bool) -> None:
    if deep and not schema.get("nullable"):
        schema, expected = obj(a={"type": "array", "items": schema}), obj(a={"type": "array", "items": expected})
    assert bare(lowered(schema)) == expected


@pytest.mark.parametrize("convert", [published, lowered])
@rows("schema", [row[1] for row in (*CHANGED_IN_V3, *LOWERED)])
def test_the_definitions_own_schema_is_not_touched(convert: Any, schema: Schema) -> None:
    before = copy.deepcopy(schema)
    convert(schema)
    assert schema == before


def trees(children: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    flags = {"nullable": st.just(True), "default": st.just(1), "x-kubernetes-preserve-unknown-fields": st.just(True),
             "allOf": st.just([{"pattern": "x"}]), "required": st.lists(st.sampled_from("ab"), unique=True)}  # fmt: skip
    return (
        st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(st.sampled_from("abc"), children)}, optional=flags
        )
        | st.fixed_dictionaries({"type": st.just("array")}, optional=flags | {"items": children})
        | st.fixed_dictionaries({"type": st.just("object")}, optional=flags | {"additionalProperties": children})
    )


def nodes(schema: Schema) -> list[Schema]:
    found = [schema]
    for child in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(child, dict):
            found += nodes(child)
    return found


@settings(max_examples=150, deadline=None)
@given(st.recursive(st.just(TEXT), trees, max_leaves=12))
def test_every_node_of_v2_has_a_form_that_kubectl_accepts(schema: Schema) -> None:
    found = lowered(schema)
    assert lowered(found) == found
    for node in nodes(found):
        assert not {"nullable", "default", "allOf", "anyOf", "oneOf", "not"} & node.keys()
        assert node.get("type") != "array" or "items" in node
        assert not node.get("x-kubernetes-preserve-unknown-fields") or not {"properties", "items"} & node.keys()


# -- whole kinds ------------------------------------------------------------------------------------------------------

GVK = {"x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "Widget", "version": "v1"}]}
LIST_GVK = {"x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "WidgetList", "version": "v1"}]}


@pytest.mark.parametrize("style", [V2, V3])
def test_a_kind_has_type_meta_metadata_and_its_group_version_kind(style: str) -> None:
    schema = obj(spec=obj(a=TEXT)) | {"description": "d", "required": ["spec"]}
    found = kind_schema(resource(schema), style)
    assert found["description"] == "d"
    assert bare(found) == obj(spec=obj(a=TEXT), **type_meta(style)) | {"required": ["spec"]} | GVK
    assert all(found["properties"][name]["description"] for name in ("apiVersion", "kind", "metadata"))


def test_metadata_and_type_meta_in_the_schema_are_replaced() -> None:
    schema = obj(metadata=obj(name=TEXT | {"maxLength": 3}), kind=TEXT | {"enum": ["Widget"]}, apiVersion=TEXT)
    assert bare(kind_schema(resource(schema), V3)) == obj(**type_meta(V3)) | GVK


@pytest.mark.parametrize(
    ("case", "schema", "style", "expected"),
    [
        ("no schema", None, V2, {"type": "object"}),
        ("no schema", None, V3, {"type": "object"}),
        ("an empty schema", {"type": "object"}, V3, obj(**type_meta(V3))),
        (
            "a root that preserves unknown fields: v2 publishes no properties",
            obj(a=TEXT) | PRESERVE,
            V2,
            {"type": "object"},
        ),
        ("v3 does", obj(a=TEXT) | PRESERVE, V3, obj(a=TEXT, **type_meta(V3)) | PRESERVE),
    ],
)
def test_a_root(case: str, schema: Schema | None, style: str, expected: Schema) -> None:
    assert bare(kind_schema(resource(schema), style)) == expected | GVK


def test_selectable_fields_are_reported_of_the_kind_and_of_its_list() -> None:
    widget = resource(obj(spec=obj(a=TEXT)), selectable_fields=("spec.a", "spec.b.c"))
    messages = [{"fieldPath": "spec.a"}, {"fieldPath": "spec.b.c"}]
    for style in (V2, V3):
        assert kind_schema(widget, style)["x-kubernetes-selectable-fields"] == messages
        assert list_schema(widget, style)["x-kubernetes-selectable-fields"] == messages
    assert "x-kubernetes-selectable-fields" not in kind_schema(resource(None), V3)


@pytest.mark.parametrize("style", [V2, V3])
def test_a_list(style: str) -> None:
    target = {"$ref": style + "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta"}
    items = {"type": "array", "items": {"$ref": style + "com.example.v1.Widget"}}
    list_meta = target if style == V2 else {"allOf": [target]}
    expected = obj(apiVersion=TEXT, items=items, kind=TEXT, metadata=list_meta) | {"required": ["items"]} | LIST_GVK
    found = list_schema(resource(None), style)
    assert bare(found) == expected
    assert found["description"] == "WidgetList is a list of Widget"
    assert all(child["description"] for child in found["properties"].values())


def test_names_read_the_group_backwards() -> None:
    widget = resource(None, group="a.b.example.com", version="v1beta1")
    assert schemas.name_of(widget) == "com.example.b.a.v1beta1.Widget"
    assert schemas.name_of(widget, list_=True) == "com.example.b.a.v1beta1.WidgetList"


# -- order ------------------------------------------------------------------------------------------------------------

ORDERS: list[tuple[str, Schema, Schema]] = [
    (
        "keywords as in kube-openapi's structs, then extensions",
        {
            "x-b": 1, "x-a": True, "properties": {}, "example": 1, "externalDocs": {"url": "u", "description": "d"},
            "additionalProperties": True, "not": {}, "anyOf": [TEXT], "oneOf": [TEXT], "allOf": [TEXT], "items": TEXT,
            "required": ["b", "a"], "enum": ["b", "a"], "pattern": "p", "minLength": 0, "maxLength": 1, "maximum": 2,
            "minimum": 0, "default": "", "title": "t", "format": "f", "nullable": True, "type": "x", "description": "d",
        },
        {
            "description": "d", "type": "x", "nullable": True, "format": "f", "title": "t", "default": "", "maximum": 2,
            "minimum": 0, "maxLength": 1, "minLength": 0, "pattern": "p", "enum": ["b", "a"], "required": ["b", "a"],
            "items": TEXT, "allOf": [TEXT], "oneOf": [TEXT], "anyOf": [TEXT], "not": {}, "additionalProperties": True,
            "externalDocs": {"description": "d", "url": "u"}, "example": 1, "x-a": True, "x-b": 1,
        },
    ),
    ("names of properties", obj(b=TEXT, a=TEXT), obj(a=TEXT, b=TEXT)),
    (
        "schemas at every place",
        {
            "properties": {"a": {"title": "t", "type": "x"}},
            "additionalProperties": {"title": "t", "type": "x"},
            "not": {"title": "t", "type": "x"},
            "allOf": [{"title": "t", "type": "x"}],
            "items": {"title": "t", "type": "x"},
        },
        {
            "items": {"type": "x", "title": "t"},
            "allOf": [{"type": "x", "title": "t"}],
            "not": {"type": "x", "title": "t"},
            "properties": {"a": {"type": "x", "title": "t"}},
            "additionalProperties": {"type": "x", "title": "t"},
        },
    ),
    ("objects in values", {"default": {"b": [{"d": 1, "c": 2}], "a": {}}}, {"default": {"a": {}, "b": [{"c": 2, "d": 1}]}}),
    ("objects in an enum", {"enum": [{"b": 1, "a": 2}]}, {"enum": [{"a": 2, "b": 1}]}),
    (
        "rules, whose fields are those of a struct",
        {"x-kubernetes-validations": [{"fieldPath": ".a", "reason": "r", "message": "m", "rule": "true"}]},
        {"x-kubernetes-validations": [{"rule": "true", "message": "m", "reason": "r", "fieldPath": ".a"}]},
    ),
    (
        "nothing that is empty, except for defaults and schemas",
        {"enum": [], "properties": {}, "description": "", "example": {}, "items": {}, "default": {}, "minLength": 0},
        {"default": {}, "minLength": 0, "items": {}},
    ),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "expected"), [row[1:] for row in ORDERS], ids=[row[0] for row in ORDERS])
def test_keys_have_the_order_of_kube_openapi(schema: Schema, expected: Schema) -> None:
    assert json.dumps(schemas.ordered(schema)) == json.dumps(expected)


@pytest.mark.parametrize("style", [V2, V3])
def test_the_schema_of_a_kind_is_ordered(style: str) -> None:
    spec = {"properties": {"b": TEXT, "a": {"title": "t", "type": "string", "description": "d"}}, "type": "object"}
    found = kind_schema(
        resource({"properties": {"spec": spec}, "type": "object"}, selectable_fields=("spec.a",)), style
    )
    assert list(found) == ["type", "properties", *sorted(key for key in found if key.startswith("x-"))]
    assert list(found["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    assert list(found["properties"]["spec"]) == ["type", "properties"]
    assert list(found["properties"]["spec"]["properties"]) == ["a", "b"]
    assert list(found["properties"]["spec"]["properties"]["a"]) == ["description", "type", "title"]
